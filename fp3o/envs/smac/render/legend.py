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
    for x, colours, unit, _ in _entries(scene):
        turn = 0 if colours is ALLY_COLOURS else DIRECTIONS // 2
        shape = sprite(unit, colours, 8.0 * SUPERSAMPLING, turn)
        paste_centred(scene.image, shape, SUPERSAMPLING * np.array([x, LEGEND_ROW]))


def draw_counts(image: Image.Image, scene: BattleScene) -> None:
    """Write the names of the unit types and how many of them are alive next to the icons."""
    for x, _, _, text in _entries(scene):
        label = text_image(text, 12)
        paste_centred(image, label, np.array([x + 11 + label.width / 2, LEGEND_ROW]))
    titles = ("agents", ALLY_COLOURS, 32), ("enemies", ENEMY_COLOURS, image.width - 37)
    for title, colours, middle in titles:
        paste_centred(image, text_image(title, 12, colours.dark), np.array([middle, LEGEND_ROW]))


def _entries(scene: BattleScene) -> Iterator[tuple[float, SideColours, str, str]]:
    """Per side and unit type: column of the icon, colours, type, and its label."""
    types, width = np.array(scene.types), scene.image.width // SUPERSAMPLING
    for colours, members in ((ALLY_COLOURS, scene.allied), (ENEMY_COLOURS, ~scene.allied)):
        by_type = {str(unit): members & (types == unit) for unit in dict.fromkeys(types[members])}
        labels = [
            f"{unit} {(mask & scene.alive).sum()}/{mask.sum()}".replace("_", " ")
            for unit, mask in by_type.items()
        ]
        widths = [28 + text_image(label, 12).width for label in labels]
        x = 75.0 if colours is ALLY_COLOURS else width - 77 - sum(widths)
        for unit, label, step in zip(by_type, labels, widths, strict=True):
            yield x, colours, unit, label
            x += step
