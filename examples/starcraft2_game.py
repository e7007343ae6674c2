"""StarCraft II loop by loop, for scenes of a few units: used by `starcraft2_targets.py`."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from fp3o.envs.starcraft2.install import require_starcraft2
from fp3o.errors import UserError

MOVE, ATTACK, STOP = 16, 23, 4
"""The game's numbers of these abilities."""

Point = tuple[float, float]
Order = Point | int | None
"""Walk to a point, attack the enemy of this number, or stand."""


class Unit(NamedTuple):
    """A unit; its health includes the shield."""

    x: float
    y: float
    radius: float
    health: float


class Frame(NamedTuple):
    """All units after one game loop."""

    enemies: Sequence[Unit]
    ours: Sequence[Unit]


class StarCraft2(AbstractContextManager["StarCraft2"]):
    """A game on one of SMAC's maps."""

    def __init__(self, map_name: str) -> None:
        require_starcraft2(map_name)
        from s2clientprotocol import debug_pb2, raw_pb2, sc2api_pb2  # pyright: ignore
        from smac.env import StarCraft2Env  # pyright: ignore

        self._debug_api, self._raw, self._api = debug_pb2, raw_pb2, sc2api_pb2
        self._smac: Any = StarCraft2Env(map_name=map_name, seed=1)
        try:
            self._smac.reset()  # starts the game
        except Exception as error:
            raise UserError(f"StarCraft II did not start: {error}; see `fp3o doctor`") from error
        self._game: Any = self._smac._controller
        self.version = f"StarCraft II {self._game.ping().game_version}"
        self._seen: dict[int, Unit] = {}

    def __exit__(self, *error: object) -> None:
        self._smac.close()

    def start(self, enemies: int, places: Sequence[Point]) -> Frame:
        """Keep some enemies, and put units of ours at places relative to the first of them."""
        old = self._units()
        self._kill(old)  # then the map creates both teams again and orders the attack
        teams = self._new_units(old, lambda units: {unit.owner for unit in units} == {1, 2})
        ours = [unit for unit in teams if unit.owner == 1]
        theirs = sorted((unit for unit in teams if unit.owner == 2), key=lambda unit: -unit.pos.y)
        x, y = theirs[0].pos.x, theirs[0].pos.y
        points = [(x + to_east, y + to_north) for to_east, to_north in places]
        for x, y in points:
            unit = {"unit_type": ours[0].unit_type, "owner": 1, "quantity": 1}
            new = self._debug_api.DebugCreateUnit(**unit, pos={"x": x, "y": y})
            self._debug(create_unit=new)
        known = {*old, *(unit.tag for unit in teams)}
        made = self._new_units(known, lambda units: len(units) == len(points))
        self._kill(unit.tag for unit in (*ours, *theirs[enemies:]))
        self._game.step(1)
        placed = [
            min(made, key=lambda unit, at=at: math.dist(at, (unit.pos.x, unit.pos.y))).tag
            for at in points
        ]
        self._tags = [unit.tag for unit in theirs[:enemies]], placed
        self._orders: Sequence[Order] = [None] * len(points)
        return self._frame()

    def step(self, orders: Sequence[Order]) -> Frame:
        """Play one loop with an order for each of our units; repeated orders are not sent."""
        for tag, order, last in zip(self._tags[1], orders, self._orders, strict=True):
            if order == last:
                continue
            command = self._raw.ActionRawUnitCommand(unit_tags=[tag], ability_id=STOP)
            if isinstance(order, int):
                command.ability_id, command.target_unit_tag = ATTACK, self._tags[0][order]
            elif order is not None:
                command.ability_id, goal = MOVE, command.target_world_space_pos
                goal.x, goal.y = order
            self._game.act(self._api.Action(action_raw={"unit_command": command}))
        self._orders = orders
        self._game.step(1)
        return self._frame()

    def _frame(self) -> Frame:
        for tag, unit in self._units().items():
            health = unit.health + unit.shield
            self._seen[tag] = Unit(unit.pos.x, unit.pos.y, unit.radius, health)
        enemies, ours = ([self._seen[tag] for tag in tags] for tags in self._tags)
        return Frame(enemies, ours)

    def _units(self) -> dict[int, Any]:
        units = self._game.observe().observation.raw_data.units
        return {unit.tag: unit for unit in units if unit.owner in (1, 2)}

    def _new_units(self, known: Any, complete: Callable[[list[Any]], bool]) -> list[Any]:
        for _ in range(100):
            self._game.step(1)
            new = [unit for tag, unit in self._units().items() if tag not in known]
            if complete(new):
                return new
        raise UserError("the game created no units; please report this with the game's version")

    def _kill(self, tags: Iterable[int]) -> None:
        self._debug(kill_unit=self._debug_api.DebugKillUnit(tag=[*tags]))

    def _debug(self, **command: Any) -> None:
        self._game.debug([self._debug_api.DebugCommand(**command)])
