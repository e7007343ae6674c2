"""Multi-agent Jumanji environments as tasks.

Jumanji gives one observation, meant for a controller of all agents. Here an agent observes what
`VIEWS` lists: its own row of some fields, and some fields as a whole; step counts are divided by
the time limit. A centralised critic observes every field. An agent that is done before the others
counts as dead.

A last step is terminated where no agent has a discount left, else truncated. Only
LevelBasedForaging and Connector truncate at their time limit. The others have a discount of 0 there
as well, and observe the step (except MultiCVRP, which hardly ever reaches its limit).

A team reward goes to every agent. Individual rewards are combined as `reward` says: the `sum` or
`mean` of all for each, or its `own`.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.envs.adapters.codecs import MASK
from fp3o.envs.adapters.jax_common import AdaptedEnv, flat, match_dtypes
from fp3o.envs.adapters.jumanji_library import (
    TRUNCATED,
    VIEWS,
    View,
    field_names,
    make_jumanji,
    render_state,
)
from fp3o.envs.adapters.variants import DEFAULT_LIMIT, VARIANT
from fp3o.envs.api import Observation
from fp3o.envs.rendering import add_caption
from fp3o.errors import SettingError
from fp3o.spec import Box, Discrete, EnvSpec

FAMILY = "jumanji"

CLOCKS = ("step_count", "step")
"""Fields that count steps."""


class JumanjiState(NamedTuple):
    """The environment's state and its last output."""

    inner: Any
    observation: Any
    alive: Bool[Array, " n"]
    episode_metrics: Float[Array, " o"]


