"""A task: a body, its team, what each agent sees and drives. What advances it is elsewhere."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any

import mujoco
import numpy as np

from fp3o.envs.mamujoco.bodies import Robot, robot
from fp3o.envs.mamujoco.catalogue import FAMILY, PROFILES, parse, whole
from fp3o.envs.mamujoco.partition import Column, Graph, Joint, sees
from fp3o.envs.mamujoco.rewards import Moment
from fp3o.errors import nearest
from fp3o.spec import Box, EnvSpec


@dataclass(frozen=True)
class Variant:
    """The rules of a task, written as `paper:obsk=2,routing=joint`."""

    profile: str
    """paper: as in the paper's runs; farama: as in gymnasium-robotics today."""
    obsk: int
    """How many joints away an agent sees: 5 in the paper, 1 by farama's default."""
    routing: str
    """order: the actions, one agent after another, go to the motors in their order (the paper);
    joint: every agent drives the joints it owns (farama)."""
    backend: str
    """native: MuJoCo; mjx: its twin on the accelerator, approximate."""

    @staticmethod
    def read(text: str) -> "Variant":
        """From its written form; what is not mentioned is the profile's default."""
        profile, _, rest = text.partition(":")
        if profile not in PROFILES:
            raise ValueError(f"unknown variant {profile!r}: {nearest(profile, PROFILES)}")
        given: dict[str, Any] = dict(DEFAULTS[profile])
        for part in filter(None, rest.split(",")):
            name, _, value = part.partition("=")
            if name not in CHOICES:
                raise ValueError(f"unknown option {name!r} in {text!r}: {nearest(name, CHOICES)}")
            if not (value.isdecimal() if CHOICES[name] is None else value in CHOICES[name]):
                allowed = nearest(value, CHOICES[name] or ("0", "1", "2"))
                raise ValueError(f"{name} cannot be {value!r} in {text!r}: {allowed}")
            given[name] = int(value) if CHOICES[name] is None else value
        return Variant(profile, **given)

    def __str__(self) -> str:
        default = DEFAULTS[self.profile]
        values = {item.name: getattr(self, item.name) for item in fields(self)[1:]}
        changed = [f"{name}={x}" for name, x in values.items() if x != default[name]]
        return ":".join([self.profile, *([",".join(changed)] if changed else [])])


DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"obsk": 5, "routing": "order", "backend": "native"},
    "farama": {"obsk": 1, "routing": "joint", "backend": "native"},
}

CHOICES: Mapping[str, Any] = {
    "obsk": None, "routing": ("order", "joint"), "backend": ("native", "mjx"),
}  # fmt: skip
"""What each option may be; None: a whole number."""


@dataclass(frozen=True, eq=False)
class World:
    """A task as indices: which readings make an observation, which actions go to which motor."""

    spec: EnvSpec
    robot: Robot
    variant: Variant
    owned: tuple[tuple[int, ...], ...]
    """The motors of the joints each agent sees as its own."""
    sources: tuple[str, ...]
    """What is read, one behind the other."""
    fields: tuple[str, ...]
    """What must be taken from the simulation for that, and for the rewards."""
    obs_places: np.ndarray
    """(n, f): places in the readings."""
    state_places: np.ndarray
    """(n, f2)."""
    motor_places: np.ndarray
    """(nu,): places in the team's actions, one agent behind the other."""

    @property
    def model(self) -> mujoco.MjModel:
        """The simulated body."""
        return self.robot.model

    @property
    def driven(self) -> list[list[int]]:
        """The motors each agent drives; where actions go by order, not those of its own joints."""
        agent = self.motor_places // max(map(len, self.owned))
        return [np.flatnonzero(agent == i).tolist() for i in range(len(self.owned))]

    @cached_property
    def dt(self) -> float:
        """Seconds a step lasts."""
        return self.robot.skip * self.model.opt.timestep

    def readings(self, xp: Any, moment: Moment, dtype: Any = None) -> Any:
        """All columns that somebody sees, and behind them a 0 and a 1."""
        parts = [SOURCES[name][1](xp, moment) for name in self.sources]
        return xp.concatenate([*parts, constants(moment["qpos"].shape[:-1])], -1, dtype=dtype)

    def show(self, xp: Any, what: str, readings: Any) -> Any:
        """Every agent's `obs` `(*e, n, f)` or `state` `(*e, n, f2)`."""
        places = self.obs_places if what == "obs" else self.state_places
        seen = readings.take(places, axis=-1)
        return seen if self.variant.profile == "farama" else standardise(xp, seen)

    def controls(self, action: Any) -> Any:
        """The team's actions `(*e, n, d)` as controls `(*e, nu)`."""
        return action.reshape(*action.shape[:-2], -1).take(self.motor_places, axis=-1)


@cache
def constants(shape: tuple[int, ...]) -> np.ndarray:
    """A 0 and a 1."""
    return np.broadcast_to(np.array([0.0, 1.0]), (*shape, 2))


def standardise(xp: Any, x: Any) -> Any:
    """Every vector by its own mean and spread, padding and one-hot included (the paper)."""
    # A product is NumPy's fastest way to a mean of few numbers.
    rows = x.reshape(-1, x.shape[-1])
    share = equal_shares(x.shape[-1], x.dtype)
    centred = rows - rows @ share
    centred /= xp.sqrt((centred * centred) @ share)
    return centred.reshape(x.shape)


@cache
def equal_shares(count: int, dtype: Any) -> np.ndarray:
    """A column of weights that makes a mean."""
    return np.full((count, 1), 1 / count, dtype)


def _flat(name: str) -> Callable[[Any, Moment], Any]:
    return lambda xp, moment: moment[name].reshape(*moment["qpos"].shape[:-1], -1)


