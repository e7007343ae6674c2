"""The simulator: one loop of the game for all units of a battle, sixteen loops a second.

Allies come first. `a` is an axis of allies, `v` of enemies, `u` of all units. A battle is
symmetric: both sides follow orders by the same rules, and what happens in a loop happens at once.
"""

from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.envs.smac.maps import MAPS, Map, formation, kinds
from fp3o.envs.smac.terrain import COMPASS, FINE, SIZE, STRAIGHT, Terrain, clearance, terrain
from fp3o.envs.smac.units import (
    LEAST_DAMAGE,
    LOOPS_PER_SECOND,
    PERIOD_NOISE,
    SCAN,
    SHIELD_PAUSE,
    SHIELD_REGENERATION,
    UNITS,
    Number,
    Unit,
)

LOOPS = 8
"""Loops of a step."""

STOP, MOVE, ATTACK, SWEEP = range(4)
"""Orders: stand; go to a point; attack a unit; go to a point and attack what is met."""

NOBODY = -1

FIRM = 0.05
"""How easily a unit that stands is pushed, beside one that walks."""

YIELD = 4.0
"""Who overlaps somebody ahead by a part of 1 / YIELD goes no further."""

CROWD = 2.0
"""A side stands together on so many times the area that its units need."""

PASSING = 0.7
"""Of a push, how much goes to the side of who walks into somebody."""


class Units(NamedTuple):
    """Where all units stand. Times are in loops."""

    x: Float[Array, " u"]
    y: Float[Array, " u"]
    hp: Float[Array, " u"]
    """0: dead."""
    shield: Float[Array, " u"]
    cooldown: Float[Array, " u"]
    """Until the next attack may begin."""
    windup: Int[Array, " u"]
    """Until the attack that has begun hits."""
    target: Int[Array, " u"]
    """Number of the unit on the other side that is attacked, or `NOBODY`."""
    flight: Int[Array, " u"]
    """Until what was sent on its way hits: a missile, a lance, the second blow."""
    prey: Int[Array, " u"]
    """Whom it hits."""
    aim: Float[Array, "u 4"]
    """Where a lance burns: the middle of its line, and its direction."""
    unhurt: Float[Array, " u"]
    """Since the last hit."""
    bursting: Bool[Array, " u"]
    """Died in the last loop, and explodes in this one."""


class Orders(NamedTuple):
    """What every unit is told."""

    kind: Int[Array, " u"]
    x: Float[Array, " u"]
    y: Float[Array, " u"]
    """Where to go."""
    target: Int[Array, " u"]
    """Whom to attack, a number on the other side."""


class Facts(NamedTuple):
    """Numbers of every unit, in loops where they are times."""

    hp: np.ndarray
    shield: np.ndarray
    armour: np.ndarray
    speed: np.ndarray
    radius: np.ndarray
    separation: np.ndarray
    reach: np.ndarray
    slop: np.ndarray
    scan: np.ndarray
    period: np.ndarray
    windup: np.ndarray
    second: np.ndarray
    missile: np.ndarray
    regeneration: np.ndarray
    blast: np.ndarray
    lance: np.ndarray
    """Loops until the lance burns, or 0."""
    walks_cliffs: np.ndarray


