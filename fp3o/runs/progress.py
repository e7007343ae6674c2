"""Progress of a run on the terminal: a live panel, plain lines, or nothing."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from fp3o.errors import SettingError, nearest
from fp3o.reports.phrasing import count_text
from fp3o.runs.kernel import in_notebook, notebook_display

DisplayStyle = Literal["auto", "live", "plain", "notebook", "quiet"]

LINE_EVERY = 10.0
"""Seconds between two lines of the plain display."""

FORECAST_AFTER, LONG_TRAINING = 5.0, 300.0
"""Seconds after which the duration of training is known well enough to be said, and the shortest
one that is."""


class TrainingStatus:
    """Progress, speed and current metrics of a run."""

    def __init__(self, title: str, total: int, done: int, seeds: int):
        self.title, self.total, self.seeds = title, total, seeds
        self.done = done
        self.numbers: dict[str, str] = {}
        self.rows: Sequence[Mapping[str, Any]] = ()
        """Metrics of the last iteration, one row per seed."""
        self._started, self._iterations, self._forecast_said = time.perf_counter(), 0, False
        self._counted_from = self._after_first = (done, self._started)

    def advance(self, done: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the rows of an iteration, one per seed."""
        self.done, self.rows, self._iterations = done, rows, self._iterations + 1
        if self._iterations == 1:
            self._after_first = (done, time.perf_counter())
        elif self._iterations == 2:  # the first one may still have compiled something
            self._counted_from = self._after_first
        self.numbers |= _headline_numbers(rows)

    @property
    def rate(self) -> float:
        """Environment steps per second, over all seeds, of this process; compiling is left out."""
        first, started = self._counted_from
        return self.seeds * (self.done - first) / max(time.perf_counter() - started, 1e-9)

    def forecast(self) -> str:
        """Once, after some seconds, how long a long training will take; else nothing."""
        elapsed = time.perf_counter() - self._started
        if self._forecast_said or elapsed < FORECAST_AFTER:
            return ""
        self._forecast_said = True
        if elapsed + self.left < LONG_TRAINING:
            return ""
        return (
            f"training will take about {duration_text(elapsed + self.left)} "
            f"({count_text(self.total)} steps of {self.seeds} seed{'s' * (self.seeds > 1)}, "
            f"{count_text(self.rate)} steps/s); Ctrl-C saves it, and `fp3o resume` continues"
        )

    @property
    def left(self) -> float:
        """Seconds left at this rate."""
        return self.seeds * (self.total - self.done) / self.rate if self.rate else math.inf

    def line(self) -> str:
        """The status in one line."""
        numbers = "  ".join(f"{name} {value}" for name, value in self.numbers.items())
        return (
            f"{100 * self.done / self.total:5.1f} %  "
            f"step {count_text(self.done)}/{count_text(self.total)}  "
            f"{count_text(self.rate)} steps/s  {duration_text(self.left)} left  {numbers}"
        )


@runtime_checkable
class Display(Protocol):
    """Interface of a display of the progress of a run."""

    def say(self, text: str) -> None:
        """Show a message."""
        ...

    def waiting(self, text: str) -> Any:
        """Context manager for work of unknown duration."""
        ...

    def update(self, status: TrainingStatus) -> None:
        """Show the progress of training."""
        ...

    def close(self) -> None:
        """End the updates."""
        ...


def _headline_numbers(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return, win rate, largest KL, condition and replaced workers, with spreads over seeds."""
    texts: dict[str, str] = {}
    for name, prefix in (("return", "episode"), ("evaluation", "eval")):
        for key, scale, digits, unit in (("return", 1, 2, ""), ("won", 100, 0, " % won")):
            values = [scale * x for row in rows if (x := row.get(f"{prefix}_{key}")) is not None]
            if values:
                spread = f" ± {np.std(values):.{digits}f}" if len(values) > 1 else ""
                text = f"{np.mean(values):.{digits}f}{spread}{unit}"
                texts[name] = f"{texts[name]}, {text}" if name in texts else text
    if kls := [kl for row in rows if row.get("kl") for kl in row["kl"][-1]]:
        texts["KL"] = "too large" if None in kls else f"{max(kls):.4f}"
    if any(row.get("condition_holds") is not None for row in rows):
        held = np.mean([bool(row.get("condition_holds")) for row in rows])
        texts["condition"] = f"{100 * held:.0f} %"
    if replaced := max((row.get("env_restarts", 0) for row in rows), default=0):
        texts["workers replaced"] = str(replaced)
    return texts


class QuietDisplay:
    """Shows nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Nothing."""
        yield

    def update(self, status: TrainingStatus) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class PlainDisplay(QuietDisplay):
    """Lines for files and pipes: one every few seconds, and the last one."""

    def __init__(self, console: Console):
        self._console, self._last = console, -math.inf

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Print a line at the start."""
        self.say(f"{text} ...")
        yield

    def update(self, status: TrainingStatus) -> None:
        """Print a line if the last one is old enough or this is the end."""
        now = time.perf_counter()
        if now - self._last >= LINE_EVERY or status.done >= status.total:
            self._last = now
            self.say(status.line())


class LiveDisplay(QuietDisplay):
    """A live panel in a terminal."""

    def __init__(self, console: Console):
        self._console = console
        self._live: Live | None = None

    def say(self, text: str) -> None:
        """Print a line above the panel."""
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show a spinner."""
        self.close()
        with self._console.status(escape(f"{text} ...")):
            yield

    def update(self, status: TrainingStatus) -> None:
        """Redraw the panel."""
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=8, transient=False)
            self._live.start()
        self._live.update(_status_panel(status))

    def close(self) -> None:
        """Stop updating; the last panel stays on the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _status_panel(status: TrainingStatus) -> Panel:
    top = Table.grid(padding=(0, 2))
    top.add_row(
        ProgressBar(total=status.total, completed=status.done, width=28),
        f"[bold]{100 * status.done / status.total:.0f} %[/]",
        f"step {count_text(status.done)} of {count_text(status.total)}",
        f"{count_text(status.rate)} steps/s",
        f"{duration_text(status.left)} left",
    )
    numbers = (
        f"[dim]{escape(name)}[/] [bold]{escape(value)}[/]" for name, value in status.numbers.items()
    )
    body = Table.grid()
    body.add_row(top)
    body.add_row("  ".join(numbers))
    title = escape(status.title)
    return Panel(body, title=title, title_align="left", border_style="cyan", expand=False)


def make_display(style: DisplayStyle = "auto") -> Display:
    """The display of a style; `auto`: live on a terminal, in place in a notebook, else plain."""
    console = Console(stderr=False)
    if style == "auto":
        style = "live" if console.is_terminal else "plain"
        style = "notebook" if in_notebook() else style
    styles = {
        "live": lambda: LiveDisplay(console),
        "plain": lambda: PlainDisplay(console),
        "notebook": notebook_display,
        "quiet": QuietDisplay,
    }
    if style not in styles:
        raise SettingError(f"unknown display {style!r}: {nearest(style, [*styles, 'auto'])}")
    return styles[style]()


def duration_text(seconds: int | float) -> str:
    """75 seconds as 1:15."""
    if not math.isfinite(seconds):
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
