"""Images of battles from above."""

import jax
import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.rendering import INK, font, rgb
from fp3o.envs.smac.env import SmacEnv, SmacState
from fp3o.envs.smac.render.attacks import draw_attacks, draw_explosions, draw_healing
from fp3o.envs.smac.render.drawing import (
    ALLY_COLOURS,
    EMPTY_COLOUR,
    HEALTH_COLOUR,
    SHIELD_COLOUR,
    SUPERSAMPLING,
    draw_line,
    paste_centred,
    text_image,
)
from fp3o.envs.smac.render.landscape import FOOTER, backdrop
from fp3o.envs.smac.render.legend import draw_counts, draw_icons, draw_strength
from fp3o.envs.smac.render.scene import BattleScene, unit_indices
from fp3o.envs.smac.render.sprites import DIRECTIONS, sprite
from fp3o.envs.smac.simulator.state import LOOPS_PER_STEP
from fp3o.envs.smac.units import LOOPS_PER_SECOND

FEW_UNITS = 12
"""Up to this number of units all have health bars; in larger battles only damaged units do."""


def render_battle(env: SmacEnv, state: SmacState, caption: str = "") -> np.ndarray:
    """The battle as an RGB image, uint8, with a legend above and a caption below.

    Allies are blue and numbered, enemies are orange. Lines lead from attackers to the units they
    hit since the last step.
    """
    units, last_actions, time = jax.device_get(state)
    terrain = backdrop(env.battle.map.terrain)
    scene = BattleScene(env, units, last_actions, terrain, terrain.image.copy())
    _draw_dead(scene)
    draw_explosions(scene)
    _draw_units(scene)
    draw_attacks(scene)
    draw_healing(scene)
    _draw_health_bars(scene)
    draw_strength(scene)
    draw_icons(scene)
    image = scene.image.reduce(SUPERSAMPLING)
    _draw_agent_numbers(image, scene)
    draw_counts(image, scene)
    seconds = int(time) * LOOPS_PER_STEP / LOOPS_PER_SECOND
    clock = f"step {int(time)} of {env.max_episode_steps}   {seconds:.1f} s"
    pen = ImageDraw.Draw(image)
    pen.text((12, 15), env.name, INK, font(15), "lm")
    pen.text((image.width - 12, 15), clock, INK, font(12), "rm")
    pen.text((12, image.height - FOOTER / 2), caption, INK, font(13), "lm")
    return np.asarray(image).copy()


def _draw_dead(scene: BattleScene) -> None:
    """Draw a cross where a unit died, which fades."""
    for unit in unit_indices(~scene.alive):
        fresh = max(0.0, 1 - float(scene.units.since_hit[unit]) / (2 * LOOPS_PER_STEP))
        colour = rgb(scene.colours(unit).fill, int(90 + 120 * fresh))
        arm = 0.55 * scene.radius[unit] / np.sqrt(2)
        for way in ((arm, arm), (arm, -arm)):
            start, end = scene.position[unit] - way, scene.position[unit] + way
            draw_line(scene.pen, start, end, colour, 2.0)


def _draw_units(scene: BattleScene) -> None:
    """Draw living units; those that step over others are on top."""
    above = scene.stats.walks_cliffs
    for unit in sorted(unit_indices(scene.alive), key=lambda i: (above[i], scene.allied[i])):
        turn = round(float(scene.direction[unit]) / (2 * np.pi) * DIRECTIONS) % DIRECTIONS
        colours, radius = scene.colours(unit), float(scene.radius[unit])
        paste_centred(
            scene.image, sprite(scene.types[unit], colours, radius, turn), scene.position[unit]
        )


def _draw_health_bars(scene: BattleScene) -> None:
    """Draw the remaining health, and above it the remaining shield."""
    units, stats = scene.units, scene.stats
    damaged = (units.hp < stats.hp) | (units.shield < stats.shield)
    height = max(3, round(0.09 * scene.backdrop.scale))
    for unit in unit_indices(scene.alive & (damaged | (len(damaged) <= FEW_UNITS))):
        half = float(np.clip(scene.radius[unit], 7 * SUPERSAMPLING, 14 * SUPERSAMPLING))
        x, y = np.round(scene.position[unit] - (half, scene.radius[unit] + height))
        bars = [(units.hp, stats.hp, HEALTH_COLOUR), (units.shield, stats.shield, SHIELD_COLOUR)]
        for left, full, colour in bars[: 1 + int(stats.shield[unit] > 0)]:
            end, part = x + 2 * half, float(left[unit] / full[unit])
            scene.pen.rectangle((x - 1, y - 1, end + 1, y + height), rgb(EMPTY_COLOUR, 255))
            if part > 0:
                end = x + max(part * 2 * half, 1)
                scene.pen.rectangle((x, y, end, y + height - 1), rgb(colour, 255))
            y -= height + 1


def _draw_agent_numbers(image: Image.Image, scene: BattleScene) -> None:
    """Write the indices of living agents."""
    for agent in unit_indices(scene.alive & scene.allied):
        size = int(np.clip(1.25 * scene.radius[agent] / SUPERSAMPLING, 9, 18))
        number = text_image(str(agent), size, "#ffffff", ALLY_COLOURS.dark)
        paste_centred(image, number, scene.position[agent] / SUPERSAMPLING)