def facts(units: list[Unit]) -> Facts:
    """The numbers of some units."""
    second = LOOPS_PER_SECOND
    rows = [
        (
            unit.hp, unit.shield, unit.armour, unit.speed / second, unit.radius, unit.separation,
            unit.reach, unit.slop, max(unit.reach, SCAN), unit.period * second,
            round(unit.windup * second), round(unit.second * second), unit.missile / second,
            unit.regeneration / second, unit.blast,
            round(unit.lance.delay * second) if unit.lance else 0, unit.walks_cliffs,
        )
        for unit in units
    ]  # fmt: skip
    return Facts(*(np.array(column, np.float32) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, eq=False)
class Battle:
    """A map, ready to be fought on."""

    name: str
    map: Map

    @cached_property
    def units(self) -> list[Unit]:
        """All units, allies first."""
        return [UNITS[kind] for kind in kinds(self.map.allies) + kinds(self.map.enemies)]

    @cached_property
    def num_allies(self) -> int:
        """Units on our side."""
        return len(kinds(self.map.allies))

    @cached_property
    def facts(self) -> Facts:
        """Their numbers."""
        return facts(self.units)

    @cached_property
    def damage(self) -> np.ndarray:
        """(u, u): what a hit takes before armour."""
        return np.array(
            [[one.damage + _bonus(one, other) for other in self.units] for one in self.units],
            np.float32,
        )

    @cached_property
    def ground(self) -> Terrain:
        """The terrain."""
        return terrain(self.map.ground)

    @cached_property
    def places(self) -> np.ndarray:
        """(u, 2): where the units start."""
        free = self.ground.walkable
        allies = formation(self.map.allies, free, mirrored=False)
        return np.concatenate([allies, formation(self.map.enemies, free, mirrored=True)])

    def start(self) -> Units:
        """Everyone at the start, unhurt and ready."""
        x, y = jnp.asarray(self.places.T, jnp.float32)
        count, own = len(self.units), self.facts
        zero, none = jnp.zeros(count, jnp.int32), jnp.full(count, NOBODY, jnp.int32)
        return Units(
            x, y, jnp.asarray(own.hp), jnp.asarray(own.shield), jnp.zeros(count), zero, none, zero,
            none, jnp.zeros((count, 4)), jnp.full(count, SHIELD_PAUSE * LOOPS_PER_SECOND),
            jnp.zeros(count, bool),
        )  # fmt: skip

    def advance(self, units: Units, orders: Orders, key: PRNGKeyArray) -> Units:
        """A step: the orders are given, and eight loops pass."""
        noise = jax.random.uniform(key, (LOOPS, len(self.units)), minval=-1.0, maxval=1.0)
        units = self.obey(units, orders)

        def loop(units: Units, noise: Array) -> tuple[Units, None]:
            return self.loop(units, orders, noise), None

        return jax.lax.scan(loop, units, noise)[0]

    def obey(self, units: Units, orders: Orders) -> Units:
        """A new order breaks off an attack that has not hit yet, unless its target is the same."""
        told = orders.kind != SWEEP
        target = jnp.where(orders.kind == ATTACK, orders.target, NOBODY)
        target = jnp.where(told, target, units.target)
        broken = told & (units.windup > 0) & (target != units.target)
        return units._replace(
            target=target,
            windup=jnp.where(broken, 0, units.windup),
            cooldown=jnp.where(broken, 0.0, units.cooldown),
        )

    def loop(self, units: Units, orders: Orders, noise: Float[Array, " u"]) -> Units:
        """A sixteenth of a second. `noise` is drawn from [-1, 1]."""
        own, n = self.facts, self.num_allies
        alive = units.hp > 0
        dx, dy = units.x[None] - units.x[:, None], units.y[None] - units.y[:, None]
        far = jnp.sqrt(dx * dx + dy * dy)
        gap = far - (own.radius[:, None] + own.radius[None])
        gaps, alives = self._across(gap), (alive[n:], alive[:n])

        target = self._look(units, orders, gaps, alives)
        chosen = self._picked(target)
        has = self._any(chosen, alives)
        target = jnp.where(has, target, NOBODY)
        near = self._pick(chosen, gaps)

        moving = alive & (units.windup == 0)
        ways = self._across(dx), self._across(dy)
        vx, vy, walks = self._way(units, orders, chosen, has, near, ways)
        walks = walks & moving
        arrives = (orders.kind == SWEEP) & ~has & self._near_goal(units, orders)
        push_x, push_y, pace = self._pushes((dx, dy, far), (vx, vy), alive, (walks, arrives), noise)
        x = units.x + pace * vx + jnp.where(alive, push_x, 0.0)
        y = units.y + pace * vy + jnp.where(alive, push_y, 0.0)
        x, y = self._inside(x, y)

        units = units._replace(x=x, y=y, target=target)
        units, strikes = self._attacks(units, alive & has, near, noise)
        return self._wounds(units, strikes, chosen, far, alive)

    def _attacks(
        self, units: Units, able: Array, near: Array, noise: Array
    ) -> tuple[Units, Bool[Array, " u"]]:
        """Attacks begin and wind up; who strikes in this loop."""
        own, winding = self.facts, units.windup > 0
        cooldown = jnp.maximum(units.cooldown - 1, 0.0)
        begins = able & ~winding & (cooldown <= 0) & (near <= own.reach)
        windup = jnp.where(begins, own.windup, units.windup - 1)
        strikes = able & (begins | winding) & (windup <= 0) & (near <= own.reach + own.slop)
        low, high = (x * LOOPS_PER_SECOND for x in PERIOD_NOISE)
        wait = own.period + low + (high - low) * (noise + 1.0) / 2.0
        lost = winding & ~able  # the target died before it was hit: that costs nothing
        windup = jnp.where(lost, 0, jnp.maximum(windup, 0)).astype(jnp.int32)
        cooldown = jnp.where(lost, 0.0, jnp.where(begins, wait, cooldown))
        return units._replace(windup=windup, cooldown=cooldown), strikes

    def _look(
        self,
        units: Units,
        orders: Orders,
        gaps: tuple[Array, Array],
        alives: tuple[Array, Array],
    ) -> Int[Array, " u"]:
        """Who sweeps keeps its target while it can hit it, and else takes the nearest one."""
        own, n = self.facts, self.num_allies
        found = []
        for side, gap, alive in zip((slice(0, n), slice(n, None)), gaps, alives, strict=True):
            old, scan = units.target[side], own.scan[side]
            if self.map.goal is None:
                scan = np.full_like(scan, 2.0 * SIZE)
            open_to = jnp.where(alive[None], gap, jnp.inf)
            picked = old[:, None] == np.arange(gap.shape[1])
            held = jnp.where(picked, open_to, jnp.inf).min(1) <= own.reach[side] + own.slop[side]
            nearest = jnp.where(open_to.min(1) <= scan, open_to.argmin(1), NOBODY)
            keep = held | (units.windup[side] > 0) | (orders.kind[side] != SWEEP)
            found.append(jnp.where(keep, old, nearest.astype(jnp.int32)))
        return jnp.concatenate(found)

    def _across(self, pairs: Float[Array, "u u"]) -> tuple[Array, Array]:
        """What lies between the sides, from either of them: `(a, v)` and `(v, a)`."""
        n = self.num_allies
        return pairs[:n, n:], pairs[n:, :n]

    def _picked(self, target: Int[Array, " u"]) -> tuple[Array, Array]:
        """The targets as masks `(a, v)` and `(v, a)`."""
        n, count = self.num_allies, len(self.units)
        return (
            target[:n, None] == np.arange(count - n)[None],
            target[n:, None] == np.arange(n)[None],
        )

    def _pick(self, chosen: tuple[Array, Array], pairs: tuple[Array, Array]) -> Float[Array, " u"]:
        """Every unit's number of its target."""
        parts = [jnp.where(c, p, 0.0).sum(1) for c, p in zip(chosen, pairs, strict=True)]
        return jnp.concatenate(parts)

    def _any(self, chosen: tuple[Array, Array], alives: tuple[Array, Array]) -> Bool[Array, " u"]:
        parts = [(c & a[None]).any(1) for c, a in zip(chosen, alives, strict=True)]
        return jnp.concatenate(parts)

    def _way(
        self,
        units: Units,
        orders: Orders,
        chosen: tuple[Array, Array],
        has: Bool[Array, " u"],
        near: Float[Array, " u"],
        across: tuple[tuple[Array, Array], tuple[Array, Array]],
    ) -> tuple[Array, Array, Array]:
        """Every unit's step of this loop, and whether it walks at all."""
        own = self.facts
        to_x, to_y = (self._pick(chosen, part) for part in across)
        going = (orders.kind == MOVE) | ((orders.kind == SWEEP) & ~has)
        to_x = jnp.where(has, to_x, orders.x - units.x)
        to_y = jnp.where(has, to_y, orders.y - units.y)
        walks = jnp.where(has, near > own.reach, going)
        if self.ground.routes is not None:
            to_x, to_y = self._detour(units, to_x, to_y)
        length = jnp.sqrt(to_x * to_x + to_y * to_y)
        stride = jnp.minimum(own.speed, length) / jnp.maximum(length, 1e-6)
        return to_x * stride, to_y * stride, walks & (length > 0.05)

    def _near_goal(self, units: Units, orders: Orders) -> Bool[Array, " u"]:
        """Who is so near to where it was sent that its whole side has no more room there."""
        n, square = self.num_allies, self.facts.separation**2
        room = CROWD * np.repeat([square[:n].sum(), square[n:].sum()], [n, len(square) - n])
        return (orders.x - units.x) ** 2 + (orders.y - units.y) ** 2 < room

    def _detour(self, units: Units, to_x: Array, to_y: Array) -> tuple[Array, Array]:
        """Around walls: the way to the next cell, where the goal is not in sight."""
        routes = jnp.asarray(self.ground.routes)
        here = _cell(units.x) * SIZE + _cell(units.y)
        there = _cell(units.x + to_x) * SIZE + _cell(units.y + to_y)
        way = routes[here, there]
        step = jnp.asarray(np.concatenate([COMPASS, [(0, 0)]]), jnp.float32)[way]
        straight = (way == STRAIGHT) | self.facts.walks_cliffs.astype(bool)
        aside_x = jnp.floor(units.x) + 0.5 + step[:, 0] - units.x
        aside_y = jnp.floor(units.y) + 0.5 + step[:, 1] - units.y
        return jnp.where(straight, to_x, aside_x), jnp.where(straight, to_y, aside_y)

    def _pushes(
        self,
        pairs: tuple[Array, Array, Array],
        way: tuple[Array, Array],
        alive: Array,
        going: tuple[Array, Array],
        noise: Array,
    ) -> tuple[Array, Array, Array]:
        """Units that overlap are pushed apart; those that stand yield little to those that walk.

        And how much of its way is open to each unit: who walks into somebody slows down, and who
        arrives where its side was sent stops there, or all would press on one point.
        """
        own, (dx, dy, far), (walks, arrives) = self.facts, pairs, going
        # Two at the very same place: their numbers decide who goes where.
        number = np.arange(len(self.units), dtype=np.float32)
        dx = dx + 1e-4 * (number[None] - number[:, None])
        high = own.walks_cliffs  # those that step over cliffs step over the others, too
        solid = (high[:, None] == high[None]) * (1.0 - np.eye(len(self.units)))
        touch = own.separation[:, None] + own.separation[None]
        force = jnp.maximum(touch - far, 0.0) * solid * alive[None] / jnp.maximum(far, 1e-3)
        ahead = (force / touch * (way[0][:, None] * dx + way[1][:, None] * dy)).max(1)
        open_way = 1.0 - jnp.minimum(YIELD * ahead / np.maximum(own.speed, 1e-6), 1.0)
        open_way = jnp.where(walks & ~(arrives & (ahead > 0)), open_way, 0.0)
        ease = jnp.where(walks, 1.0, FIRM) * (own.speed > 0)  # nobody moves a building
        force = force * (ease[:, None] / jnp.maximum(ease[:, None] + ease[None], 1e-9))
        # Who walks into somebody passes on the side where there is more room, or on either.
        left = way[0][:, None] * dy - way[1][:, None] * dx + 1e-4 * noise[:, None]
        aside = PASSING * jnp.sign(left) * (walks & ~arrives)[:, None]
        push_x, push_y = (force * (aside * dy - dx)).sum(1), (-force * (aside * dx + dy)).sum(1)
        return push_x, push_y, open_way

    def _inside(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Back to where one can stand."""
        own, box = self.facts, self.ground.box
        if box is not None:
            left, right, bottom, top = box
            size = own.separation
            return jnp.clip(x, left + size, right - size), jnp.clip(y, bottom + size, top - size)
        low, high = self._walls
        flies = own.walks_cliffs.astype(bool)
        for _ in range(2):  # in a corner the first wall pushes to the second
            i, j = (jnp.clip((p * FINE).astype(int), 0, SIZE * FINE - 1) for p in (x, y))
            wall = jnp.asarray(low)[:, i, j]
            if high is not None:
                wall = jnp.where(flies, jnp.asarray(high)[:, i, j], wall)
            short = jnp.maximum(own.separation - wall[0], 0.0)
            x, y = x + short * wall[1], y + short * wall[2]
        return x, y

    @cached_property
    def _walls(self) -> tuple[np.ndarray, np.ndarray | None]:
        low = clearance(self.ground.walkable)
        flies = self.facts.walks_cliffs.any()
        return low, clearance(self.ground.over_cliffs) if flies else None

    def _wounds(
        self, units: Units, strikes: Array, chosen: tuple[Array, Array], far: Array, alive: Array
    ) -> Units:
        """What hits in this loop, who dies of it, and who heals."""
        own = self.facts
        raw, hits = self._harm(units, strikes, chosen, far, alive)
        units = self._send(units, strikes, chosen, far)
        hp, shield = suffer(units.hp, units.shield, raw, hits, own.armour)
        hp = jnp.where(strikes & (own.blast > 0), 0.0, hp)
        unhurt = jnp.where((raw > 0) & alive, 0.0, units.unhurt + 1)
        bursting = alive & (hp <= 0) & (own.blast > 0) & ~strikes
        units = units._replace(hp=hp, shield=shield, unhurt=unhurt, bursting=bursting)
        return self._recover(units)

    def _harm(
        self, units: Units, strikes: Array, chosen: tuple[Array, Array], far: Array, alive: Array
    ) -> tuple[Array, Array]:
        """Damage and number of hits that every unit gets, of all kinds of weapons together."""
        own = self.facts
        # What the dead have shot still flies, but they strike no second time.
        lands = (units.flight == 1) & (alive | ~(own.second > 0))
        at_once = strikes & ~(own.missile > 0) & ~(own.lance > 0) & ~(own.blast > 0)
        blows = [self._blows(at_once, chosen)]
        if self._delayed.any():
            blows.append(self._blows(lands & ~(own.lance > 0), self._picked(units.prey)))
        if (own.lance > 0).any():
            blows.append(self._burns(units, lands))
        if (own.blast > 0).any():
            blows.append(self._bursts(units.bursting | (strikes & (own.blast > 0)), far))
        raw, hits = (reduce(jnp.add, part) for part in zip(*blows, strict=True))
        return raw, hits

    @cached_property
    def _delayed(self) -> np.ndarray:
        """(u,): whose attacks hit, for the first or the second time, after a while."""
        own = self.facts
        return (own.second > 0) | (own.missile > 0) | (own.lance > 0)

    def _send(self, units: Units, strikes: Array, chosen: tuple[Array, Array], far: Array) -> Units:
        """Missiles, lances and second blows set out; those on their way come nearer."""
        own, sent = self.facts, strikes & self._delayed
        away, flies = self._pick(chosen, self._across(far)), own.missile > 0
        wait = np.maximum(own.second, own.lance)
        time = jnp.where(flies, away / np.where(flies, own.missile, 1), wait)
        left = jnp.maximum(units.flight - 1, 0)
        flight = jnp.where(sent, jnp.maximum(jnp.round(time), 1), left).astype(jnp.int32)
        if (own.lance > 0).any():
            units = units._replace(
                aim=jnp.where(sent[:, None], self._line(units, chosen), units.aim)
            )
        return units._replace(flight=flight, prey=jnp.where(sent, units.target, units.prey))

    def _recover(self, units: Units) -> Units:
        """The living get health back, and shields a while after they were hit."""
        own, lives = self.facts, units.hp > 0
        hp = jnp.where(lives, jnp.minimum(units.hp + own.regeneration, own.hp), 0.0)
        rested = units.unhurt > SHIELD_PAUSE * LOOPS_PER_SECOND
        back = jnp.where(rested, SHIELD_REGENERATION, 0.0) / LOOPS_PER_SECOND
        shield = jnp.where(lives, jnp.minimum(units.shield + back, own.shield), 0.0)
        return units._replace(hp=hp, shield=shield)

    def _blows(self, strikes: Array, chosen: tuple[Array, Array]) -> tuple[Array, Array]:
        """Damage and number of hits that every unit gets from those that strike."""
        n = self.num_allies
        taken = []
        for side, other, picked in (
            (slice(0, n), slice(n, None), chosen[0]),
            (slice(n, None), slice(0, n), chosen[1]),
        ):
            hit = picked & strikes[side, None]
            taken.append((jnp.where(hit, self.damage[side, other], 0.0).sum(0), hit.sum(0)))
        return tuple(jnp.concatenate(pair) for pair in zip(*reversed(taken), strict=True))  # pyright: ignore

    def _bursts(self, bursts: Array, far: Array) -> tuple[Array, Array]:
        own, n = self.facts, self.num_allies
        side = np.arange(len(self.units)) < n
        foes = side[:, None] != side[None]
        hit = bursts[:, None] & foes & (far - own.radius[None] <= own.blast[:, None])
        return jnp.where(hit, self.damage, 0.0).sum(0), hit.sum(0)

    def _line(self, units: Units, chosen: tuple[Array, Array]) -> Float[Array, "u 4"]:
        """Where lances that are sent now will burn: across the shot, at its target."""
        n = self.num_allies
        place = lambda p: self._pick(  # noqa: E731
            chosen, (jnp.broadcast_to(p[None, n:], (n, len(p) - n)),
                     jnp.broadcast_to(p[None, :n], (len(p) - n, n)))
        )  # fmt: skip
        x, y = place(units.x), place(units.y)
        to_x, to_y = x - units.x, y - units.y
        length = jnp.maximum(jnp.sqrt(to_x * to_x + to_y * to_y), 1e-6)
        return jnp.stack([x, y, -to_y / length, to_x / length], -1)

    def _burns(self, units: Units, lands: Array) -> tuple[Array, Array]:
        """Lances hit everyone of the other side on their line, twice."""
        own, n = self.facts, self.num_allies
        raw, hits = jnp.zeros(len(self.units)), jnp.zeros(len(self.units), int)
        for i in np.flatnonzero(own.lance > 0):
            lance = self.units[i].lance
            assert lance is not None
            x, y, way_x, way_y = units.aim[i]
            off_x, off_y = units.x - x, units.y - y
            along = jnp.clip(off_x * way_x + off_y * way_y, -lance.half_width, lance.half_width)
            rest_x, rest_y = off_x - along * way_x, off_y - along * way_y
            foes = (np.arange(len(self.units)) < n) != (i < n)
            reach = lance.radius + own.radius
            hit = lands[i] & foes & (rest_x * rest_x + rest_y * rest_y <= reach * reach)
            raw, hits = raw + 2 * jnp.where(hit, self.damage[i], 0.0), hits + 2 * hit
        return raw, hits


def suffer(
    hp: Array, shield: Array, raw: Array, hits: Array, armour: Array | np.ndarray
) -> tuple[Array, Array]:
    """Shields take damage first, armour is taken off every hit that comes through.

    Of equal hits, so many come through: the rest of the damage in hits, rounded up.
    """
    rest = jnp.maximum(raw - shield, 0.0)
    through = jnp.ceil(rest * hits / jnp.maximum(raw, 1e-6) - 1e-4)
    wound = jnp.where(rest > 0, jnp.maximum(rest - armour * through, LEAST_DAMAGE * through), 0.0)
    left = hp - wound
    return jnp.where(left > 1e-4, left, 0.0), jnp.maximum(shield - raw, 0.0)


def _bonus(one: Unit, other: Unit) -> Number:
    return sum(more for what, more in (one.bonus or {}).items() if what in other.attributes)


def _cell(x: Array) -> Array:
    return jnp.clip(x.astype(int), 0, SIZE - 1)


@cache
def battle(name: str) -> Battle:
    """A battle by the name of its map."""
    return Battle(name, MAPS[name])
