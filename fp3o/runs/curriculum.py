"""Curricula: runs one after another, each of which starts from the policy of the one before.

A curriculum is a folder with `curriculum.json`, the settings of all stages, and one run directory
per stage: `stage-1`, `stage-2` and so on. Stages that are finished are skipped when it is
continued, and one that was interrupted is resumed exactly.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.envs.registry import register_env
from fp3o.errors import SettingError, UserError
from fp3o.options import show
from fp3o.runs import train as training
from fp3o.runs.directory import RunDirectory
from fp3o.runs.loggers import Loggers, check_loggers
from fp3o.runs.placement import Placement
from fp3o.runs.progress import DisplayStyle, make_display
from fp3o.runs.run import Run
from fp3o.runs.run_config import RunConfig
from fp3o.runs.settings import read_settings
from fp3o.runs.start import check_successor
from fp3o.runs.trust import require_trust_in_settings
from fp3o.spec import FORMAT
from fp3o.training.host_rollout import disable_async_dispatch

CURRICULUM_FILE = "curriculum.json"

START_SETTINGS = ("start_from", "start_agents", "start_critic", "frozen")
"""Settings of a stage that need saved policies, which a stage that has begun does without."""


class CurriculumStage(NamedTuple):
    """One run of a curriculum."""

    number: int
    """From 1."""
    plain: RunConfig
    """Checked settings, without the start from another policy."""
    start: Mapping[str, Any]
    """The settings of its start that were given."""

    @property
    def record(self) -> dict[str, Any]:
        """As JSON: the settings that define the stage."""
        return {**self.plain.settings, **self.start, "frozen": [*self.start["frozen"]]}


def curriculum(
    stages: Sequence[Mapping[str, Any]] | str | Path,
    out: str | Path | None = None,
    *,
    progress: DisplayStyle = "auto",
    loggers: Loggers = ("tensorboard",),
    **settings: Any,
) -> list[Run]:
    """Train stages one after another, each started from the best policy of the one before.

    Args:
        stages: settings of every stage as in `fp3o.train`, with `task` and perhaps `preset`. Or a
            settings file with a list `stages` and settings for all of them. Or the folder of a
            curriculum, to continue it.
        out: folder of the curriculum, with one run directory per stage; an existing one is
            continued. By default `runs/NAME` for a file, else a new one under `runs/`.
        progress: display of the progress: auto, live, plain, notebook or quiet.
        loggers: loggers in addition to `metrics.jsonl`, as in `fp3o.train`.
        **settings: settings of all stages; and `trust`, `devices` and `players` as in `fp3o.train`.

    A stage whose team is of another size needs `start_agents`; `start_from` replaces the stage
    before as its origin. Returns the runs; the last one is unfinished if it was stopped.
    """
    disable_async_dispatch()  # before anything uses the CPU
    check_loggers(loggers)
    placement, trust = Placement.take(settings), settings.pop("trust", False)
    given, out = _read_stages(stages, out, trust)
    configs = [_stage(k, {**settings, **stage}, trust) for k, stage in enumerate(given, 1)]
    directory = RunDirectory(out if out is not None else _free_folder())
    _check_starts(configs, directory)
    _open(directory, configs)
    with directory.writing():
        return _train_stages(configs, directory, progress, loggers, placement)


def _train_stages(
    stages: Sequence[CurriculumStage],
    directory: RunDirectory,
    progress: DisplayStyle,
    loggers: Loggers,
    placement: Placement,
) -> list[Run]:
    """Start or continue the stages in order, until one is stopped."""
    runs: list[Run] = []
    for stage in stages:
        display, path = make_display(progress), stage_path(directory, stage.number)
        display.say(f"stage {stage.number} of {len(stages)}: {stage.plain.task}")
        if RunDirectory(path).exists():
            run = training.continue_run(path, display, loggers, placement=placement)
        else:
            config = _started_from(stage, directory)
            run = training.start_run(config, path, display, loggers, placement=placement)
        runs += [run] if run else []
        if run and not run.finished:
            display.say(f"continue with `fp3o curriculum {directory.path}`")
            break
    return runs


def stage_path(directory: RunDirectory, number: int) -> Path:
    """The run directory of a stage."""
    return directory.path / f"stage-{number}"


def _read_stages(
    stages: Any, out: str | Path | None, trust: bool
) -> tuple[list[dict[str, Any]], str | Path | None]:
    """The settings of every stage, and the folder of the curriculum."""
    if not isinstance(stages, str | Path):
        return _checked_stages(stages), out
    path = Path(stages)
    if path.is_dir():
        if not (path / CURRICULUM_FILE).exists():
            raise SettingError(
                f"{path} is not a curriculum: it has no {CURRICULUM_FILE}. Give the folder of a "
                "curriculum, or a settings file with a list of stages"
            )
        shared = {"stages": RunDirectory(path).read_json(CURRICULUM_FILE).get("stages")}
        folder = path
    else:
        shared, folder = read_settings(path), Path("runs") / path.stem
    listed = _checked_stages(shared.pop("stages", None))
    found = [{**shared, **stage} for stage in listed]
    for stage in found:
        require_trust_in_settings(stage, trust, path)
    return found, folder if out is None else out


def _checked_stages(stages: Any) -> list[dict[str, Any]]:
    if not isinstance(stages, list | tuple) or not stages:
        raise SettingError(f"a curriculum needs a list of stages, got {show(stages)}")
    for stage in stages:
        if not isinstance(stage, Mapping):
            raise SettingError(f"a stage must be names and values of settings, got {show(stage)}")
    return [dict(stage) for stage in stages]


def _stage(number: int, settings: dict[str, Any], trust: bool) -> CurriculumStage:
    """A stage with checked settings; messages name it."""
    task, preset = settings.pop("task", None), settings.pop("preset", None)
    if task is None:
        raise SettingError(f"stage {number} has no task")
    if not isinstance(task, str):
        task = register_env(task).name
    try:
        base = training.make_config(task, None, preset, trust).with_settings(settings)
        start = {name: getattr(base, name) for name in START_SETTINGS}
        none = {name: getattr(RunConfig, name) for name in START_SETTINGS}
        return CurriculumStage(number, base.with_settings(none).resolve(), start)
    except SettingError as error:
        raise SettingError(f"stage {number}: {error}") from None


def _check_starts(stages: Sequence[CurriculumStage], directory: RunDirectory) -> None:
    """Raise unless every stage can start: from the policy that it names, or another stage."""
    configs: list[RunConfig] = []
    for stage in stages:
        try:
            configs.append(_checked_start(stage, configs, directory))
        except UserError as error:
            raise SettingError(f"stage {stage.number}: {error}") from None


def _checked_start(
    stage: CurriculumStage, earlier: Sequence[RunConfig], directory: RunDirectory
) -> RunConfig:
    """The settings of a stage with its frozen agents, if it can start."""
    own = RunDirectory(stage_path(directory, stage.number))
    if own.exists():
        frozen = own.read_settings().get("frozen_agents", ())
        return stage.plain.with_settings({"frozen_agents": frozen})
    number = _origin(stage, directory)
    if number == 0:
        return stage.plain.with_settings(stage.start).resolve()
    config = stage.plain.with_settings({"frozen": stage.start["frozen"]}).resolve()
    agents, critic = stage.start["start_agents"], stage.start["start_critic"]
    check_successor(config, earlier[number - 1], f"stage {number}", agents, critic)
    return config


def _origin(stage: CurriculumStage, directory: RunDirectory) -> int:
    """The number of the stage that a stage starts from; 0: from none."""
    place = stage.start["start_from"]
    if place is None:
        return stage.number - 1
    for number in range(1, stage.number):
        if Path(place).resolve().is_relative_to(stage_path(directory, number).resolve()):
            return number
    return 0


def _open(directory: RunDirectory, stages: Sequence[CurriculumStage]) -> None:
    """Create and lock the folder, or lock it if it has the same stages as far as they began."""
    records = [stage.record for stage in stages]
    if not (directory.path / CURRICULUM_FILE).exists():
        directory.create()
    else:
        directory.lock()
        before = directory.read_json(CURRICULUM_FILE).get("stages", [])
        begun = [k for k in range(len(before)) if stage_path(directory, k + 1).exists()]
        for k in begun:
            old, new = before[k], records[k] if k < len(records) else {}
            if changed := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
                directory.unlock()
                raise SettingError(
                    f"stage {k + 1} of {directory.path} was trained with other settings: "
                    f"{changed[0]} was {show(old.get(changed[0]))}. Keep the stages that have "
                    "begun, or choose another folder with --out"
                )
    directory.write_json(CURRICULUM_FILE, {"format": FORMAT, "stages": records})


def _started_from(stage: CurriculumStage, directory: RunDirectory) -> RunConfig:
    """The settings of a stage whose predecessor is finished."""
    start = dict(stage.start)
    if stage.number > 1 and start["start_from"] is None:
        start["start_from"] = str(stage_path(directory, stage.number - 1))
    return stage.plain.with_settings(start).resolve()


def _free_folder() -> Path:
    number = 1
    while (path := Path("runs") / f"curriculum-{number}").exists():
        number += 1
    return path
