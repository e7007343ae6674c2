"""One PettingZoo environment as a `WorkerEnv`: dictionaries keyed by agent become arrays.

Worker processes import this module. It needs NumPy, and what the environment itself imports.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fp3o import imports
from fp3o.envs.adapters.codecs import MASK, TeamLayout
from fp3o.envs.adapters.pettingzoo_make import make_parallel_env
from fp3o.envs.workers.protocol import InvalidReplyError, StepReply, WorkerEnv


@dataclass(frozen=True)
class MakeParallelEnv:
    """Makes the environment of a worker."""

    make: str | Callable[..., Any]
    kwargs: Mapping[str, Any]
    layout: TeamLayout

    def __call__(self, seed: Any) -> "ParallelEnvWorker":
        """A new environment; seeds are given with the episodes."""
        return ParallelEnvWorker(make_parallel_env(self.make, self.kwargs), self.layout)


class _Step(NamedTuple):
    """Output of a step, by agent."""

    obs: Mapping[Any, Any]
    rewards: Mapping[Any, Any]
    terminated: Mapping[Any, Any]
    truncated: Mapping[Any, Any]
    infos: Mapping[Any, Any]


class ParallelEnvWorker(WorkerEnv):
    """One environment and its whole team.

    An absent agent, because it has left or has not joined yet, observes zeros, is not alive and can
    only take the first choice. An episode ends when no agent is left: truncated if one of those
    that left last was truncated and not terminated; terminated otherwise. It is truncated after
    `max_episode_steps` in any case.
    """

    def __init__(self, env: Any, layout: TeamLayout):
        self._env, self._layout = env, layout
        self._index = {agent: i for i, agent in enumerate(layout.agents)}
        self._zeros = [np.zeros(codec.size, np.float32) for codec in layout.obs_codecs]
        self._present: list[Any] = []
        self._time = 0
        self._last_state: np.ndarray | None = None

    def reset(self, seed: int | Sequence[int], episode: int) -> StepReply:
        """Start an episode: the same one for the same arguments, if the environment uses seeds."""
        self._time = 0
        result = _unpack(self._env.reset(seed=episode_seed(seed, episode)), 2, "reset")
        self._present = self._acting({}, {})
        if not self._present:
            raise InvalidReplyError("no agent is present after a reset")
        step = _Step(result[0], {}, {}, {}, result[1])
        return self._reply(step, self._present, False, False)

    def step(self, action: np.ndarray) -> StepReply:
        """Apply the team's actions `(n, d)`; those of absent agents are ignored."""
        actions = self._layout.decode(action, self._present)
        step = _Step(*_unpack(self._env.step(actions), 5, "step"))
        self._time += 1
        before, self._present = self._present, self._acting(step.terminated, step.truncated)
        if self._present:
            truncated = self._time >= self._layout.max_episode_steps
            return self._reply(step, self._present, False, truncated)
        last = [agent for agent in before if agent in step.obs]
        truncated = any(step.truncated.get(a) and not step.terminated.get(a) for a in before)
        return self._reply(step, last, not truncated, truncated)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def render(self) -> Any:
        """The environment's own rendering."""
        return self._env.render()

    def _acting(self, terminated: Mapping[Any, Any], truncated: Mapping[Any, Any]) -> list[Any]:
        """Agents that act next; some environments still list agents whose episode has ended."""
        if unknown := [agent for agent in self._env.agents if agent not in self._index]:
            raise InvalidReplyError(f"agents that are not among possible_agents: {unknown}")
        return [a for a in self._env.agents if not (terminated.get(a) or truncated.get(a))]

    def _reply(
        self, step: _Step, observing: Sequence[Any], terminated: bool, truncated: bool
    ) -> StepReply:
        layout, index = self._layout, self._index
        rows = self._zeros.copy()
        action_mask, alive = layout.absent_mask.copy(), np.zeros(len(rows), bool)
        for agent in observing:
            rows[index[agent]] = self._encode(agent, step.obs)
        for agent in self._present:
            i = index[agent]
            alive[i], action_mask[i] = True, self._mask(agent, step.obs, step.infos)
        obs = np.zeros((len(rows), max(row.size for row in rows)), np.float32)
        for i, row in enumerate(rows):
            obs[i, : row.size] = row
        return StepReply(
            obs, self._state(rows), action_mask, alive, self._reward(step.rewards),
            np.array(terminated), np.array(truncated), self._metrics(step.infos),
        )  # fmt: skip

    def _encode(self, agent: Any, obs: Mapping[Any, Any]) -> np.ndarray:
        if agent not in obs:
            raise InvalidReplyError(f"agent {agent!r} is present and has no observation")
        try:
            return self._layout.obs_codecs[self._index[agent]].encode(obs[agent])
        except InvalidReplyError as error:
            raise InvalidReplyError(f"agent {agent!r} has {error}") from error

    def _mask(self, agent: Any, obs: Mapping[Any, Any], infos: Mapping[Any, Any]) -> np.ndarray:
        """Available choices, by the mask beside the observation or else the one in the infos."""
        layout, i = self._layout, self._index[agent]
        mask = obs[agent].get(MASK) if layout.obs_codecs[i].has_mask else None
        mask = (infos.get(agent) or {}).get(MASK) if mask is None else mask
        codec, indices = layout.action_codecs[i], layout.mask_indices[i]
        if mask is None or not codec.sizes:
            return layout.mask[i]
        parts = mask if isinstance(mask, tuple) else (mask,)
        flat = np.concatenate([np.ravel(part) for part in parts]).astype(bool)
        if flat.size != indices.size:
            size = f"{flat.size} entries, expected {indices.size}"
            raise InvalidReplyError(f"agent {agent!r} has an action mask of {size}")
        if not np.logical_or.reduceat(flat, np.cumsum((0, *codec.sizes[:-1]))).all():
            raise InvalidReplyError(f"agent {agent!r} has an action mask that leaves no choice")
        row = layout.mask[i].copy()
        row[indices] = flat
        return row

    def _state(self, rows: list[np.ndarray]) -> np.ndarray:
        size = self._layout.state_size
        state = self._env_state() if size else self._layout.team_state(rows)
        if size and state.size != size:
            raise InvalidReplyError(f"a state of {state.size} numbers, expected {size}")
        self._last_state = state
        return np.repeat(state[None], len(rows), 0)

    def _env_state(self) -> np.ndarray:
        """The environment's state; the last one, if agents that have left are no longer in it."""
        try:
            return np.asarray(self._env.state(), np.float32).ravel()
        except Exception as error:
            if not self._present and self._last_state is not None:
                return self._last_state
            raise InvalidReplyError(
                f"its state() fails: {imports.describe_error(error)}; with the option "
                "state=observations the critic observes all observations instead"
            ) from error

    def _reward(self, rewards: Mapping[Any, Any]) -> np.ndarray:
        """The reward of every agent; missing ones, as of absent agents, count as 0."""
        own = np.array([rewards.get(agent, 0.0) for agent in self._layout.agents], float)
        mode = self._layout.reward
        team = own if mode == "own" else own.sum() if mode == "sum" else own.mean()
        return np.full(len(own), team, np.float32)

    def _metrics(self, infos: Mapping[Any, Any]) -> np.ndarray:
        """Each metric from the first agent whose info has it; 0 where none has."""
        names = self._layout.episode_metrics
        by_agent = [infos.get(agent) or {} for agent in self._layout.agents] if names else []
        values = [next((info[name] for info in by_agent if name in info), 0.0) for name in names]
        return np.array(values, np.float32)


def episode_seed(seed: int | Sequence[int], episode: int) -> int:
    """The random seed of an episode."""
    numbers = [seed] if isinstance(seed, int) else [*seed]
    return int(np.random.SeedSequence([*numbers, episode]).generate_state(1)[0] >> 1)


def _unpack(result: Any, number: int, method: str) -> tuple[Any, ...]:
    """The dictionaries that an environment returns."""
    if not isinstance(result, tuple) or len(result) != number:
        kind = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise InvalidReplyError(f"{method} returned {kind}, expected {number} dictionaries")
    return result
