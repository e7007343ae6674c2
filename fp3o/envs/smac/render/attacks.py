"""Drawing of attacks since the last step: shots, missiles, beams, explosions; and of healing."""

import numpy as np

from fp3o.envs.rendering import rgb
from fp3o.envs.smac.render.drawing import (
    BEAM_COLOUR,
    HEALTH_COLOUR,
    SPARK_COLOUR,
    SUPERSAMPLING,
    draw_line,
    vertices,
)
from fp3o.envs.smac.render.scene import BattleScene, unit_indices
from fp3o.envs.smac.render.sprites import circle, star
from fp3o.envs.smac.simulator.state import LOOPS_PER_STEP, NO_TARGET

DRIFT = 1.5
"""Cells by which two units can separate during a step."""


def draw_explosions(scene: BattleScene) -> None:
    """Draw where banelings exploded since the last step, with their blast radius."""
    units, stats = scene.units, scene.stats
    killed = np.where(units.exploding, 0.0, units.since_hit)
    ago = np.where(units.cooldown > 0, np.maximum(stats.period - units.cooldown, 0.0), killed)
    for unit in unit_indices((stats.blast > 0) & ~scene.alive & (ago < LOOPS_PER_STEP)):
        colours, fresh = scene.colours(unit), 1 - float(ago[unit]) / LOOPS_PER_STEP
        size = float(stats.blast[unit]) * scene.backdrop.scale
        ring = scene.position[unit] + size * circle(1.0)
        splash = scene.position[unit] + size * star(11, 0.62, float(unit))
        scene.pen.polygon(vertices(ring), rgb(colours.fill, int(30 + 30 * fresh)))
        scene.pen.polygon(vertices(splash), rgb(colours.fill, int(50 + 80 * fresh)))
        outline = vertices(np.concatenate([ring, ring[:1]]))
        scene.pen.line(outline, rgb(colours.dark, 150), SUPERSAMPLING)


def draw_attacks(scene: BattleScene) -> None:
    """Draw a line per attack, with its missile, or a spark where it has hit."""
    units, stats = scene.units, scene.stats
    flies = (units.flight > 0) & ~(stats.second_hit > 0)
    starts = (units.windup > 0) & scene.alive
    # A target that was not hit lately, or is far away, was chosen after the attack.
    lately = (scene.since_attack < LOOPS_PER_STEP) & scene.alive
    lately &= units.since_hit[scene.target] <= LOOPS_PER_STEP
    near = scene.gap <= stats.weapon_range + stats.range_slop + DRIFT
    hits = lately & near & ~starts & ~flies
    visible = (starts | flies | hits) & (scene.target != NO_TARGET) & (stats.blast == 0)
    for unit in unit_indices(visible & (stats.lance == 0)):
        _draw_shot(scene, unit, int(scene.target[unit]), bool(hits[unit]))
    for unit in unit_indices(visible & (stats.lance > 0) & ~starts):
        _draw_beam(scene, unit, bool(hits[unit]))


def draw_healing(scene: BattleScene) -> None:
    """Draw a line from every healer to the damaged ally in its range."""
    stats, target = scene.stats, scene.target
    healing = (stats.heal > 0) & scene.alive & (target != NO_TARGET) & scene.alive[target]
    healing &= (scene.units.hp < stats.hp)[target] & (scene.gap <= stats.weapon_range)
    for unit in unit_indices(healing):
        start, end = scene.position[unit], scene.position[target[unit]]
        draw_line(scene.pen, start, end, rgb(HEALTH_COLOUR, 255), 2.0)


def _draw_shot(scene: BattleScene, unit: int, target: int, hit: bool) -> None:
    """Draw a line from edge to edge, and a missile in flight or a spark."""
    units, stats, colours = scene.units, scene.stats, scene.colours(unit)
    start, end = scene.position[unit], scene.position[target]
    distance = max(float(np.hypot(*(end - start))), 1e-6)
    way = (end - start) / distance
    tip = end - 0.8 * scene.radius[target] * way
    fresh = 1 - max(float(scene.since_attack[unit]), 0.0) / LOOPS_PER_STEP if hit else 0.5
    if stats.weapon_range[unit] >= 1:  # melee units stand side by side
        edge = start + scene.radius[unit] * way
        draw_line(scene.pen, edge, tip, rgb(colours.dark, int(70 + 130 * fresh)), 1.0)
    if units.flight[unit] > 0 and stats.missile_speed[unit] > 0:
        left = float(units.flight[unit] * stats.missile_speed[unit]) * scene.backdrop.scale
        dot = start + way * np.clip(distance - left, scene.radius[unit], distance)
        scene.pen.polygon(vertices(dot + circle(3.0 * SUPERSAMPLING)), rgb(colours.dark, 255))
        scene.pen.polygon(vertices(dot + circle(1.8 * SUPERSAMPLING)), rgb(SPARK_COLOUR, 255))
    elif hit:
        spark = star(4, 0.35, float(np.arctan2(way[1], way[0])))
        size = (2.5 + 2.0 * fresh) * SUPERSAMPLING
        scene.pen.polygon(vertices(tip + (size + 2) * spark), rgb(colours.dark, 255))
        scene.pen.polygon(vertices(tip + size * spark), rgb(SPARK_COLOUR, 255))


def _draw_beam(scene: BattleScene, unit: int, hit: bool) -> None:
    """Draw a lance: two rays to the line it burns, which is bright after a hit."""
    half_width = float(scene.stats.lance_half_width[unit])
    x, y, way_x, way_y = map(float, scene.units.lance_line[unit])
    ends = [scene.backdrop.pixel(x + part * way_x, y + part * way_y)
            for part in (-half_width, half_width)]  # fmt: skip
    width = 2 * float(scene.stats.lance_radius[unit]) * scene.backdrop.scale / SUPERSAMPLING
    for end in ends:
        draw_line(scene.pen, scene.position[unit], end, rgb(BEAM_COLOUR, 110 if hit else 60), 1.0)
    if hit:
        draw_line(scene.pen, ends[0], ends[1], rgb(BEAM_COLOUR, 90), 2.2 * width)
        draw_line(scene.pen, ends[0], ends[1], rgb(BEAM_COLOUR, 255), width)
    draw_line(scene.pen, ends[0], ends[1], rgb(SPARK_COLOUR, 255 if hit else 170), 0.5 * width)
