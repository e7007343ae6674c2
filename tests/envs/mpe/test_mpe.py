"""The particle tasks against the mpe2 package, a plain model and known returns."""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import particle as plain
import pytest
from particle import MODULES

from fp3o.envs.api import Env
from fp3o.envs.mpe.particles import NONE, ParticleEnv, ParticleState
from fp3o.envs.mpe.scenarios import SCENARIOS, VARIANTS, particle_env
from fp3o.envs.vectorise import VmapEnv

KEY = jax.random.key(0)
ENVS = [particle_env(name, variant) for name in SCENARIOS for variant in VARIANTS]
named = lambda env: env.spec.name  # noqa: E731


def begin(position: Any, landmarks: Any, goal: list[int]) -> ParticleState:
    """A state at rest and silent."""
    x = jnp.asarray(position, jnp.float32)
    silence = jnp.full(len(x), NONE)
    places = jnp.asarray(landmarks, jnp.float32)
    return ParticleState(x, 0.0 * x, silence, places, jnp.asarray(goal), jnp.zeros((), int))


def stepper(env: ParticleEnv) -> Any:
    """A compiled step, followed by an observation."""

    def step(state: ParticleState, action: jax.Array) -> Any:
        new, *results = env.step(state, action, KEY)
        return new, env.observe(new), *results

    return jax.jit(step)


def check_observation(env: ParticleEnv, observation: Any, rows: list[Any]) -> None:
    """The given observations, padded with zeros; the state is all of them in a row."""
    for seen, row in zip(np.asarray(observation.obs), rows, strict=True):
        np.testing.assert_allclose(seen, np.pad(row, (0, env.spec.obs_size - len(row))), atol=2e-5)
    for seen in np.asarray(observation.state):
        np.testing.assert_allclose(seen, np.concatenate(rows), atol=2e-5)


def draw(rng: np.random.Generator, env: ParticleEnv) -> np.ndarray:
    """A random available action."""
    return rng.integers(0, np.array(env.spec.actions.sizes))  # pyright: ignore


@pytest.mark.parametrize("name", SCENARIOS)
def test_equals_mpe2(name: str) -> None:
    """Observations, rewards and ends are the package's at every step, contacts included."""
    pytest.importorskip("mpe2")
    raw = importlib.import_module(f"mpe2.{MODULES[name]}").parallel_env()
    env, rng = particle_env(name, "mpe2"), np.random.default_rng(1)
    step = stepper(env)
    differ = 0
    for episode in range(5 if env.solid else 3):
        seen, _ = raw.reset(seed=episode)
        world = raw.unwrapped.world
        if env.solid:  # crowded, so that agents touch
            for agent in world.agents:
                agent.state.p_pos *= 0.3
            seen = {a: raw.unwrapped.observe(a) for a in raw.agents}
        goal = [NONE] * len(world.agents)
        for agent in world.agents:
            if getattr(agent, "_goal_a", None) is not None:
                goal[world.agents.index(agent.goal_a)] = world.landmarks.index(agent.goal_b)
        state = begin([a.state.p_pos for a in world.agents],
                      [m.state.p_pos for m in world.landmarks], goal)  # fmt: skip
        team, ended = list(raw.agents), False
        check_observation(env, env.observe(state), [seen[a] for a in team])
        for _ in range(25):
            assert not ended
            action = draw(rng, env)
            given = {a: raw.action_space(a).dtype.type(c) for a, c in zip(team, action[:, 0])}  # noqa: B905
            seen, reward, stopped, cut, _ = raw.step(given)
            state, observation, rewards, terminated, truncated = step(state, jnp.asarray(action))
            check_observation(env, observation, [seen[a] for a in team])
            np.testing.assert_allclose(rewards, [reward[a] for a in team], atol=3e-5)
            ended = bool(truncated)
            assert (bool(terminated), ended) == (stopped[team[0]], cut[team[0]])
            differ += len({*reward.values()}) > 1
        assert ended
    assert differ > 5 or name == "simple_speaker_listener"  # rewards of agents differ


@pytest.mark.parametrize("name", SCENARIOS)
def test_equals_plain_model_of_the_paper(name: str) -> None:
    """Observations, rewards and ends equal an independent model of on-policy's environment."""
    env, rng = particle_env(name), np.random.default_rng(2)
    step = stepper(env)
    for episode in range(5 if env.solid else 3):
        state = jax.jit(env.reset)(jax.random.key(episode))
        state = state._replace(position=(0.3 if env.solid else 1.0) * state.position)
        world = plain.TASKS[name](*map(np.asarray, state[:4:3]), np.asarray(state.goal).tolist())
        check_observation(
            env, env.observe(state), [world.see(i) for i in range(len(env.agent_types))]
        )
        for t in range(25):
            action = draw(rng, env)
            moves, words = action[:, 0].tolist(), action[:, -1].tolist()
            wanted, over = world.step(moves, words)
            state, observation, reward, terminated, truncated = step(state, jnp.asarray(action))
            check_observation(env, observation, [world.see(i) for i in range(len(env.agent_types))])
            np.testing.assert_allclose(reward, wanted, atol=1e-4)
            assert (bool(terminated), bool(truncated)) == (over, False) == (t == 24, False)


