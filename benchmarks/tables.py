"""Tables of measurements, printed as they are made."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import jax

Row = dict[str, Any]
"""A row of a table: title -> value."""


def formatted(title: str, value: Any) -> str:
    """A value as text."""
    if value is None or isinstance(value, str):
        return value or "-" * (value is None)
    if title.startswith("share"):
        return f"{value:.0%}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def print_row(cells: list[str]) -> None:
    """Print a row of a table."""
    print((f"{cells[0]:34}" + "".join(f" {x:>13}" for x in cells[1:])).rstrip(), flush=True)


def table(rows: Iterator[Row]) -> list[Row]:
    """Print rows as they are measured."""
    kept: list[Row] = []
    for row in rows:
        if not kept:
            print_row(list(row))
        print_row([formatted(title, value) for title, value in row.items()])
        kept.append(row)
    return kept


def machine() -> Row:
    cores = len(os.sched_getaffinity(0))
    packages = {name: version(name) for name in ("mujoco", "jax", "numpy")}
    device = f"{len(jax.devices())} x {jax.devices()[0].device_kind}"
    return {"cores": cores, "python": platform.python_version(), **packages, "device": device}
