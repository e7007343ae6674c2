"""Pictures of battles, seen from above, drawn without a screen.

Everything is painted twice as large and made smaller at the end, which smooths the edges. Only
words are written afterwards. The ground is painted once, and every unit once for each direction.
"""

from collections.abc import Iterator

import jax
import numpy as np
from PIL import Image, ImageDraw

from fp3o.envs.mpe.render import INK
from fp3o.envs.smac.env import SmacEnv, State
from fp3o.envs.smac.render.brush import (
    FIRE,
    FLAME,
    HEALTH,
    LOST,
    OURS,
    SHIELD,
    SMOOTH,
    THEIRS,
    Side,
    flat,
    font,
    label,
    line,
    rgb,
    stamp,
)
from fp3o.envs.smac.render.landscape import FOOT, HEAD, stage
from fp3o.envs.smac.render.scene import Scene
from fp3o.envs.smac.render.shapes import TURNS, disc, sprite, star
from fp3o.envs.smac.simulator import LOOPS, NOBODY
from fp3o.envs.smac.units import LOOPS_PER_SECOND

ROW = 36
"""The row of the legend."""

FEW = 12
"""Up to so many units all have bars, and else only those that are hurt."""

DRIFT = 1.5
"""Cells that two units can come apart in a step."""


def picture(game: SmacEnv, state: State, caption: str = "") -> np.ndarray:
    """The battle as an image, uint8 RGB, with what is left of both sides above, a caption below.

    We are blue, and our agents have numbers; they are orange. Lines lead from those who attack to
    those they hit, as far as it happened since the last step.
    """
    units, last, time = jax.device_get(state)
    page = stage(game.battle.map.ground)
    scene = Scene(game, units, last, page, page.paper.copy())
    fallen(scene)
    explosions(scene)
    bodies(scene)
    attacks(scene)
    bars(scene)
    strength(scene)
    icons(scene)
    image = scene.image.reduce(SMOOTH)
    numbers(image, scene)
    legend(image, scene)
    passed = int(time) * LOOPS / LOOPS_PER_SECOND
    clock = f"step {int(time)} of {game.battle.map.limit}   {passed:.1f} s"
    pen = ImageDraw.Draw(image)
    pen.text((12, 15), game.name, INK, font(15), "lm")
    pen.text((image.width - 12, 15), clock, INK, font(12), "rm")
    pen.text((12, image.height - FOOT / 2), caption, INK, font(13), "lm")
    return np.asarray(image).copy()


def fallen(scene: Scene) -> None:
    """A cross where a unit died, which soon grows faint."""
    for unit in which(~scene.alive):
        fresh = max(0.0, 1 - float(scene.units.unhurt[unit]) / (2 * LOOPS))
        colour = rgb(scene.side(unit).fill, int(90 + 120 * fresh))
        arm = 0.55 * scene.radius[unit] / np.sqrt(2)
        for way in ((arm, arm), (arm, -arm)):
            line(scene.pen, scene.place[unit] - way, scene.place[unit] + way, colour, 2.0)


def explosions(scene: Scene) -> None:
    """Where banelings burst since the last step: as far as it hurts."""
    units, own = scene.units, scene.game.battle.facts
    killed = np.where(units.bursting, 0.0, units.unhurt)
    ago = np.where(units.cooldown > 0, np.maximum(own.period - units.cooldown, 0.0), killed)
    for unit in which((own.blast > 0) & ~scene.alive & (ago < LOOPS)):
        side, fresh = scene.side(unit), 1 - float(ago[unit]) / LOOPS
        size = float(own.blast[unit]) * scene.stage.scale
        ring = scene.place[unit] + size * disc(1.0)
        splash = scene.place[unit] + size * star(11, 0.62, float(unit))
        scene.pen.polygon(flat(ring), rgb(side.fill, int(30 + 30 * fresh)))
        scene.pen.polygon(flat(splash), rgb(side.fill, int(50 + 80 * fresh)))
        scene.pen.line(flat(np.concatenate([ring, ring[:1]])), rgb(side.dark, 150), SMOOTH)


