"""How a run learned: what its policies, its gate and its critic did, in six small panels."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fp3o.reports.data.record import RunRecord, Series
from fp3o.reports.figures.canvas import PANEL, over_steps, styled, thinned
from fp3o.reports.figures.style import FAINT, PALETTE
from fp3o.reports.phrasing import short
from fp3o.reports.stats.intervals import mean_band


class Panel(NamedTuple):
    """A small plot: title, and how to get its data from a run."""

    title: str
    data: Callable[[RunRecord], Series]
    zero: bool = True
    """Whether the axis must show zero."""
    top: float | None = None
    """The axis ends here."""


def _gap(run: RunRecord) -> Series:
    """The condition's gap for a sample: FP3O's after its first step, else at the end."""
    stage = 0 if run.pipelines else -1
    step, gap = run.series("condition_gap", stage)
    if not step.size:  # an older run has the two sums only, whose difference is less exact
        (step, new), (_, old) = (run.series(f"condition_{x}", stage) for x in ("new", "old"))
        gap = new - old if new.shape == old.shape else np.full_like(new, np.nan)
    sizes = [run.settings.get("num_envs"), run.settings.get("rollout"), run.config.get("agents")]
    samples = np.prod([size if isinstance(size, int) else 1 for size in sizes])
    return Series(step, gap / samples)


def _rolling_gate(run: RunRecord) -> Series:
    """Share of open gates among the iterations around: a twentieth of the run."""
    step, value = run.series("gate", -1)
    if not step.size:
        return Series(step, value)
    window = np.ones(max(1, step.size // 20))
    there = np.isfinite(value)
    opened, count = (
        np.stack([np.convolve(seed, window, "same") for seed in rows])
        for rows in (np.where(there, value, 0.0), there.astype(float))
    )
    return Series(step, np.where(count > 0.5, opened / np.maximum(count, 1.0), np.nan))


def _metric(name: str, stage: int = -1) -> Callable[[RunRecord], Series]:
    return lambda run: run.series(name, stage)


KL = Panel("KL from the rollout policy, each agent", _metric("kl"))

ENTROPY = Panel("Policy entropy, each agent", _metric("entropy"), zero=False)

CLIP = Panel("Share of ratios outside the clip range", _metric("clip_fraction"))

# A stage whose gate is shut trains nothing and logs 0: the first one always runs.
VALUE = Panel("Value loss (first stage)", _metric("value_loss", 0))

GATE = Panel("Share of iterations with an open gate", _rolling_gate, top=1.0)

GAP = Panel("Condition gap per sample: open from 0 up", _gap)

CERTIFICATE = Panel("Condition gap per sample: improves from 0 up", _gap)

SAMPLES = Panel(
    "Effective sample size, share of the batch", _metric("effective_sample_size"), top=1.0
)


def panels_of(run: RunRecord) -> tuple[Panel, ...]:
    """The panels that say something about this run's algorithm."""
    own = (GATE, GAP) if run.pipelines else (SAMPLES, CERTIFICATE)
    panels = (KL, ENTROPY, CLIP, *own, VALUE)
    return tuple(panel for panel in panels if panel.data(run).step.size)


def diagnostics(run: RunRecord, panels: Sequence[Panel] | None = None, columns: int = 2) -> Figure:
    """The run's panels over environment steps; lines are means over seeds."""
    chosen = panels_of(run) if panels is None else tuple(panels)
    rows = -(-len(chosen) // columns)
    width, height = PANEL[0] * (1 if columns == 1 else 0.85 * columns), 1.75 * rows + 0.6
    with styled():
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(rows, columns, squeeze=False)
        # Margins in inches: the sizes of all texts are known, and an automatic layout is slow.
        top = 0.62 if columns > 1 else 0.3
        figure.subplots_adjust(
            left=0.55 / width, right=1 - 0.15 / width, bottom=0.48 / height, top=1 - top / height,
            wspace=0.2, hspace=0.42,
        )  # fmt: skip
        for place, axis in enumerate(grid.ravel()):
            if place >= len(chosen):
                axis.set_visible(False)
                continue
            _draw(axis, chosen[place], run)
            if place >= len(chosen) - columns:
                axis.set_xlabel("environment steps")
        if columns > 1:
            figure.text(
                0.01, 1 - 0.25 / height, short(run.label, 70), fontsize=11, fontweight="bold"
            )
    return figure


def _draw(axis: Axes, panel: Panel, run: RunRecord) -> None:
    step, value = thinned(panel.data(run))
    axis.set_title(panel.title)
    if value.ndim == 3:
        _agents(axis, step, mean_band(value)[0])
    else:
        colour = PALETTE.get(run.family, PALETTE[""])[0]
        axis.plot(step, mean_band(value)[0], color=colour, lw=1.3)
        # What the seeds did, not what others would do: an interval of two seeds would hide it.
        low, high = np.fmin.reduce(value), np.fmax.reduce(value)
        axis.fill_between(step, low, high, color=colour, alpha=0.16, lw=0)
    over_steps(axis)
    axis.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    low, high = axis.get_ylim()
    if panel.zero:
        axis.axhline(0.0, color=FAINT, lw=0.8)
        axis.set_ylim(min(0.0, low), max(0.0, high))
    if panel.top is not None:
        axis.set_ylim(0.0, 1.05 * panel.top)


def _agents(axis: Axes, step: np.ndarray, value: np.ndarray) -> None:
    """A line an agent; of many agents the legend names the first and the last."""
    count = value.shape[1]
    few = [light for light, _ in PALETTE.values()]
    ramp = matplotlib.colormaps["plasma"](np.linspace(0.25, 0.8, count))
    for agent in range(count):
        colour = few[agent] if count <= len(few) else to_hex(ramp[agent])
        named = count <= len(few) or agent in (0, count - 1)
        label = f"agent {agent}" if named else None
        axis.plot(step, value[:, agent], color=colour, lw=1.2, alpha=0.9, label=label)
    axis.legend(fontsize=7, ncols=4, handlelength=1.2, columnspacing=0.9)
