"""Diagnostics of a run over training: policies, condition and critic, in small panels."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.figures.canvas import PANEL, figure_style, format_steps, run_colour, thin_series
from fp3o.reports.figures.style import FAINT_COLOUR, PALETTE
from fp3o.reports.phrasing import count_text, short
from fp3o.reports.stats.intervals import mean_band


class DiagnosticPanel(NamedTuple):
    """A small plot of one metric."""

    title: str
    data: Callable[[RunRecord], Series]
    with_zero: bool = True
    """Whether the y axis always contains zero."""
    top: float | None = None
    """Upper end of the y axis; None: automatic."""


def _gap_per_sample(run: RunRecord) -> Series:
    """Condition gap per sample: after the first stage if a later one is gated, else at the end."""
    step, gap = run.series("condition_gap", 0 if run.gated else -1)
    sizes = [run.settings.get("num_envs"), run.settings.get("rollout"), run.num_agents]
    samples = np.prod([size if isinstance(size, int) else 1 for size in sizes])
    return Series(step, gap / samples)


def _rolling_gate(run: RunRecord) -> Series:
    """Share of open gates over a moving window of a twentieth of the run."""
    step, value = run.series("gate", -1)
    if not step.size:
        return Series(step, value)
    window = np.ones(max(1, step.size // 20))
    known = np.isfinite(value)
    opened, count = (
        np.stack([np.convolve(seed, window, "same") for seed in rows])
        for rows in (np.where(known, value, 0.0), known.astype(float))
    )
    return Series(step, np.where(count > 0.5, opened / np.maximum(count, 1.0), np.nan))


def _metric(name: str, stage: int = -1) -> Callable[[RunRecord], Series]:
    return lambda run: run.series(name, stage)


ALWAYS = (
    DiagnosticPanel("KL from the rollout policy, per agent", _metric("kl")),
    DiagnosticPanel("Policy entropy, per agent", _metric("entropy"), with_zero=False),
    DiagnosticPanel("Share of ratios outside the clip range", _metric("clip_fraction")),
)
"""Panels of every algorithm."""

GATED = (
    DiagnosticPanel("Share of iterations with an open gate", _rolling_gate, top=1.0),
    DiagnosticPanel("Condition gap per sample (open from 0 up)", _gap_per_sample),
)
"""Panels of algorithms with a gated stage."""

UNGATED = (
    DiagnosticPanel(
        "Effective sample size, share of the batch", _metric("effective_sample_size"), top=1.0
    ),
    DiagnosticPanel("Condition gap per sample (improves from 0 up)", _gap_per_sample),
)
"""Panels of all other algorithms."""

# A stage with a closed gate does not train the critic and logs 0; the first stage always runs.
VALUE_LOSS = DiagnosticPanel("Value loss (first stage)", _metric("value_loss", 0))


def diagnostic_panels(run: RunRecord) -> tuple[DiagnosticPanel, ...]:
    """The panels for a run's algorithm that have data."""
    panels = (*ALWAYS, *(GATED if run.gated else UNGATED), VALUE_LOSS)
    return tuple(panel for panel in panels if panel.data(run).step.size)


def diagnostics_figure(
    run: RunRecord, panels: Sequence[DiagnosticPanel] | None = None, columns: int = 2
) -> Figure:
    """Diagnostic panels over environment steps; lines are means over seeds."""
    chosen = diagnostic_panels(run) if panels is None else tuple(panels)
    rows = -(-len(chosen) // columns)
    width, height = PANEL[0] * (1 if columns == 1 else 0.85 * columns), 1.75 * rows + 0.6
    with figure_style():
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(rows, columns, squeeze=False)
        # Margins in inches: text sizes are known, and the automatic layout is slow.
        top = 0.62 if columns > 1 else 0.3
        figure.subplots_adjust(
            left=0.55 / width, right=1 - 0.15 / width, bottom=0.48 / height, top=1 - top / height,
            wspace=0.2, hspace=0.42,
        )  # fmt: skip
        for place, axis in enumerate(grid.ravel()):
            if place >= len(chosen):
                axis.set_visible(False)
                continue
            _draw_panel(axis, chosen[place], run)
            if place >= len(chosen) - columns:
                axis.set_xlabel("environment steps")
        if columns > 1:
            title = short(run.label, 70)
            figure.text(0.01, 1 - 0.25 / height, title, fontsize=11, fontweight="bold")
    return figure


def _draw_panel(axis: Axes, panel: DiagnosticPanel, run: RunRecord) -> None:
    step, value = thin_series(panel.data(run))
    axis.set_title(panel.title)
    if value.ndim == 3:
        _draw_agents(axis, step, mean_band(value)[0])
    else:
        colour = run_colour(run)
        axis.plot(step, mean_band(value)[0], color=colour, lw=1.3)
        # The range over seeds: a confidence interval of two seeds would hide the lines.
        low, high = np.fmin.reduce(value), np.fmax.reduce(value)
        axis.fill_between(step, low, high, color=colour, alpha=0.16, lw=0)
    format_steps(axis)
    axis.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_text(value)))
    low, high = axis.get_ylim()
    if panel.with_zero:
        axis.axhline(0.0, color=FAINT_COLOUR, lw=0.8)
        axis.set_ylim(min(0.0, low), max(0.0, high))
    if panel.top is not None:
        axis.set_ylim(0.0, 1.05 * panel.top)


def _tick_text(value: float) -> str:
    """At most six characters: 0.15, 1.5e−4; the margin of the panels is fixed."""
    text = f"{value:.2g}" if abs(value) < 100 else count_text(value)
    if 0 < abs(value) < 1e-2:
        digits, _, power = f"{value:.1e}".partition("e")
        text = f"{digits.removesuffix('.0')}e{int(power)}"
    return text.replace("-", "−")


def _draw_agents(axis: Axes, step: np.ndarray, value: np.ndarray) -> None:
    """One line per agent; with many agents the legend names the first and the last."""
    count = value.shape[1]
    palette = [*PALETTE]
    ramp = matplotlib.colormaps["plasma"](np.linspace(0.25, 0.8, count))
    for agent in range(count):
        colour = palette[agent] if count <= len(palette) else to_hex(ramp[agent])
        named = count <= len(palette) or agent in (0, count - 1)
        label = f"agent {agent}" if named else None
        axis.plot(step, value[:, agent], color=colour, lw=1.2, alpha=0.9, label=label)
    axis.legend(fontsize=7, ncols=4, handlelength=1.2, columnspacing=0.9)
