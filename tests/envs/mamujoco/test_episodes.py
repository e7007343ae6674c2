"""Ends and starts of episodes in batches of MuJoCo tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mamujoco_native import KEY, TASKS, WITH_FORCES, draw, make, place, rows, run, same

from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.types import TimeStep

pytestmark = pytest.mark.usefixtures("temporary_folder")


@pytest.mark.parametrize(("name", "variant"), [("Hopper-3x1", "paper"), ("Humanoid-9p8", "farama"),
                                               ("Pusher-3p", "farama")])  # fmt: skip
def test_episodes_restart(name: str, variant: str) -> None:
    """`obs` starts the new episode, `final_obs` ends the old one; others are unaffected."""
    env, fresh = make(name, variant, 6), make(name, variant, 6)
    rng, ends = np.random.default_rng(5), 0
    state, now = env.reset(KEY)
    for _ in range(110):
        old, (state, now) = state, env.step(state, draw(rng, env))
        ended = np.asarray(now.terminated | now.truncated)
        assert not (now.terminated & now.truncated).any()
        assert (now.episode_start == ended).all() and (
            state.time == np.where(ended, 0, old.time + 1)
        ).all()
        assert (state.episode == old.episode + ended).all()
        same(rows(now.obs, *np.flatnonzero(~ended)), rows(now.final_obs, *np.flatnonzero(~ended)))
        for i in np.flatnonzero(ended):
            ends += 1
            assert (now.obs[i] != now.final_obs[i]).any() and (
                now.state[i] != now.final_state[i]
            ).any()
            first = place(fresh, env.simulation.fields["qpos"][i], env.simulation.fields["qvel"][i])
            same(rows((state.physics, state.progress), i), rows((first.physics, first.progress), 0))
            observation = fresh.observe(fresh.simulation.fields)
            same(rows((now.obs, now.state), i), rows(observation, 0))
    assert ends >= 6


@pytest.mark.parametrize(("name", "variant"), [("Hopper-3x1", "paper"), ("Ant-2x4", "farama"),
                                               ("Pusher-3p", "farama")])  # fmt: skip
def test_a_rollout_equals_its_steps(name: str, variant: str) -> None:
    """In bulk or step by step, across ends and within episodes."""
    env, rng = make(name, variant, 3), np.random.default_rng(7)
    state, now = env.reset(KEY)
    limit = env.task.body.max_episode_steps
    state = state._replace(time=np.array([0, limit - 60, limit - 10]))
    actions = [draw(rng, env) for _ in range(110)]
    half, first = env.rollout(state, now, lambda t, *_: actions[t], 40)
    whole, rest = env.rollout(half, last(first), lambda t, *_: actions[40 + t], 70)
    seen, ends = [now], 0
    for action in actions:
        state, now = env.step(state, action)
        seen.append(now)
        ends += int(now.episode_start.sum())
    assert ends > 0
    same(whole, state)
    rolled = [np.concatenate([x, y[1:]]) for x, y in zip(first, rest, strict=True)]
    for mine, wanted in zip(rolled, map(np.stack, zip(*seen, strict=True)), strict=True):
        # Means of many vectors at once may be rounded differently than those of a few.
        np.testing.assert_allclose(mine, wanted, rtol=1e-12, atol=1e-12)
    same(last(rest), now)


def last(seen: TimeStep) -> TimeStep:
    return TimeStep._make(x[-1] for x in seen)


@pytest.mark.parametrize(("name", "profile"), TASKS)
def test_time_limits(name: str, profile: str) -> None:
    """Steps of an episode: the paper's 1000 for all, farama's fewer for two bodies."""
    env = make(name, profile, 2)
    limit = {"Reacher": 50, "Pusher": 100}.get(name.partition("-")[0], 1000)
    limit = limit if profile == "farama" else 1000
    state, _ = env.reset(KEY)
    state = state._replace(time=np.array([limit - 2, 0]))
    still = np.zeros((2, *env.spec.actions.mask.shape))
    state, before = env.step(state, still)
    state, after = env.step(state, still)
    assert not before.truncated.any() and not before.episode_start.any()
    assert after.truncated.tolist() == after.episode_start.tolist() == [True, False]
    assert not after.terminated.any() and state.time.tolist() == [0, 2]


def test_episodes_of_the_papers_reacher_last_a_thousand_steps() -> None:
    env = make("Reacher-2x1")
    state, _ = env.reset(KEY)
    _, seen = run(env, state, 1001)
    assert [t for t, step in enumerate(seen) if step.truncated[0]] == [999]


def test_failing_in_the_last_step_terminates() -> None:
    """A failure terminates the episode, even at the time limit."""
    env = make("Hopper-3x1")
    tilted = np.array([0, 1.25, 0.3, 0, 0, 0])
    state = place(env, tilted, np.zeros(6))._replace(time=np.array([999]))
    _, timestep = env.step(state, np.zeros((1, 3, 1)))
    assert timestep.terminated[0] and not timestep.truncated[0] and timestep.episode_start[0]


def first_of_second_episode(
    env: NativeVecEnv, state: NativeState, actions: np.ndarray
) -> np.ndarray:
    """The first observation of the second episode of the first environment."""
    for action in actions:
        state, timestep = env.step(state, action)
        if timestep.episode_start[0]:
            return np.asarray(timestep.obs[0])
    raise AssertionError("no episode ended")


def test_the_stream_determines_initial_states() -> None:
    """They do not depend on earlier actions."""
    env, rng = make("Hopper-3x1", envs=2), np.random.default_rng(0)
    state, _ = env.reset(KEY)
    wild = [draw(rng, env) for _ in range(200)]
    calm = [np.zeros((2, 3, 1))] * 400
    same(*(first_of_second_episode(env, state, np.array(a)) for a in (wild, calm)))


@pytest.mark.parametrize(("name", "variant"), [("Hopper-3x1", "paper"), WITH_FORCES])
def test_streams(name: str, variant: str) -> None:
    """The environments of a key do not depend on the other keys of the batch."""
    keys = jax.random.split(jax.random.key(9), 3)
    together, alone, rng = make(name, variant, 6), make(name, variant, 2), np.random.default_rng(1)
    actions = [draw(rng, alone) for _ in range(40)]
    state, first = together.reset(keys)
    seen = [(state, first)]
    for action in actions:
        state, now = together.step(state, np.tile(action, (3, 1, 1)))
        seen.append((state, now))
    for j, key in enumerate(keys):
        own, now = alone.reset(key)
        same(rows(seen[0], 2 * j, 2 * j + 1), (own, now))
        for action, all_of_them in zip(actions, seen[1:], strict=True):
            own, now = alone.step(own, action)
            same(rows(all_of_them, 2 * j, 2 * j + 1), (own, now))


def test_initial_states_differ() -> None:
    """Between environments, episodes and keys; the same key gives the same ones."""
    env = make("Hopper-3x1", envs=8)
    starts = []
    for numbers in ([0, 0], [0, 1], [1, 0]):
        key = jax.random.wrap_key_data(jnp.array(numbers, jnp.uint32))
        state, first = env.reset(key)
        starts += list(np.asarray(first.obs[:, 0]))
        _, seen = run(env, state, 80)
        starts += [now.obs[i, 0] for now in seen for i in np.flatnonzero(now.episode_start)]
    assert len(starts) > 60 and len({row.tobytes() for row in map(np.asarray, starts)}) == len(
        starts
    )
    same(env.reset(KEY), env.reset(KEY))
