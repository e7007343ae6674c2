"""Names of PettingZoo tasks, and errors: invalid replies, objects, paths and options."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
pytest.importorskip("mpe2", reason="needs the extra mpe2")

from gymnasium import spaces
from scripted_zoo import IDLE, KEY, SPREAD, TWO, both, play, scripted, seen
from tiny_zoo import Scripted

from fp3o.envs.adapters.pettingzoo import PettingZoo, make_env
from fp3o.envs.adapters.pettingzoo_make import load_factory
from fp3o.envs.workers.protocol import Timeouts, WorkerPoolError
from fp3o.errors import MissingExtraError


class Odd(Scripted):
    """An environment with replies that a ParallelEnv must not give."""

    answers: Any = None

    def step(self, actions: Any) -> Any:
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers or super().step(actions)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            RuntimeError("no mood"),
            r"crashed, RuntimeError: no mood \(.*test_pettingzoo_errors.py, line",
        ),
        ((1, 2, 3, 4), "invalid, step returned a tuple of 4, expected 5 dictionaries"),
        ([1], "invalid, step returned list"),
        (({}, {}, {}, {}, {}), "invalid, agent 'a_0' is present and has no observation"),
        ((seen(0, 1), both(np.nan), {}, {}, {}), "invalid, reward is not finite"),
        ((seen(np.inf, 1), {}, {}, {}, {}), "invalid, obs is not finite"),
        (({"a_0": [1, 2], "a_1": [1]}, {}, {}, {}, {}), "'a_0' has an observation of 2 numbers, e"),
    ],
)
def test_failures_in_this_process(answer: Any, words: str) -> None:
    """They raise errors that name the environment; afterwards all environments restart."""
    frames, made = [{"obs": seen(1, 2)}], []

    def make() -> Odd:
        made.append(Odd(TWO, frames))
        return made[-1]

    env = PettingZoo(make).vectorise(2)
    state, _ = env.reset(KEY)
    state, _ = env.step(state, np.array([IDLE] * 2))
    made[2].answers = answer
    with pytest.raises(
        WorkerPoolError, match=f"^environment 1, in step 2 of its episode: .*{words}"
    ):
        env.step(state, np.array([IDLE] * 2))
    assert all(one.closed for one in made)
    with pytest.warns(RuntimeWarning, match="2 running episodes of 2 steps"):
        state, now = env.step(state, np.array([IDLE] * 2))
    assert now.truncated.all() and not now.reward.any() and len(made) == 5
    _, now = env.step(state, np.array([IDLE] * 2))
    assert not now.truncated.any()


def test_resets_are_checked_against_the_spaces() -> None:
    """The result of a reset is compared with the spaces before training."""
    for frame, words in (
        ({"obs": {"a_0": [1.0]}}, "'a_1' is present and has no observation"),
        ({"obs": seen(1, 2), "agents": []}, "no agent is present after a reset"),
        ({"obs": seen(1, 2), "agents": ["x"]}, r"not among possible_agents: \['x'\]"),
        ({"obs": seen(np.nan, 2)}, "obs is not finite"),
    ):
        with pytest.raises(ValueError, match=words):
            _ = scripted(TWO, [frame])[0].spec
    team = {**TWO, "a_1": (spaces.Discrete(2), spaces.Discrete(2))}
    with pytest.raises(ValueError, match=r"'a_1' has an observation of \[2.*\], which is not in"):
        _ = scripted(team, [{"obs": {"a_0": [1.0], "a_1": 2}}])[0].spec


def test_invalid_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong paths, arguments, options and objects say what to do."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needy_zoo.py").write_text("import pettingzoo\nparallel_env = None\n")
    (tmp_path / "poor_zoo.py").write_text("import not_to_be_found\n")
    for path, words in {
        "nowhere.env:make": "No module named 'nowhere'", "nowhere": "is it installed",
        "mpe2.simple_spread_v3:paralel_env": "did you mean 'parallel_env'",
        "mpe2.simple_spread_v3.wrong": "'mpe2.simple_spread_v3' has no 'wrong'",
        "tiny_zoo": "'tiny_zoo' has no 'parallel_env'", "poor_zoo": "not_to_be_found",
        "builtins:dict": "dict names no possible_agents",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=words):
            _ = PettingZoo(path).spec
    with pytest.raises(ValueError, match="unexpected keyword argument 'M'"):
        _ = PettingZoo(SPREAD, {"M": 3}).spec
    one = Scripted(TWO, [{"obs": seen(0, 0)}])
    with pytest.raises(WorkerPoolError, match="the same environment twice"):
        play(PettingZoo(lambda: one))
    with pytest.raises(ValueError, match="workers=0"):
        scripted(TWO, [{"obs": seen(0, 0)}], workers=1)[0].vectorise(1)
    options: list[tuple[dict[str, Any], str]] = [
        ({"reward": "man"}, "did you mean 'mean'"), ({"workers": -1}, "at least 0"),
        ({"max_episode_steps": 0}, "at least 1"), ({"on_failure": "halt"}, "Known: replace, stop"),
        ({"images": "al"}, "did you mean 'all'"),
        ({"timeouts": Timeouts(-1)}, "timeouts"),
    ]  # fmt: skip
    for wrong, words in options:
        with pytest.raises(ValueError, match=words):
            PettingZoo("x", **wrong)
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtraError, match=r"fp3o\[pettingzoo\]"):
        _ = PettingZoo("needy_zoo").spec


def test_names() -> None:
    """A name consists of the path and all options, and identifies the task."""
    spellings = SPREAD, SPREAD.replace(":", "."), SPREAD.partition(":")[0]
    assert len({*map(load_factory, spellings)}) == 1
    plain = PettingZoo(SPREAD)
    assert plain.spec.name == "pettingzoo/mpe2.simple_spread_v3.parallel_env:default"
    task = PettingZoo(SPREAD, {"N": 2}, reward="sum", workers=2)
    wanted = "default:reward=sum,workers=2,env.N=2"
    assert task.variant == wanted and task.spec.name.endswith(f".parallel_env:{wanted}")
    path, _, variant = task.spec.name.removeprefix("pettingzoo/").partition(":")
    assert make_env(path, variant).spec == task.spec
    assert make_env(path, variant) is make_env(path, variant)
    odd = {
        "a": "3x1", "b": "1e3", "c": (1, 2), "d": None, "e": {"x": [True]}, "f": "x, y=2", "g": "",
    }  # fmt: skip
    more = PettingZoo(
        "a.b:c", odd, max_episode_steps=9, episode_metrics=("won", "lost"), on_failure="stop",
        timeouts=Timeouts(step=5),
    )  # fmt: skip
    assert make_env("a.b:c", more.variant) == more
    assert "env.a=3x1" in more.variant and "timeouts.step=5" in more.variant
    assert PettingZoo("a.b:c", {"x": object()}).name == "own/a.b:c"
    for text, words in (
        ("defalt", "did you mean 'default'"), ("default:rewrd=sum", "did you mean 'reward'"),
        ("default:reward", "unknown variant"), ("default:timeouts.x=1", "timeouts.step"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            make_env("a", text)
