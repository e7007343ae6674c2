"""`iterate`: a run as a loop in the caller's hands, one iteration per turn."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fp3o.errors import SettingError, nearest
from fp3o.options import show
from fp3o.runs.directory import RunError
from fp3o.runs.directory_name import free_path
from fp3o.runs.loggers import Loggers
from fp3o.runs.placement import Placement
from fp3o.runs.processes import num_processes
from fp3o.runs.progress import DisplayStyle, make_display
from fp3o.runs.restart import prepare_resume
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig
from fp3o.runs.source import is_trusted
from fp3o.runs.train import Loop, continue_loop, new_run, start_loop
from fp3o.runs.turn import TrainingStep


class TrainingLoop:
    """The steps of a run; after the loop, `run` is the run.

    Leaving the loop by `break` or an exception saves the run, so that it can be continued.
    """

    def __init__(self, steps: Loop, path: str | Path, trust: bool):
        self.path = Path(path)
        """The run directory."""
        self._steps, self._trust = steps, trust
        self._run: Run | None = None
        self._entered = False

    def __iter__(self) -> Iterator[TrainingStep]:
        if self._entered:
            raise RunError(
                f"this loop is over: continue the run with fp3o.iterate(resume={str(self.path)!r})"
            )
        self._entered = True
        signals = SignalSwap()
        try:
            while True:
                with signals:
                    step = next(self._steps)
                yield step
        except StopIteration as end:
            self._run = end.value
        finally:  # also if the loop is left
            with signals:
                self._steps.close()

    @property
    def run(self) -> Run:
        """The run as it is in its directory: finished after the last step, or after `stop`."""
        return self._run or Run.load(self.path, trust=self._trust)


def iterate(
    task: Any = None,
    *,
    config: RunConfig | str | Path | None = None,
    out: str | Path | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: DisplayStyle = "auto",
    loggers: Loggers = ("tensorboard",),
    **overrides: Any,
) -> TrainingLoop:
    """Train like `train`, one iteration per turn of a `for` loop.

    Args:
        task: a name or an object, as in `train`.
        config: a `RunConfig`, or a settings file.
        out: the run directory; by default a new one under `runs/`.
        resume: a run, or the path of one, to continue in place of a task and settings.
        progress: display of the progress: auto, live, plain, notebook or quiet.
        loggers: loggers in addition to `metrics.jsonl`, as in `train`.
        **overrides: `preset` and settings, as in `train`; with `resume`, its options.

    Example:
        loop = fp3o.iterate("mpe/simple_speaker_listener", steps=1e6, seeds=5)
        for step in loop:
            if step.metrics["episode_return"].mean() > -20:
                step.stop()
        run = loop.run
    """
    if resume is not None:
        if not (task is config is out is None):
            raise SettingError("a run that is resumed has its task, settings and directory already")
        return _resumed(resume, progress, loggers, overrides)
    preset = overrides.pop("preset", None)
    resolved, placement = new_run(task, config, preset, overrides)
    if out is None and num_processes() > 1:
        raise RunError("name the directory of a run of several processes with out=")
    path = free_path(resolved) if out is None else out
    steps = start_loop(resolved, path, make_display(progress), loggers, placement=placement)
    return TrainingLoop(steps, path, trust=True)


def _resumed(
    run: str | os.PathLike[str],
    progress: DisplayStyle,
    loggers: Loggers,
    options: dict[str, Any],
) -> TrainingLoop:
    path, placement, display = Path(run), Placement.take(options), make_display(progress)
    known = {"steps": None, "restart": False, "trust": is_trusted(run)}
    for name in options:
        if name not in known:
            raise SettingError(f"unknown option {show(name)} of resume: {nearest(name, known)}")
    chosen = {**known, **options}
    prepare_resume(path, chosen["restart"], chosen["trust"], display)
    steps = continue_loop(path, display, loggers, chosen["steps"], placement=placement)
    return TrainingLoop(steps, path, chosen["trust"])


class SignalSwap:
    """The signal handlers of a generator, in effect only while it runs.

    What its caller does between two steps is stopped by Ctrl-C as always.
    """

    def __init__(self) -> None:
        self._inside: Mapping[int, Any] = {}
        self._outside: Mapping[int, Any] = {}

    def __enter__(self) -> None:
        self._outside = self._swap(self._inside)

    def __exit__(self, *_: object) -> None:
        self._inside = self._swap(self._outside)

    def _swap(self, handlers: Mapping[int, Any]) -> Mapping[int, Any]:
        """Install handlers; returns those before."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        numbers = (signal.SIGINT, signal.SIGTERM)
        before: Mapping[int, Any] = {number: signal.getsignal(number) for number in numbers}
        for number, handler in handlers.items():
            if handler is not None:  # not installed by Python
                signal.signal(number, handler)
        return before
