"""`fp3o train`: every setting is an option, with the chosen preset's values as defaults."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from fp3o.cli.options import read_options
from fp3o.cli.placement import PlacementOptions, end_member, member_status
from fp3o.errors import SettingError
from fp3o.options import parse_options, read_value, write_options


def train_command(argv: Sequence[str]) -> int:
    """Train policies for a task; without arguments, run the demo."""
    return end_member(*train_status(argv))


def train_status(argv: Sequence[str]) -> tuple[PlacementOptions, int]:
    """Train, or start processes that train: the placement and the exit status."""
    from fp3o.cli.train_options import TrainOptions
    from fp3o.runs.progress import make_display
    from fp3o.runs.train import start_run
    from fp3o.training.host_rollout import disable_async_dispatch

    disable_async_dispatch()  # before anything uses the CPU
    options = read_train_options(TrainOptions, argv, train_command)
    config, where = options.settings.config, options.placement
    where.check()
    display = make_display("quiet" if options.quiet else "auto")
    if where.supervises:
        from fp3o.cli.launch import Launch, launch, resume_arguments
        from fp3o.runs.directory_name import free_path

        path = options.out or str(free_path(config))
        work = Launch("train", argv, path, where, resume_arguments(options))
        return where, launch(work, display, config)

    def work_here() -> int:
        placement = where.make_placement()
        found = config.resolve()
        run = start_run(found, options.out, display, options.loggers, placement=placement)
        return conclude(run, options.quiet)

    return where, member_status(work_here) if where.is_member else work_here()


def read_train_options(kind: type, argv: Sequence[str], command: Callable[..., Any]) -> Any:
    """Options of a command that trains, whose field `settings` has the settings of training.

    Their defaults are those of the chosen preset or settings file.
    """
    from fp3o.cli.train_options import TrainSettings, setting_constructors
    from fp3o.runs.run_config import make_config

    arguments = fold_env_options(list(argv))
    task = arguments[0] if arguments and not arguments[0].startswith("-") else None
    # The defaults depend on these two, so they are read first.
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--preset")
    early.add_argument("--config")
    early.add_argument("--trust", action="store_true")
    known, _ = early.parse_known_args(arguments)
    base = make_config(task, known.config, known.preset, known.trust)
    default = kind(settings=TrainSettings(**vars(base)))
    arguments = arguments[1:] if task else arguments  # the task is a default now
    options = read_options(kind, arguments, command, default, setting_constructors())
    task = options.settings.task
    if task != base.task:
        name = command.__name__.removesuffix("_command")
        raise SettingError(f"name the task first: fp3o {name} {task} ...")
    return options


def fold_env_options(arguments: list[str]) -> list[str]:
    """Options of the environment, `--env.n 3`, as part of the variant, `default:env.n=3`."""
    variant, inside, others, rest = "default", {}, [], iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name.startswith("--env.") or name == "--variant":
            value = value if equals else next(rest, "")
            if name == "--variant":
                variant = value
            else:
                inside[name[2:]] = read_value(value)
        else:
            others.append(argument)
    if not inside:
        return arguments
    name, options = parse_options(variant)
    return [*others, "--variant", write_options(name, options | inside)]


def conclude(run: Any, quiet: bool) -> int:
    """Print the result of a finished run and its paths; returns the exit status."""
    if run is None:  # another process has its files
        return 0
    if not run.finished:
        return 130
    if quiet:
        return 0
    from fp3o.envs.registry import imports_code
    from fp3o.reports import summary_table

    console = Console()
    console.print(summary_table([run.path]))
    lines = {
        "figure": run.path / "figures" / "learning_curves.png",
        "report": run.path / "report.html",
        "load": f"fp3o.Policy.load({str(run.path)!r})",
    }
    if run.config.task_info.renderable(run.config.variant):
        trust = " --trust" if imports_code(run.config.task) else ""
        lines["video"] = f"fp3o render {run.path} --out episode.gif{trust}"
    for name, text in lines.items():
        console.print(f"{name:8} {text}", markup=False, highlight=False, soft_wrap=True)
    return 0
