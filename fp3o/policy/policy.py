"""Trained policies: of a whole team, stored in a folder, and of a single agent."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.errors import SettingError, nearest, printable
from fp3o.policy import files
from fp3o.policy.actions import own_action
from fp3o.policy.card import WEIGHTS, Card
from fp3o.policy.describe import policy_text
from fp3o.policy.player import Player
from fp3o.policy.schema import PolicyError, quote
from fp3o.policy.team import Team


class Agent:
    """The policy of a single agent, with its parameters only: for decentralised execution.

    Nothing is padded: observations have the agent's own length, actions the form that they have by
    name in `Policy.act`, and `action_mask` the agent's own choices. There is no agent axis.

        robot = fp3o.Policy.load("runs/my-run").agent("robot_2")
        action, hidden_state = robot.act(observation, hidden_state)
    """

    def __init__(
        self, card: Card, weights: Mapping[str, np.ndarray], index: int, trusted: bool = True
    ):
        self.index = index
        self.name = card.spec.agent_names[index]
        self._team = Team(card, weights, (index,), trusted)

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
    ) -> tuple[Any, np.ndarray]:
        """As `Policy.act` for this agent: obs `(*batch, f_i)` to its own actions."""
        actions, after = self._team.act(
            [obs],
            None if hidden_state is None else hidden_state[..., None, :],
            None if action_mask is None else [action_mask],
            deterministic,
            random,
            episode_start,
        )
        spec = self._team.card.spec
        return own_action(spec.actions, self.index, actions[..., 0, :]), after[..., 0, :]


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

    def act(
        self,
        obs: Any,
        hidden_state: np.ndarray | None = None,
        action_mask: Any = None,
        deterministic: bool = True,
        random: np.random.Generator | None = None,
        episode_start: Any = None,
    ) -> tuple[Any, np.ndarray]:
        """Choose the actions of the agents, each from its own observation.

        Args:
            obs: a dict by agent name of arrays `(*batch, f_i)`, or a list with one for every agent;
                or `(*batch, n, f)`, shorter observations padded with zeros. Agents that are missing
                in a dict are absent: they observe zeros, as in training, and have no action.
            hidden_state: what the last step returned, `(*batch, n, h)`; None: an episode starts.
            action_mask: the available choices, in the same forms: by name (or in a list) one array
                per agent with its own choices only, or `(*batch, n, a)`. None: all choices.
            deterministic: take the most likely action (Box: the mean) instead of sampling.
            random: generator for sampling; None: a fresh one.
            episode_start: `(*batch)`, true where an episode starts: resets the hidden state.

        Returns:
            For a dict, the actions by name as each agent's space has them: an integer for one
            choice, integers `(d_i,)` for several, floats `(a_i,)` for a vector, a pair for both;
            after the batch axes. Otherwise Discrete: integers `(*batch, n, d)`, one per sub-action;
            Box: floats `(*batch, n, a)`, 0 in dimensions an agent does not have; Mixed: floats
            `(*batch, n, d + a)`, both side by side. And the hidden state for the next step.
        """
        actions, after = super().act(
            obs, hidden_state, action_mask, deterministic, random, episode_start
        )
        if not isinstance(obs, Mapping):
            return actions, after
        rows = [*enumerate(self.card.spec.agent_names)]
        return {
            name: own_action(self.card.spec.actions, i, actions[..., i, :])
            for i, name in rows
            if name in obs
        }, after

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        which: str = "best",
        policy_seed: int | None = None,
        trust: bool = False,
    ) -> "Policy":
        """Read and check a policy folder, or one of a run's policies.

        A run directory holds `policy/seed-<k>/best` and `.../last`: `which` and `policy_seed`
        choose one; without a seed, the one with the highest evaluated return. Raises `PolicyError`.

        Custom networks and tasks that the policy names are imported only if you `trust` it.
        """
        folder = files.find_policy(Path(path), which, policy_seed)
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

    def export(self, path: str | os.PathLike[str], to: str = "onnx") -> Path:
        """Write one step of the team as a file of another format: `onnx` or `stablehlo`.

        [Deployment](policies.md#deployment) describes inputs and outputs. ONNX needs the extra
        `onnx`.
        """
        from fp3o.policy.deploy import export_policy

        return export_policy(self, path, to)

    def agent(self, agent: int | str) -> Agent:
        """The policy of a single agent, by name or index, independent of this object."""
        names = self.card.spec.agent_names
        if isinstance(agent, str):
            if agent not in names:
                shown = printable(repr(agent), 80)
                raise SettingError(f"there is no agent {shown}: {nearest(agent, names)}")
            agent = names.index(agent)
        if not 0 <= agent < len(names):
            raise SettingError(f"there is no agent {agent}: 0 to {len(names) - 1}")
        return Agent(self.card, self.weights, agent, self.trusted)

    def player(
        self, deterministic: bool = True, random: np.random.Generator | None = None
    ) -> Player:
        """A player of episodes, which remembers the hidden state from step to step."""
        return Player(self, deterministic, random)

    def __str__(self) -> str:
        return policy_text(self.card)

    def __repr__(self) -> str:
        spec, where = self.card.spec, self.card.provenance
        name, step = quote(spec.name, 120), quote(where.get("step"))
        return f"Policy({name}, {spec.num_agents} agents, step {step})"
