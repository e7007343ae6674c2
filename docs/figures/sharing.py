"""Layers and groups of four agents under five sharing schemes, as computed by the library."""

from pathlib import Path

from drawing import (
    AGENTS,
    ASSETS,
    FAINT,
    GREEN,
    INK,
    PURPLE,
    SKY,
    YELLOW,
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

from fp3o.sharing.maps import components
from fp3o.sharing.schemes import layer_groups

AGENT_TYPES = (0, 0, 1, 1)
LAYERS = ("hidden 1", "hidden 2", "output")
Spec = str | tuple[tuple[int, ...], ...]
SHARINGS: dict[str, Spec] = {
    "full": "full",
    "partial": "partial",
    "none": "none",
    "by_type": "by_type",
    "[[0,1,2,3],[0,0,1,1],[0,0,0,0]]": ((0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 0, 0)),
}
GROUPS = (SKY, YELLOW, GREEN, PURPLE)
STEP, PANEL = 4.0, 19.5


def draw(folder: Path = ASSETS) -> Path:
    """One panel per scheme."""
    figure, axes = sheet(9.5 + PANEL * len(SHARINGS), 37)
    for row, name in enumerate(LAYERS):
        write(axes, (8.5, 14.5 + 6 * row), name, align="right", colour=FAINT)
    write(axes, (8.5, 8.5), "agents", align="right", colour=FAINT)
    write(axes, (8.5, 2.6), "components", align="right", colour=FAINT)
    for place, (name, spec) in enumerate(SHARINGS.items()):
        panel(axes, 11.5 + PANEL * place, name, spec)
    return save(figure, "sharing.png", folder)


def panel(axes: Axes, left: float, name: str, spec: Spec) -> None:
    """The agents, their paths through the layers, and the groups of every layer."""
    maps = layer_groups(spec, AGENT_TYPES, len(LAYERS))
    centre = left + 1.5 * STEP
    short = len(name) < 20
    write(axes, (centre, 34), name if short else "one map per layer", fontsize=10.5, bold=True,
          vertical="baseline")  # fmt: skip
    if not short:
        write(axes, (centre, 32.3), name, fontsize=7.6, colour=FAINT)
    for agent, colour in enumerate(AGENTS):
        x = left + STEP * agent
        line(axes, (x, x), (10, 29), colour=colour)
        arrow(axes, (x, 28.5), (x, 31.0), colour=colour)
        disc(axes, (x, 8.5), 1.5, str(agent), colour)
    for row, groups in enumerate(maps):
        for group in sorted(set(groups)):
            members = [agent for agent, its_group in enumerate(groups) if its_group == group]
            width = STEP * (members[-1] - members[0]) + 2.8
            corner = left + STEP * members[0] - 1.4, 12.7 + 6 * row
            box(axes, corner, (width, 3.6), str(group), fill=pale(GROUPS[group], 0.45))
    joined = components(maps)
    for part in sorted(set(joined)):
        members = [left + STEP * agent for agent, its_part in enumerate(joined) if its_part == part]
        line(axes, (members[0] - 1.3, members[-1] + 1.3), (4.6, 4.6), colour=INK, width=2.0)
        write(axes, ((members[0] + members[-1]) / 2, 2.6), str(part), colour=FAINT)


if __name__ == "__main__":
    print(draw())
