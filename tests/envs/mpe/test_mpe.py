"""The particle tasks against the mpe2 package, a plain model and known returns."""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import particle as plain
import pytest

from fp3o.envs.api import Env
from fp3o.envs.mpe.particles import NONE, Particle, Particles
from fp3o.envs.mpe.scenarios import SCENARIOS, VARIANTS, particle
from fp3o.envs.vectorise import VmapEnv
from particle import MODULES

KEY = jax.random.key(0)
GAMES = [particle(name, variant) for name in SCENARIOS for variant in VARIANTS]
named = lambda game: game.spec.name  # noqa: E731


def begin(position: Any, landmarks: Any, goal: list[int]) -> Particles:
    """A state at rest and silent."""
    x = jnp.asarray(position, jnp.float32)
    silence = jnp.full(len(x), NONE)
    places = jnp.asarray(landmarks, jnp.float32)
    return Particles(x, 0.0 * x, silence, places, jnp.asarray(goal), jnp.zeros((), int))


def stepper(game: Particle) -> Any:
    """A step and what is seen after it, compiled."""

    def step(state: Particles, action: jax.Array) -> Any:
        new, *outcome = game.step(state, action, KEY)
        return new, game.observe(new), *outcome

    return jax.jit(step)


def check_sight(game: Particle, observation: Any, rows: list[Any]) -> None:
    """The given observations, padded with zeros; the state is all of them in a row."""
    for seen, row in zip(np.asarray(observation.obs), rows, strict=True):
        np.testing.assert_allclose(seen, np.pad(row, (0, game.spec.obs_size - len(row))), atol=2e-5)
    for seen in np.asarray(observation.state):
        np.testing.assert_allclose(seen, np.concatenate(rows), atol=2e-5)


def draw(rng: np.random.Generator, game: Particle) -> np.ndarray:
    """A random legal action."""
    return rng.integers(0, np.array(game.spec.actions.sizes))


@pytest.mark.parametrize("name", SCENARIOS)
def test_equals_mpe2(name: str) -> None:
    """Observations, rewards and ends are the package's at every step, contacts included."""
    pytest.importorskip("mpe2")
    env = importlib.import_module(f"mpe2.{MODULES[name]}").parallel_env()
    game, rng = particle(name, "mpe2"), np.random.default_rng(1)
    step = stepper(game)
    differ = 0
    for episode in range(5 if game.solid else 3):
        seen, _ = env.reset(seed=episode)
        world = env.unwrapped.world
        if game.solid:  # crowded, so that agents touch
            for agent in world.agents:
                agent.state.p_pos *= 0.3
            seen = {a: env.unwrapped.observe(a) for a in env.agents}
        goal = [NONE] * len(world.agents)
        for agent in world.agents:
            if getattr(agent, "_goal_a", None) is not None:
                goal[world.agents.index(agent.goal_a)] = world.landmarks.index(agent.goal_b)
        state = begin([a.state.p_pos for a in world.agents],
                      [m.state.p_pos for m in world.landmarks], goal)  # fmt: skip
        team, ended = list(env.agents), False
        check_sight(game, game.observe(state), [seen[a] for a in team])
        for _ in range(25):
            assert not ended
            action = draw(rng, game)
            given = {a: env.action_space(a).dtype.type(c) for a, c in zip(team, action[:, 0])}  # noqa: B905
            seen, reward, stopped, cut, _ = env.step(given)
            state, observation, *outcome = step(state, jnp.asarray(action))
            check_sight(game, observation, [seen[a] for a in team])
            np.testing.assert_allclose(outcome[0], [reward[a] for a in team], atol=3e-5)
            ended = bool(outcome[2])
            assert (bool(outcome[1]), ended) == (stopped[team[0]], cut[team[0]])
            differ += len({*reward.values()}) > 1
        assert ended
    assert differ > 5 or name == "simple_speaker_listener"  # agents were told apart


@pytest.mark.parametrize("name", SCENARIOS)
def test_equals_plain_model_of_the_paper(name: str) -> None:
    """Observations, rewards and ends are those of on-policy's environment, written down twice."""
    game, rng = particle(name), np.random.default_rng(2)
    step = stepper(game)
    for episode in range(5 if game.solid else 3):
        state = jax.jit(game.reset)(jax.random.key(episode))
        state = state._replace(position=(0.3 if game.solid else 1.0) * state.position)
        world = plain.TASKS[name](*map(np.asarray, state[:4:3]), np.asarray(state.goal).tolist())
        check_sight(game, game.observe(state), [world.see(i) for i in range(len(game.kinds))])
        for t in range(25):
            action = draw(rng, game)
            moves, words = action[:, 0].tolist(), action[:, -1].tolist()
            wanted, over = world.step(moves, words)
            state, observation, reward, terminated, truncated = step(state, jnp.asarray(action))
            check_sight(game, observation, [world.see(i) for i in range(len(game.kinds))])
            np.testing.assert_allclose(reward, wanted, atol=1e-4)
            assert (bool(terminated), bool(truncated)) == (over, False) == (t == 24, False)


