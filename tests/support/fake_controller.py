"""A stand-in for the game's connection and messages, for `examples/starcraft2_game.py`.

Units follow orders and nobody fights. Enemies walk west, and when no unit is left, the map
creates both teams again.
"""

import itertools
import math
from types import SimpleNamespace
from typing import Any

PACE = 0.125
OWN_TYPE = 2000


class Message:
    """A message of the game: fields by name, parts made when they are first used."""

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, Message(**value) if isinstance(value, dict) else value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, Message())
        return self.__dict__[name]


DebugCommand = DebugCreateUnit = DebugKillUnit = ActionRawUnitCommand = Action = Message


class Controller:
    """The connection: three units a side, one loop per step."""

    def __init__(self) -> None:
        self._tags, self._asked, self.units = itertools.count(1), list[Message](), list[Any]()
        self.sent: list[int] = []
        self._spawn()

    def ping(self) -> Any:
        return SimpleNamespace(game_version="4.10.0")

    def observe(self) -> Any:
        neutral = SimpleNamespace(tag=10**6, owner=16)
        return SimpleNamespace(
            observation=SimpleNamespace(raw_data=SimpleNamespace(units=[neutral, *self.units]))
        )

    def debug(self, commands: list[Message]) -> None:
        self._asked += commands

    def act(self, action: Message) -> None:
        command = action.action_raw.unit_command
        (tag,) = command.unit_tags
        (unit,) = [unit for unit in self.units if unit.tag == tag]
        assert unit.owner == 1
        unit.order = command
        self.sent.append(command.ability_id)

    def step(self, loops: int) -> None:
        assert loops == 1
        for command in self._asked:
            if "kill_unit" in vars(command):
                dead = {*command.kill_unit.tag}
                self.units = [unit for unit in self.units if unit.tag not in dead]
            else:
                new = command.create_unit
                self._create(new.unit_type, new.owner, new.pos.x, new.pos.y)
        self._asked = []
        if not self.units:
            self._spawn()
        for unit in self.units:
            self._walk(unit)

    def _walk(self, unit: Any) -> None:
        x, y = unit.pos.x, unit.pos.y
        if unit.owner == 2:
            goal = (x - 1, y)
        elif unit.order and unit.order.ability_id == 16:
            goal = unit.order.target_world_space_pos.x, unit.order.target_world_space_pos.y
        else:
            return
        far = max(math.dist((x, y), goal), 1e-9)
        pace = min(PACE, far) / far
        unit.pos = SimpleNamespace(x=x + pace * (goal[0] - x), y=y + pace * (goal[1] - y))

    def _spawn(self) -> None:
        for i in range(3):
            self._create(OWN_TYPE, 1, 9.0, 16.0 + i)
            self._create(73, 2, 23.0, 16.0 + i)

    def _create(self, unit_type: int, owner: int, x: float, y: float) -> None:
        self.units.append(
            SimpleNamespace(
                tag=next(self._tags), unit_type=unit_type, owner=owner, order=None, radius=0.5,
                pos=SimpleNamespace(x=x, y=y), health=100.0, shield=50.0,
            )
        )  # fmt: skip


class StarCraft2Env:
    """What the scenes use of SMAC's environment."""

    failure: Exception | None = None
    closed = 0

    def __init__(self, map_name: str, seed: int) -> None:
        self.map_name = map_name

    def reset(self) -> None:
        if self.failure:
            raise self.failure
        self._controller = Controller()

    def close(self) -> None:
        type(self).closed += 1
