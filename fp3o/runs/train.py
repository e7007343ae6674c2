"""`train` and `resume`: from settings to a finished run directory."""

import os
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from fp3o.envs.registry import register_env
from fp3o.errors import SettingError
from fp3o.runs.directory import RunDirectory, RunError
from fp3o.runs.directory_name import free_path
from fp3o.runs.eval_episodes import EPISODE_SETTINGS, choose_episodes
from fp3o.runs.loggers import Loggers, check_loggers, check_logins, left_out_loggers
from fp3o.runs.placement import ONE_DEVICE, Placement
from fp3o.runs.processes import agree, from_leader, is_leader
from fp3o.runs.progress import Display, DisplayStyle, QuietDisplay, make_display
from fp3o.runs.provenance import provenance_record
from fp3o.runs.restart import prepare_resume
from fp3o.runs.results import finished_steps
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig, make_config
from fp3o.runs.source import is_trusted
from fp3o.runs.start import source_records
from fp3o.runs.trainer import Trainer
from fp3o.runs.turn import TrainingStep
from fp3o.training.host_rollout import disable_async_dispatch
from fp3o.training.mesh import Devices

Loop = Generator[TrainingStep, None, Run | None]
"""The steps of a run, and the run at the end."""


def train(
    task: Any = None,
    *,
    config: RunConfig | str | Path | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    progress: DisplayStyle = "auto",
    loggers: Loggers = ("tensorboard",),
    **overrides: Any,
) -> Run:
    """Train policies for a task and store everything in a run directory.

    Args:
        task: a name (see `fp3o list`), or an object: an `Env`, a PettingZoo `ParallelEnv`, or a
            function that makes one. None: a demo.
        config: a `RunConfig`, or a JSON, TOML or YAML file of settings.
        preset: name of one of the task's presets; by default its first one.
        out: the run directory; by default a new one under `runs/`.
        progress: display of the progress: auto, live, plain, notebook or quiet.
        loggers: loggers in addition to `metrics.jsonl`, such as `"wandb"`,
            `["tensorboard", "wandb:project=marl,tags=a,b"]` or
            `{"wandb": {"project": "marl", "tags": ["a", "b"]}}`.
        **overrides: settings by name, as in `fp3o train --help`, for example
            `algorithm="mappo", sharing="none", steps=1e6, seeds=5`. They replace those of
            `config`, which replace those of the preset. And `trust=True`, which allows the file
            `config` to name code to import; `devices=4`, the number of devices that share the
            seeds and the `blocks` of environments; and `players=4`, the number of other processes
            that play the `blocks` of environments on the host.
    """
    resolved, placement = new_run(task, config, preset, overrides)
    options = make_display(progress), loggers
    return _run_of_leader(start_run(resolved, out, *options, placement=placement), out)


def new_run(
    task: Any, config: RunConfig | str | Path | None, preset: str | None, overrides: dict[str, Any]
) -> tuple[RunConfig, Placement]:
    """The settings and the placement that the arguments of `train` mean, checked."""
    disable_async_dispatch()  # before anything uses the CPU
    placement = Placement.take(overrides)
    trust = overrides.pop("trust", False)
    if not (task is None or isinstance(task, str)):
        task = register_env(task).name
    return make_config(task, config, preset, trust).with_settings(overrides).resolve(), placement


def resume(
    path: str | os.PathLike[str],
    *,
    steps: int | float | None = None,
    restart: bool = False,
    progress: DisplayStyle = "auto",
    loggers: Loggers = ("tensorboard",),
    **options: Any,
) -> Run:
    """Resume a run, given by itself or its path, exactly from its latest checkpoint.

    `steps` may be increased.

    A run whose checkpoints are lost or damaged is not changed. `restart` starts it over with the
    same settings and keeps the old files in a folder inside the run directory.

    Loggers that are named as before continue their runs at W&B and MLflow.

    Options are `trust`, `devices` and `players`. A custom task, network, sharing or algorithm that
    the run names is imported only if you `trust` it, unless this process has registered it. Any
    numbers of `devices` and `players` that fit the run's seeds and blocks can continue it.
    """
    trust, placement = options.pop("trust", is_trusted(path)), Placement.take(options)
    if options:
        raise TypeError(f"resume() got an unexpected option {next(iter(options))!r}")
    path, display = Path(path), make_display(progress)
    prepare_resume(path, restart, trust, display)
    run = continue_run(path, display, loggers, steps, placement=placement)
    return replace(_run_of_leader(run, path), trust=trust)


