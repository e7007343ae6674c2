"""Shared by the programs that draw the figures: colours, boxes, arrows, saving."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from PIL import Image

ASSETS = Path(__file__).parent.parent / "assets"
INK, FAINT, GRID, WHITE = "#1f2328", "#656d76", "#d5dae0", "#ffffff"
BLUE, SKY, GREEN, PURPLE, YELLOW, ORANGE = (
    "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#e69f00", "#d55e00",
)  # fmt: skip
AGENTS = (BLUE, YELLOW, GREEN, PURPLE)
"""Colours of agents 0 to 3."""

Point = tuple[float, float]


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty white figure whose unit is a tenth of an inch."""
    figure = plt.figure(figsize=(width / 10, height / 10), facecolor=WHITE)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def pale(colour: str, strength: float = 0.25) -> str:
    """A colour mixed with white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * strength):02x}" for part in parts)


def box(
    axes: Axes, corner: Point, size: Point, text: str = "", *, edge: str = INK, fill: str = WHITE,
    fontsize: float = 9.0, dashed: bool = False,
) -> None:  # fmt: skip
    """A rounded box with centred text."""
    style = "round,pad=0,rounding_size=0.6"
    axes.add_patch(
        FancyBboxPatch(corner, *size, boxstyle=style, facecolor=fill, edgecolor=edge,
                       linewidth=1.2, linestyle="--" if dashed else "-", zorder=2)
    )  # fmt: skip
    centre = corner[0] + size[0] / 2, corner[1] + size[1] / 2
    write(axes, centre, text, fontsize=fontsize)


def write(
    axes: Axes, place: Point, text: str, *, fontsize: float = 9.0, colour: str = INK,
    align: str = "center", bold: bool = False, vertical: str = "center",
) -> None:  # fmt: skip
    """Text at a position."""
    weight = "bold" if bold else "normal"
    axes.text(*place, text, ha=align, va=vertical, fontsize=fontsize, color=colour, weight=weight,
              linespacing=1.35, zorder=5)  # fmt: skip


def arrow(
    axes: Axes, start: Point, end: Point, *, colour: str = INK, bend: float = 0.0,
    dashed: bool = False, width: float = 1.2,
) -> None:  # fmt: skip
    """An arrow, curved by `bend`."""
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color=colour,
                        linewidth=width, linestyle="--" if dashed else "-", shrinkA=0, shrinkB=0,
                        connectionstyle=f"arc3,rad={bend}", zorder=3)
    )  # fmt: skip


def line(axes: Axes, xs: Sequence[float], ys: Sequence[float], *, colour: str = INK,
         width: float = 1.2, style: str = "-") -> None:  # fmt: skip
    """A polyline."""
    axes.plot(xs, ys, color=colour, linewidth=width, linestyle=style, zorder=1)


def disc(axes: Axes, place: Point, radius: float, text: str, colour: str) -> None:
    """A disc with the number of an agent."""
    axes.add_patch(Circle(place, radius, facecolor=colour, edgecolor="none", zorder=4))
    write(axes, place, text, fontsize=9, colour=WHITE, bold=True)


def save(figure: Figure, name: str, folder: Path = ASSETS) -> Path:
    """Save the figure with a small palette, which makes the file small and reproducible."""
    path = folder / name
    figure.savefig(path, dpi=160)
    plt.close(figure)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(path, optimize=True)
    return path