@pytest.mark.parametrize("game", GAMES, ids=named)
def test_facts(game: Particle) -> None:
    """Sizes, masks and padding are what networks are told; games are values."""
    spec, observation = game.spec, game.observe(game.reset(KEY))
    assert isinstance(game, Env)
    assert observation.obs.shape == (spec.num_agents, spec.obs_size)
    assert observation.state.shape == (spec.num_agents, spec.state_size)
    np.testing.assert_array_equal(observation.action_mask, spec.actions.mask)
    assert observation.alive.all() and spec.truncates == (game.variant == "mpe2")
    assert {game: 1}[particle(game.name, game.variant)] == 1
    wide = spec.actions.sizes
    for action in (np.zeros_like(wide), np.array(wide) - 1):
        move, word = game.read(jnp.asarray(action))
        np.testing.assert_array_equal(game.write(move, word), action)
    env = VmapEnv(game, 4)
    state, _ = jax.jit(env.reset)(KEY)
    _, timestep = jax.jit(env.step)(state, jnp.zeros((4, *np.shape(wide)), int))
    assert timestep.reward.shape == (4, spec.num_agents) and not timestep.episode_start.any()


def test_sizes_and_padding() -> None:
    """The numbers of the published tasks."""
    sizes = {
        named(g): (g.spec.actions.sizes, g.spec.obs_size, g.spec.state_size, g.spec.agent_types)
        for g in GAMES
    }
    talk, spread = (((3,), (5,)), 11, 14, (0, 1)), (((5,),) * 3, 18, 54, (0, 0, 0))
    assert sizes == {
        "mpe/simple_reference": (((5, 10),) * 2, 21, 42, (0, 0)),
        "mpe/simple_reference:mpe2": (((50,),) * 2, 21, 42, (0, 0)),
        "mpe/simple_speaker_listener": talk,
        "mpe/simple_speaker_listener:mpe2": talk,
        "mpe/simple_spread": spread,
        "mpe/simple_spread:mpe2": spread,
    }
    game = particle("simple_speaker_listener")
    observation = game.observe(game.reset(KEY))
    assert observation.action_mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert (observation.obs[0, 3:] == 0).all() and (observation.obs[0, :3] > 0).all()


@pytest.mark.parametrize("game", GAMES, ids=named)
def test_reset_draws(game: Particle) -> None:
    """Agents, landmarks and goals fill their ranges evenly; nothing moves or speaks."""
    state = jax.jit(jax.vmap(game.reset))(jax.random.split(KEY, 3000))
    reach = 1.0 if game.variant == "mpe2" or game.name == "simple_speaker_listener" else 0.8
    for x, bound in ((state.position, 1.0), (state.landmarks, reach)):
        assert 0.99 * bound < jnp.abs(x).max() <= bound
        np.testing.assert_allclose(jnp.square(x).mean((0, 2)), bound**2 / 3, rtol=0.06)
    assert not state.velocity.any() and (state.message == NONE).all()
    seekers = {"simple_reference": (0, 1), "simple_speaker_listener": (1,), "simple_spread": ()}
    for agent, goal in enumerate(np.asarray(state.goal).T):
        shares = [(goal == landmark).mean() for landmark in range(3)]
        there = agent in seekers[game.name]
        np.testing.assert_allclose(shares, [1 / 3 if there else 0.0] * 3, atol=0.04)
        assert there or (goal == NONE).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_words_are_heard_one_observation_later(variant: str) -> None:
    """By the other agent only, until something else is said; the silent are not heard at all."""
    game = particle("simple_reference", variant)
    state, still = game.reset(KEY), jnp.zeros(2, int)
    heard = lambda s: game.observe(s).obs[:, -10:].tolist()  # noqa: E731
    assert heard(state) == [[0.0] * 10] * 2
    for words in ([3, 9], [0, 3]):
        state, *_ = game.step(state, game.write(still, jnp.asarray(words)), KEY)
        assert heard(state) == jax.nn.one_hot(jnp.asarray(words[::-1]), 10).tolist()
    game = particle("simple_speaker_listener", variant)
    state = game.reset(KEY)
    before = game.observe(state).obs
    state, *_ = game.step(state, jnp.asarray([[2], [1]]), KEY)
    after = game.observe(state).obs
    assert before[1, -3:].tolist() == [0.0] * 3 and after[1, -3:].tolist() == [0.0, 0.0, 1.0]
    assert (before[0] == after[0]).all()


def test_agents_on_one_spot_do_no_harm() -> None:
    """Where the original divides by zero, agents just do not push each other."""
    game = particle("simple_spread")
    state = begin([[0.1, 0.2]] * 3, [[0.0, 0.0]] * 3, [NONE] * 3)
    new, reward, _, _ = jax.jit(game.step)(state, jnp.zeros((3, 1), int), KEY)
    assert jnp.isfinite(new.position).all() and jnp.isfinite(reward).all()


def test_unknown_names_are_refused() -> None:
    """With what was probably meant."""
    with pytest.raises(ValueError, match=r"did you mean 'simple_spread'.*simple_reference"):
        particle("simple_spred")
    with pytest.raises(ValueError, match=r"did you mean 'paper'.*mpe2"):
        particle("simple_spread", "papr")
