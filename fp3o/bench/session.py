"""A benchmark from the command line: topics one after the other, results as they are made."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from fp3o.algorithms.table import parse_algorithm
from fp3o.bench.measurement import BenchSettings, Measurement
from fp3o.bench.results import machine_description, results_table, write_results
from fp3o.bench.topics import Topic
from fp3o.envs.registry import get_task
from fp3o.errors import SettingError
from fp3o.runs.compilation_cache import without_compilation_cache
from fp3o.sharing.schemes import parse_sharing
from fp3o.training.host_rollout import disable_async_dispatch

MEASURED = ("mamujoco", "mpe", "smac")
"""Families whose tasks can be chosen."""


def check_bench_settings(settings: BenchSettings) -> None:
    """Reject unknown names before anything is measured."""
    if not (settings.seconds > 0 and settings.seeds > 0):
        raise SettingError("seconds and seeds must be positive")
    for task in settings.tasks:
        get_task(task)
        if task.partition("/")[0] not in MEASURED:
            raise SettingError(f"{task} is not measured: tasks of {', '.join(MEASURED)} are")
    for name in settings.algorithms:
        parse_algorithm(name)
    for name in settings.sharings:
        parse_sharing(name)


def run_topics(
    topics: Mapping[str, Topic], settings: BenchSettings, folder: Path, console: Console
) -> list[Path]:
    """Measure topics and write the results after each; returns the files."""
    check_bench_settings(settings)
    disable_async_dispatch()  # before anything uses the CPU
    machine, results = machine_description(), {}
    paths = write_results(results, machine, folder)  # fails early if it cannot be written
    with without_compilation_cache():
        for name, topic in topics.items():
            rows: list[Measurement] = results.setdefault(name, [])
            with console.status(f"{name}: compiling and measuring ...") as status:
                for row in topic.measure(settings):
                    rows.append(row)
                    status.update(f"{name}: {row.case} done; measuring the next ...")
            console.print(results_table(name, rows))
            paths = write_results(results, machine, folder)
    return paths
