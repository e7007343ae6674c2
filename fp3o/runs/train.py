"""`train` and `resume`: from settings to a finished run directory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fp3o.envs.registry import register_env
from fp3o.errors import SettingError
from fp3o.options import show
from fp3o.runs.directory import DamagedRunError, RunDirectory
from fp3o.runs.loggers import check_loggers
from fp3o.runs.players import PlayerSource, player_source, require_players
from fp3o.runs.progress import Display, DisplayStyle, make_display
from fp3o.runs.provenance import provenance_record
from fp3o.runs.restart import set_aside
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig
from fp3o.runs.settings import read_settings
from fp3o.runs.trainer import Trainer
from fp3o.runs.trust import require_trust_in_run, require_trust_in_settings
from fp3o.training.host_rollout import disable_async_dispatch


def train(
    task: Any = None,
    *,
    config: RunConfig | str | Path | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    progress: DisplayStyle = "auto",
    loggers: Sequence[str] = ("tensorboard",),
    **overrides: Any,
) -> Run:
    """Train policies for a task and store everything in a run directory.

    Args:
        task: a name (see `fp3o list`), or an object: an `Env`, a PettingZoo `ParallelEnv`, or a
            function that makes one. None: a demo.
        config: a `RunConfig`, or a JSON or TOML file of settings.
        preset: name of one of the task's presets; by default its first one.
        out: the run directory; by default a new one under `runs/`.
        progress: display of the progress: auto, live, plain or quiet.
        loggers: loggers in addition to `metrics.jsonl`.
        **overrides: settings by name, as in `fp3o train --help`, for example
            `algorithm="mappo", sharing="none", steps=1e6, seeds=5`. They replace those of
            `config`, which replace those of the preset. And `trust=True`, which allows the file
            `config` to name code to import; `players=4`, processes that play the blocks of
            environments (see `--players`).
    """
    disable_async_dispatch()  # before anything uses the CPU
    trust, players = overrides.pop("trust", False), player_source(overrides.pop("players", 0))
    if not (task is None or isinstance(task, str)):
        task = register_env(task).name
    resolved = make_config(task, config, preset, trust).with_settings(overrides).resolve()
    return start_run(resolved, out, make_display(progress), loggers, players=players)


def resume(
    path: str | Path,
    *,
    steps: int | float | None = None,
    restart: bool = False,
    progress: DisplayStyle = "auto",
    loggers: Sequence[str] = ("tensorboard",),
    trust: bool = False,
    **options: Any,
) -> Run:
    """Resume a run exactly from its latest checkpoint; `steps` may be increased.

    A run whose checkpoints are lost or damaged is not changed. `restart` starts it over with the
    same settings and keeps the old files in a folder inside the run directory.

    A custom task, network, sharing or algorithm that the run names is imported only if you `trust`
    it, unless this process has registered it. The option `players` is that of `train`.
    """
    players = player_source(options.pop("players", 0))
    if options:
        raise SettingError(f"unknown option {show(next(iter(options)))} of resume: Known: players")
    require_trust_in_run(path, trust)
    display = make_display(progress)
    if restart:
        set_aside(RunDirectory(path), display)
    return replace(continue_run(path, display, loggers, steps, players=players), trust=trust)


def make_config(
    task: str | None = None,
    config: RunConfig | str | Path | None = None,
    preset: str | None = None,
    trust: bool = False,
) -> RunConfig:
    """The settings of a preset, changed by a file of settings; or a `RunConfig` as it is.

    A file that names code to import needs `trust`.
    """
    if isinstance(config, RunConfig):
        if preset is not None:
            raise SettingError("give either a RunConfig or a preset, not both")
        return config if task is None else config.with_settings({"task": task})
    filed = read_settings(config) if config is not None else {}
    if task is not None:
        filed["task"] = task
    require_trust_in_settings(filed, trust, str(config), named={"task": task})
    base = RunConfig.from_preset(filed.get("task"), preset)
    return base.with_settings({**filed, "task": base.task})


def start_run(
    config: RunConfig,
    out: str | Path | None,
    display: Display,
    loggers: Sequence[str],
    with_report: bool = True,
    players: PlayerSource | None = None,
) -> Run:
    """Start a run in a new directory, train it, and write its report."""
    check_loggers(loggers)
    require_players(config, players)
    directory = RunDirectory(out if out is not None else _free_path(config))
    directory.create()
    with directory.writing():
        agents = config.task_info.spec(config.variant).num_agents
        directory.write_json("config.json", provenance_record(config.settings, agents))
        run = _finish(Trainer(config, directory, display, loggers, players), with_report)
        return replace(run, trust=True)  # the caller named everything in it


def continue_run(
    path: str | Path,
    display: Display,
    loggers: Sequence[str],
    steps: int | float | None = None,
    with_report: bool = True,
    players: PlayerSource | None = None,
) -> Run:
    """Continue a run from its latest checkpoint, and write its report."""
    disable_async_dispatch()  # before anything uses the CPU
    check_loggers(loggers)
    directory = RunDirectory(path)
    config = RunConfig().with_settings(directory.read_settings()).check()
    require_players(config, players)
    directory.lock()
    with directory.writing():
        if steps is not None:
            config = config.with_settings({"steps": steps}).check()
        total = config.iterations * config.steps_per_iteration
        if (done := _finished_steps(directory)) != total:
            trainer = Trainer(config, directory, display, loggers, players)
            done = max(done, trainer.step)
            if total < done:
                raise SettingError(f"{path} has already done {done} steps, more than {total}")
            if trainer.iteration < config.iterations:
                trainer.note_resumption()
            return _finish(trainer, with_report)
        return _with_report(Run.load(path), display, with_report)


def _finished_steps(directory: RunDirectory) -> int:
    """Steps of a finished run, 0 if it is not finished: it is neither trained nor checked again."""
    path = directory.path / "results.json"
    if not path.exists():
        return 0
    try:
        done = directory.read_json("results.json").get("steps")
    except DamagedRunError as error:
        raise DamagedRunError(f"{error}. {EVALUATE_AGAIN.format(path=path)}") from None
    if type(done) is not int:
        raise DamagedRunError(f"{path} is damaged: no steps. {EVALUATE_AGAIN.format(path=path)}")
    return done


EVALUATE_AGAIN = "Delete {path} and resume: the policies are then evaluated again"


def _finish(trainer: Trainer, with_report: bool) -> Run:
    """Train to the end or until a stop signal; write the report of a finished run."""
    finished, run = trainer.run(), Run.load(trainer.directory.path)
    return _with_report(run, trainer.display, finished and with_report)


def _with_report(run: Run, display: Display, wanted: bool) -> Run:
    if wanted and not (run.path / "report.html").exists():
        with display.waiting("writing the report"):
            run.report()
    return run


def _free_path(config: RunConfig) -> Path:
    """`runs/task-algorithm-sharing-1`, or the first number that is free."""
    settings = config.settings
    sharing = settings["sharing"] if isinstance(settings["sharing"], str) else "custom"
    name = "-".join([config.task.split("/")[-1], settings["algorithm"].split(":")[0], sharing])
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
