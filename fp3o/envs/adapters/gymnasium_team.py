"""Gymnasium environments as parallel ones: with one agent, or a team given by Tuple spaces."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from fp3o import imports
from fp3o.envs.adapters.codecs import MASK
from fp3o.envs.adapters.pettingzoo_layout import LIMIT_ATTRIBUTES, declared_limit
from fp3o.errors import MissingExtraError

EXTRAS = {"lbforaging": "lbforaging", "rware": "rware"}
"""Packages that register environments -> extras that install them."""

HIDDEN_LIMITS = tuple(f"_{name}" for name in LIMIT_ATTRIBUTES)


@dataclass(frozen=True)
class MakeGymTeam:
    """Makes the environment of an id, `CartPole-v1` or `module:Name-v0`, as a parallel one."""

    name: str

    def __call__(self, render_mode: str | None = None, **kwargs: Any) -> "GymTeam":
        """A new environment; `kwargs` are those of `gymnasium.make`."""
        import gymnasium

        imports.open_search_folders()
        _require_extra(self.name.partition(":")[0])
        # The checker would warn at every step about things that do not matter here.
        make = partial(gymnasium.make, self.name, disable_env_checker=True, **kwargs)
        with imports.foreign_code("it cannot be made"):
            env = make()
            if render_mode in (env.metadata.get("render_modes") or ()):
                env.close()
                env = make(render_mode=render_mode)
        return GymTeam(env, bool(render_mode))


class GymTeam:
    """A Gymnasium environment with the interface of PettingZoo's `ParallelEnv`.

    If the spaces of actions and observations are Tuples of equal length, its entries belong to the
    agents of a team; rewards, ends and infos may then be one for all or one per agent.
    """

    def __init__(self, env: Any, renders: bool = False):
        from gymnasium.spaces import Tuple

        self._env, self._renders, self._time = env, renders, 0
        spaces = env.observation_space, env.action_space
        is_team = all(isinstance(space, Tuple) for space in spaces)
        self._is_team = is_team and len(spaces[0].spaces) == len(spaces[1].spaces)
        pairs = zip(*(space.spaces for space in spaces), strict=True) if self._is_team else [spaces]
        self._spaces = {f"agent_{i}": pair for i, pair in enumerate(pairs)}
        self.possible_agents, self.agents = [*self._spaces], []
        self._last: dict[str, Any] = {}
        registered = env.spec.max_episode_steps if env.spec else None
        self._own_limit = None if registered else _own_limit(env)
        self.max_episode_steps = registered or self._own_limit

    def observation_space(self, agent: str) -> Any:
        """The space of an agent's observations."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Any:
        """The space of an agent's actions."""
        return self._spaces[agent][1]

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode."""
        obs, info = self._env.reset(seed=seed)
        self.agents, self._time = [*self.possible_agents], 0
        return self._by_agent(obs), self._infos(info)

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Apply the actions; an agent that has left repeats its last one."""
        self._time += 1
        self._last |= actions
        chosen = tuple(self._last[agent] for agent in self.possible_agents)
        obs, reward, terminated, truncated, info = self._env.step(
            chosen if self._is_team else chosen[0]
        )
        over, cut = self._each(terminated), self._each(truncated)
        if self._own_limit and self._time >= self._own_limit:
            # Environments that count their steps themselves report the limit as an end.
            over, cut = dict.fromkeys(over, False), dict.fromkeys(cut, True)
        self.agents = [a for a in self.agents if not (over[a] or cut[a])]
        return self._by_agent(obs), self._each(reward), over, cut, self._infos(info)

    def state(self) -> Any:
        """There is none: the observations of all agents are used."""
        raise NotImplementedError("Gymnasium's environments have no global state")

    def render(self) -> Any:
        """The environment as an image, also of the older interface `render(mode)`."""
        if not self._renders:
            return None
        inner = self._env.unwrapped
        if "mode" in inspect.signature(inner.render).parameters:
            return inner.render(mode="rgb_array")
        return self._env.render()

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _by_agent(self, values: Any) -> dict[str, Any]:
        values = values if self._is_team else (values,)
        return dict(zip(self.possible_agents, values, strict=True))

    def _each(self, value: Any) -> dict[str, Any]:
        """One value per agent, or the same for all."""
        if self._is_team and np.ndim(value):
            return self._by_agent(value)
        return dict.fromkeys(self.possible_agents, np.asarray(value).item())

    def _infos(self, info: Any) -> dict[str, Any]:
        """The infos of the agents; in a team, an action mask has an entry per agent."""
        if not self._is_team or isinstance(info, Sequence):
            return self._by_agent(info)
        masks = info.get(MASK)
        return {
            agent: info if masks is None else {**info, MASK: masks[i]}
            for i, agent in enumerate(self.possible_agents)
        }


def _require_extra(module: str) -> None:
    """Raise `MissingExtraError` if a package that an extra installs is missing."""
    if module in EXTRAS:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name == module:
                raise MissingExtraError(module, EXTRAS[module]) from error
            raise


def _own_limit(env: Any) -> int | None:
    """The limit of an environment that counts its steps itself."""
    inner = env.unwrapped
    hidden = (getattr(inner, name, None) for name in HIDDEN_LIMITS)
    return declared_limit(inner) or next((x for x in hidden if isinstance(x, int)), None)
