"""A training run from its plan to its directory: begin one, go on with one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fp3o.envs.registry import register_env
from fp3o.runs.directory import FORMAT, RunDirectory, RunError
from fp3o.runs.loggers import check_loggers
from fp3o.runs.progress import Display, Style, display
from fp3o.runs.provenance import describe
from fp3o.runs.run_config import RunConfig
from fp3o.runs.settings import from_preset, read_settings, settings_of, with_settings
from fp3o.runs.trainer import Trainer
from fp3o.sharing.schemes import AUTO, resolve_groups


@dataclass(frozen=True)
class Run:
    """A run on the disk: what was asked for and where it is."""

    path: Path
    config: RunConfig
    finished: bool

    @property
    def results(self) -> dict[str, Any]:
        """The final evaluation."""
        return RunDirectory(self.path).read_json("results.json")


def train(
    task: Any = None,
    *,
    preset: str | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    progress: Style = "auto",
    loggers: Sequence[str] = ("tensorboard",),
    **settings: Any,
) -> Run:
    """Train a team and keep everything about it in a run directory.

    Settings are those of `fp3o train --help` under the same names, for example
    `train("mpe/simple_spread", algorithm="mappo", sharing="none", steps=1e6, seeds=5)`. They win
    over those of the file `config`, which win over the task's preset. Without a task, a demo. The
    task may also be an object: a game, a ParallelEnv of PettingZoo, a function that makes one.
    """
    if not (task is None or isinstance(task, str)):
        task = register_env(task).name
    plan = resolve(configure(task, preset, config, settings))
    return start(plan, out, display(progress), loggers)


def configure(
    task: str | None,
    preset: str | None,
    config: str | Path | None,
    settings: Mapping[str, Any],
) -> RunConfig:
    """The plan of a preset, changed by a file, changed by settings."""
    filed = read_settings(config) if config is not None else {}
    plan = from_preset(task or filed.get("task"), preset)
    return with_settings(plan, {**filed, "task": plan.task, **settings})


def resolve(plan: RunConfig) -> RunConfig:
    """The plan, checked, with plain groups in the place of `auto`, of a function or a dict."""
    for name in ("sharing", "critic_sharing"):
        asked, task = getattr(plan.learner, name), plan.task_info
        if asked == AUTO:
            from fp3o.sharing.auto import NUM_ENVS, auto_sharing

            env = task.vec_env(plan.variant, min(NUM_ENVS, task.max_parallel))
            plan = with_settings(plan, {name: auto_sharing(env, seed=plan.seed)})
        elif asked is not None:
            plan = with_settings(plan, {name: resolve_groups(asked, task.spec(plan.variant))})
    return plan.check()


def start(
    plan: RunConfig,
    out: str | Path | None,
    screen: Display,
    loggers: Sequence[str],
    pages: bool = True,
) -> Run:
    """Begin a run in a new directory and see it through; with `pages`, up to its report."""
    check_loggers(loggers)
    directory = RunDirectory(out if out is not None else free_path(plan))
    directory.create()
    try:
        agents = plan.task_info.spec(plan.variant).num_agents
        directory.write_json("config.json", describe(settings_of(plan), agents))
        finished = Trainer(plan, directory, screen, loggers, pages).go()
    finally:
        directory.unlock()
    return Run(directory.path, plan, finished)


def resume(
    path: str | Path,
    *,
    steps: int | float | None = None,
    progress: Style = "auto",
    loggers: Sequence[str] = ("tensorboard",),
) -> Run:
    """Go on with a run exactly where its newest checkpoint stands; `steps` may be raised."""
    return resume_with(path, display(progress), loggers, steps)


def resume_with(
    path: str | Path,
    screen: Display,
    loggers: Sequence[str],
    steps: int | float | None = None,
    pages: bool = True,
) -> Run:
    """The same, told to a display of one's own; with `pages`, up to its report."""
    check_loggers(loggers)
    directory = RunDirectory(path)
    plan = plan_of(directory)
    directory.lock()
    try:
        if steps is not None:
            plan = with_settings(plan, {"steps": steps}).check()
        runner = Trainer(plan, directory, screen, loggers, pages)
        if plan.iterations < runner.iteration:
            raise ValueError(f"{path} has already done {runner.step} steps, more than {steps}")
        if runner.iteration < plan.iterations:
            runner.note_resumption()
        finished = runner.go()
    finally:
        directory.unlock()
    return Run(directory.path, plan, finished)


def plan_of(directory: RunDirectory) -> RunConfig:
    """The plan a run directory was made for."""
    record = directory.read_json("config.json")
    if record.get("format") != FORMAT or not isinstance(record.get("settings"), dict):
        raise RunError(
            f"{directory.path / 'config.json'} has format {record.get('format')!r}, this version "
            f"of fp3o knows format {FORMAT}"
        )
    return with_settings(RunConfig(), record["settings"]).check()


def free_path(plan: RunConfig) -> Path:
    """`runs/task-algorithm-sharing-1`, or the first number that is free."""
    settings = settings_of(plan)
    kind = settings["sharing"] if isinstance(settings["sharing"], str) else "custom"
    words = plan.task.split("/")[-1], settings["algorithm"].split(":")[0], kind
    number = 1
    while (path := Path("runs") / f"{'-'.join(words)}-{number}").exists():
        number += 1
    return path
