"""Pictures of battles, seen from above, drawn without a screen.

Everything is painted twice as large and made smaller at the end, which smooths the edges. Only
words are written afterwards. The ground is painted once, and every unit once for each direction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from fp3o.envs.mpe_view import ALARM, COLOURS, INK, PAPER, TEAM
from fp3o.envs.smac.battle import LOOPS, NOBODY
from fp3o.envs.smac.game import Skirmish, State
from fp3o.envs.smac.maps import kinds
from fp3o.envs.smac.sight import FIRST, HEADINGS, STILL
from fp3o.envs.smac.terrain import Terrain, terrain
from fp3o.envs.smac.units import LOOPS_PER_SECOND

Colour = tuple[int, ...]
WIDE, TALL = 768, 624
"""The most columns and rows of the scene."""
HEAD, FOOT = 54, 26
"""Rows above the scene, for the legend, and below it, for the caption."""
SMOOTH = 2
"""Pixels painted for one that is seen, along each axis."""
MARGIN = 0.75
"""Cells around those one can walk on."""
ROW = 36
"""The row of the legend."""
FEW = 12
"""Up to so many units all have bars, and else only those that are hurt."""
DRIFT = 1.5
"""Cells that two units can come apart in a step."""
TURNS = 48
"""Directions in which a unit is painted."""


def rgb(colour: str, alpha: int | None = None) -> Colour:
    """`#rrggbb` as numbers, with how much it covers of what is below, from 0 to 255."""
    return (*bytes.fromhex(colour[1:]), *(() if alpha is None else (alpha,)))


class Side(NamedTuple):
    """The colours of a team."""

    fill: str
    dark: str
    light: str


OURS, THEIRS = (Side(COLOURS[2], "#153a66", "#b9d4f2"), Side(TEAM[1], "#6f3a06", "#fbdcb6"))
HEALTH, SHIELD, LOST = COLOURS[1], "#7cc4f0", "#3a3b40"
ABYSS, ROCK, LOW, HIGH = "#5e5c58", "#a8a294", "#dedcd0", "#f6f0df"
FIRE, FLAME = ALARM, "#ffd166"

Part = tuple[int, np.ndarray]
"""A colour of the side, by its number, and the corners of what is filled with it."""


def disc(radius: float, x: float = 0.0, y: float = 0.0, lobes: int = 0) -> np.ndarray:
    """The corners of a circle, or of something with lobes."""
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    size = radius * (1 + 0.11 * np.cos(lobes * angle) * (lobes > 0))
    return np.stack([x + size * np.cos(angle), y + size * np.sin(angle)], 1)


def even(*corners: tuple[float, float]) -> np.ndarray:
    """Left half, given from the front to the back, and the right half like it."""
    left = np.array(corners)
    return np.concatenate([left, left[::-1] * (1, -1)])


def both(tone: int, corners: np.ndarray) -> tuple[Part, Part]:
    """A part on the left and the same on the right."""
    return (tone, corners), (tone, corners * (1, -1))


def star(points: int, inner: float, turn: float = 0.0) -> np.ndarray:
    """The corners of a star."""
    angle = turn + np.arange(2 * points) * np.pi / points
    size = np.where(np.arange(2 * points) % 2, inner, 1.0)
    return np.stack([size * np.cos(angle), size * np.sin(angle)], 1)


FILL, DARK, LIGHT = range(3)
SHAPES: Mapping[str, tuple[Part, ...]] = {
    "marine": (
        (DARK, np.array([(0.1, -0.72), (1.2, -0.72), (1.2, -0.4), (0.1, -0.4)])),
        (FILL, disc(0.84)),
    ),
    "marauder": (
        *both(DARK, np.array([(-0.2, 0.55), (1.15, 0.55), (1.15, 0.98), (-0.2, 0.98)])),
        (FILL, even((0.7, 0.35), (0.35, 0.75), (-0.45, 0.75), (-0.85, 0.4))),
    ),
    "medivac": (
        *both(DARK, disc(0.36, 0.05, 0.68)),
        (FILL, even((1.05, 0.15), (0.8, 0.42), (-0.5, 0.42), (-0.65, 0.75), (-1.0, 0.75))),
        (LIGHT, even((0.35, 0.1), (0.12, 0.1), (0.12, 0.3), (-0.12, 0.3), (-0.12, 0.1),
                     (-0.35, 0.1))),
    ),
    "zealot": (
        *both(DARK, np.array([(1.2, 0.56), (0.3, 0.95), (-0.35, 0.8), (0.2, 0.55)])),
        (FILL, disc(0.74, -0.15)),
    ),
    "stalker": (
        (DARK, star(4, 0.42, np.pi / 4)),
        (FILL, even((0.8, 0.14), (0.3, 0.48), (-0.4, 0.48), (-0.72, 0.16))),
    ),
    "zergling": (
        (FILL, even((1.15, 0.06), (0.46, 0.34), (0.72, 0.78), (0.0, 0.76), (-0.7, 0.5),
                    (-0.95, 0.16))),
    ),
    "baneling": ((FILL, disc(0.92, lobes=8)), (DARK, disc(0.5))),
    "hydralisk": (
        (FILL, even((0.85, 0.2), (0.6, 0.75), (0.05, 0.85), (-0.3, 0.5), (-0.6, 0.2),
                    (-1.2, 0.06))),
        (LIGHT, even((0.68, 0.1), (0.52, 0.46), (0.34, 0.5), (0.44, 0.12))),
    ),
    "colossus": (
        (DARK, star(4, 0.2, np.pi / 4)),
        (FILL, even((0.5, 0.25), (0.36, 0.8), (-0.36, 0.8), (-0.5, 0.25))),
        (DARK, disc(0.17, 0.58)),
    ),
    "spine_crawler": (
        (DARK, star(7, 0.55)), (FILL, disc(0.5, -0.1)), (LIGHT, even((1.25, 0.03), (0.1, 0.22))),
    ),
}  # fmt: skip
"""What kinds look like from above, looking to the right; their radius is 1."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A ground on paper."""

    left: float
    top: float
    scale: float
    """Painted pixels of a cell."""
    paper: Image.Image

    def at(self, x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
        """Where a place is painted: column and row."""
        row = SMOOTH * HEAD + (self.top - np.asarray(y)) * self.scale
        return np.stack([(np.asarray(x) - self.left) * self.scale, row], -1)


@dataclass(frozen=True, eq=False)
class Scene:
    """What is to be drawn, and on what."""

    game: Skirmish
    units: Any
    """The state's units, as arrays of NumPy."""
    last: np.ndarray
    """Last actions of the agents."""
    stage: Stage
    image: Image.Image

    @cached_property
    def pen(self) -> ImageDraw.ImageDraw:
        """Draws on the image, and lets through what is below a colour that is not full."""
        return ImageDraw.Draw(self.image, "RGBA")

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of every unit."""
        return kinds(self.game.battle.map.allies) + kinds(self.game.battle.map.enemies)

    @cached_property
    def place(self) -> np.ndarray:
        """(u, 2): where every unit is painted."""
        return self.stage.at(self.units.x, self.units.y)

    @cached_property
    def radius(self) -> np.ndarray:
        """(u,): of every unit, painted."""
        return self.game.battle.facts.radius * self.stage.scale

    @cached_property
    def alive(self) -> np.ndarray:
        """(u,): who is."""
        return self.units.hp > 0

    @cached_property
    def ours(self) -> np.ndarray:
        """(u,): who is on our side."""
        return np.arange(len(self.alive)) < self.game.battle.num_allies

    def side(self, unit: int) -> Side:
        """The colours of a unit."""
        return OURS if self.ours[unit] else THEIRS

    @cached_property
    def victims(self) -> np.ndarray:
        """(u,): whom everyone attacks, or attacked last, among all units, or `NOBODY`."""
        units, own, n = self.units, self.game.battle.facts, self.game.battle.num_allies
        told = np.full(len(self.alive), NOBODY)
        told[:n] = np.where(self.last >= FIRST, self.last - FIRST, NOBODY)
        whom = np.where(units.target != NOBODY, units.target, told)
        late = (own.second > 0) | (own.missile > 0) | (own.lance > 0)
        whom = np.where(late & (units.windup == 0) & (units.prey != NOBODY), units.prey, whom)
        return np.where(whom == NOBODY, NOBODY, whom + np.where(self.ours, n, 0))

    @cached_property
    def gap(self) -> np.ndarray:
        """(u,): from the edge of everyone to that of its victim, in cells."""
        x, y, radius = self.units.x, self.units.y, self.game.battle.facts.radius
        away = np.hypot(x - x[self.victims], y - y[self.victims])
        return away - radius - radius[self.victims]

    @cached_property
    def since(self) -> np.ndarray:
        """(u,): loops since the last attack hit, up to the noise of the waits; below 0 before."""
        units, own = self.units, self.game.battle.facts
        away = self.gap + own.radius + own.radius[self.victims]
        flight = np.where(own.missile > 0, away / np.maximum(own.missile, 1e-6), own.lance)
        begun = np.where(units.cooldown > 0, own.period - units.cooldown, np.inf)
        return begun - own.windup - flight

    @cached_property
    def way(self) -> np.ndarray:
        """(u,): the direction everyone looks to: its target, its move, or the nearest opponent."""
        units, n = self.units, self.game.battle.num_allies
        dx, dy = (part[None] - part[:, None] for part in (units.x, units.y))
        foes = (self.ours[:, None] != self.ours[None]) & self.alive[None]
        nearest = np.where(foes, np.hypot(dx, dy), np.inf).argmin(1)
        whom = np.where(units.target != NOBODY, self.victims, nearest)
        rows = np.arange(len(whom))
        angle = np.arctan2(dy[rows, whom], dx[rows, whom])
        walks = (self.last >= STILL) & (self.last < FIRST)
        move = HEADINGS[np.clip(self.last - STILL, 0, len(HEADINGS) - 1)]
        angle[:n] = np.where(walks, np.arctan2(move[:, 1], move[:, 0]), angle[:n])
        return angle


def picture(game: Skirmish, state: State, caption: str = "") -> np.ndarray:
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


def stamp(image: Image.Image, shape: Image.Image, middle: np.ndarray) -> None:
    """Paste a shape around a place."""
    x, y = np.round(middle - (shape.width / 2, shape.height / 2)).astype(int)
    image.paste(shape, (int(x), int(y)), shape)


@cache
def sprite(kind: str, side: Side, radius: float, turn: int) -> Image.Image:
    """A unit by itself, on a faint disc of its size."""
    fine, half = 3, int(1.35 * radius) + 4
    image = Image.new("RGBA", (2 * half * fine, 2 * half * fine), rgb(side.dark, 0))
    pen, angle = ImageDraw.Draw(image), 2 * np.pi * turn / TURNS
    cos, sin = np.cos(angle), np.sin(angle)
    rotate = np.array([(cos, -sin), (sin, cos)]) * radius * fine  # rows of a picture go down
    base = flat(half * fine + disc(1.0) @ rotate)
    pen.polygon(base, rgb(side.light, 150), rgb(side.fill, 170), fine)
    for tone, corners in SHAPES.get(kind, ((FILL, disc(0.9)),)):
        edge = flat(half * fine + corners @ rotate)
        pen.polygon(edge, rgb(side[tone], 255))
        pen.line((*edge, *edge[:2]), rgb(side.dark, 255), 2 * fine, "curve")
    return image.reduce(fine)


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


@cache
def label(words: str, size: int, colour: str = INK, edge: str = "") -> Image.Image:
    """Words by themselves, as high as all of this size."""
    wide = round(font(size).getlength(words))
    image = Image.new("RGBA", (wide + 4, 2 * size), rgb(edge or colour, 0))
    ImageDraw.Draw(image).text(
        (image.width / 2, size), words, colour, font(size), "mm", stroke_width=1 if edge else 0,
        stroke_fill=edge or None,
    )  # fmt: skip
    return image


def line(
    pen: ImageDraw.ImageDraw, start: np.ndarray, end: np.ndarray, colour: Colour, width: float
) -> None:
    """A line of so many seen pixels."""
    pen.line((*map(float, start), *map(float, end)), colour, max(1, round(width * SMOOTH)))


def which(mask: np.ndarray) -> list[int]:
    """The numbers of those for whom it holds."""
    return np.flatnonzero(mask).tolist()


def flat(corners: np.ndarray) -> list[float]:
    """Corners as Pillow takes them."""
    return corners.ravel().tolist()


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The one that comes with Pillow."""
    return ImageFont.load_default(size)


@cache
def stage(ground: str) -> Stage:
    """A ground painted on paper, as large as it fits, with strips above and below."""
    land = terrain(ground)
    cells = np.argwhere(land.walkable)
    (left, bottom), (right, top) = cells.min(0) - MARGIN, cells.max(0) + 1 + MARGIN
    scale = float(min(WIDE / (right - left), TALL / (top - bottom)))
    wide, tall = (2 * round(length * scale / 2) for length in (right - left, top - bottom))
    scale *= SMOOTH
    x = left + (np.arange(wide * SMOOTH) + 0.5) / scale
    y = top - (np.arange(tall * SMOOTH) + 0.5) / scale
    paper = Image.new("RGB", (wide * SMOOTH, (tall + HEAD + FOOT) * SMOOTH), PAPER)
    paper.paste(Image.fromarray(landscape(land, x, y, scale)), (0, HEAD * SMOOTH))
    return Stage(float(left), float(top), scale, paper)


def landscape(land: Terrain, x: np.ndarray, y: np.ndarray, scale: float) -> np.ndarray:
    """The ground at the columns `x` and rows `y`, uint8 `(rows, columns, 3)`."""
    columns, rows = (np.floor(part).astype(int) + 1 for part in (x, y))

    def seen(cells: np.ndarray) -> np.ndarray:
        return np.pad(cells, 1)[columns[None], rows[:, None]].astype(np.float32)

    solid, free, high, ramp = (
        seen(cells) for cells in (land.level > 0, land.walkable, land.level == 2, land.level == 3)
    )
    if ramp.any():
        row, column = np.nonzero(ramp)
        down = descent(land, x[column], y[row])
        high[row, column] = 1 - down / down.max()
    tone = lambda name: np.array(rgb(name), np.float32)  # noqa: E731
    image = mix(tone(ABYSS), tone(ROCK), rounded(solid, 0.3 * scale))
    ground = mix(tone(LOW), tone(HIGH), high)
    ground -= 14 * (ramp * (np.floor(8 * high) % 2))[..., None]
    ground -= 5 * ((columns[None] + rows[:, None]) % 2)[..., None]
    image = mix(image, ground, rounded(free, 0.3 * scale))
    edge = np.abs(blur(free, 0.3 * scale) - 0.5)
    image -= 40 * np.clip(1 - edge / 0.12, 0, 1)[..., None]
    return np.clip(image, 0, 255).astype(np.uint8)


def descent(land: Terrain, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far some places are from the high ground."""
    away = np.full(len(x), np.inf)
    for left, bottom in np.argwhere(land.level == 2):
        across, along = x - np.clip(x, left, left + 1), y - np.clip(y, bottom, bottom + 1)
        away = np.minimum(away, across**2 + along**2)
    return np.sqrt(away)


def mix(one: np.ndarray, other: np.ndarray, share: np.ndarray) -> np.ndarray:
    """From one colour to another."""
    return one + (other - one) * share[..., None]


def blur(mask: np.ndarray, radius: float) -> np.ndarray:
    """The same with soft edges."""
    image = Image.fromarray((mask * 255).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(radius)), np.float32) / 255


def rounded(mask: np.ndarray, radius: float) -> np.ndarray:
    """The same with round corners."""
    return np.clip((blur(mask, radius) - 0.5) * 2 * radius + 0.5, 0, 1)