def _rope(xp: Any, moment: Moment) -> Any:
    """How the band's length follows x and z of both cheetahs; its length; its speed."""
    pull = moment["ten_J"].reshape(*moment["qpos"].shape[:-1], -1)
    # Stored for all 18 velocities, or (newer versions) for the 6 that move its ends.
    places = (0, 1, 9, 10) if pull.shape[-1] == 18 else (0, 1, 3, 4)
    return xp.concatenate(
        [pull[..., np.array(places)], moment["ten_length"], moment["ten_velocity"]], -1
    )


SOURCES: Mapping[str, tuple[tuple[str, ...], Callable[[Any, Moment], Any]]] = {
    "q": ((), lambda xp, m: m["qpos"]),
    "v": ((), lambda xp, m: m["qvel"]),
    "v10": ((), lambda xp, m: xp.clip(m["qvel"], -10, 10)),
    "sin": ((), lambda xp, m: xp.sin(m["qpos"])),
    "cos": ((), lambda xp, m: xp.cos(m["qpos"])),
    "reach": (("xpos",), lambda xp, m: m["xpos"][..., 3, :] - m["xpos"][..., 4, :]),
    "place": (("xpos",), _flat("xpos")),
    "contact": (("cfrc_ext",), lambda xp, m: xp.clip(_flat("cfrc_ext")(xp, m), -1, 1)),
    "impact": (("cfrc_ext",), _flat("cfrc_ext")),
    "inertia": (("cinert",), _flat("cinert")),
    "spin": (("cvel",), _flat("cvel")),
    "torque": (("qfrc_actuator",), _flat("qfrc_actuator")),
    "push": (("qfrc_constraint",), lambda xp, m: xp.clip(m["qfrc_constraint"], -10, 10)),
    "rope": (("ten_J", "ten_length", "ten_velocity"), _rope),
}
"""Source -> the fields it needs, and how it is read from them."""


@cache
def world(name: str, variant: str) -> World:
    """A task by its name, such as `HalfCheetah-6x1`, under a variant."""
    body, partition = parse(name)
    chosen = Variant.read(variant)
    found = robot(body, chosen.profile, partition)
    graph, motors = found.graph, found.model.nu
    team = _team(body, partition, graph)
    if team is None:  # one agent sees and drives everything
        seen, owned = [list(graph.state)], (tuple(range(motors)),)
    else:
        seen = [sees(own, graph, chosen.obsk) for own in team]
        owned = tuple(tuple(one.motor for one in own) for own in team)
    return _assemble(f"{FAMILY}/{body}-{partition}:{chosen}", found, chosen, seen, owned)


def _team(body: str, partition: str, graph: Graph) -> tuple[tuple[Joint, ...], ...] | None:
    if partition in graph.teams:
        return graph.teams[partition]
    if partition != whole(body):
        known = [*graph.teams, whole(body)]
        raise ValueError(f"{body} cannot be split as {partition!r}: {nearest(partition, known)}")
    return None


def _assemble(
    name: str,
    found: Robot,
    variant: Variant,
    seen: list[list[Column]],
    owned: tuple[tuple[int, ...], ...],
) -> World:
    state, count = found.graph.state, len(owned)
    used = {source for columns in [*seen, state] for source, _ in columns} - {"zero"}
    sources = tuple(source for source in SOURCES if source in used)
    needed = {field for source in sources for field in SOURCES[source][0]} | {*found.rules.fields}
    places = _places(found.model, sources, tuple(sorted(needed)))
    zero, one = places["zero", 0], places["zero", 1]
    ids = [[one if i == j else zero for j in range(count)] for i in range(count)]
    widest = max(map(len, seen))
    # The paper's observations and states end in the agent's one-hot.
    tail = ids if variant.profile == "paper" else [[] for _ in ids]
    obs = [
        [places[column] for column in columns] + [zero] * (widest - len(columns)) + tail[i]
        for i, columns in enumerate(seen)
    ]
    whole = [[places[column] for column in state] + tail[i] for i in range(count)]
    sizes = tuple(map(len, owned))
    spec = EnvSpec(
        name=name,
        actions=Box(sizes),
        obs_size=len(obs[0]),
        state_size=len(whole[0]),
        agent_types=_kinds(list(zip(map(len, seen), sizes, strict=True))),
        truncates=True,
    )
    return World(
        spec, found, variant, owned, sources, tuple(sorted(needed)), np.array(obs),
        np.array(whole), _motor_places(owned, variant.routing),
    )  # fmt: skip


def _places(
    model: mujoco.MjModel, sources: tuple[str, ...], needed: tuple[str, ...]
) -> dict[Column, int]:
    """Column -> its place in the readings; `zero` 0 and 1 are the constants behind them."""
    data = mujoco.MjData(model)
    moment = {name: getattr(data, name) for name in ("qpos", "qvel", *needed)}
    columns = [
        (source, i) for source in sources for i in range(SOURCES[source][1](np, moment).shape[-1])
    ]
    return {column: place for place, column in enumerate([*columns, ("zero", 0), ("zero", 1)])}


def _motor_places(owned: tuple[tuple[int, ...], ...], routing: str) -> np.ndarray:
    """For each motor, where its control stands in the padded actions of the team."""
    width = max(map(len, owned))
    offered = [width * i + j for i, motors in enumerate(owned) for j in range(len(motors))]
    if routing == "order":
        return np.array(offered)
    places = np.empty(len(offered), int)
    places[[motor for motors in owned for motor in motors]] = offered
    return places


def _kinds(sizes: list[tuple[int, int]]) -> tuple[int, ...]:
    """Agents that see and do equally much are of one kind."""
    order = list(dict.fromkeys(sizes))
    return tuple(order.index(size) for size in sizes)
