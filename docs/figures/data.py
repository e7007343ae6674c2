"""A rollout cut into chunks; ends, cuts and what follows them."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from pen import ASSETS, FAINT, GRID, INK, PALETTE, WHITE, arrow, keep, line, pale, sheet, write

STEPS, CHUNK, SIDE = 20, 5, 3.6
LEFT, HIGH = 15.0, 11.0
SHADES = (PALETTE["ippo"][0], PALETTE["coppo"][0])
END, CUT = PALETTE["fp3o"][0], PALETTE["happo"][0]
ROWS = (
    ("environment 0", ((8, "end"),)),
    ("environment 1", ((13, "cut"),)),
    ("environment 2", ((5, "end"), (17, "cut"))),
)
"""Of each environment, the steps at which an episode is over, and how."""


def draw(folder: Path = ASSETS) -> Path:
    """A line for each environment, then what the signs mean."""
    figure, axes = sheet(102, 56)
    top = 49.0
    for chunk in range(STEPS // CHUNK):
        left = LEFT + SIDE * CHUNK * chunk
        write(axes, (left + SIDE * CHUNK / 2, 53.5), f"chunk {chunk}", colour=FAINT)
        for row in range(len(ROWS)):
            y = top - HIGH * row
            line(axes, (left, left), (y - 6.3, y + 1.8), colour=INK, width=1.6)
    for row, (name, ends) in enumerate(ROWS):
        environment(axes, top - HIGH * row, name, dict(ends))
    legend(axes)
    return keep(figure, "data.png", folder)


def environment(axes: Axes, y: float, name: str, ends: dict[int, str]) -> None:
    """Its steps, coloured by episode."""
    write(axes, (2, y - 2.2), name, align="left")
    episode = 0
    for step in range(STEPS):
        x = LEFT + SIDE * step
        fill = pale(SHADES[episode % 2], 0.5)
        axes.add_patch(Rectangle((x, y - 4.2), SIDE, 4, facecolor=fill, edgecolor=WHITE, zorder=0))
        if step % CHUNK == 0:
            memory(axes, x, y + 1.8, kept=True)
        if kind := ends.get(step):
            over(axes, x + SIDE, y, kind)
            episode += 1
    if STEPS - 1 not in ends:
        arrow(axes, (LEFT + SIDE * STEPS, y - 2.2), (LEFT + SIDE * STEPS + 3.5, y - 2.2))
        write(axes, (LEFT + SIDE * STEPS + 4.2, y - 2.2), "+ γ V(last)", align="left", fontsize=8.5)


def memory(axes: Axes, x: float, y: float, kept: bool) -> None:
    """A memory at the beginning of a chunk, or an emptied one at that of an episode."""
    face, edge = (INK, INK) if kept else (WHITE, INK)
    axes.plot([x], [y], marker="o", markersize=6, color=face, markeredgecolor=edge, zorder=6)


def over(axes: Axes, x: float, y: float, kind: str) -> None:
    """The bar at the end of an episode."""
    colour = END if kind == "end" else CUT
    line(axes, (x, x), (y - 5.2, y + 0.8), colour=colour, width=3.5)
    memory(axes, x, y + 1.8, kept=False)
    text = "+ 0" if kind == "end" else "+ γ V(final)"
    write(axes, (x - 0.6, y - 6.6), text, fontsize=8.5, colour=colour, align="right")


def legend(axes: Axes) -> None:
    """What the signs mean."""
    line(axes, (2, 100), (17.6, 17.6), colour=GRID)
    entries = (
        (3.5, 14.8, "kept", "memory as it was in the rollout: the chunk is replayed from it"),
        (3.5, 11.4, "empty", "an episode begins: the memory is emptied before its first step"),
        (3.5, 8.0, "end", "terminated: nothing follows the last reward"),
        (3.5, 4.6, "cut", "truncated by a time limit: the value of the final observation follows,"
                          " from before the reset"),
    )  # fmt: skip
    for x, y, kind, text in entries:
        if kind in ("end", "cut"):
            line(axes, (x, x), (y - 1.3, y + 1.3), colour=END if kind == "end" else CUT, width=3.5)
        else:
            memory(axes, x, y, kept=kind == "kept")
        write(axes, (x + 3, y), text, align="left")


if __name__ == "__main__":
    print(draw())
