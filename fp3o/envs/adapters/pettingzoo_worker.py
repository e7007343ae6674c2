"""One PettingZoo environment at its place: dictionaries of agents become arrays of a whole team.

Worker processes import this module. It needs NumPy, and what the environment itself imports.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from fp3o import imports as paths
from fp3o.envs.adapters.codecs import MASK, TeamLayout
from fp3o.envs.workers.protocol import InvalidReplyError, StepReply
from fp3o.errors import MissingExtraError

FACTORY = "parallel_env"
"""What makes a module's environment, by PettingZoo's convention."""


@dataclass(frozen=True)
class Launch:
    """Makes a place."""

    make: str | Callable[..., Any]
    kwargs: Mapping[str, Any]
    layout: TeamLayout

    def __call__(self, seed: int) -> "Table":
        """A place with an environment of its own; random seeds come with the episodes."""
        return Table(build(self.make, self.kwargs), self.layout)


class Table:
    """One environment, played by the whole team.

    An agent that is not there, because it has left or has not come yet, shows zeros, is not alive
    and has only the first choice. An episode ends when nobody is left: truncated if one of those
    who left last was cut short by a time limit (truncated and not terminated), so that something
    would have followed; terminated otherwise. It is truncated after `limit` steps in any case.
    """

    def __init__(self, env: Any, layout: TeamLayout):
        self._env, self._layout = env, layout
        self._number = {agent: i for i, agent in enumerate(layout.agents)}
        self._nothing = [np.zeros(sense.size, np.float32) for sense in layout.senses]
        self._there: list[Any] = []
        self._time = 0

    def reset(self, seed: int, episode: int) -> StepReply:
        """Begin an episode: the same one for the same numbers, if the environment obeys seeds."""
        self._time = 0
        seen, infos = _parts(self._env.reset(seed=draw(seed, episode)), 2, "reset")
        self._there = self._present({}, {})
        if not self._there:
            raise InvalidReplyError("nobody is there after a reset")
        return self._report(seen, {}, infos, self._there, False, False)

    def step(self, action: np.ndarray) -> StepReply:
        """Play the team's actions `(n, d)`; only those of agents that are there count."""
        hands, number = self._layout.hands, self._number
        given = {agent: hands[number[agent]].write(action[number[agent]]) for agent in self._there}
        seen, rewards, ended, cut, infos = _parts(self._env.step(given), 5, "step")
        self._time += 1
        before, self._there = self._there, self._present(ended, cut)
        if self._there:
            late = self._time >= self._layout.limit
            return self._report(seen, rewards, infos, self._there, False, late)
        last = [agent for agent in before if agent in seen]
        late = any(cut.get(agent) and not ended.get(agent) for agent in before)
        return self._report(seen, rewards, infos, last, not late, late)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def render(self) -> Any:
        """What the environment draws."""
        return self._env.render()

    def _present(self, ended: Mapping[Any, Any], cut: Mapping[Any, Any]) -> list[Any]:
        """Agents that act next; some environments keep those on the list whose time is over."""
        if unknown := [agent for agent in self._env.agents if agent not in self._number]:
            raise InvalidReplyError(f"agents that are not among possible_agents: {unknown}")
        return [a for a in self._env.agents if not (ended.get(a) or cut.get(a))]

    def _report(
        self,
        seen: Mapping[Any, Any],
        rewards: Mapping[Any, Any],
        infos: Mapping[Any, Any],
        shown: Sequence[Any],
        over: bool,
        late: bool,
    ) -> StepReply:
        layout, number = self._layout, self._number
        rows = self._nothing.copy()
        action_mask, alive = layout.idle.copy(), np.zeros(len(rows), bool)
        for agent in shown:
            rows[number[agent]] = self._see(agent, seen)
        for agent in self._there:
            i = number[agent]
            alive[i], action_mask[i] = True, self._legal(agent, seen, infos)
        obs = np.zeros((len(rows), max(row.size for row in rows)), np.float32)
        for i, row in enumerate(rows):
            obs[i, : row.size] = row
        return StepReply(
            obs, self._state(rows), action_mask, alive, self._paid(rewards), np.array(over),
            np.array(late), self._outcome(infos),
        )  # fmt: skip

    def _see(self, agent: Any, seen: Mapping[Any, Any]) -> np.ndarray:
        if agent not in seen:
            raise InvalidReplyError(f"agent {agent!r} is there and has no observation")
        try:
            return self._layout.senses[self._number[agent]].read(seen[agent])
        except InvalidReplyError as error:
            raise InvalidReplyError(f"agent {agent!r} has {error}") from error

    def _legal(self, agent: Any, seen: Mapping[Any, Any], infos: Mapping[Any, Any]) -> np.ndarray:
        """Choices allowed by the mask beside the observation, or else by the one in the infos."""
        layout, i = self._layout, self._number[agent]
        given = seen[agent].get(MASK) if layout.senses[i].boxed else None
        given = (infos.get(agent) or {}).get(MASK) if given is None else given
        place = layout.places[i]
        if given is None or not place.size:
            return layout.mask[i]
        parts = given if isinstance(given, tuple) else (given,)
        flat = np.concatenate([np.ravel(part) for part in parts]).astype(bool)
        if flat.size != place.size:
            found = f"{flat.size} entries, expected {place.size}"
            raise InvalidReplyError(f"agent {agent!r} has an action mask of {found}")
        row = layout.mask[i].copy()
        row[place] = flat
        first = np.cumsum((0, *layout.hands[i].sizes[:-1]))  # pyright: ignore
        if not np.logical_or.reduceat(flat, first).all():
            raise InvalidReplyError(f"agent {agent!r} has an action mask that leaves no choice")
        return row

    def _state(self, rows: list[np.ndarray]) -> np.ndarray:
        size = self._layout.central
        state = np.asarray(self._env.state(), np.float32).ravel() if size else np.concatenate(rows)
        if size and state.size != size:
            raise InvalidReplyError(f"a state of {state.size} numbers, expected {size}")
        return np.repeat(state[None], len(rows), 0)

    def _paid(self, rewards: Mapping[Any, Any]) -> np.ndarray:
        """Rewards of the team; who has none, for instance because it is not there, counts as 0."""
        own = np.array([rewards.get(agent, 0.0) for agent in self._layout.agents], float)
        kind = self._layout.reward
        team = own if kind == "own" else own.sum() if kind == "sum" else own.mean()
        return np.full(len(own), team, np.float32)

    def _outcome(self, infos: Mapping[Any, Any]) -> np.ndarray:
        """What the first agent that knows it says; 0 where nobody does."""
        names = self._layout.outcomes
        told = [infos.get(agent) or {} for agent in self._layout.agents] if names else []
        found = [next((info[name] for info in told if name in info), 0.0) for name in names]
        return np.array(found, np.float32)


