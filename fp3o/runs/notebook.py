"""Progress of a run in a Jupyter notebook: one output, with learning curves, updated in place."""

import base64
import io
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fp3o.reports.figures.canvas import figure_style, format_steps
from fp3o.reports.figures.style import PALETTE
from fp3o.reports.phrasing import count_text
from fp3o.runs.progress import QuietDisplay, TrainingStatus, duration_text

REDRAW_EVERY = 1.0
"""Seconds between two updates: drawing takes a tenth of a second."""

MOST_POINTS, MOST_MESSAGES = 400, 6

CURVES = {"episode_return": "training", "eval_return": "evaluation"}
"""Metrics that are drawn, and their names in the legend."""

CurvePoints = list[tuple[int, np.ndarray]]
"""Steps done, and the values of all seeds."""


class NotebookDisplay(QuietDisplay):
    """Progress, messages and learning curves in one output of a cell."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html, self._display, self._handle = HTML, display, None
        self._curves: dict[str, CurvePoints] = {name: [] for name in CURVES}
        self._messages: list[str] = []
        self._activity, self._drawn = "", -math.inf
        self._status: TrainingStatus | None = None

    def say(self, text: str) -> None:
        """Show a message below the curves."""
        self._messages = [*self._messages, text][-MOST_MESSAGES:]
        self._show()

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show what is done."""
        self._activity = text
        self._show()
        yield
        self._activity = ""

    def update(self, status: TrainingStatus) -> None:
        """Take the metrics of an iteration; draw if the last drawing is old enough."""
        self._status = status
        for name, points in self._curves.items():
            values = seed_values(status.rows, name)
            if np.isfinite(values).any():
                points.append((status.done, values))
            if len(points) > MOST_POINTS:
                del points[-2::-2]
        if time.perf_counter() - self._drawn >= REDRAW_EVERY:
            self._show()

    def close(self) -> None:
        """Show the newest numbers; the output stays in the notebook."""
        if self._handle is not None:
            self._show()

    def _show(self) -> None:
        self._drawn = time.perf_counter()
        content = self._html("\n".join(self._parts()))
        if self._handle is None:
            self._handle = self._display(content, display_id=True)
        else:
            self._handle.update(content)

    def _parts(self) -> Iterator[str]:
        """The lines of the output."""
        if status := self._status:
            done = status.done / status.total
            yield (
                f"<div><b>{escape(status.title)}</b><br>"
                f'<progress value="{done:.4f}" max="1" style="width:20em"></progress> '
                f"{100 * done:.0f} % · step {count_text(status.done)} of "
                f"{count_text(status.total)} · {count_text(status.rate)} steps/s · "
                f"{duration_text(status.left)} left</div>"
            )
            numbers = (f"{escape(k)} <b>{escape(x)}</b>" for k, x in status.numbers.items())
            yield f"<div>{' &nbsp; '.join(numbers)}</div>"
        if any(self._curves.values()):
            image = base64.b64encode(figure_png(curves_in_notebook(self._curves))).decode()
            yield f'<img alt="returns over steps" src="data:image/png;base64,{image}">'
        if self._activity:
            yield f"<div><i>{escape(self._activity)} ...</i></div>"
        if self._messages:
            yield f"<pre>{escape(chr(10).join(self._messages))}</pre>"


def seed_values(rows: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """A metric of all seeds; NaN where it is missing."""
    return np.array([row.get(name) for row in rows], float)


def curves_in_notebook(curves: Mapping[str, CurvePoints]) -> Figure:
    """Means over seeds, and the range from the lowest to the highest."""
    with figure_style():
        figure = Figure(figsize=(6.4, 2.6), layout="constrained")
        axis = figure.subplots()
        for colour, (name, points) in zip(PALETTE, curves.items(), strict=False):
            if not points:
                continue
            steps = [step for step, _ in points]
            values = np.ma.masked_invalid(np.stack([row for _, row in points]))
            axis.plot(steps, values.mean(1), color=colour, label=CURVES[name])
            axis.fill_between(steps, values.min(1), values.max(1), color=colour, alpha=0.16, lw=0)
        axis.set_xlabel("environment steps")
        axis.set_ylabel("return per agent")
        axis.legend()
        format_steps(axis)
    return figure


def figure_png(figure: Figure) -> bytes:
    """A figure as a PNG image."""
    stream = io.BytesIO()
    with figure_style():
        figure.savefig(stream, format="png", dpi=100, facecolor="white")
    return stream.getvalue()