def bodies(scene: Scene) -> None:
    """The living; those that step over others on top of them."""
    above = scene.game.battle.facts.walks_cliffs
    for unit in sorted(which(scene.alive), key=lambda i: (above[i], scene.ours[i])):
        turn = round(float(scene.way[unit]) / (2 * np.pi) * TURNS) % TURNS
        shape = sprite(scene.kinds[unit], scene.side(unit), float(scene.radius[unit]), turn)
        stamp(scene.image, shape, scene.place[unit])


def attacks(scene: Scene) -> None:
    """Who hits whom: a line, and on it what flies, or a spark where it has hit."""
    units, own = scene.units, scene.game.battle.facts
    flies = (units.flight > 0) & ~(own.second > 0)
    begins = (units.windup > 0) & scene.alive
    # Who has found another target since then did not hit that one: it is unhurt, or far away.
    lately = (scene.since < LOOPS) & (units.unhurt[scene.victims] <= LOOPS) & scene.alive
    hits = lately & (scene.gap <= own.reach + own.slop + DRIFT) & ~begins & ~flies
    shows = (begins | flies | hits) & (scene.victims != NOBODY) & (own.blast == 0)
    for unit in which(shows & (own.lance == 0)):
        shot(scene, unit, int(scene.victims[unit]), bool(hits[unit]))
    for unit in which(shows & (own.lance > 0) & ~begins):
        beam(scene, unit, bool(hits[unit]))


def shot(scene: Scene, unit: int, whom: int, hit: bool) -> None:
    """A line from edge to edge; a dot for a missile on its way."""
    units, own, side = scene.units, scene.game.battle.facts, scene.side(unit)
    start, end = scene.place[unit], scene.place[whom]
    far = max(float(np.hypot(*(end - start))), 1e-6)
    way = (end - start) / far
    tip = end - 0.8 * scene.radius[whom] * way
    fresh = 1 - max(float(scene.since[unit]), 0.0) / LOOPS if hit else 0.5
    if own.reach[unit] >= 1:  # else they stand side by side
        edge = start + scene.radius[unit] * way
        line(scene.pen, edge, tip, rgb(side.dark, int(70 + 130 * fresh)), 1.0)
    if units.flight[unit] > 0 and own.missile[unit] > 0:
        left = float(units.flight[unit] * own.missile[unit]) * scene.stage.scale
        dot = start + way * np.clip(far - left, scene.radius[unit], far)
        scene.pen.polygon(flat(dot + disc(3.0 * SMOOTH)), rgb(side.dark, 255))
        scene.pen.polygon(flat(dot + disc(1.8 * SMOOTH)), rgb(FLAME, 255))
    elif hit:
        spark = star(4, 0.35, float(np.arctan2(way[1], way[0])))
        size = (2.5 + 2.0 * fresh) * SMOOTH
        scene.pen.polygon(flat(tip + (size + 2) * spark), rgb(side.dark, 255))
        scene.pen.polygon(flat(tip + size * spark), rgb(FLAME, 255))


def beam(scene: Scene, unit: int, hit: bool) -> None:
    """A lance: two rays to the line it burns, which glows when it has hit."""
    lance, scale = scene.game.battle.units[unit].lance, scene.stage.scale
    assert lance is not None
    x, y, way_x, way_y = map(float, scene.units.aim[unit])
    ends = [scene.stage.at(x + part * way_x, y + part * way_y)
            for part in (-lance.half_width, lance.half_width)]  # fmt: skip
    wide = 2 * lance.radius * scale / SMOOTH
    for end in ends:
        line(scene.pen, scene.place[unit], end, rgb(FIRE, 110 if hit else 60), 1.0)
    if hit:
        line(scene.pen, ends[0], ends[1], rgb(FIRE, 90), 2.2 * wide)
        line(scene.pen, ends[0], ends[1], rgb(FIRE, 255), wide)
    line(scene.pen, ends[0], ends[1], rgb(FLAME, 255 if hit else 170), 0.5 * wide)


