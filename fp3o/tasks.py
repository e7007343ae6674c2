"""The tasks that have a name: how to make one, its settings, its scripted policies, its picture."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from fp3o.envs import mpe, mpe_scripted, mpe_view, mpe_world
from fp3o.envs.base import Game
from fp3o.envs.probe import PROBES
from fp3o.errors import nearest
from fp3o.presets import PRESETS, Settings

Scripted = Callable[..., Any]
"""Game state and random key -> the team's actions: a policy that may look behind the scenes."""


@dataclass(frozen=True)
class Task:
    """A named task; `variants` are rules it can be played by, the first one is the default."""

    name: str
    summary: str
    build: Callable[[str], Game]
    limit: int
    """The longest an episode can be."""
    variants: tuple[str, ...] = ("default",)
    scripted: Callable[[Any], Mapping[str, Scripted]] | None = None
    picture: Callable[..., np.ndarray] | None = None
    presets: Mapping[str, Settings] = field(default_factory=dict)

    def game(self, variant: str | None = None) -> Game:
        """The task as a pure game."""
        chosen = self.variants[0] if variant is None else variant
        if chosen not in self.variants:
            raise ValueError(
                f"{self.name} has no variant {chosen!r}: {nearest(chosen, self.variants)}"
            )
        return self.build(chosen)

    def preset(self, name: str | None = None) -> Settings:
        """Settings by name; without a name the task's default ones."""
        if name is None:
            return next(iter(self.presets.values()), {})
        if name not in self.presets:
            raise ValueError(f"{self.name} has no preset {name!r}: {nearest(name, self.presets)}")
        return self.presets[name]


def _particle(name: str, summary: str) -> Task:
    return Task(
        f"mpe/{name}", summary, partial(mpe.particle, name), mpe_world.LENGTH, mpe.VARIANTS,
        mpe_scripted.scripted, mpe_view.picture, PRESETS[f"mpe/{name}"],
    )  # fmt: skip


PROBE_WORDS = {
    "value": "nothing to do; is the value learned?",
    "credit": "is an action paid two steps later learned?",
    "roles": "do agents that see the same learn to differ?",
    "memory": "is a cue of two steps ago remembered?",
    "unequal": "do agents of unequal sizes learn together?",
    "target": "are continuous actions learned?",
}


def _probe(name: str) -> Task:
    game = PROBES[name]
    summary = f"tests: {PROBE_WORDS[name]}"
    return Task(f"probe/{name}", summary, lambda _: game, getattr(game, "length", 1))


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        _particle("simple_speaker_listener", "one agent sees the goal and speaks, the other moves"),
        _particle("simple_reference", "each agent knows the other's goal; both speak and move"),
        _particle("simple_spread", "three agents cover three landmarks without collisions"),
        *map(_probe, PROBES),
    )
}
"""The tasks by name."""


def find(name: str) -> Task:
    """A task by its name."""
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}: {nearest(name, TASKS)}")
    return TASKS[name]


def make(name: str, variant: str | None = None) -> Game:
    """A named task as a pure game, ready for `Vectorised`."""
    return find(name).game(variant)
