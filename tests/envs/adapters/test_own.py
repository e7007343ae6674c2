"""One's own game by import path: trained, resumed, judged and checked like any other task."""

import json
from pathlib import Path

import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.cli.train import fold_env_options
from fp3o.envs.registry import get_task, parse_task
from fp3o.options import of_variant, parse, to_variant, write
from fp3o.runs import run as runner

MODULE = '''
from dataclasses import dataclass, replace
import jax.numpy as jnp
from fp3o.envs.probe import PROBES

@dataclass(frozen=True)
class Guess:
    """The probe `credit`, with a bonus."""

    bonus: float = 0.0
    limit = 3
    spec = replace(PROBES["credit"].spec, name="anything")

    def reset(self, key):
        return PROBES["credit"].reset(key)

    def step(self, state, action, key):
        state, reward, *ends = PROBES["credit"].step(state, action, key)
        return state, reward + self.bonus, *ends

    def sight(self, state):
        return PROBES["credit"].sight(state)

ready = Guess(1.0)
nothing = 3

class Endless(Guess):
    limit = property()
'''
SMALL = [
    "--seeds", "1", "--num-envs", "4", "--rollout", "6", "--hidden", "8", "--epochs", "1",
    "--eval-episodes", "4", "--final-episodes", "4", "--quiet", "--loggers", "none",
]  # fmt: skip


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that only its user knows."""
    (tmp_path / "somebodys_game.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(runner, "report", lambda _, out: out)
    return "somebodys_game"


def test_trained_resumed_and_judged(module: str, tmp_path: Path) -> None:
    """By its path; the options of the environment are kept in the run."""
    out = tmp_path / "run"
    words = ["train", f"python:{module}:Guess", "--env.bonus", "0.5", "--steps", "48"]
    assert main([*words, "--out", str(out), *SMALL]) == 0
    settings = json.loads((out / "config.json").read_text())["settings"]
    assert settings["task"] == f"python/{module}.Guess"
    assert settings["variant"] == "default:env.bonus=0.5"
    fp3o.resume(out, steps=72, progress="quiet", loggers=())
    found = fp3o.evaluate(out, 4)
    assert found["task"] == f"python/{module}.Guess:default:env.bonus=0.5"
    # 0.5 in each of three steps, and at most 1 at the end.
    assert 1.5 <= found["policies"][0]["return"] <= 2.5
    assert fp3o.check_env(f"python:{module}:Guess", steps=20).ok


def test_what_is_no_game_is_refused(module: str) -> None:
    """With what it lacks."""
    assert get_task(f"python:{module}:ready").env().spec.name == f"python/{module}.ready"
    for name, words in (
        ("nothing", "not a game"),
        ("Endless", "give it a `limit`"),
        ("Gues", "did you mean 'Guess'"),
    ):
        with pytest.raises(ValueError, match=words):
            get_task(f"python:{module}:{name}").env()
    with pytest.raises(ValueError, match="cannot be imported"):
        get_task("python:nobodys_game:Guess").env()
    with pytest.raises(ValueError, match="unknown option 'bonus'"):
        get_task(f"python:{module}:Guess").env("default:bonus=1")


def test_names_lead_back() -> None:
    """Names of specs, import paths and variants with options."""
    task, variant = parse_task("mpe/simple_spread:mpe2")
    assert (task.name, variant) == ("mpe/simple_spread", "mpe2")
    task, variant = parse_task("pettingzoo:a.b:parallel_env")
    assert (task.name, variant) == ("pettingzoo/a.b.parallel_env", None)
    task, variant = parse_task("pettingzoo/a.b.parallel_env:default:reward=sum,env.N=3")
    assert (task.name, variant) == ("pettingzoo/a.b.parallel_env", "default:reward=sum,env.N=3")
    ours, theirs = of_variant("default:reward=sum,env.N=3,env.a=none", ["reward"])
    assert (ours, theirs) == ({"reward": "sum"}, (("N", 3), ("a", None)))
    assert to_variant(ours, theirs) == "default:reward=sum,env.N=3,env.a=none"
    assert parse(write({"x": 1.5, "y": True, "z": "word"})) == {"x": 1.5, "y": True, "z": "word"}


def test_options_of_the_environment_go_into_the_variant() -> None:
    """Before and behind `--variant`, with and without an equals sign."""
    assert fold_env_options(["t", "--steps", "3"]) == ["t", "--steps", "3"]
    told = fold_env_options(["t", "--env.n=3", "--variant", "default:reward=sum", "--env.m", "x"])
    assert told == ["t", "--variant", "default:reward=sum,env.n=3,env.m=x"]
