"""TODO."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from fp3o.cli.options import Count, Directories, Directory, Which, ask
from fp3o.cli.train import conclude


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
    from fp3o.runs.run import resume as go_on

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
    from fp3o.runs.evaluation import evaluate as judge

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
    from fp3o.policy import Policy
    from fp3o.runs.video import render as film

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