@pytest.mark.parametrize("env", ENVS, ids=named)
def test_facts(env: ParticleEnv) -> None:
    """Sizes, masks and padding are those of the spec; equal environments are one key."""
    spec, observation = env.spec, env.observe(env.reset(KEY))
    assert isinstance(env, Env)
    assert observation.obs.shape == (spec.num_agents, spec.obs_size)
    assert observation.state.shape == (spec.num_agents, spec.state_size)
    np.testing.assert_array_equal(observation.action_mask, spec.actions.mask)
    assert observation.alive.all() and spec.truncates == (env.variant == "mpe2")
    assert {env: 1}[particle_env(env.name, env.variant)] == 1
    wide = spec.actions.sizes  # pyright: ignore
    for action in (np.zeros_like(wide), np.array(wide) - 1):
        move, word = env.split_action(jnp.asarray(action))
        np.testing.assert_array_equal(env.join_action(move, word), action)
    batch = VmapEnv(env, 4)
    state, _ = jax.jit(batch.reset)(KEY)
    _, timestep = jax.jit(batch.step)(state, jnp.zeros((4, *np.shape(wide)), int))
    assert timestep.reward.shape == (4, spec.num_agents) and not timestep.episode_start.any()


def test_sizes_and_padding() -> None:
    """The numbers of the published tasks."""
    sizes = {
        named(g): (g.spec.actions.sizes, g.spec.obs_size, g.spec.state_size, g.spec.agent_types)  # pyright: ignore
        for g in ENVS
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
    env = particle_env("simple_speaker_listener")
    observation = env.observe(env.reset(KEY))
    assert observation.action_mask.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert (observation.obs[0, 3:] == 0).all() and (observation.obs[0, :3] > 0).all()


@pytest.mark.parametrize("env", ENVS, ids=named)
def test_reset_draws(env: ParticleEnv) -> None:
    """Agents, landmarks and goals are uniformly distributed; agents are at rest and silent."""
    state = jax.jit(jax.vmap(env.reset))(jax.random.split(KEY, 3000))
    reach = 1.0 if env.variant == "mpe2" or env.name == "simple_speaker_listener" else 0.8
    for x, bound in ((state.position, 1.0), (state.landmarks, reach)):
        assert 0.99 * bound < jnp.abs(x).max() <= bound
        np.testing.assert_allclose(jnp.square(x).mean((0, 2)), bound**2 / 3, rtol=0.06)
    assert not state.velocity.any() and (state.message == NONE).all()
    seekers = {"simple_reference": (0, 1), "simple_speaker_listener": (1,), "simple_spread": ()}
    for agent, goal in enumerate(np.asarray(state.goal).T):
        shares = [(goal == landmark).mean() for landmark in range(3)]
        there = agent in seekers[env.name]
        np.testing.assert_allclose(shares, [1 / 3 if there else 0.0] * 3, atol=0.04)
        assert there or (goal == NONE).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_messages_are_observed_one_step_later(variant: str) -> None:
    """By the other agent only, until the next message; silent agents send no message."""
    env = particle_env("simple_reference", variant)
    state, still = env.reset(KEY), jnp.zeros(2, int)
    heard = lambda s: env.observe(s).obs[:, -10:].tolist()  # noqa: E731
    assert heard(state) == [[0.0] * 10] * 2
    for words in ([3, 9], [0, 3]):
        state, *_ = env.step(state, env.join_action(still, jnp.asarray(words)), KEY)
        assert heard(state) == jax.nn.one_hot(jnp.asarray(words[::-1]), 10).tolist()
    env = particle_env("simple_speaker_listener", variant)
    state = env.reset(KEY)
    before = env.observe(state).obs
    state, *_ = env.step(state, jnp.asarray([[2], [1]]), KEY)
    after = env.observe(state).obs
    assert before[1, -3:].tolist() == [0.0] * 3 and after[1, -3:].tolist() == [0.0, 0.0, 1.0]
    assert (before[0] == after[0]).all()


def test_agents_at_the_same_position_do_not_push_each_other() -> None:
    """Where the original divides by zero, the contact force is zero."""
    env = particle_env("simple_spread")
    state = begin([[0.1, 0.2]] * 3, [[0.0, 0.0]] * 3, [NONE] * 3)
    new, reward, _, _ = jax.jit(env.step)(state, jnp.zeros((3, 1), int), KEY)
    assert jnp.isfinite(new.position).all() and jnp.isfinite(reward).all()


def test_unknown_names_are_rejected() -> None:
    """The message suggests the nearest name."""
    with pytest.raises(ValueError, match=r"did you mean 'simple_spread'.*simple_reference"):
        particle_env("simple_spred")
    with pytest.raises(ValueError, match=r"did you mean 'paper'.*mpe2"):
        particle_env("simple_spread", "papr")
