"""Starting and continuing a sweep, in Python and from the command line."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fp3o.envs.registry import register_env
from fp3o.errors import SettingError
from fp3o.experiments.framework.options import WhereOptions
from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.loop import SweepLoop
from fp3o.experiments.sweep.remote import BATCHES, RemoteSweep
from fp3o.experiments.sweep.report import write_sweep_report
from fp3o.experiments.sweep.result import SweepResult
from fp3o.experiments.sweep.settings import SearchOptions, SweepSettings, refuse_evaluation_settings
from fp3o.experiments.sweep.space import ChoiceSet, parse_search
from fp3o.experiments.sweep.study import JOURNAL, check_packages
from fp3o.options import to_type
from fp3o.runs.atomic import RunError
from fp3o.runs.progress import Display, DisplayStyle, make_display
from fp3o.runs.run_config import RunConfig, make_config
from fp3o.runs.settings import setting_types
from fp3o.runs.trust import require_trust_in_settings
from fp3o.training.host_rollout import disable_async_dispatch

IN_THIS_PROCESS = WhereOptions()


def sweep(
    task: Any = None,
    *,
    search: Mapping[str, Any] | Sequence[str],
    config: RunConfig | str | Path | None = None,
    preset: str | None = None,
    out: str | Path | None = None,
    progress: DisplayStyle = "auto",
    **settings: Any,
) -> SweepResult:
    """Search for the settings of training with the best evaluated score.

    Args:
        task: a name (see `fp3o list`) or an object, as in `fp3o.train`.
        search: searched settings: a tuple `(low, high)`, `(low, high, "log")` or
            `(low, high, step)`, a list of choices, or a text as on the command line,
            `"1e-4..1e-2:log"`.
        config: a `RunConfig`, or a file of settings (JSON, TOML, YAML), for all not searched.
        preset: name of one of the task's presets; by default its first one.
        out: folder of the sweep; an existing one is continued. By default a new one in `sweeps/`,
            or the newest one of an unfinished sweep with the same settings.
        progress: display of the progress: auto, live, plain or quiet.
        **settings: options of the search, as in `fp3o sweep --help` (`trials=32, parallel=8,
            pruner="none"`), and settings of training (`steps=2e5, seeds=2`).
    """
    disable_async_dispatch()  # before anything uses the CPU
    trust = settings.pop("trust", False)
    if not (task is None or isinstance(task, str)):
        task = register_env(task).name
    refuse_evaluation_settings(settings)
    names = setting_types(SearchOptions)
    chosen = {name: settings.pop(name) for name in names if name in settings}
    base = make_config(task, config, preset, trust).with_settings(settings)
    whole = SweepSettings(base, parse_search(search), SearchOptions(**_converted(chosen)))
    return run_sweep(whole, out, make_display(progress))


def run_sweep(
    settings: SweepSettings,
    out: str | Path | None,
    display: Display,
    where: WhereOptions = IN_THIS_PROCESS,
) -> SweepResult:
    """Start a sweep, or continue the one in its folder."""
    settings.options.check()
    check_packages(settings.options.sampler)
    with display.waiting("checking the search space"):
        settings = settings.check()
    folder = SweepFolder(out if out is not None else _default_path(settings))
    if folder.exists():
        _require_same(folder, settings)
    return _train(settings, folder, display, where)


def continue_sweep(
    path: str | Path,
    display: Display,
    trials: int | None = None,
    trust: bool = False,
    where: WhereOptions = IN_THIS_PROCESS,
) -> SweepResult:
    """Continue the sweep in a folder, perhaps with more trials."""
    folder = SweepFolder(path)
    record = folder.read()
    require_trust_in_settings(record["settings"], trust, folder.path / "sweep.json")
    for name, dimension in parse_search(record["search"]).items():
        for value in dimension.values.values() if isinstance(dimension, ChoiceSet) else ():
            require_trust_in_settings({name: value}, trust, folder.path / "sweep.json")
    settings = folder.settings()
    check_packages(settings.options.sampler)
    if trials is not None:
        if trials < settings.trials:
            raise SettingError(f"{path} has {settings.trials} trials, more than {trials}")
        options = dataclasses.replace(settings.options, trials=trials)
        settings = dataclasses.replace(settings, options=options)
    return _train(settings.check(), folder, display, where)


def _train(
    settings: SweepSettings, folder: SweepFolder, display: Display, where: WhereOptions
) -> SweepResult:
    """Train all trials that have not ended, and write the results."""
    with folder.writing(settings):
        display.say(f"output in {folder.path}")
        loop = _make_loop(settings, folder, display, where)
        finished = loop.run()
        folder.write_results(loop.study)
        result = SweepResult(folder.path, settings, loop.study.records(), finished)
        if not finished:
            display.say(f"stopped and saved: continue with `fp3o sweep --resume {folder.path}`")
            return result
        with display.waiting("writing the report"):
            write_sweep_report(result, loop.study.importances())
    return result


def _make_loop(
    settings: SweepSettings, folder: SweepFolder, display: Display, where: WhereOptions
) -> Any:
    """The loop here, or that on a cluster; a sweep stays where it has started."""
    remote = (folder.path / BATCHES).exists()
    if (where.on == "ray") != remote and (folder.path / JOURNAL).exists():
        place = "on Ray: add --on ray" if remote else "here: leave --on ray out"
        raise RunError(f"the sweep in {folder.path} was started {place}")
    if where.on == "here":
        return SweepLoop(settings, folder, display)
    (folder.path / BATCHES).mkdir(exist_ok=True)
    return RemoteSweep(settings, folder, display, where)


def _require_same(folder: SweepFolder, settings: SweepSettings) -> None:
    """Raise unless a folder belongs to a sweep with these settings, perhaps with fewer trials."""
    if names := _differences(folder, settings):
        raise RunError(
            f"{folder.path} contains a sweep with other settings ({', '.join(names)}): choose "
            f"another --out, or continue it with `fp3o sweep --resume {folder.path}`"
        )


def _differences(folder: SweepFolder, settings: SweepSettings) -> list[str]:
    """Names of what differs from the sweep in a folder; more trials are no difference."""
    stored, ours = folder.read(), settings.record
    parts = ("settings", "search", "options")
    different = [
        name
        for part in parts
        for name in {**stored[part], **ours[part]}
        if stored[part].get(name) != ours[part].get(name)
    ]
    if ours["options"]["trials"] >= stored["options"]["trials"]:
        different = [name for name in different if name != "trials"]
    return sorted(different)


def _default_path(settings: SweepSettings) -> Path:
    """`sweeps/task-1`: the newest if it is unfinished and has these settings, else a new one."""
    name, number = settings.base.task.split("/")[-1], 1
    while (path := Path("sweeps") / f"{name}-{number}").exists():
        number += 1
    newest = SweepFolder(Path("sweeps") / f"{name}-{number - 1}")
    if newest.exists() and not _differences(newest, settings) and not _finished(newest, settings):
        return newest.path
    return path


def _finished(folder: SweepFolder, settings: SweepSettings) -> bool:
    """Whether all trials of the sweep in a folder have ended."""
    ended = [row for row in folder.trials() if row["state"] != "waiting"]
    return len(ended) >= settings.trials


def _converted(options: dict[str, Any]) -> dict[str, Any]:
    """Options with their types: 1e2 trials are 100."""
    types = setting_types(SearchOptions)
    return {name: to_type(name, types[name], value) for name, value in options.items()}
