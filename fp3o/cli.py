"""The command line: `fp3o COMMAND ...`. Every command is a function of the package with options.

Heavy imports wait until a command is known, so that `fp3o --help` answers at once.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from fp3o.errors import MissingExtraError, NonFiniteError, nearest

Which = Literal["best", "last"]
Directory = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
Directories = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="DIR")]
Name = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 (it failed), 2 (asked wrongly) or 130 (stopped)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        overview()
        return 0
    if words[0] in ("-V", "--version"):
        from fp3o.provenance import versions

        print(versions()["fp3o"])
        return 0
    keep_compiled()
    # Modules of one's own lie here; at the end, so that a file called `jax.py` does no harm.
    sys.path.append(os.getcwd())
    try:
        if words[0] not in COMMANDS:
            raise ValueError(f"unknown command {words[0]!r}: {nearest(words[0], COMMANDS)}")
        return COMMANDS[words[0]](words[1:]) or 0
    except KeyboardInterrupt:
        complain("stopped")
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; there is nobody to tell
        return 1
    except Exception as error:
        if os.environ.get("FP3O_DEBUG"):
            raise
        if not isinstance(error, known_errors()):
            raise
        complain(str(error))
        return 2 if isinstance(error, ValueError) else 1


def keep_compiled() -> None:
    """Keep compiled programs on the disk: a second run of the same kind starts in seconds."""
    folder = os.environ.get("FP3O_CACHE") or Path.home() / ".cache" / "fp3o"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")


def known_errors() -> tuple[type[Exception], ...]:
    """Errors whose message is all that a person needs; others are ours, and keep their trace."""
    from fp3o.envs.workers import WorkersError
    from fp3o.storage import RunError

    return (ValueError, RunError, WorkersError, MissingExtraError, NonFiniteError, OSError)


def complain(text: str) -> None:
    """One line on the error stream."""
    console = Console(stderr=True)
    console.print(f"error: {text}", style="red", markup=False, highlight=False, soft_wrap=True)


def overview() -> None:
    """The commands in one table."""
    console = Console()
    console.print(
        "[bold]fp3o[/]: cooperative multi-agent PPO that works with any parameter sharing"
    )
    table = Table.grid(padding=(0, 2))
    for name, command in COMMANDS.items():
        table.add_row(f"  [cyan]fp3o {name}[/]", (command.__doc__ or "").splitlines()[0])
    console.print(table)
    console.print("Options of a command: [cyan]fp3o COMMAND --help[/]")


# train ------------------------------------------------------------------------------------------


def train(argv: Sequence[str]) -> int:
    """Train a team on a task; without arguments, a demo."""
    from fp3o.plan import change
    from fp3o.progress import display
    from fp3o.run import arrange, settle, start

    words = with_variant(list(argv))
    task = words[0] if words and not words[0].startswith("-") else None
    # The defaults depend on these two, so they are read before the options are made.
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--preset")
    early.add_argument("--config")
    told, _ = early.parse_known_args(words)
    plan = arrange(task, told.preset, told.config, {})
    words = [plan.task, *words[1:]] if task else words
    options = ask(train_options(plan), words, "train", train)
    if options.task != plan.task:
        raise ValueError(f"name the task first: fp3o train {options.task} ...")
    chosen: dict[str, Any] = {}
    for group in (options.run, options.learner, options.rates):
        chosen |= vars(group)
    style = "quiet" if options.quiet else "auto"
    run = start(settle(change(plan, chosen)), options.out, display(style), options.loggers)
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
    from fp3o.loggers import LOGGERS
    from fp3o.plan import GROUPS, SETTINGS, flatten

    values, about_task = flatten(plan), tyro.conf.arg(help=SETTINGS["task"].help, metavar="TASK")
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
    if run.plan.description.shown(run.plan.variant):
        say(f"watch    fp3o render {run.path} --out episode.gif")
    say(f"load     fp3o.Policy.load({str(run.path)!r})")
    return 0


# the rest ---------------------------------------------------------------------------------------


@dataclass
class Resume:
    """Options of `resume`."""

    run: Directory
    """The run directory."""
    steps: "Count | None" = None
    """Train up to this many steps instead of the planned number."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Where metrics go, too."""
    quiet: bool = False
    """Print nothing but errors."""


def resume(argv: Sequence[str]) -> int:
    """Go on with a run that was stopped, exactly where it stood."""
    options = ask(Resume, argv, "resume", resume)
    from fp3o.run import resume as go_on

    style = "quiet" if options.quiet else "auto"
    run = go_on(options.run, steps=options.steps, progress=style, loggers=options.loggers)
    return conclude(run, options.quiet)


