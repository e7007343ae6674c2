"""`fp3o bench`: speed of this machine, beside other packages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from fp3o.cli.options import read_options

TopicsArgument = Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="TOPIC")]


@dataclass
class BenchOptions:
    """Options of `bench`."""

    topics: TopicsArgument = ()
    """learning, particles, mamujoco, battles, workers, devices, gru; all by default."""
    quick: bool = False
    """Fewer and smaller cases: two to three minutes on two cores."""
    seconds: float | None = None
    """Time that each number is measured for; 2 by default, 0.3 if quick."""
    out: str = "bench"
    """Directory of the results, bench.json and bench.html."""
    tasks: tuple[str, ...] = ()
    """Only these tasks, as in `--tasks mamujoco/Ant-4x2 smac/5m_vs_6m`."""
    algorithms: tuple[str, ...] = ()
    """Only these algorithms."""
    sharings: tuple[str, ...] = ()
    """Only these sharings."""
    seeds: int = 1
    """Seeds trained together."""


def bench_command(argv: Sequence[str]) -> None:
    """Measure the speed of this machine, beside other packages where they are installed."""
    options = read_options(BenchOptions, argv, bench_command)
    from fp3o.bench.measurement import BenchSettings
    from fp3o.bench.topics import chosen_topics

    topics = chosen_topics(options.topics)
    seconds = (0.3 if options.quick else 2.0) if options.seconds is None else options.seconds
    settings = BenchSettings(
        seconds, options.quick, options.tasks, options.algorithms, options.sharings, options.seeds
    )
    from fp3o.bench.session import run_topics

    for path in run_topics(topics, settings, Path(options.out), Console()):
        print(path)
