"""An iteration of FP3O: pipelines, the selection sampled by the library, and the gate."""

from pathlib import Path

import jax
from drawing import (
    AGENTS,
    ASSETS,
    FAINT,
    INK,
    ORANGE,
    arrow,
    box,
    disc,
    line,
    pale,
    save,
    sheet,
    write,
)
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from fp3o.algorithms.fp3o import non_overlapping

TEAM = 4
HIGH = 9.0
FIRST, GATE, SECOND = 20.0, 55.0, 72.0


def draw(folder: Path = ASSETS) -> Path:
    """One row per pipeline, from the rollout to the new policies."""
    partner = [int(j) for j in non_overlapping(jax.random.key(3), TEAM)]
    figure, axes = sheet(107, 56)
    write(axes, (FIRST + 7, 52.8), "1. independent step", fontsize=11, bold=True)
    write(axes, (FIRST + 7, 50.3), "others fixed", colour=FAINT)
    write(axes, (SECOND + 9, 52.8), "2. dependent step", fontsize=11, bold=True)
    write(axes, (SECOND + 9, 50.3), "coupled to all others", colour=FAINT)
    for pipeline in range(TEAM):
        second = partner.index(pipeline)  # the agent that this pipeline updates in the second step
        lane(axes, height(pipeline), pipeline, second)
    for agent, home in enumerate(partner):
        start, end = (FIRST + 14, height(agent)), (SECOND, height(home))
        line(axes, (start[0], 41), (start[1], start[1]), colour=AGENTS[agent], width=1.6)
        line(axes, (41, 50), (start[1], end[1]), colour=AGENTS[agent], width=1.6)
        arrow(axes, (50, end[1]), end, colour=AGENTS[agent], width=1.6)
    gate(axes)
    return save(figure, "pipelines.png", folder)


def height(pipeline: int) -> float:
    """Vertical centre of a pipeline."""
    return 43.6 - HIGH * pipeline


def lane(axes: Axes, y: float, first: int, second: int) -> None:
    """A pipeline: its own agent in the first step, the selected one in the second."""
    write(axes, (2, y), f"pipeline {first}", align="left", colour=FAINT)
    axes.axhspan(y - HIGH / 2 + 0.5, y + HIGH / 2 - 0.5, 0.01, 0.99, color="#f6f8fa", zorder=0)
    disc(axes, (15, y), 1.5, str(first), AGENTS[first])
    arrow(axes, (16.6, y), (FIRST, y), colour=AGENTS[first], width=1.6)
    box(axes, (FIRST, y - 2.4), (14, 4.8), f"agent {first}, W = 1", edge=AGENTS[first],
        fill=pale(AGENTS[first], 0.15))  # fmt: skip
    box(axes, (SECOND, y - 2.4), (20, 4.8), f"agent {second}, W = product of\nall other ratios",
        edge=AGENTS[second], fill=pale(AGENTS[second], 0.15), fontsize=8)  # fmt: skip
    arrow(axes, (SECOND + 20, y), (SECOND + 26, y), colour=AGENTS[second], width=1.6)
    disc(axes, (SECOND + 28, y), 1.5, str(second), AGENTS[second])
    write(axes, (SECOND + 31.4, y), "new", fontsize=8, colour=FAINT)


def gate(axes: Axes) -> None:
    """The condition between both steps, evaluated once for the whole team."""
    top, low = height(0) + 5, height(TEAM - 1) - 5
    axes.add_patch(
        Polygon([(GATE, top), (GATE + 9, top), (GATE + 9, low), (GATE, low)], closed=True,
                facecolor=pale(ORANGE, 0.15), edgecolor=ORANGE, linewidth=1.5, zorder=4,
                linestyle="--")
    )  # fmt: skip
    write(axes, (GATE + 4.5, (top + low) / 2 + 2), "gate\n\ngap ≥ 0 ?", bold=True)
    write(axes, (GATE + 4.5, (top + low) / 2 - 5), "evaluated\nonce for\nthe team", fontsize=7.5,
          colour=FAINT)  # fmt: skip
    rule = "selection: no agent twice,\nnone in its own pipeline"
    write(axes, (45.5, 50.0), rule, fontsize=7.5, colour=FAINT)
    arrow(axes, (GATE + 4.5, low), (GATE + 4.5, 7.0), colour=ORANGE)
    write(axes, (GATE + 4.5, 4.2), "closed: the policies of step 1 are kept (keep),\n"
          "or those of the rollout are restored (revert)", fontsize=8, colour=INK)  # fmt: skip


if __name__ == "__main__":
    print(draw())
