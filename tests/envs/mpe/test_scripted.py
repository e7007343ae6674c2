"""Scripted policies of the particle tasks against known returns, and rendering."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.mpe.particles import ParticleEnv, ParticleState
from fp3o.envs.mpe.render import render_particles
from fp3o.envs.mpe.scenarios import SCENARIOS, VARIANTS, particle_env
from fp3o.envs.mpe.scripted import TRIANGLE, blind_targets, particle_baselines
from fp3o.envs.scripted import run_scripted
from fp3o.envs.task import ScriptedPolicy
from fp3o.spec import Discrete

KEY = jax.random.key(0)
ENVS = [particle_env(name, variant) for name in SCENARIOS for variant in VARIANTS]
named = lambda env: env.spec.name  # noqa: E731


RETURNS = {
    "mpe/simple_reference": (-27.33, -34.3, -10.1, -4.5),
    "mpe/simple_reference:mpe2": (-26.1, -28.3, -17.4, -7.4),
    "mpe/simple_speaker_listener": (-33.33, -40.6, -14.5, -5.9),
    "mpe/simple_speaker_listener:mpe2": (-33.33, -39.9, -15.4, -7.4),
    "mpe/simple_spread": (-67.8, -72.8, -54.9, -34.4),
    "mpe/simple_spread:mpe2": (-24.1, -26.3, -18.75, -6.55),
}
"""Returns of one agent over 20,000 episodes: still, random, blind, planner.