def draw(seed: int, episode: int) -> int:
    """The random seed of an episode."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0] >> 1)


def build(make: str | Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    """An environment that nobody else has."""
    env = (load(make) if isinstance(make, str) else make)(**kwargs)
    with contextlib.suppress(TypeError):  # an object without attributes of its own
        if vars(env).get("_fp3o_taken"):
            raise ValueError("it returns the same environment again; every call must make one")
        vars(env)["_fp3o_taken"] = True
    return env


def load(path: str) -> Callable[..., Any]:
    """What makes the environment: at `module:name`, or the `parallel_env` of a module."""
    try:
        found = paths.load(path)
    except ValueError as error:
        missing = getattr(error.__cause__, "name", None) or ""
        if missing.partition(".")[0] == "pettingzoo":
            raise MissingExtraError("pettingzoo", "pettingzoo") from error
        raise
    return paths.attribute(found, FACTORY) if isinstance(found, ModuleType) else found


def _parts(answer: Any, number: int, name: str) -> tuple[Any, ...]:
    """The dictionaries that an environment answers with."""
    if not isinstance(answer, tuple) or len(answer) != number:
        kind = f"a tuple of {len(answer)}" if isinstance(answer, tuple) else type(answer).__name__
        raise InvalidReplyError(f"{name} returned {kind}, expected {number} dictionaries")
    return answer