def start_run(*arguments: Any, **options: Any) -> Run | None:
    """Train a new run to its end; arguments as those of `start_loop`."""
    return _exhaust(start_loop(*arguments, **options))


def continue_run(*arguments: Any, **options: Any) -> Run | None:
    """Train a run to its end from its latest checkpoint; arguments as those of `continue_loop`."""
    return _exhaust(continue_loop(*arguments, **options))


def _exhaust(loop: Loop) -> Run | None:
    while True:
        try:
            next(loop)
        except StopIteration as end:
            return end.value


def start_loop(
    config: RunConfig,
    out: str | Path | None,
    display: Display,
    loggers: Loggers,
    with_report: bool = True,
    placement: Placement = ONE_DEVICE,
) -> Loop:
    """Start a run in a new directory, train it step by step, and write its report.

    The run at the end is None in a process that trains along with the one that has the files.
    """
    check_loggers(loggers)
    devices = placement.choose(config)
    directory = RunDirectory(out if out is not None else free_path(config))

    def create() -> dict[str, Any]:
        check_logins(loggers)
        directory.create()
        writing.enter_context(directory.writing())
        chosen = choose_episodes(config, display.say)
        agents = chosen.task_info.spec(chosen.variant).num_agents
        record = provenance_record(chosen.settings, agents) | source_records(chosen)
        directory.write_json("config.json", record)
        return {name: getattr(chosen, name) for name in EPISODE_SETTINGS}

    with ExitStack() as writing:
        config = config.with_settings(from_leader(create))
        if not is_leader():
            return (yield from _follow(config, devices))
        for line in placement.explain(config):
            display.say(line)
        trainer = Trainer(config, directory, display, loggers, devices, placement.players)
        run = yield from _finish(trainer, with_report)
        return replace(run, trust=True)  # the caller named everything in it


def continue_loop(
    path: str | Path,
    display: Display,
    loggers: Loggers,
    steps: int | float | None = None,
    with_report: bool = True,
    placement: Placement = ONE_DEVICE,
) -> Loop:
    """Continue a run from its latest checkpoint, and write its report; as `start_loop`."""
    disable_async_dispatch()  # before anything uses the CPU
    check_loggers(loggers)
    directory = RunDirectory(path)

    def read() -> dict[str, Any]:
        config = RunConfig().with_settings(directory.read_settings()).check()
        directory.lock()
        writing.enter_context(directory.writing())
        if steps is not None:
            config = config.with_settings({"steps": steps}).check()
        if (done := finished_steps(directory)) != config.total_steps:
            check_logins(loggers)
        return {"settings": config.settings, "done": done}

    with ExitStack() as writing:
        found = from_leader(read)
        config, done = RunConfig().with_settings(found["settings"]), found["done"]
        devices, total = placement.choose(config), config.total_steps
        if not is_leader():
            return (yield from _follow(config, devices if done != total else ()))
        if done == total:
            run = _with_report(Run.load(path), display, with_report)
            agree(True)  # the other processes wait for this
            return run
        for line in (*placement.explain(config), *left_out_loggers(directory, loggers)):
            display.say(line)
        trainer = Trainer(config, directory, display, loggers, devices, placement.players)
        if total < (done := max(done, trainer.step)):
            raise SettingError(f"{path} has already done {done} steps, more than {total}")
        trainer.note_resumption()
        return (yield from _finish(trainer, with_report))


def _follow(config: RunConfig, devices: Devices | None) -> Generator[TrainingStep, None, None]:
    """Train along with the leader, if there are devices, until it has written everything."""
    if devices:
        yield from Trainer(config, None, QuietDisplay(), (), devices).turns()
    agree(True)


def _run_of_leader(run: Run | None, path: str | Path | None) -> Run:
    """The run, in other processes than the leader as far as they see its files."""
    if run is None and path is None:
        raise RunError("the first process has chosen a directory for the run: name it with out=")
    return run or Run.load(Path(path or ""))


def _finish(trainer: Trainer, with_report: bool) -> Generator[TrainingStep, None, Run]:
    """Train to the end or until a stop signal; write the report of a finished run."""
    yield from trainer.turns()
    run = _with_report(Run.load(trainer.path), trainer.display, trainer.finished and with_report)
    agree(True)  # the other processes may read the run now
    return run


def _with_report(run: Run, display: Display, wanted: bool) -> Run:
    if wanted and not (run.path / "report.html").exists():
        with display.waiting("writing the report"):
            run.report()
    return run
