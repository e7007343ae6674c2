"""Checks of environments: correct ones pass, and every violation is found and named."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from host_probe import HostProbe

import fp3o
from fp3o.cli.main import main
from fp3o.envs.api import HostEnv
from fp3o.envs.check import check_env
from fp3o.envs.toys.probe import PROBES
from fp3o.spec import Discrete
from fp3o.types import TimeStep

CREDIT: Any = PROBES["credit"]
STEPS = 20


@dataclass(frozen=True)
class Spoiled(HostProbe):
    """A correct environment whose time steps are changed."""

    spoil: Callable[[TimeStep], TimeStep] = lambda now: now

    def reset(self, key: Any) -> Any:
        """As it is, then spoiled."""
        state, now = super().reset(key)
        return state, self.spoil(now)

    def step(self, state: Any, action: Any) -> Any:
        """As it is, then spoiled."""
        state, now = super().step(state, action)
        return state, self.spoil(now)


def change(**fields: Callable[[TimeStep], Any]) -> Callable[[TimeStep], TimeStep]:
    """Fields replaced by functions of the time step."""
    return lambda now: now._replace(**{name: new(now) for name, new in fields.items()})


NOISE = np.random.default_rng(0)
WRONG: dict[str, tuple[Callable[[TimeStep], TimeStep], str]] = {
    "shape": (change(obs=lambda now: now.obs[..., 0]), r"obs after reset has shape \(4, 3\)"),
    "dtype": (
        change(action_mask=lambda now: now.action_mask.astype(float)),
        "action_mask after reset is float64",
    ),
    "nan": (change(obs=lambda now: now.obs * np.nan), "obs is not finite"),
    "mask": (
        change(action_mask=lambda now: np.zeros_like(now.action_mask)),
        "agent 0 has no available choice",
    ),
    "both": (change(truncated=lambda now: now.terminated), "both terminated and truncated"),
    "cut": (
        change(truncated=lambda now: now.terminated, terminated=lambda now: now.truncated),
        "EnvSpec.truncates is False",
    ),
    "start": (
        change(episode_start=lambda now: np.ones_like(now.episode_start)),
        "episode_start does not follow",
    ),
    "final": (change(final_obs=lambda now: now.obs + 1), "final_obs differs from obs"),
}


def test_correct_environments_pass() -> None:
    """Environments, batches and names."""
    for env in (CREDIT, HostProbe(CREDIT, 4), "probe/unequal", "mamujoco/Hopper-3x1:paper"):
        found = fp3o.check_env(env, steps=60)
        assert found.ok, str(found)
        assert found.numbers["steps/s"] > 0
        assert found.numbers["episodes"] > 0
        assert "ready for training" in str(found)


@pytest.mark.parametrize("name", WRONG)
def test_incorrect_environments_are_reported(name: str) -> None:
    """Each with what is wrong and a fix."""
    spoil, words = WRONG[name]
    found = check_env(Spoiled(CREDIT, 4, spoil), steps=STEPS)
    assert not found.ok
    with pytest.raises(AssertionError, match=words):
        raise AssertionError("\n".join(p.what for p in found.problems))
    assert all(p.fix for p in found.problems if p.level == "error")
    assert "not ready for training" in str(found)


def test_nondeterminism_is_reported() -> None:
    """Randomness that does not come from the key."""
    spoil = change(reward=lambda now: now.reward + NOISE.normal(size=now.reward.shape))
    found = check_env(Spoiled(CREDIT, 4, spoil), steps=STEPS)
    assert any("repeated with the same key" in p.what for p in found.problems)


def test_an_error_in_an_episode_is_reported() -> None:
    """The error is part of the report and is not raised."""

    def fail(now: TimeStep) -> TimeStep:
        if not now.episode_start.all():
            raise ZeroDivisionError("no wheels")
        return now

    found = check_env(Spoiled(CREDIT, 4, fail), steps=STEPS)
    assert not found.ok
    assert "ZeroDivisionError: no wheels" in str(found)


def test_the_spec_is_checked_first() -> None:
    """A spec that contradicts itself."""
    spec = dataclasses.replace(CREDIT.spec, actions=Discrete(((3,), (0,))), obs_size=0)

    class Promising(HostProbe):
        @property
        def spec(self) -> Any:
            return spec

    words = str(check_env(Promising(CREDIT, 4)))
    for part in ("2 agents have actions and 3 have types", "obs_size is 0", "without any choice"):
        assert part in words


class Ticking(HostEnv):
    """A host environment that makes batches of the probe."""

    spec, max_episode_steps = dataclasses.replace(CREDIT.spec, name="own/ticking"), 3

    def vectorise(self, num_envs: int) -> HostProbe:
        return HostProbe(CREDIT, num_envs)


@pytest.mark.parametrize("source", [CREDIT, lambda: CREDIT, Ticking(), Ticking])
def test_whatever_can_be_trained_on_can_be_checked(source: Any) -> None:
    """Objects, and functions and classes that make one."""
    assert check_env(source, steps=STEPS).ok


def test_a_pettingzoo_environment_can_be_checked() -> None:
    """The object, and a function that makes one."""
    zoo = pytest.importorskip("tiny_zoo", reason="needs the extra pettingzoo")
    for source in (zoo.Counting("", length=4), lambda: zoo.Counting("", length=4)):
        found = check_env(source, steps=STEPS)
        assert found.ok, str(found)


def test_episodes_longer_than_declared_are_found() -> None:
    """Even if fewer steps than those of an episode are requested."""

    class Late(type(CREDIT)):
        def step(self, state: Any, action: Any, key: Any) -> Any:
            return CREDIT.step(state, action, key)

    late = Late("late", (1, 1, 1), (2, 2, 2), 2)
    found = check_env(late, steps=1)
    assert not found.ok
    assert "an episode has 3 steps or more, but max_episode_steps is 2" in str(found)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """By name; the exit status says whether the environment is correct."""
    assert main(["check", "probe/credit", "--steps", "20"]) == 0
    assert "ready for training" in capsys.readouterr().out
    assert main(["check", "probe/credit", "--steps", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    assert main(["check", "probe/credt"]) == 2
