"""The legend above a battle: remaining strength of both sides, unit types and counts."""

from collections.abc import Iterator

import numpy as np
from PIL import Image

from fp3o.envs.rendering import EDGE, rgb
from fp3o.envs.smac.render.drawing import (
    ALLY_COLOURS,
    ENEMY_COLOURS,
    SUPERSAMPLING,
    SideColours,
    paste_centred,
    text_image,
)
from fp3o.envs.smac.render.landscape import HEADER
from fp3o.envs.smac.render.scene import BattleScene
from fp3o.envs.smac.render.sprites import DIRECTIONS, sprite

LEGEND_ROW = 36
"""Centre of the legend, in pixels from the top."""

MARGIN = 152
"""Width of the legend's titles in pixels; in a narrow image, unit types have no names."""


def draw_strength(scene: BattleScene) -> None:
    """Draw bars of the remaining health and shields of both sides, below the legend."""
    units, stats, middle = scene.units, scene.stats, scene.image.width / 2
    low, high = SUPERSAMPLING * (HEADER - 5), SUPERSAMPLING * HEADER - 1
    scene.pen.rectangle((0, low, scene.image.width, high), rgb(EDGE, 255))
    for colours, members in ((ALLY_COLOURS, scene.allied), (ENEMY_COLOURS, ~scene.allied)):
        full = (stats.hp + stats.shield)[members].sum()
        left = (units.hp + units.shield)[members].sum()
        part = float(left / full) * (middle - SUPERSAMPLING)
        if part >= 1:
            allied = colours is ALLY_COLOURS
            ends = (0, part) if allied else (2 * middle - part, 2 * middle)
            scene.pen.rectangle((ends[0], low, ends[1], high), rgb(colours.fill, 255))


def draw_icons(scene: BattleScene) -> None:
    """Draw the unit types of both sides."""
    for x, colours, unit, _ in legend_entries(scene):
        turn = 0 if colours is ALLY_COLOURS else DIRECTIONS // 2
        shape = sprite(unit, colours, 8.0 * SUPERSAMPLING, turn)
        paste_centred(scene.image, shape, SUPERSAMPLING * np.array([x, LEGEND_ROW]))


def draw_counts(image: Image.Image, scene: BattleScene) -> None:
    """Write the names of the unit types and how many of them are alive next to the icons."""
    for x, _, _, text in legend_entries(scene):
        label = text_image(text, 12)
        paste_centred(image, label, np.array([x + 11 + label.width / 2, LEGEND_ROW]))
    titles = ("agents", ALLY_COLOURS, 32), ("enemies", ENEMY_COLOURS, image.width - 37)
    for title, colours, middle in titles:
        paste_centred(image, text_image(title, 12, colours.dark), np.array([middle, LEGEND_ROW]))


def legend_entries(scene: BattleScene) -> Iterator[tuple[float, SideColours, str, str]]:
    """Per side and unit type: column of the icon, colours, type, and its label."""
    width = scene.image.width // SUPERSAMPLING
    sides = [_labels(scene, members, True) for members in (scene.allied, ~scene.allied)]
    if sum(_width(label) for side in sides for label in side.values()) > width - MARGIN:
        sides = [_labels(scene, members, False) for members in (scene.allied, ~scene.allied)]
    for colours, labels in zip((ALLY_COLOURS, ENEMY_COLOURS), sides, strict=True):
        total = sum(map(_width, labels.values()))
        x = 75.0 if colours is ALLY_COLOURS else width - 77 - total
        for unit, label in labels.items():
            yield x, colours, unit, label
            x += _width(label)


def _labels(scene: BattleScene, members: np.ndarray, named: bool) -> dict[str, str]:
    """Unit type of a side -> how many are alive, and its name."""
    types = np.array(scene.types)
    by_type = {str(unit): members & (types == unit) for unit in dict.fromkeys(types[members])}
    return {
        unit: f"{unit if named else ''} {(mask & scene.alive).sum()}/{mask.sum()}".replace("_", " ")
        for unit, mask in by_type.items()
    }


def _width(label: str) -> int:
    """Width of an icon with its label, in pixels."""
    return 28 + text_image(label, 12).width