@dataclass(frozen=True)
class Jumanji(AdaptedEnv):
    """An environment of Jumanji; `metric_names` are keys of the extras of its time steps.

    One that is not in `VIEWS` must have `num_agents`. Fields of its observation with one row per
    agent are the agents' own, unless `view` says otherwise.
    """

    renderable = True
    reward: str = "sum"
    view: View | None = None

    @cached_property
    def env(self) -> Any:
        """Jumanji's environment."""
        return make_jumanji(self.name, self.options) if self.made is None else self.made

    @cached_property
    def num_agents(self) -> int:
        """The size of the team."""
        if type(self.env).__name__ not in VIEWS and not hasattr(self.env, "num_agents"):
            raise SettingError(f"{self.name} has one agent. Those with more: {', '.join(VIEWS)}")
        return int(self.env.action_spec.shape[0])

    @property
    def max_episode_steps(self) -> int:
        """Upper bound on the length of an episode, as far as it is known."""
        return int(getattr(self.env, "time_limit", None) or DEFAULT_LIMIT)

    @cached_property
    def spec(self) -> EnvSpec:
        """Sizes of the task."""
        _ = self.env  # made before anything is traced: modules that it imports make arrays
        first = jax.eval_shape(self.reset, jax.random.key(0)).observation
        obs, team = jax.eval_shape(lambda x: (self._obs(x), self._team(x)), first)
        return EnvSpec(
            f"{FAMILY}/{self.name}:{self.variant}",
            self._actions,
            obs.shape[1],
            team.size,
            (0,) * self.num_agents,
            truncates=type(self.env).__name__ not in {*VIEWS} - {*TRUNCATED},
            reward_sum_over=self._reward_sum_over,
            episode_metrics=self.metric_names,
        )

    def reset(self, key: PRNGKeyArray) -> JumanjiState:
        """Start an episode."""
        inner, first = self.env.reset(jax.random.key_data(key))
        inner, observation = jax.tree.map(jnp.asarray, (inner, first.observation))
        everyone = jnp.ones(self.num_agents, bool)
        return JumanjiState(inner, observation, everyone, jnp.zeros(len(self.metric_names)))

    def step(
        self, state: JumanjiState, action: Array, key: PRNGKeyArray
    ) -> tuple[JumanjiState, Array, Array, Array]:
        """Apply the actions; random numbers come from the keys in Jumanji's states."""
        inner, now = self.env.step(state.inner, self._decode(action))
        running = jnp.broadcast_to(now.discount, self.num_agents) > 0
        own = jnp.asarray(now.reward, jnp.float32)
        reward = self.team_reward(own) if own.ndim else jnp.full(self.num_agents, own)
        metrics = self.select_metrics(self.metric_names, now.extras or {})
        before = state.inner, state.observation
        inner, observation = match_dtypes((inner, now.observation), before)
        last, left = now.last(), running.any()
        new = JumanjiState(inner, observation, running, metrics)
        return new, reward, last & ~left, last & left

    def observe(self, state: JumanjiState) -> Observation:
        """The agents' views of the last observation."""
        team = jnp.tile(self._team(state.observation), (self.num_agents, 1))
        obs, mask = self._obs(state.observation), self._action_mask(state.observation)
        return Observation(obs, team, mask, state.alive)

    def episode_metrics(self, state: JumanjiState) -> Float[Array, " o"]:
        """The selected metrics after the last step."""
        return state.episode_metrics

    def render(self, state: JumanjiState, caption: str) -> np.ndarray:
        """Jumanji's rendering."""
        return add_caption(render_state(self.env, state.inner), caption)

    def _obs(self, observation: Any) -> Float[Array, "n f"]:
        own, whole = self._view
        rows = [
            jnp.asarray(x, jnp.float32).reshape(self.num_agents, -1)
            for name in own
            for x in jax.tree.leaves(getattr(observation, name))
        ]
        common = [x for name in whole for x in self._vectors(observation, name)]
        return jnp.concatenate([*rows, *(jnp.tile(x, (self.num_agents, 1)) for x in common)], 1)

    def _team(self, observation: Any) -> Float[Array, " f"]:
        names = [name for name in field_names(observation) if name != MASK]
        return jnp.concatenate([x for name in names for x in self._vectors(observation, name)])

    def _vectors(self, observation: Any, name: str) -> list[Array]:
        leaves = [*map(flat, jax.tree.leaves(getattr(observation, name)))]
        return [x / self.max_episode_steps for x in leaves] if name in CLOCKS else leaves

    def _action_mask(self, observation: Any) -> Bool[Array, "n a"]:
        if isinstance(self._actions, Box) or not hasattr(observation, MASK):
            return jnp.asarray(self._actions.mask)
        mask = jnp.asarray(getattr(observation, MASK), bool)
        # An agent without any available action may take any: it has no effect.
        return mask | ~mask.any(-1, keepdims=True)

    def _decode(self, action: Array) -> Array:
        spec = self.env.action_spec
        if isinstance(self._actions, Box):
            inside = action.reshape(spec.shape)
            return jnp.clip(inside, spec.minimum, spec.maximum).astype(spec.dtype)
        return action[:, 0].astype(spec.dtype)

    @cached_property
    def _reward_sum_over(self) -> int:
        """The team's size where individual rewards are added up; 1 for a team reward."""

        def first_reward(key: Array) -> Any:
            inner, _ = self.env.reset(key)
            return self.env.step(inner, self.env.action_spec.generate_value())[1].reward

        individual = jax.eval_shape(first_reward, jnp.zeros(2, jnp.uint32)).ndim > 0
        return self.num_agents if self.reward == "sum" and individual else 1

    @cached_property
    def _actions(self) -> Discrete | Box:
        spec, n = self.env.action_spec, self.num_agents
        if np.issubdtype(spec.dtype, np.floating):
            return Box((math.prod(spec.shape[1:]),) * n)
        if hasattr(spec, "num_values"):
            return Discrete(tuple((int(size),) for size in np.asarray(spec.num_values)))
        # A plain array of integers: the number of choices is the length of the mask.
        return Discrete(((getattr(self._first_observation, MASK).shape[-1],),) * n)

    @cached_property
    def _first_observation(self) -> Any:
        """The shapes of an observation."""
        return jax.eval_shape(self.env.reset, jnp.zeros(2, jnp.uint32))[1].observation

    @cached_property
    def _view(self) -> View:
        known = self.view or VIEWS.get(type(self.env).__name__)
        if known is not None:
            return known
        first, n = self._first_observation, self.num_agents
        names = [name for name in field_names(first) if name != MASK]
        own = [
            name for name in names
            if all(x.ndim and x.shape[0] == n for x in jax.tree.leaves(getattr(first, name)))
        ]  # fmt: skip
        return View(tuple(own), tuple(name for name in names if name not in own))


def make_env(name: str, variant: str = VARIANT) -> Jumanji:
    """An environment by name and options, as in `default:reward=mean,env.time_limit=50`.

    `env.generator.num_agents=3` changes the generator of the episodes.
    """
    return Jumanji.read(name, variant)
