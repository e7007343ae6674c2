"""A line on the standard error stream while something takes longer than two seconds."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

FIRST_AFTER, LINE_SECONDS = 2.0, 30.0
"""Seconds before the first line outside a terminal, and between the others."""


@contextmanager
def activity(text: str, console: Console | None = None) -> Iterator[None]:
    """Show what is being done: a spinner with the time in a terminal, elsewhere a few lines."""
    console = console or Console(stderr=True)
    if console.is_terminal:
        columns = SpinnerColumn(), TextColumn(escape(text)), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as progress:
            progress.add_task(text, total=None)
            yield
        return
    finished = threading.Event()
    lines = threading.Thread(target=_print_lines, args=(text, console, finished), daemon=True)
    lines.start()
    try:
        yield
    finally:
        finished.set()
        lines.join()


def _print_lines(text: str, console: Console, finished: threading.Event) -> None:
    started, pause = time.perf_counter(), FIRST_AFTER
    while not finished.wait(pause):
        elapsed = f" ({time.perf_counter() - started:.0f} s)" if pause == LINE_SECONDS else ""
        console.print(f"{text} ...{elapsed}", markup=False, highlight=False, soft_wrap=True)
        pause = LINE_SECONDS
