"""What people see while something runs: a live display, plain lines, or nothing."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from fp3o.errors import nearest

Style = Literal["auto", "live", "plain", "quiet"]

LINE_EVERY = 10.0
"""Seconds between two lines of the plain display."""


@runtime_checkable
class Display(Protocol):
    """Who is told how a run goes."""

    def say(self, text: str) -> None:
        """One thing worth knowing."""
        ...

    def waiting(self, text: str) -> Any:
        """A context in which something of unknown length happens."""
        ...

    def update(self, status: "Status") -> None:
        """How far training is."""
        ...

    def close(self) -> None:
        """No more updates."""
        ...


class Status:
    """Numbers of a run in progress, for people: how far, how fast, how good."""

    def __init__(self, title: str, total: int, done: int, seeds: int):
        self.title, self.total, self.seeds = title, total, seeds
        self.done = self._first = done
        self._began = time.perf_counter()
        self.numbers: dict[str, str] = {}

    def advance(self, done: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the rows of an iteration, one a seed."""
        self.done = done
        self.numbers |= describe(rows)

    @property
    def rate(self) -> float:
        """Environment steps a second, over all seeds, since this process began."""
        seconds = max(time.perf_counter() - self._began, 1e-9)
        return self.seeds * (self.done - self._first) / seconds

    @property
    def left(self) -> float:
        """Seconds left at this rate."""
        return self.seeds * (self.total - self.done) / self.rate if self.rate else math.inf

    def line(self) -> str:
        """All of it in one line."""
        numbers = "  ".join(f"{name} {value}" for name, value in self.numbers.items())
        return (
            f"{100 * self.done / self.total:5.1f} %  step {count(self.done)}/{count(self.total)}  "
            f"{count(self.rate)} steps/s  {clock(self.left)} left  {numbers}"
        )


def describe(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return, wins, largest KL of an agent and open gates, with spreads over seeds: as words."""
    words = {}
    for name, kind in (("return", "episode"), ("evaluation", "eval")):
        for key, scale, digits, unit in (("return", 1, 2, ""), ("won", 100, 0, " % won")):
            values = [scale * x for row in rows if (x := row.get(f"{kind}_{key}")) is not None]
            if values:
                spread = f" ± {np.std(values):.{digits}f}" if len(values) > 1 else ""
                text = f"{np.mean(values):.{digits}f}{spread}{unit}"
                words[name] = f"{words[name]}, {text}" if name in words else text
    if kls := [np.max(row["kl"][-1]) for row in rows if row.get("kl")]:
        words["KL"] = f"{np.max(kls):.4f}"
    if any(row.get("condition_holds") is not None for row in rows):
        held = np.mean([bool(row.get("condition_holds")) for row in rows])
        words["condition"] = f"{100 * held:.0f} %"
    if replaced := max((row.get("env_restarts", 0) for row in rows), default=0):
        words["workers replaced"] = str(replaced)
    return words


class Quiet:
    """Says nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Nothing."""
        yield

    def update(self, status: Status) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Plain(Quiet):
    """Lines for files and pipes: the first one, then one every few seconds, and the last."""

    def __init__(self, console: Console):
        self._console, self._last = console, -math.inf

    def say(self, text: str) -> None:
        """A line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """A line when it begins."""
        self.say(f"{text} ...")
        yield

    def update(self, status: Status) -> None:
        """A line, if the last one is old enough or this is the end."""
        now = time.perf_counter()
        if now - self._last >= LINE_EVERY or status.done >= status.total:
            self._last = now
            self.say(status.line())


class Screen(Quiet):
    """A live panel in a terminal."""

    def __init__(self, console: Console):
        self._console = console
        self._live: Live | None = None

    def say(self, text: str) -> None:
        """A line above the panel."""
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """A spinner."""
        self.close()
        with self._console.status(f"{text} ..."):
            yield

    def update(self, status: Status) -> None:
        """Draw the panel anew."""
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=8, transient=False)
            self._live.start()
        self._live.update(panel(status))

    def close(self) -> None:
        """Leave the last panel on the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def panel(status: Status) -> Panel:
    """Bar, pace and numbers."""
    share = 100 * status.done / status.total
    top = Table.grid(padding=(0, 2))
    top.add_row(
        ProgressBar(total=status.total, completed=status.done, width=28),
        f"[bold]{share:.0f} %[/]",
        f"step {count(status.done)} of {count(status.total)}",
        f"{count(status.rate)} steps/s",
        f"{clock(status.left)} left",
    )
    numbers = (f"[dim]{name}[/] [bold]{value}[/]" for name, value in status.numbers.items())
    whole = Table.grid()
    whole.add_row(top)
    whole.add_row("  ".join(numbers))
    return Panel(whole, title=status.title, title_align="left", border_style="cyan", expand=False)


def display(style: Style = "auto") -> Display:
    """The display that fits: live on a terminal, lines elsewhere."""
    console = Console(stderr=False)
    if style == "auto":
        style = "live" if console.is_terminal else "plain"
    kinds = {"live": lambda: Screen(console), "plain": lambda: Plain(console), "quiet": Quiet}
    if style not in kinds:
        raise ValueError(f"unknown display {style!r}: {nearest(style, [*kinds, 'auto'])}")
    return kinds[style]()


def count(number: int | float) -> str:
    """1234567 as 1.23M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


def clock(seconds: int | float) -> str:
    """75 as 1:15."""
    if not math.isfinite(seconds):
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
