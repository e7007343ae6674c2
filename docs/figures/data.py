"""A rollout divided into sequences; terminations, truncations and bootstrapping."""

from pathlib import Path

from drawing import (
    ASSETS,
    FAINT,
    GREEN,
    GRID,
    INK,
    ORANGE,
    SKY,
    WHITE,
    YELLOW,
    arrow,
    line,
    pale,
    save,
    sheet,
    write,
)
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

STEPS, LENGTH, SIDE = 20, 5, 3.6
LEFT, HIGH = 15.0, 11.0
SHADES = (SKY, YELLOW)
END_COLOURS = {"terminated": ORANGE, "truncated": GREEN}
ROWS = (
    ("environment 0", ((8, "terminated"),)),
    ("environment 1", ((13, "truncated"),)),
    ("environment 2", ((5, "terminated"), (17, "truncated"))),
)
"""Per environment: the steps at which an episode ends, and how."""


def draw(folder: Path = ASSETS) -> Path:
    """One row per environment, then the legend."""
    figure, axes = sheet(102, 56)
    top = 49.0
    for sequence in range(STEPS // LENGTH):
        left = LEFT + SIDE * LENGTH * sequence
        write(axes, (left + SIDE * LENGTH / 2, 53.5), f"sequence {sequence}", colour=FAINT)
        for row in range(len(ROWS)):
            y = top - HIGH * row
            line(axes, (left, left), (y - 6.3, y + 1.8), colour=INK, width=1.6)
    for row, (name, ends) in enumerate(ROWS):
        environment(axes, top - HIGH * row, name, dict(ends))
    legend(axes)
    return save(figure, "data.png", folder)


def environment(axes: Axes, y: float, name: str, ends: dict[int, str]) -> None:
    """The steps of an environment, coloured by episode."""
    write(axes, (2, y - 2.2), name, align="left")
    episode = 0
    for step in range(STEPS):
        x = LEFT + SIDE * step
        fill = pale(SHADES[episode % 2], 0.5)
        axes.add_patch(Rectangle((x, y - 4.2), SIDE, 4, facecolor=fill, edgecolor=WHITE, zorder=0))
        if step % LENGTH == 0:
            hidden_state(axes, x, y + 1.8, stored=True)
        if kind := ends.get(step):
            episode_end(axes, x + SIDE, y, kind)
            episode += 1
    if STEPS - 1 not in ends:
        arrow(axes, (LEFT + SIDE * STEPS, y - 2.2), (LEFT + SIDE * STEPS + 3.5, y - 2.2))
        write(axes, (LEFT + SIDE * STEPS + 4.2, y - 2.2), "+ γ V(last)", align="left", fontsize=8.5)


def hidden_state(axes: Axes, x: float, y: float, stored: bool) -> None:
    """A stored hidden state at the start of a sequence, or a reset one at an episode start."""
    face, edge = (INK, INK) if stored else (WHITE, INK)
    axes.plot([x], [y], marker="o", markersize=6, color=face, markeredgecolor=edge, zorder=6)


def episode_end(axes: Axes, x: float, y: float, kind: str) -> None:
    """The bar at the end of an episode."""
    colour = END_COLOURS[kind]
    line(axes, (x, x), (y - 5.2, y + 0.8), colour=colour, width=3.5)
    hidden_state(axes, x, y + 1.8, stored=False)
    text = "+ 0" if kind == "terminated" else "+ γ V(final)"
    write(axes, (x - 0.6, y - 6.6), text, fontsize=8.5, colour=colour, align="right")


def legend(axes: Axes) -> None:
    """Legend."""
    line(axes, (2, 100), (17.6, 17.6), colour=GRID)
    entries = (
        (3.5, 14.8, "stored", "hidden state stored in the rollout: the sequence starts from it"),
        (3.5, 11.4, "reset", "episode start: the hidden state is reset before its first step"),
        (3.5, 8.0, "terminated", "terminated: nothing is bootstrapped"),
        (3.5, 4.6, "truncated", "truncated by a time limit: the value of the final observation"
                                " (before the reset) is bootstrapped"),
    )  # fmt: skip
    for x, y, kind, text in entries:
        if kind in END_COLOURS:
            line(axes, (x, x), (y - 1.3, y + 1.3), colour=END_COLOURS[kind], width=3.5)
        else:
            hidden_state(axes, x, y, stored=kind == "stored")
        write(axes, (x + 3, y), text, align="left")


if __name__ == "__main__":
    print(draw())