Those of the first two tasks come from another implementation; agents that stand still are known
exactly where distances are squared, 25·2·(1 + reach²)/3. Those of simple_spread are this one's.
"""


def acts(env: ParticleEnv) -> dict[str, ScriptedPolicy]:
    """The scripted policies by name."""
    return {one.name: one.act for one in particle_baselines(env) if one.act}


def earned(env: ParticleEnv, policy: ScriptedPolicy, episodes: int) -> np.ndarray:
    """Returns of some episodes."""
    return np.asarray(run_scripted(env, policy, KEY, episodes)[0])


@pytest.mark.parametrize("env", ENVS, ids=named)
def test_returns_of_scripted_policies(env: ParticleEnv) -> None:
    """Within four standard errors of the known returns; the planner may gain 0.2."""
    known = dict(zip(("still", "random", "blind", "planner"), RETURNS[env.spec.name], strict=True))
    policies, episodes = acts(env), 128 if env.solid else 320
    start = earned(env, policies["still"], 4096)
    assert abs(start.mean() - known["still"]) < 4 * start.std() / 64 + 0.05
    start = start[:episodes] - known["still"]
    for name in ("random", "blind", "planner"):
        returns = earned(env, policies[name], episodes)
        # Relative to standing still from the same initial states, which reduces the variance.
        luck = start * np.polyfit(start, returns, 1)[0]
        variance = (returns - luck).var() / episodes + returns.var() / 20_000
        error, gain = 4 * variance**0.5 + 0.05, (returns - luck).mean() - known[name]
        assert -error < gain < error + 0.2 * (name == "planner"), (name, gain, error)


@pytest.mark.parametrize("env", [g for g in ENVS if not g.solid], ids=named)
def test_planner_ends_perfectly(env: ParticleEnv) -> None:
    """With fewer steps left than its horizon, no sequence of moves is better for any agent."""
    policy, left = acts(env)["planner"], 3

    def follow(state: ParticleState, act: Callable[[ParticleState, int], jax.Array]) -> jax.Array:
        total = jnp.zeros(2)
        for t in range(left):
            state, *_ = env.step(state, act(state, t), KEY)
            total += env.own_rewards(state)
        return total

    def fixed(state: ParticleState, moves: jax.Array) -> jax.Array:
        return follow(state, lambda _, t: env.join_action(jnp.full(2, moves[t]), jnp.zeros(2, int)))

    def planned(state: ParticleState) -> jax.Array:
        return follow(state, lambda state, _: policy(state, KEY))

    state = jax.vmap(env.reset)(jax.random.split(KEY, 64))
    velocity = jax.random.normal(KEY, state.velocity.shape) * jnp.asarray(env.has_goal)[:, None]
    state = state._replace(
        velocity=velocity, position=0.3 * state.position, landmarks=0.3 * state.landmarks,
        time=jnp.full(64, 25 - left),
    )  # fmt: skip
    every = jnp.stack(jnp.meshgrid(*[jnp.arange(5)] * left), -1).reshape(-1, left)
    best = jax.jit(jax.vmap(jax.vmap(fixed, (None, 0)), (0, None)))(state, every).max(1)
    earned = jax.jit(jax.vmap(planned))(state)
    np.testing.assert_allclose(earned, best, atol=1e-5)


@pytest.mark.parametrize("env", ENVS, ids=named)
def test_random_actions_are_available_and_uniform(env: ParticleEnv) -> None:
    """Every choice that exists is taken equally often, no other is taken."""
    policy, state = acts(env)["random"], env.reset(KEY)
    drawn = np.asarray(jax.vmap(lambda key: policy(state, key))(jax.random.split(KEY, 4000)))
    assert isinstance(env.spec.actions, Discrete)
    for agent, sizes in enumerate(env.spec.actions.sizes):
        for part, size in enumerate(sizes):
            shares = np.bincount(drawn[:, agent, part], minlength=size) / 4000
            np.testing.assert_allclose(shares, np.full(size, 1 / size), atol=0.5 / size)


@pytest.mark.parametrize("env", ENVS, ids=named)
def test_blind_agents_stay_at_their_targets(env: ParticleEnv) -> None:
    """At the centre of the landmarks, or on the triangle, in any assignment."""
    state = env.reset(KEY)
    centre = jnp.tile(state.landmarks.mean(0), (len(env.agent_types), 1))
    corners = env.rules.reach * jnp.asarray(TRIANGLE, jnp.float32)
    stay = jax.jit(acts(env)["blind"])
    places = [centre] if any(env.has_goal) else [corners[::-1], -corners[:, ::-1], corners]
    for place in places:
        there = state._replace(position=place)
        np.testing.assert_allclose(blind_targets(env, there), place, atol=1e-6)
        assert not stay(there, KEY).any()


def test_blind_formation_is_the_best_triangle() -> None:
    """No small change of the three points brings them nearer to a random landmark."""
    grid = (np.arange(120) + 0.5) / 60 - 1
    points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 1, 2)
    mean = lambda spots: np.linalg.norm(points - spots, axis=-1).min(1).mean()  # noqa: E731
    assert mean(TRIANGLE) == pytest.approx(0.4712, abs=2e-4)
    for change in 0.03 * np.concatenate([np.eye(6), -np.eye(6)]).reshape(-1, 3, 2):
        assert mean(TRIANGLE + change) > mean(TRIANGLE)


@pytest.mark.parametrize("name", SCENARIOS)
def test_images_show_the_state(name: str) -> None:
    """An image that changes with positions, messages, goals and the caption."""
    pytest.importorskip("matplotlib")
    env = particle_env(name)
    state = env.reset(KEY)
    base = render_particles(env, state)
    assert base.shape == (482, 480, 3) and base.dtype == np.uint8 and base.std() > 5
    np.testing.assert_array_equal(base, render_particles(env, state))
    changed = [state._replace(position=-state.position), state._replace(time=state.time + 1)]
    changed += [state._replace(velocity=state.velocity + 1.0)]
    if any(env.has_goal):
        changed += [state._replace(message=state.message.at[0].set(1))]
        changed += [state._replace(goal=state.goal.at[1].set((state.goal[1] + 1) % 3))]
    else:
        red = lambda image: (np.abs(image - np.array([193.0, 18.0, 31.0])).sum(-1) < 40).sum()  # noqa: E731
        crowd = render_particles(env, state._replace(position=0.1 * state.position))
        assert red(base) == 0 and red(crowd) > 50  # touching is marked
    for other in changed:
        assert (render_particles(env, other) != base).any()
    assert (render_particles(env, state, "a caption")[430:] != base[430:]).any()
