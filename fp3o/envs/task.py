"""TODO."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fp3o.envs.api import Env, Game, HostGame
from fp3o.envs.presets import Settings
from fp3o.envs.vectorise import batch_of
from fp3o.errors import nearest
from fp3o.spec import EnvSpec

Scripted = Callable[..., Any]
"""Game state and random key -> the team's actions: a policy that may look behind the scenes."""


@dataclass(frozen=True)
class Task:
    """A named task; `variants` are rules it can be played by, the first one is the default."""

    name: str
    summary: str
    build: Callable[[str], Game | HostGame]
    limit: int | None
    """The longest an episode can be; None: the game itself knows (`longest`)."""
    variants: tuple[str, ...] = ("default",)
    scripted: Callable[[Any], Mapping[str, Scripted]] | None = None
    picture: Callable[[Any, Any, str], np.ndarray] | None = None
    """Game, state of a batch and caption -> the batch's first environment as a picture."""
    presets: Mapping[str, Settings] = field(default_factory=dict)
    together: int = 500
    """Episodes that may be played at once where somebody asks for many."""

    def game(self, variant: str | None = None) -> Game | HostGame:
        """The task under one of its variants; some take options, as in `paper:obsk=2`."""
        chosen = self.variants[0] if variant is None else variant
        if (rules := chosen.partition(":")[0]) not in self.variants:
            raise ValueError(
                f"{self.name} has no variant {rules!r}: {nearest(rules, self.variants)}"
            )
        return self.build(chosen)

    def spec(self, variant: str | None = None) -> EnvSpec:
        """The task's facts."""
        return self.game(variant).spec

    def env(self, variant: str | None, num_envs: int) -> Env:
        """A batch of environments."""
        return batch_of(self.game(variant), num_envs)

    def longest(self, variant: str | None = None) -> int:
        """The longest an episode can be."""
        game: Any = self.game(variant)
        return self.limit or getattr(game, "longest", None) or game.limit

    def shown(self, variant: str | None = None) -> bool:
        """Whether there are pictures of it."""
        return self.picture is not None or hasattr(self.game(variant), "filmed")

    def preset(self, name: str | None = None) -> Settings:
        """Settings by name; without a name the task's default ones."""
        if name is None:
            return next(iter(self.presets.values()), {})
        if name not in self.presets:
            raise ValueError(f"{self.name} has no preset {name!r}: {nearest(name, self.presets)}")
        return self.presets[name]
