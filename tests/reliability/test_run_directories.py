"""Damaged run directories: each command gives the right result or a documented error."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import damage
import pytest
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from run_files import contents
from small_runs import TASK

import fp3o
from fp3o.reports import report
from fp3o.runs import evaluation, trainer
from fp3o.runs import run as run_module
from fp3o.runs.directory import RunDirectory

SETTINGS: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 2, "rollout": 4, "hidden": (4,), "epochs": 1,
    "steps": 8 * 6, "eval_every": 2, "eval_episodes": 2, "final_episodes": 3, "save_every": 0.0,
    "progress": "quiet", "loggers": (),
}  # fmt: skip


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Programs are compiled once, and figures are not drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "make_program", cache(_compiled_program))
        patch.setattr(run_module, "report", lambda _, out: out)
        patch.setattr(Figure, "savefig", lambda self, out, **_: out.write("<svg></svg>"))
        yield


def _compiled_program(config: Any) -> Any:
    program = evaluation.make_program(config)
    program.compile(program.init(config.seed))
    program.compile = lambda state: None
    return program


class Originals:
    """A run that was stopped, the same run finished, and what commands say about them."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch):
        calls = iter(range(100))
        with patch.context() as stopped:
            stopped.setattr(trainer, "stop_signals", lambda say: _StopAfter(4, calls))
            self.stopped = fp3o.train(TASK, out=folder / "stopped", **SETTINGS).path
        copied = Path(shutil.copytree(self.stopped, folder / "finished"))
        self.finished = fp3o.resume(copied, progress="quiet", loggers=()).path
        self.returns = {path: _returns(path) for path in (self.stopped, self.finished)}
        self.weights = {path: _weights(path) for path in (self.stopped, self.finished)}


class _StopAfter:
    """A stop signal that comes after some iterations."""

    def __init__(self, iterations: int, calls: Iterator[int]):
        self._iterations, self._calls = iterations, calls

    def __enter__(self) -> "_StopAfter":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __bool__(self) -> bool:
        return next(self._calls) >= self._iterations


@pytest.fixture(scope="module")
def originals(quick: None, tmp_path_factory: pytest.TempPathFactory) -> Originals:
    return Originals(tmp_path_factory.mktemp("originals"), pytest.MonkeyPatch())


def _returns(path: Path) -> list[float]:
    return [row["return"] for row in fp3o.evaluate(path, 3)["policies"]]


def _weights(path: Path) -> dict[str, bytes]:
    return {
        str(folder.relative_to(path)): (folder / "weights.safetensors").read_bytes()
        for folder in sorted(path.glob("policy/*/*"))
    }


def evaluated(path: Path, base: Path, originals: Originals) -> None:
    """The returns of the policies that are left are those of the undamaged run."""
    returns = _returns(path)
    assert {*returns} <= {*originals.returns[base]}


def exported(path: Path, base: Path, originals: Originals) -> None:
    """An exported policy is one of the undamaged ones."""
    out = fp3o.Policy.load(path).save(path / "exported")
    assert (out / "weights.safetensors").read_bytes() in originals.weights[base].values()


def reported(path: Path, base: Path, originals: Originals) -> None:
    assert report([path], path / "page.html", figures=False).stat().st_size > 1000


def rendered(path: Path, base: Path, originals: Originals) -> None:
    run = fp3o.Run.load(path)
    run.render(path / "episode.gif", episodes=1, seconds=0.2)


def loaded(path: Path, base: Path, originals: Originals) -> None:
    """Everything a run object tells."""
    run = fp3o.Run.load(path)
    assert run.config.learner.num_envs == 2
    assert (run.seeds, run.step >= 0, len(repr(run)) > 10) == (run.seeds, True, True)
    assert "<table>" in run._repr_html_()
    for name in ("episode_return", "kl", "eval_return"):
        run.series(name)


def newest(path: Path) -> int:
    """The iteration from which a run can go on; -1 if it cannot."""
    try:
        checkpoint = RunDirectory(path).newest()
    except fp3o.UserError:
        return -1
    return checkpoint.iteration if checkpoint else -1


def resumed(path: Path, base: Path, originals: Originals) -> None:
    """A resumed run ends as the undamaged one; a finished one is not changed."""
    before, iteration = contents(path), newest(path)
    try:
        run = fp3o.resume(path, progress="quiet", loggers=())
    except fp3o.UserError:
        if contents(path) != before:  # it went on, and could not write
            assert newest(path) >= iteration >= 0
        raise
    if contents(path) != before:
        assert run.finished
        same = (originals.finished / "metrics.jsonl").read_bytes()
        assert (path / "metrics.jsonl").read_bytes() == same
        assert _weights(path) == originals.weights[originals.finished]


COMMANDS: tuple[Callable[[Path, Path, Originals], None], ...] = (
    loaded, evaluated, exported, reported, rendered, resumed,
)  # fmt: skip
"""In this order: the last one writes."""


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_run_directories(campaign: Campaign, originals: Originals, tmp_path: Path) -> None:
    """Truncated, flipped, deleted, replaced files: no trace, no other result, nothing lost."""

    @given(st.sampled_from([originals.stopped, originals.finished]), damage.damages)
    def attack(base: Path, changes: list[Any]) -> None:
        path = tmp_path / "run"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(base, path)
        what = damage.apply(path, changes)
        outcomes = []
        for command in COMMANDS:
            try:
                command(path, base, originals)
                outcomes.append(command.__name__)
            except fp3o.UserError:
                outcomes.append(f"not {command.__name__}")
            except BaseException as error:
                error.add_note(f"{command.__name__} after: {what}, of {base.name}")
                raise
        campaign.count(*outcomes)

    campaign.attack(attack, small=25, medium=300, whole=2000, shrink=False)