def bars(scene: Scene) -> None:
    """What is left of health, and above it of shields."""
    units, own = scene.units, scene.game.battle.facts
    hurt = (units.hp < own.hp) | (units.shield < own.shield)
    tall = max(3, round(0.09 * scene.stage.scale))
    for unit in which(scene.alive & (hurt | (len(hurt) <= FEW))):
        half = float(np.clip(scene.radius[unit], 7 * SMOOTH, 14 * SMOOTH))
        x, y = np.round(scene.place[unit] - (half, scene.radius[unit] + tall))
        rows = [(units.hp, own.hp, HEALTH), (units.shield, own.shield, SHIELD)]
        for left, whole, colour in rows[: 1 + int(own.shield[unit] > 0)]:
            end, part = x + 2 * half, float(left[unit] / whole[unit])
            scene.pen.rectangle((x - 1, y - 1, end + 1, y + tall), rgb(LOST, 255))
            if part > 0:
                end = x + max(part * 2 * half, 1)
                scene.pen.rectangle((x, y, end, y + tall - 1), rgb(colour, 255))
            y -= tall + 1


def strength(scene: Scene) -> None:
    """Between legend and scene: health and shields of both sides, from either end to the middle."""
    units, own, middle = scene.units, scene.game.battle.facts, scene.image.width / 2
    low, high = SMOOTH * (HEAD - 5), SMOOTH * HEAD - 1
    scene.pen.rectangle((0, low, scene.image.width, high), rgb("#d8d4ca", 255))
    for side, members in ((OURS, scene.ours), (THEIRS, ~scene.ours)):
        whole = (own.hp + own.shield)[members].sum()
        part = float((units.hp + units.shield)[members].sum() / whole) * (middle - SMOOTH)
        if part >= 1:
            ends = (0, part) if side is OURS else (2 * middle - part, 2 * middle)
            scene.pen.rectangle((ends[0], low, ends[1], high), rgb(side.fill, 255))


def roster(scene: Scene) -> Iterator[tuple[float, Side, str, str]]:
    """Of every kind of both sides: where its icon is, its side, its name, and how many live."""
    many, width = np.array(scene.kinds), scene.image.width // SMOOTH
    for side, members in ((OURS, scene.ours), (THEIRS, ~scene.ours)):
        found = {str(kind): members & (many == kind) for kind in dict.fromkeys(many[members])}
        words = [
            f"{kind} {(units & scene.alive).sum()}/{units.sum()}".replace("_", " ")
            for kind, units in found.items()
        ]
        wide = [28 + label(word, 12).width for word in words]
        x = 75.0 if side is OURS else width - 77 - sum(wide)
        for kind, word, step in zip(found, words, wide, strict=True):
            yield x, side, kind, word
            x += step


def icons(scene: Scene) -> None:
    """The kinds of both sides, above the scene."""
    for x, side, kind, _ in roster(scene):
        shape = sprite(kind, side, 8.0 * SMOOTH, 0 if side is OURS else TURNS // 2)
        stamp(scene.image, shape, SMOOTH * np.array([x, ROW]))


def legend(image: Image.Image, scene: Scene) -> None:
    """Names and numbers beside the icons."""
    for x, _, _, words in roster(scene):
        text = label(words, 12)
        stamp(image, text, np.array([x + 11 + text.width / 2, ROW]))
    for words, side, middle in (("agents", OURS, 32), ("enemies", THEIRS, image.width - 37)):
        stamp(image, label(words, 12, side.dark), np.array([middle, ROW]))


def numbers(image: Image.Image, scene: Scene) -> None:
    """Of our agents that live."""
    for agent in which(scene.alive & scene.ours):
        size = int(np.clip(1.25 * scene.radius[agent] / SMOOTH, 9, 18))
        stamp(image, label(str(agent), size, "#ffffff", OURS.dark), scene.place[agent] / SMOOTH)


def which(mask: np.ndarray) -> list[int]:
    """The numbers of those for whom it holds."""
    return np.flatnonzero(mask).tolist()