@dataclass
class Evaluate:
    """Options of `evaluate`."""

    run: Directory
    """A run directory or a policy folder."""
    episodes: "Count" = 1000
    """Episodes of each policy."""
    which: Which = "last"
    """The last policy of every seed, or the best one by the evaluations in training."""
    stochastic: bool = False
    """Draw actions instead of taking the most likely ones."""
    seed: int = 0
    """Seed of the episodes."""
    trust: bool = False
    """Import what a policy folder without its run names: its task, its network."""
    json: bool = False
    """Print JSON."""


def evaluate(argv: Sequence[str]) -> int:
    """Play many episodes with trained policies and say what they earn."""
    options = ask(Evaluate, argv, "evaluate", evaluate)
    from fp3o.evaluation import evaluate as judge

    found = judge(
        options.run, options.episodes, which=options.which, seed=options.seed,
        deterministic=not options.stochastic, trust=options.trust,
    )  # fmt: skip
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    how = "drawn" if options.stochastic else "most likely"
    table = Table(title=f"{found['task']}: {options.episodes} episodes, {how} actions")
    outcomes = [name.replace("_", " ") for name in found["policies"][0]["outcomes"]]
    for title in ("policy", "return of an agent", "spread of episodes", *outcomes):
        table.add_column(title, justify="left" if title == "policy" else "right")
    for row in found["policies"]:
        add_result(table, row["name"], row)
    table.add_section()
    for name, row in found["references"].items():
        add_result(table, f"[dim]{name}[/]", row)
    Console().print(table)
    return 0


def add_result(table: Table, name: str, row: Any) -> None:
    """One line of the table of an evaluation."""
    outcomes = [
        f"{100 * x:.1f} %" if key == "won" else f"{x:.2f}" for key, x in row["outcomes"].items()
    ]
    table.add_row(
        name, f"{row['return']:.3f} ± {row['stderr']:.3f}", f"{row['std']:.2f}", *outcomes
    )


@dataclass
class Render:
    """Options of `render`."""

    run: Directory
    """A run directory or a policy folder."""
    out: str = "episode.gif"
    """The film: a name that ends in .gif or .mp4."""
    episodes: int = 3
    """Episodes to film."""
    which: Which = "best"
    """The best or the last policy."""
    policy_seed: int | None = None
    """Which seed's policy; none: the one with the best evaluation."""
    seed: int = 0
    """Seed of the episodes."""
    fps: int | None = None
    """Pictures a second; none: real time, where the task has a clock, else 8."""
    seconds: float = 10.0
    """Longest film of an episode."""
    trust: bool = False
    """Import what a policy folder without its run names: its task, its network."""


def render(argv: Sequence[str]) -> None:
    """Film episodes of a trained team as GIF or MP4."""
    options = ask(Render, argv, "render", render)
    from fp3o.film import render as film
    from fp3o.policy import Policy

    policy = Policy.load(
        options.run, which=options.which, seed=options.policy_seed, trust=options.trust
    )
    with Console(stderr=True).status("filming ...") as status:
        path = film(
            policy, options.out, options.episodes, options.seed, options.fps, options.seconds,
            status.update,
        )  # fmt: skip
    print(path)


@dataclass
class Report:
    """Options of `report`."""

    runs: Directories
    """Run directories."""
    out: str = "report.html"
    """The report."""


def report(argv: Sequence[str]) -> None:
    """One HTML page and figures about one or many runs."""
    options = ask(Report, argv, "report", report)
    if not options.runs:
        raise ValueError("name one run directory or more: fp3o report DIR... --out report.html")
    from fp3o.reports import report as write

    with Console(stderr=True).status("drawing ..."):
        path = write(options.runs, options.out)
    print(path)


@dataclass
class Export:
    """Options of `export`."""

    run: Directory
    """A run directory or a policy folder."""
    out: str
    """The folder to write."""
    which: Which = "best"
    """The best or the last policy."""
    policy_seed: int | None = None
    """Which seed's policy; none: the one with the best evaluation."""


def export(argv: Sequence[str]) -> None:
    """Copy one trained policy into a folder of its own, to be loaded anywhere."""
    options = ask(Export, argv, "export", export)
    from fp3o.policy import Policy

    Policy.load(options.run, which=options.which, seed=options.policy_seed).save(options.out)
    print(options.out)


@dataclass
class List:
    """Options of `list`."""

    json: bool = False
    """Print JSON."""


