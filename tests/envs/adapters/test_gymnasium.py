"""Gymnasium environments as teams of one: equal to the raw ones, and learnable."""

from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from fp3o.envs.adapters.gymnasium import make_env
from fp3o.envs.check import check_env
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import UserError
from fp3o.learning.config import Config
from fp3o.runs.checkpoint import to_arrays
from fp3o.spec import Box, Discrete
from fp3o.training.program import Program

KEY = jax.random.key(3)


class Raw:
    """Gymnasium environments stepped directly, reset with the seeds that the batch uses."""

    def __init__(self, name: str, seeds: list[list[int]]):
        self.seeds = seeds
        self.envs = [gymnasium.make(name) for _ in seeds]

    def begin(self, i: int) -> Any:
        return self.envs[i].reset(seed=self.seeds[i].pop(0))[0]


def seeds_of(batch: PooledVecEnv, key: Any, episodes: int) -> list[list[int]]:
    """The seeds of the first episodes: of the key, the environment's and the episode's index."""
    words = [[*np.asarray(jax.random.key_data(key)).tolist(), i] for i in range(batch.num_envs)]
    draw = lambda own: int(np.random.SeedSequence(own).generate_state(1)[0] >> 1)  # noqa: E731
    return [[draw([*row, k]) for k in range(episodes)] for row in words]


@pytest.mark.parametrize(("name", "steps"), [("CartPole-v1", 120), ("Pendulum-v1", 210)])
def test_equals_the_raw_environments(name: str, steps: int) -> None:
    """Observations, rewards, ends, and final observations before a reset."""
    batch: Any = make_env(name).vectorise(2)
    raw = Raw(name, seeds_of(batch, KEY, 30))
    state, now = batch.reset(KEY)
    assert now.episode_start.all() and not (now.terminated | now.truncated).any()
    for i in range(2):
        np.testing.assert_array_equal(now.obs[i, 0], raw.begin(i))
    random, kinds = np.random.default_rng(0), set()
    for _ in range(steps):
        action = (
            random.integers(2, size=(2, 1, 1)) if name == "CartPole-v1"
            else random.normal(0, 3, (2, 1, 1)).astype(np.float32)  # often out of bounds
        )  # fmt: skip
        state, now = batch.step(state, action)
        for i, env in enumerate(raw.envs):
            x = action[i, 0]
            seen, reward, over, cut, _ = env.step(
                int(x[0]) if name[0] == "C" else np.clip(x, -2, 2)
            )
            np.testing.assert_array_equal(now.final_obs[i, 0], seen)
            assert now.reward[i, 0] == np.float32(reward)
            assert (now.terminated[i], now.truncated[i]) == (over, cut)
            assert now.episode_start[i] == (over or cut)
            kinds |= {(over, cut)}
            np.testing.assert_array_equal(now.obs[i, 0], raw.begin(i) if over or cut else seen)
    assert (name[0] == "C", name[0] == "P") in kinds  # CartPole terminates, Pendulum is truncated


def test_a_time_limit_truncates() -> None:
    """Even if an option sets it; the value of the last observation is bootstrapped."""
    env = make_env("CartPole-v1", "default:env.max_episode_steps=5")
    assert env.spec.name == "gymnasium/CartPole-v1:default:env.max_episode_steps=5"
    assert env.max_episode_steps == 5
    batch = env.vectorise(1)
    state, now = batch.reset(KEY)
    cuts = []
    for t in range(10):
        state, now = batch.step(state, np.full((1, 1, 1), t % 2))
        cuts.append(bool(now.truncated[0]))
        assert not now.terminated[0]
    assert cuts == [False] * 4 + [True] + [False] * 4 + [True]
    assert (now.final_obs != now.obs).any()


@pytest.mark.parametrize("name", ["FrozenLake-v1", "Taxi-v4", "Blackjack-v1"])
def test_choices_and_masks(name: str) -> None:
    """Discrete observations become one-hot vectors; random play finds no problem."""
    env = make_env(name)
    assert isinstance(env.spec.actions, Discrete)
    checked = check_env(env, steps=60)
    assert [p for p in checked.problems if p.level == "error"] == []
    _, now = env.vectorise(1).reset(KEY)
    assert now.obs.sum() == (3 if name == "Blackjack-v1" else 1)
    assert now.action_mask.all() == (name != "Taxi-v4")  # whose info has a mask


def test_continues_from_an_old_state_as_far_as_possible() -> None:
    """Episodes at their first step restart identically; others are truncated."""
    batch = make_env("CartPole-v1").vectorise(2)
    first, _ = batch.reset(KEY)
    left = np.zeros((2, 1, 1), int)
    second, now = batch.step(first, left)
    _, again = batch.step(first, left)
    np.testing.assert_array_equal(again.obs, now.obs)
    with pytest.warns(RuntimeWarning, match="2 running episodes of 2 steps"):
        _, cut = batch.step(second, left)
    assert cut.truncated.all() and cut.episode_start.all() and not cut.reward.any()
    np.testing.assert_array_equal(cut.final_obs, now.obs)
    assert all(x.dtype != object for x in to_arrays(second).values())
    batch.close()


def test_invalid_environments_are_rejected() -> None:
    assert isinstance(make_env("Pendulum-v1").spec.actions, Box)
    for name, variant, answer in (
        ("CartPol-v1", "default", "CartPole"), ("CartPole-v1", "default:env.g=1", "cannot be"),
        ("CartPole-v1", "default:gravity=9", "env.gravity"), ("CartPole-v1", "paper", "default"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=answer):
            _ = make_env(name, variant).spec


def test_learns_to_balance() -> None:
    """CartPole in a few seconds; at random a pole stands for about 22 steps."""
    config = Config(num_envs=8, rollout=64, hidden=(32,), epochs=6, minibatches=4, agent_id=False)
    config = config.replace(actor_lr=3e-3, critic_lr=3e-3)
    program = Program(make_env("CartPole-v1").vectorise(8), config)
    state, stood = program.init(0), []
    while len(stood) < 30 and max(stood, default=0) < 100:
        state, metrics = program.iterate(state)
        stood.append(float(metrics["episode_return"]))
    assert stood[0] < 40 and max(stood) > 100


def test_trains_with_continuous_actions() -> None:
    config = Config(algorithm="mappo", num_envs=2, rollout=16, hidden=(8,), epochs=1)
    program = Program(make_env("Pendulum-v1").vectorise(2), config)
    state, metrics = program.iterate(program.init(0))
    assert np.isfinite(metrics["kl"]).all()
    assert state.rollout.timestep.obs.shape == (2, 1, 3)


def test_rendering() -> None:
    """An older state is rendered as the last image that was taken."""
    pytest.importorskip("pyenv")
    env = make_env("CartPole-v1")
    plain, rendered = env.vectorise(1), env.with_rendering().vectorise(1)
    assert env.with_rendering().spec == env.spec
    with pytest.raises(UserError, match="returned no image"):
        plain.render(plain.reset(KEY)[0], "")
    first, _ = rendered.reset(KEY)
    image = rendered.render(first, "step 0")
    assert image.dtype == np.uint8 and image.shape[2] == 3
    last = first
    for _ in range(6):
        last, _ = rendered.step(last, np.ones((1, 1, 1), int))
    np.testing.assert_array_equal(rendered.render(first, "step 0"), image)
    assert not np.array_equal(rendered.render(last, "step 0"), image)
    rendered.close()
