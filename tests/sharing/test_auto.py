"""Automatic sharing groups agents by the effects of their actions."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.envs.api import Env, Observation
from fp3o.envs.registry import get_task
from fp3o.envs.vectorise import VmapEnv
from fp3o.sharing.auto import auto_sharing, cluster, effect_differences
from fp3o.sharing.schemes import layer_groups
from fp3o.spec import Discrete, EnvSpec


@dataclass(frozen=True)
class Walkers(Env):
    """Agents on separate lines; a step to the right is as long as their speed."""

    speeds: tuple[float, ...]
    choices: tuple[int, ...] = (3, 3, 3, 3)
    life: int = 10**6

    @property
    def spec(self) -> EnvSpec:
        """Every agent observes its position and its index."""
        n = len(self.speeds)
        sizes = tuple((size,) for size in self.choices)
        return EnvSpec("walkers", Discrete(sizes), 1 + n, 1, (0,) * n)

    def reset(self, key: Any) -> Any:
        """Random positions."""
        return jax.random.normal(key, (len(self.speeds),)), jnp.zeros((), int)

    def step(self, state: Any, action: Any, key: Any) -> Any:
        """A step, with noise."""
        place, time = state
        wind = 0.3 * jax.random.normal(key, place.shape)
        place = place + jnp.asarray(self.speeds) * (action[:, 0] - 1.0) + wind
        none = jnp.zeros((), bool)
        return (place, time + 1), place, none, none

    def observe(self, state: Any) -> Observation:
        """The agent's own position."""
        place, time = state
        n = len(self.speeds)
        obs = jnp.concatenate([place[:, None], jnp.eye(n)], 1)
        action_mask = jnp.ones((n, max(self.choices)), bool)
        return Observation(obs, obs[:, :1], action_mask, jnp.full(n, time < self.life))


def test_walkers_are_grouped_by_their_speed() -> None:
    """The same speed, the same group; the index of an agent does not count."""
    env = VmapEnv(Walkers((1.0, 1.0, -1.0, -1.0)), 16)
    differ = effect_differences(env, 100)
    assert differ[0, 1] < 0.05
    assert differ[0, 2] > 1.5
    np.testing.assert_array_equal(differ, differ.T)
    assert auto_sharing(env, 100) == (0, 0, 1, 1)
    assert auto_sharing(VmapEnv(Walkers((1.0,) * 4), 16), 100) == (0, 0, 0, 0)


def test_unequal_choices_are_unequal_agents() -> None:
    """Agents with different action spaces are in different groups."""
    env = VmapEnv(Walkers((1.0,) * 4, (3, 2, 3, 2)), 16)
    assert auto_sharing(env, 100) == (0, 1, 0, 1)


def test_too_few_random_steps_are_rejected() -> None:
    """Agents that die at once cannot be compared."""
    with pytest.raises(ValueError, match="alive for only 16 random steps"):
        effect_differences(VmapEnv(Walkers((1.0,) * 4, life=1), 16), 20)


@pytest.mark.parametrize(
    ("differ", "groups"),
    [
        ([[0.0]], (0,)),
        ([[0, 0.05], [0.05, 0]], (0, 0)),
        ([[0, 1.5], [1.5, 0]], (0, 1)),
        ([[0, 1, 1], [1, 0, 0], [1, 0, 0]], (0, 1, 1)),
        (1.0 - np.eye(3), (0, 1, 2)),
    ],
)
def test_clusters(differ: Any, groups: tuple[int, ...]) -> None:
    """Small cases by hand."""
    assert cluster(np.array(differ, float)) == groups


def test_joints_of_the_cheetah() -> None:
    """Thighs with thighs, shins with shins; the feet turn opposite ways."""
    assert auto_sharing(get_task("mamujoco/HalfCheetah-6x1").vec_env(None, 64)) == (
        0,
        1,
        2,
        0,
        1,
        3,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "groups"),
    [("2s3z", (0, 0, 1, 1, 1)), ("3s5z", (0,) * 3 + (1,) * 5), ("5m_vs_6m", (0,) * 5)],
)
def test_unit_types(name: str, groups: tuple[int, ...]) -> None:
    """Stalkers, zealots and marines, found from their actions."""
    assert auto_sharing(get_task(f"smac/{name}").vec_env(None, 64)) == groups


@pytest.mark.slow
def test_a_battle_is_trained_with_estimated_groups(tmp_path: Path) -> None:
    """The run's settings hold the map."""
    run = fp3o.train(
        "smac/3s5z", sharing="auto", algorithm="fp3o", seeds=1, num_envs=2, rollout=20, epochs=1,
        hidden=(8,), gru_size=0, sequence_length=1, steps=80, eval_every=0, eval_episodes=1,
        final_episodes=1, out=tmp_path / "run", progress="quiet", loggers=(),
    )  # fmt: skip
    settings = json.loads((run.path / "config.json").read_text())["settings"]
    assert settings["sharing"] == [0, 0, 0, 1, 1, 1, 1, 1]


def test_a_run_estimates_its_groups(tmp_path: Path) -> None:
    """The groups are estimated before training and stored with the settings."""
    run = fp3o.train(
        "mpe/simple_speaker_listener", sharing="auto", algorithm="fp3o", seeds=1, num_envs=4,
        rollout=25, epochs=1, hidden=(8,), steps=100, eval_episodes=4, final_episodes=4,
        out=tmp_path / "run", progress="quiet", loggers=(),
    )  # fmt: skip
    assert run.config.learner.sharing == (0, 1)
    assert fp3o.Policy.load(run.path).card.sharing[0] == (0, 1)
    with pytest.raises(ValueError, match="auto_sharing"):
        layer_groups("auto", (0, 0), 2)