def list_all(argv: Sequence[str]) -> None:
    """Tasks, algorithms, sharings and presets."""
    options = ask(List, argv, "list", list_all)
    from fp3o.catalogue import catalogue, tables

    if options.json:
        print(json.dumps(catalogue(), indent=2))
        return
    for table in tables():
        Console().print(table)


@dataclass
class Check:
    """Options of `check`."""

    env: Name
    """A task (`fp3o list`), also with a variant, as in `mpe/simple_spread:mpe2`."""
    variant: str | None = None
    """The variant, for tasks from elsewhere; `--env.N 3` is short for `default:env.N=3`."""
    num_envs: int = 4
    """Environments played together."""
    steps: int = 200
    """Steps of each."""
    seed: int = 0
    """Of the actions and the environments."""
    json: bool = False
    """Print JSON."""


def check(argv: Sequence[str]) -> int:
    """Play an environment at random and name everything that does not fit, with its cure."""
    options = ask(Check, with_variant(list(argv)), "check", check)
    from fp3o.check import check_env
    from fp3o.tasks import make

    env = options.env if options.variant is None else make(options.env, options.variant)
    with Console(stderr=True).status("playing it three times ..."):
        found = check_env(env, num_envs=options.num_envs, steps=options.steps, seed=options.seed)
    if options.json:
        problems = [problem._asdict() for problem in found.problems]
        print(json.dumps({"well": found.well, "problems": problems, **found.numbers}, indent=2))
    else:
        print(found)
    return int(not found.well)


@dataclass
class Doctor:
    """Options of `doctor`."""

    json: bool = False
    """Print JSON."""


def doctor(argv: Sequence[str]) -> int:
    """Versions, devices, what can run here, and how to mend what cannot."""
    options = ask(Doctor, argv, "doctor", doctor)
    from fp3o.doctor import examine, table

    findings = examine()
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        Console().print(table(findings))
    return int(any(finding.needed and not finding.well for finding in findings))


@dataclass
class Experiment:
    """Options of `experiment`."""

    name: Name
    """Which one; `list` names them all."""
    scale: Literal["paper", "gpu", "laptop", "smoke"] = "laptop"
    """How large: tasks, steps and batches."""
    out: str | None = None
    """Directory of its cells and results; none: experiments/NAME-SCALE. What is finished there is
    not done again."""
    seeds: "Count | None" = None
    """Seeds of each cell; none: as the scale says."""
    steps: "Count | None" = None
    """Steps of each cell; none: as the scale says."""
    part: str = ""
    """Only the cells whose name contains this."""
    show: bool = False
    """Train nothing: show what is there."""
    on: Literal["here", "ray"] = "here"
    """Where cells are run: one after the other in this process, or on a Ray cluster."""
    address: str | None = None
    """Of the Ray cluster; none: the one that is known here, or a new one on this machine."""
    cpus: float = 1.0
    """Cores of a cell on Ray."""
    gpus: float = 0.0
    """Graphics processors of a cell on Ray; a fraction lets several share one."""
    retries: int = 3
    """How often Ray tries a cell again whose node has died."""


def experiment(argv: Sequence[str]) -> int:
    """A table or figure of the paper again, or one beyond it: train what is missing, show it."""
    options = ask(Experiment, argv, "experiment", experiment)
    from fp3o.experiments.session import Order, overview, perform

    if options.name == "list":
        Console().print(overview())
        return 0
    return perform(Order(**vars(options)))


def parse_count(text: str) -> int:
    """`1e6`, `2_000_000`, `3M` or `250k` as a whole number."""
    sizes = {"k": 1e3, "M": 1e6, "G": 1e9}
    number, size = (text[:-1], sizes[text[-1]]) if text[-1:] in sizes else (text, 1)
    value = float(number) * size
    if not value.is_integer():
        raise ValueError(f"{text!r} is no whole number")
    return int(value)


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1, metavar="INT", instance_from_str=lambda words: parse_count(words[0]),
        is_instance=lambda x: isinstance(x, int), str_from_instance=lambda x: [str(x)],
    ),
]  # fmt: skip
"""A whole number that may be written as 1e6 or 3M."""


def ask(options: type, argv: Sequence[str], name: str, command: Callable[..., Any]) -> Any:
    """Read a command's options."""
    return tyro.cli(
        options, prog=f"fp3o {name}", description=command.__doc__, args=list(argv),
        config=(tyro.conf.OmitArgPrefixes,),
    )  # fmt: skip


COMMANDS: dict[str, Callable[[Sequence[str]], int | None]] = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "render": render,
    "report": report,
    "export": export,
    "list": list_all,
    "check": check,
    "doctor": doctor,
    "experiment": experiment,
}
"""The commands by name."""
