"""Updated agents and coupling of every stage, as computed by the library."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from drawing import AGENTS, ASSETS, FAINT, GRID, INK, WHITE, arrow, save, sheet, write
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from fp3o.algorithms.schedules import SCHEDULES, Stage
from fp3o.algorithms.table import ALGORITHMS

TEAM = 4
SCORE = jnp.asarray([0.2, 0.9, 0.4, 0.6])
"""Mean absolute advantage per agent, which determines A2PO's order."""
ROWS = {
    "mappo": ("MAPPO, IPPO", "clips own ratio"),
    "coppo": ("CoPPO", "current ratios;\nclips the product"),
    "happo": ("HAPPO", "random order;\nclips own ratio"),
    "a2po": ("A2PO", "semi-greedy order;\nclips the product,\ntighter early"),
    "fp3o": ("FP3O", "ratios after the\nfirst step;\nclips own ratio"),
}
CELL, HIGH, WIDE = 2.0, 14.5, 17.0
KEYS = {"happo": 5, "a2po": 3}
"""Random keys of the orders that are shown."""


def draw(folder: Path = ASSETS) -> Path:
    """One row per algorithm, one grid per stage."""
    figure, axes = sheet(25 + WIDE * TEAM, 13.5 + HIGH * len(ROWS))
    top = 8.5 + HIGH * len(ROWS)
    for stage in range(TEAM):
        write(axes, (22 + WIDE * stage + 4.5, top + 2.6), f"stage {stage + 1}", colour=FAINT)
    for place, name in enumerate(ROWS):
        low = top - HIGH * (place + 1) + 3.0
        axes.plot((2, 23 + WIDE * TEAM), (low + HIGH - 2.2,) * 2, color=GRID, linewidth=0.8)
        title, text = ROWS[name]
        write(axes, (2, low + 7.2), title, align="left", fontsize=11.5, bold=True,
              colour=ALGORITHMS[name].colour[0])  # fmt: skip
        write(axes, (2, low + 5.4), text, align="left", vertical="top", colour=FAINT, fontsize=8)
        row = ALGORITHMS[name]
        stages = SCHEDULES[row.schedule](jax.random.key(KEYS.get(name, 0)), SCORE, 1, row)
        for number in range(len(stages.gated)):
            one = jax.tree.map(lambda x, k=number: np.asarray(x)[k], stages)
            grid(axes, 22 + WIDE * number, low, one)
    legend(axes)
    return save(figure, "coupling.png", folder)


def grid(axes: Axes, left: float, low: float, stage: Stage) -> None:
    """Row i, column j: whether agent i is coupled to j. Agents that are not updated are grey."""
    agents = [int(agent) for agent, real in zip(stage.agents, stage.member, strict=True) if real]
    for i in range(TEAM):
        for j in range(TEAM):
            colour = WHITE if i in agents else "#eceff2"
            if i in agents and stage.coupling[agents.index(i), j]:
                colour = AGENTS[j]
            corner = left + CELL * j, low + CELL * (TEAM - 1 - i)
            axes.add_patch(Rectangle(corner, CELL, CELL, facecolor=colour, edgecolor=GRID))
        y = low + CELL * (TEAM - 0.5 - i)
        write(axes, (left + CELL * (i + 0.5), low + 8.9), str(i), fontsize=6.5, colour=FAINT)
        if i in agents:
            arrow(axes, (left - 2.3, y), (left - 0.3, y), colour=AGENTS[i])
            write(axes, (left - 3.0, y), str(i), fontsize=6.5, colour=FAINT)
    who = "all agents" if len(agents) == TEAM else f"agent {agents[0]}"
    clip = "" if stage.clip_factor[0] == 1 else f", clip x {stage.clip_factor[0]:.3g}"
    gate = ", if the condition holds" if stage.gated else ""
    write(axes, (left + 4, low + 10.5), who + clip + gate, fontsize=8)


def legend(axes: Axes) -> None:
    """Legend."""
    y = 3.6
    arrow(axes, (2, y), (4.4, y), colour=INK)
    write(axes, (5.2, y), "agent of this row is updated", align="left", fontsize=8.5)
    for x, colour, text in (
        (31, AGENTS[1], "coupled to the agent of the column"),
        (65, "#eceff2", "not updated in this stage"),
    ):
        axes.add_patch(Rectangle((x, y - 1), CELL, CELL, facecolor=colour, edgecolor=GRID))
        write(axes, (x + 3, y), text, align="left", fontsize=8.5)


if __name__ == "__main__":
    print(draw())
