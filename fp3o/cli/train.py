"""TODO."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import field, make_dataclass
from typing import Annotated, Any

import tyro
from rich.console import Console

from fp3o.cli.options import Count, ask


def train(argv: Sequence[str]) -> int:
    """Train a team on a task; without arguments, a demo."""
    from fp3o.runs.progress import display
    from fp3o.runs.run import configure, resolve, start
    from fp3o.runs.settings import with_settings

    words = with_variant(list(argv))
    task = words[0] if words and not words[0].startswith("-") else None
    # The defaults depend on these two, so they are read before the options are made.
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--preset")
    early.add_argument("--config")
    told, _ = early.parse_known_args(words)
    plan = configure(task, told.preset, told.config, {})
    words = [plan.task, *words[1:]] if task else words
    options = ask(train_options(plan), words, "train", train)
    if options.task != plan.task:
        raise ValueError(f"name the task first: fp3o train {options.task} ...")
    chosen: dict[str, Any] = {}
    for group in (options.run, options.learner, options.hyperparameters):
        chosen |= vars(group)
    style = "quiet" if options.quiet else "auto"
    run = start(resolve(with_settings(plan, chosen)), options.out, display(style), options.loggers)
    return conclude(run, options.quiet)


def with_variant(words: list[str]) -> list[str]:
    """Options of the environment, `--env.n 3`, as a part of the variant, `default:env.n=3`."""
    variant, inside, rest, left = "default", [], [], iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if name.startswith("--env.") or name == "--variant":
            value = value if equals else next(left, "")
            if name == "--variant":
                variant = value
            else:
                inside.append(f"{name[2:]}={value}")
        else:
            rest.append(word)
    if not inside:
        return words
    joint = "," if ":" in variant else ":"
    return [*rest, "--variant", variant + joint + ",".join(inside)]


def train_options(plan: Any) -> type:
    """The options of `train`: every setting, with the plan's values as defaults."""
    from fp3o.runs.loggers import LOGGERS
    from fp3o.runs.settings import GROUPS, SETTINGS, settings_of

    values, about_task = (
        settings_of(plan),
        tyro.conf.arg(help=SETTINGS["task"].help, metavar="TASK"),
    )
    fields: list[Any] = [
        ("task", Annotated[tyro.conf.Positional[str], about_task], field(default=plan.task)),
        _option("out", str | None, "Directory of the run; none: a new one under runs/."),
        _option("preset", str | None, "Settings by name (see `fp3o list`)."),
        _option("config", str | None, "File of settings: JSON, TOML or a run's config.json."),
        _option("loggers", tuple[str, ...], f"Log to: {', '.join(LOGGERS)}, none.",
                ("tensorboard",)),
        _option("quiet", bool, "Print nothing but errors.", False),
    ]  # fmt: skip
    for group, (names, title) in GROUPS.items():
        options = [_setting(SETTINGS[name], values[name]) for name in names if name != "task"]
        kind = make_dataclass(group, options)
        kind.__doc__ = title
        fields.append((group, kind, field(default_factory=kind)))
    return make_dataclass("Train", fields)


def _option(name: str, kind: Any, words: str, default: Any = None) -> tuple[str, Any, Any]:
    return name, Annotated[kind, tyro.conf.arg(help=words)], field(default=default)


def _setting(setting: Any, value: Any) -> tuple[str, Any, Any]:
    kind: Any = {int: Count, tuple: tuple[int, ...]}.get(setting.kind, setting.kind)
    if isinstance(value, list):
        value = tuple(value) if setting.kind is tuple else json.dumps(value)
    return _option(setting.name, kind | None if setting.optional else kind, setting.help, value)


def conclude(run: Any, quiet: bool) -> int:
    """Say how a run ended: the table, the figure, the report, and what can be done next."""
    if not run.finished:
        return 130
    if quiet:
        return 0
    from fp3o.reports import summary_table

    console = Console()
    console.print(summary_table([run.path]))
    say = lambda text: console.print(text, highlight=False, soft_wrap=True)  # noqa: E731
    say(f"figure   {run.path / 'figures' / 'learning_curves.png'}")
    say(f"report   {run.path / 'report.html'}")
    if run.config.task_info.renderable(run.config.variant):
        say(f"watch    fp3o render {run.path} --out episode.gif")
    say(f"load     fp3o.Policy.load({str(run.path)!r})")
    return 0
