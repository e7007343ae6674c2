"""Trained policies: of a whole team, stored in a folder, and of a single agent."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.errors import SettingError
from fp3o.policy import files
from fp3o.policy.card import WEIGHTS, Card
from fp3o.policy.schema import PolicyError, quote
from fp3o.policy.team import Team
from fp3o.spec import Box, Mixed


class Agent:
    """The policy of a single agent, with its parameters only: for decentralised execution.

    Nothing is padded: observations may have the agent's own length, Box actions have its own
    dimensions, `action_mask` its own choices. Arrays are those of `Policy.act` without the agent
    axis.

        robot = fp3o.Policy.load("runs/my-run").agent(2)
        action, hidden_state = robot.act(observation, hidden_state)
    """

    def __init__(
        self, card: Card, weights: Mapping[str, np.ndarray], index: int, trusted: bool = True
    ):
        self.index = index
        self._team = Team(card, weights, (index,), trusted)
        actions = card.spec.actions
        box = actions.box if isinstance(actions, Mixed) else actions
        own = box.sizes[index] if isinstance(box, Box) else 0
        self._own = slice(len(actions.widths) + own)

    def initial_hidden_state(self, *batch: int) -> np.ndarray:
        """The hidden state at the start of an episode: zeros `(*batch, h)`."""
        return self._team.initial_hidden_state(*batch)[..., 0, :]

    def act(
        self,
        obs: Any,
        hidden_state: np.ndarray | None = None,
        action_mask: Any = None,
        deterministic: bool = True,
        random: np.random.Generator | None = None,
        episode_start: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `Policy.act` for this agent: obs `(*batch, f_i)` to actions `(*batch, d)`."""
        actions, after = self._team.act(
            [obs],
            None if hidden_state is None else hidden_state[..., None, :],
            None if action_mask is None else [action_mask],
            deterministic,
            random,
            episode_start,
        )
        return actions[..., 0, self._own], after[..., 0, :]


class Policy(Team):
    """A trained policy of a whole team, in NumPy; immutable, so threads may share it.

        policy = fp3o.Policy.load("runs/my-run")
        actions, hidden_state = policy.act(obs)                  # first step of an episode
        actions, hidden_state = policy.act(obs, hidden_state)    # later steps

    `card` describes task, network and provenance; `weights` are the trained arrays.
    """

    def __init__(self, card: Card, weights: Mapping[str, np.ndarray], trusted: bool = True):
        card.check_names(weights)
        self.weights = {name: np.ascontiguousarray(weights[name]) for name in sorted(weights)}
        for name, shape in card.shapes().items():
            array = self.weights[name]
            if array.dtype != np.float32 or array.shape != shape:
                given = f"{array.dtype} {array.shape}"
                raise PolicyError(f"{name} must be float32 {shape}, got {given}")
            if not np.isfinite(array).all():
                raise PolicyError(f"{name} holds values that are not finite")
        super().__init__(card, self.weights, range(card.spec.num_agents), trusted)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        which: str = "best",
        seed: int | None = None,
        trust: bool = False,
    ) -> "Policy":
        """Read and check a policy folder, or one of a run's policies.

        A run directory holds `policy/seed-<k>/best` and `.../last`: `which` and `seed` choose one;
        without a seed, the one with the highest evaluated return. Raises `PolicyError`.

        Custom networks and tasks that the policy names are imported only if you `trust` it.
        """
        folder = files.find_policy(Path(path), which, seed)
        card, weights = files.load_folder(folder)
        with files.errors_naming(folder / WEIGHTS):
            return cls(card, weights, trust)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write a policy folder; an older policy there is replaced, anything else is rejected."""
        target = Path(folder).resolve()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            files.write_folder(self.card, self.weights, target)
        except OSError as error:
            raise PolicyError(
                f"cannot write the policy to {target}: {error.strerror or error}. Choose a folder "
                "that you can write to and that has space"
            ) from error
        return target

    def agent(self, index: int) -> Agent:
        """The policy of a single agent, independent of this object."""
        if not 0 <= index < len(self._agents):
            raise SettingError(f"there is no agent {index}: 0 to {len(self._agents) - 1}")
        return Agent(self.card, self.weights, index, self.trusted)

    def __repr__(self) -> str:
        spec, where = self.card.spec, self.card.provenance
        name, step = quote(spec.name, 120), quote(where.get("step"))
        return f"Policy({name}, {spec.num_agents} agents, step {step})"
