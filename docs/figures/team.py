"""Decentralised actors and centralised critics: their inputs in execution and training."""

from pathlib import Path

from drawing import (
    AGENTS,
    ASSETS,
    FAINT,
    GRID,
    SKY,
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

TEAM = 3
HIGH = 8.0


def draw(folder: Path = ASSETS) -> Path:
    """Two halves: execution, and what exists during training only."""
    figure, axes = sheet(104, 42)
    write(axes, (25, 38.8), "execution", fontsize=11.5, bold=True)
    write(axes, (25, 36.2), "each actor uses its own observation", colour=FAINT)
    write(axes, (78, 38.8), "training", fontsize=11.5, bold=True)
    write(axes, (78, 36.2), "critics use the state (IPPO: own observation)", colour=FAINT)
    line(axes, (53, 53), (2, 40), colour=GRID)
    for agent in range(TEAM):
        execution(axes, 29.5 - HIGH * agent, agent)
        training(axes, 29.5 - HIGH * agent, agent)
    box(axes, (56.5, 8.5), (9, 26), "state", fill=pale(SKY, 0.2),
        fontsize=8.5)  # fmt: skip
    write(axes, (25, 4), "one hidden state per agent, if recurrent", colour=FAINT,
          fontsize=8.5)  # fmt: skip
    write(axes, (78, 4), "critics are not part of a saved policy", colour=FAINT,
          fontsize=8.5)  # fmt: skip
    return save(figure, "team.png", folder)


def execution(axes: Axes, y: float, agent: int) -> None:
    """Observation -> actor -> action."""
    colour = AGENTS[agent]
    disc(axes, (3.5, y), 1.5, str(agent), colour)
    box(axes, (7.5, y - 2.2), (12, 4.4), "observation", edge=colour)
    box(axes, (23.5, y - 2.2), (9.5, 4.4), "actor", edge=colour, fill=pale(colour))
    box(axes, (37, y - 2.2), (9.5, 4.4), "action", edge=colour)
    arrow(axes, (19.5, y), (23.5, y), colour=colour)
    arrow(axes, (33, y), (37, y), colour=colour)


def training(axes: Axes, y: float, agent: int) -> None:
    """State -> critic -> value -> advantage of the agent."""
    colour = AGENTS[agent]
    arrow(axes, (65.5, y), (69.5, y), colour=colour)
    box(axes, (69.5, y - 2.2), (9.5, 4.4), "critic", edge=colour, fill=pale(colour))
    arrow(axes, (79, y), (83, y), colour=colour)
    box(axes, (83, y - 2.2), (18, 4.4), f"value, advantage A{'₀₁₂'[agent]}", edge=colour)


if __name__ == "__main__":
    print(draw())
