"""Whom does a unit on attack-move attack in StarCraft II? For owners of the game.

    python examples/starcraft2_targets.py

It needs what the tasks `starcraft2/...` need: StarCraft II, SMAC and its maps. It prints three
tables; docs/smac.md says what they mean and what to report.

Scenes are played on SMAC's maps `3s_vs_3z` (flat ground, stalkers of ours, zealots) and `3m`, where
enemies have one order, an attack-move to the west, and our units attack only if ordered to.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

from starcraft2_game import Frame, Order, Point, StarCraft2, Unit

from fp3o import __version__
from fp3o.errors import UserError

TOUCH, MARINES_TOUCH, STALKER_RANGE = 0.625 + 0.5, 2 * 0.375, 6.0
"""Distances, centre to centre, at which a stalker and a zealot touch, and two marines."""
GAPS = 4.5, 7.0
"""Cells from the zealot to the unit it follows; it chooses targets up to 5 cells away."""
DISTANCES = 0, 1, 2, 3, 4, 5
"""Cells at which it passes the standing unit; the first is within the reach of its weapon."""
WEST_END, GOAL = 2.0, (9.0, 16.0)
"""Where our units walk to, and the destination of the enemies."""
LOOPS, TURN_LOOPS = 96, 4
"""Length of a scene, and how long an enemy walks to a unit until it has turned to it."""

Game = Any
"""Has `start`, `step` and `version` of `StarCraft2`; the tests have a simulated one."""


def gap_between(one: Unit, other: Unit) -> float:
    """The distance from edge to edge."""
    return math.hypot(other.x - one.x, other.y - one.y) - one.radius - other.radius


def play(
    game: Game,
    enemies: int,
    places: Sequence[Point],
    act: Callable[[Sequence[Frame]], Sequence[Order]],
) -> list[Frame]:
    """A scene loop by loop; `act` gives orders by what has been seen."""
    frames = [game.start(enemies, places)]
    for _ in range(LOOPS):
        frames.append(game.step(act(frames)))
    return frames


def lead_past(game: Game, gap: float, distance: float, shoots: bool) -> list[Frame]:
    """One unit leads a zealot past another one, which stands, and may shoot at it."""

    def act(frames: Sequence[Frame]) -> list[Order]:
        zealot, (leader, standing) = frames[-1].enemies[0], frames[-1].ours
        runs = gap_between(zealot, leader) < gap
        fires = shoots and gap_between(zealot, standing) < STALKER_RANGE
        return [(WEST_END, frames[0].ours[0].y) if runs else None, 0 if fires else None]

    return play(game, 1, [(-TOUCH - min(GAPS), 0.0), (-9.0, TOUCH + distance)], act)


def shoot_unseen(game: Game) -> list[Frame]:
    """The first of two zealots is shot by a unit too far away to be chosen as a target."""

    def act(frames: Sequence[Frame]) -> list[Order]:
        near = gap_between(frames[-1].enemies[0], frames[-1].ours[0]) < STALKER_RANGE
        return [0 if near else None]

    return play(game, 2, [(-1.5, TOUCH + 5.4)], act)


def walk_away(game: Game, distance: float) -> list[Frame]:
    """A unit stands in front of an enemy until it is hit, and then walks away."""

    def act(frames: Sequence[Frame]) -> list[Order]:
        hit = frames[-1].ours[0].health < frames[0].ours[0].health
        return [(WEST_END, frames[0].ours[0].y) if hit else None]

    return play(game, 1, [(-distance, 0.0)], act)


def turn_loop(frames: Sequence[Frame], enemy: int, unit: int, other: int | None) -> int | None:
    """The loop in which an enemy turns to a unit, from another one or from its destination."""
    walked = 0
    for loop, (was, now) in enumerate(pairwise(frames), 1):
        if now.ours[unit].health < was.ours[unit].health:
            return loop - walked
        start, end = was.enemies[enemy][:2], now.enemies[enemy][:2]
        rest = GOAL if other is None else was.ours[other][:2]
        there = _cosine(start, end, was.ours[unit][:2]) > _cosine(start, end, rest) + 0.01
        walked = walked + 1 if there else 0
        if walked == TURN_LOOPS:
            return loop - walked + 1
    return None


def _cosine(start: Point, end: Point, aim: Point) -> float:
    """How directly a step leads to an aim, from -1 to 1; 0 for units that stand."""
    step, way = ((to[0] - start[0], to[1] - start[1]) for to in (end, aim))
    length = math.hypot(*step)
    product = step[0] * way[0] + step[1] * way[1]
    return product / length / math.hypot(*way) if length > 0.02 else 0.0


def nearer_loop(frames: Sequence[Frame]) -> int | None:
    """The first loop in which the standing unit is nearer to the zealot than the leader."""
    gaps = [[gap_between(frame.enemies[0], unit) for unit in frame.ours] for frame in frames]
    return next((loop for loop, (leader, standing) in enumerate(gaps) if standing < leader), None)


def hit_and_walk_loops(frames: Sequence[Frame]) -> tuple[int | None, int | None]:
    """The loops in which our unit is hit, and in which the enemy walks again."""
    health, x = ([f.ours[0].health for f in frames], [f.enemies[0].x for f in frames])
    hit = next((i for i in range(1, len(x)) if health[i] < health[i - 1]), None)
    after = range(hit + 1, len(x)) if hit else ()
    return hit, next((i for i in after if abs(x[i] - x[i - 1]) > 0.02), None)


def tables(open_game: Callable[[str], AbstractContextManager[Game]]) -> Iterator[str]:
    """The lines of three tables."""
    with open_game("3s_vs_3z") as game:
        yield f"{game.version}, fp3o {__version__}\n"
        yield "| leader ahead | passed at | standing unit | nearer from loop | turns in loop |"
        yield "|---|---|---|---|---|"
        for gap, shoots in ((gap, shoots) for gap in GAPS for shoots in (False, True)):
            for distance in DISTANCES:
                frames = lead_past(game, gap, distance, shoots)
                loops = nearer_loop(frames), turn_loop(frames, 0, 1, 0)
                yield _row(gap, distance, "shoots" if shoots else "stands", *loops)
        frames = shoot_unseen(game)
        yield "\n| shot from beyond 5 cells | turns in loop |\n|---|---|"
        yield _row("the zealot that is hit", turn_loop(frames, 0, 0, None))
        beside = f"a zealot {gap_between(*frames[0].enemies):.1f} cells beside it"
        yield _row(beside, turn_loop(frames, 1, 0, None))
        zealot = hit_and_walk_loops(walk_away(game, TOUCH + 1.0))
    with open_game("3m") as game:
        marine = hit_and_walk_loops(walk_away(game, MARINES_TOUCH + 4.5))
    yield "\n| enemy whose target walks away | hits in loop | walks in loop |\n|---|---|---|"
    yield _row("zealot", *zealot)
    yield _row("marine", *marine)


def _row(*values: Any) -> str:
    return "| " + " | ".join("never" if value is None else str(value) for value in values) + " |"


def main() -> None:
    """Print the tables, or what is missing."""
    try:
        for line in tables(StarCraft2):
            print(line, flush=True)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
