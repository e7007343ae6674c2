"""Custom environments, by import path and as objects, are used like any other task."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.cli.train import fold_env_options
from fp3o.envs.adapters.variants import read_variant, write_variant
from fp3o.envs.registry import REGISTERED, get_task, register_env
from fp3o.envs.toys.probe import Probe
from fp3o.envs.vectorise import NamedVecEnv
from fp3o.training.program import Program

MODULE = '''
from dataclasses import dataclass, replace
import fp3o
from fp3o.envs.toys.probe import PROBES

@dataclass(frozen=True)
class Guess(fp3o.Env):
    """The probe `credit`, with a bonus."""

    bonus: float = 0.0
    max_episode_steps = 3
    spec = replace(PROBES["credit"].spec, name="anything")

    def reset(self, key):
        return PROBES["credit"].reset(key)

    def step(self, state, action, key):
        state, reward, *ends = PROBES["credit"].step(state, action, key)
        return state, reward + self.bonus, *ends

    def observe(self, state):
        return PROBES["credit"].observe(state)

ready = Guess(1.0)
nothing = 3

class Endless(Guess):
    max_episode_steps = property()
'''
FLAGS = [
    "--seeds", "1", "--num-envs", "4", "--rollout", "6", "--hidden", "8", "--epochs", "1",
    "--eval-episodes", "4", "--final-episodes", "4", "--quiet", "--loggers", "none",
]  # fmt: skip
SMALL: dict[str, Any] = {
    "num_envs": 4, "rollout": 5, "sequence_length": 1, "gru_size": 0, "hidden": (8, 8), "epochs": 2,
    "seeds": 1, "eval_every": 1, "eval_episodes": 4, "final_episodes": 4, "steps": 40,
    "progress": "quiet", "loggers": (),
}  # fmt: skip


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module outside the package."""
    (tmp_path / "custom_guess.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "custom_guess"


def test_trained_resumed_and_evaluated(module: str, tmp_path: Path) -> None:
    """By import path; the run keeps the options of the environment."""
    out = tmp_path / "run"
    command = ["train", f"python:{module}:Guess", "--env.bonus", "0.5", "--steps", "48"]
    assert main([*command, "--out", str(out), *FLAGS]) == 0
    text = (out / "config.json").read_text()
    assert f"python/{module}.Guess" in text and "default:env.bonus=0.5" in text
    json.loads(text)
    run = fp3o.resume(out, steps=72, progress="quiet", loggers=(), trust=True)
    found = run.evaluate(4)
    assert found["task"] == f"python/{module}.Guess:default:env.bonus=0.5"
    # 0.5 in each of three steps, and at most 1 at the end.
    assert 1.5 <= found["policies"][0]["return"] <= 2.5
    assert fp3o.check_env(f"python:{module}:Guess", steps=20).ok


def test_objects_that_are_not_environments_are_rejected(module: str) -> None:
    """The message says what is missing."""
    assert get_task(f"python:{module}:ready").env().spec.name == f"python/{module}.ready"
    for name, message in (
        ("nothing", "not an environment"),
        ("Endless", "has no `max_episode_steps`"),
        ("Gues", "did you mean 'Guess'"),
    ):
        with pytest.raises(ValueError, match=message):
            get_task(f"python:{module}:{name}").env()
    with pytest.raises(ValueError, match="cannot be imported"):
        get_task("python:nowhere_at_all:Guess").env()
    with pytest.raises(ValueError, match="unknown option 'bonus'"):
        get_task(f"python:{module}:Guess").env("default:bonus=1")


def test_variants_have_options_of_ours_and_of_the_environment() -> None:
    ours, theirs = read_variant("default:reward=sum,env.N=3,env.a=none", ["reward"])
    assert (ours, theirs) == ({"reward": "sum"}, (("N", 3), ("a", None)))
    assert write_variant(ours, theirs) == "default:reward=sum,env.N=3,env.a=none"


def test_options_of_the_environment_become_part_of_the_variant() -> None:
    """Before and after `--variant`, with and without an equals sign."""
    assert fold_env_options(["t", "--steps", "3"]) == ["t", "--steps", "3"]
    given = ["t", "--env.n=3", "--variant", "default:reward=sum", "--env.m", "x, y=2"]
    folded = ["t", "--variant", "default:reward=sum,env.n=3,env.m='x, y=2'"]
    assert fold_env_options(given) == folded


def train_and_render(source: Any, out: Path) -> str:
    """Train, evaluate, resume and render; the name of the task."""
    run = fp3o.train(source, out=out, **SMALL)
    assert run.config.task.startswith("own/")
    assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])
    assert fp3o.resume(out, steps=60, progress="quiet", loggers=()).finished
    assert fp3o.render(fp3o.Policy.load(out), out / "video.gif", 1, seconds=1).exists()
    return run.config.task


def test_an_object_is_trained_as_it_is(tmp_path: Path) -> None:
    """A PettingZoo environment, or a function that makes one; rendered where it can be."""
    pytest.importorskip("mpe2", reason="needs the extra mpe2")
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(max_cycles=5, render_mode="rgb_array")

    def make(**kwargs: Any) -> Any:
        return simple_spread_v3.parallel_env(max_cycles=5, **kwargs)

    train_and_render(env, tmp_path / "object")
    out = tmp_path / "function"
    name = train_and_render(make, out)
    # Another process does not know the object until it is registered again.
    known = REGISTERED.pop(name)
    with pytest.raises(ValueError, match=r"fp3o\.register_env"):
        fp3o.evaluate(out, 4)
    assert register_env(make).name == known.name
    assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])


def test_objects_that_are_not_tasks() -> None:
    with pytest.raises(ValueError, match="not an environment"):
        fp3o.train(3, **SMALL)


@dataclasses.dataclass(frozen=True)
class OwnBatch(fp3o.VmapEnv):
    """A batch that is stepped in its own way, which may return rewards of another shape."""

    agents: int = 3

    def step(self, state: Any, action: Any) -> tuple[Any, Any]:
        state, now = super().step(state, action)
        return state, now._replace(reward=now.reward[:, : self.agents])


@dataclasses.dataclass(frozen=True)
class WithOwnBatch(Probe):
    agents: int = 3

    def vectorise(self, num_envs: int) -> fp3o.VecEnv:
        return OwnBatch(self, num_envs, self.agents)


def test_an_environment_has_its_own_batch(tmp_path: Path) -> None:
    """It is stepped in training, under the name of the task, and checked before."""
    env = WithOwnBatch("own", (2, 2, 2), (2, 2, 2))
    task = register_env(env)
    batch = task.vec_env(None, 4)
    assert batch.spec.name == task.name == "own/WithOwnBatch"
    assert isinstance(batch, NamedVecEnv) and isinstance(batch.env, OwnBatch)
    program = Program(batch, fp3o.Config(num_envs=4, rollout=2, hidden=(4,), minibatches=1))
    _, metrics = program.iterate(program.init(0))
    assert metrics["episodes"] == 8
    with pytest.raises(fp3o.EnvError, match=r"own/WithOwnBatch.*reward after step has shape"):
        fp3o.train(dataclasses.replace(env, agents=2), steps=8, num_envs=4, out=tmp_path / "run")
