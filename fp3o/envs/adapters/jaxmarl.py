"""JaxMARL environments as tasks.

All agents of an environment are the team. Their rewards are combined as `reward` says: the `mean`
or `sum` of all for each, or its `own`.

JaxMARL reports only that an episode is over, not why. Where there is a limit `max_steps` and the
state of the environment has a clock, an episode that ends at the limit is truncated:

| environments          | episodes                                                                |
|-----------------------|-------------------------------------------------------------------------|
| MPE, overcooked       | are always truncated by the clock                                       |
| SMAX                  | are truncated at the limit while both sides have units, else terminated |
| switch_riddle         | are truncated at the limit if no agent has spoken, else terminated      |
| jaxnav                | are truncated at the limit if it stopped an agent, else terminated      |
| hanabi, coin_game     | have no such limit: they are always terminated                          |
| Brax environments     | are truncated where the info has `truncation`                           |
| others with a limit   | are truncated at the limit, even if they would have ended there anyway  |

The input of a centralised critic is the world state where there is one, else all observations. In
SMAX the episode metric `won` is known; `episode_metrics` selects any numbers of the info instead.
The `storm` environments do not give observations by agent and are rejected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.envs.adapters.jax_common import AdaptedEnv, match_dtypes
from fp3o.envs.adapters.jaxmarl_inspect import JaxMarlInspection, decode_action, stack_padded
from fp3o.envs.adapters.jaxmarl_library import find_field, make_jaxmarl, render_positions
from fp3o.envs.adapters.variants import DEFAULT_LIMIT, VARIANT
from fp3o.envs.api import Observation
from fp3o.envs.rendering import add_caption
from fp3o.spec import EnvSpec

FAMILY = "jaxmarl"


class JaxMarlState(NamedTuple):
    """The environment's state and its last output, which cannot always be computed again."""

    inner: Any
    obs: Float[Array, "n f"]
    team: Float[Array, "*n f2"]
    """Input of a centralised critic, of the team or per agent."""
    action_mask: Bool[Array, "n a"]
    alive: Bool[Array, " n"]
    episode_metrics: Float[Array, " o"]


@dataclass(frozen=True)
class JaxMarl(AdaptedEnv):
    """An environment of JaxMARL; `metric_names` are keys of its info."""

    @cached_property
    def env(self) -> Any:
        """JaxMARL's environment."""
        return make_jaxmarl(self.name, self.options) if self.made is None else self.made

    @cached_property
    def inspection(self) -> JaxMarlInspection:
        """Agents, spaces and state of the environment."""
        return JaxMarlInspection(self.name, self.env)

    @property
    def agents(self) -> list[Any]:
        """The names of the agents."""
        return self.inspection.agents

    @property
    def max_episode_steps(self) -> int:
        """Upper bound on the length of an episode, as far as it is known."""
        limit = getattr(self.env, "max_steps", None) or getattr(self.env, "episode_length", None)
        # Some compare the clock with the limit before they advance it.
        return DEFAULT_LIMIT if limit is None else int(limit) + 1

    @cached_property
    def spec(self) -> EnvSpec:
        """Sizes of the task."""
        _, team, obs_sizes = self.inspection.first
        return EnvSpec(
            f"{FAMILY}/{self.name}:{self.variant}",
            self.inspection.actions,
            max(obs_sizes.values()),
            team.shape[-1],
            self.inspection.agent_types,
            truncates=self.inspection.has_clock or hasattr(self.env, "episode_length"),
            reward_sum_over=len(self.agents) if self.reward == "sum" else 1,
            episode_metrics=self._reported_metrics,
            agents=tuple(map(str, self.agents)),
            obs_sizes=tuple(obs_sizes[agent] for agent in self.agents),
        )

    def reset(self, key: PRNGKeyArray) -> JaxMarlState:
        """Start an episode."""
        obs, inner = self.env.reset(jax.random.key_data(key))
        everyone = jnp.ones(len(self.agents), bool)
        return self._state(inner, obs, everyone, jnp.zeros(len(self._reported_metrics)))

    def step(
        self, state: JaxMarlState, action: Array, key: PRNGKeyArray
    ) -> tuple[JaxMarlState, Array, Array, Array]:
        """Step without JaxMARL's automatic reset."""
        spaces = zip(self.agents, self.inspection.action_spaces, action, strict=True)
        actions = {a: decode_action(space, x) for a, space, x in spaces}
        result = self.env.step_env(jax.random.key_data(key), state.inner, actions)
        obs, inner, reward, done, info = result
        inner = match_dtypes(inner, state.inner)
        alive = ~jnp.stack([jnp.asarray(done[a], bool) for a in self.agents])
        own = jnp.stack([jnp.asarray(reward[a], jnp.float32).reshape(()) for a in self.agents])
        ended = jnp.asarray(done["__all__"], bool)
        truncated = ended & self._at_limit(inner, own, info)
        metrics = self.select_metrics(self._reported_metrics, self._victory(inner) | {**info})
        new = self._state(inner, obs, alive, metrics)
        return new, self.team_reward(own), ended & ~truncated, truncated

    def observe(self, state: JaxMarlState) -> Observation:
        """The last output."""
        n = len(self.agents)
        team = state.team if state.team.ndim == 2 else jnp.tile(state.team, (n, 1))
        return Observation(state.obs, team, state.action_mask, state.alive)

    def episode_metrics(self, state: JaxMarlState) -> Float[Array, " o"]:
        """The selected metrics after the last step."""
        return state.episode_metrics

    @property
    def renderable(self) -> bool:
        """Whether the state has positions to draw."""
        inner = self.inspection.first[0]
        return any(find_field(inner, name) is not None for name in ("p_pos", "unit_alive"))

    def render(self, state: JaxMarlState, caption: str) -> np.ndarray:
        """Positions of agents and landmarks, or of both sides of a battle."""
        return add_caption(render_positions(self.env, state.inner), caption)

    def _state(self, inner: Any, obs: Any, alive: Array, metrics: Array) -> JaxMarlState:
        inner = jax.tree.map(jnp.asarray, inner)
        rows = stack_padded([self.inspection.obs_row(a, obs[a]) for a in self.agents])
        team = self.inspection.team_state(inner, obs)
        return JaxMarlState(inner, rows, team, self._action_mask(inner), alive, metrics)

    def _action_mask(self, inner: Any) -> Bool[Array, "n a"]:
        mask, available = self.inspection.actions.mask, self.inspection.available_actions
        if available is None:
            return jnp.asarray(mask)
        masks, rows = available(inner), []
        for agent, exists in zip(self.agents, mask, strict=True):
            choices, indices = jnp.ravel(masks[agent]) > 0, np.flatnonzero(exists)
            choices = jnp.pad(choices, (0, len(indices) - choices.size), constant_values=True)
            # An agent without any available action may take any: it has no effect.
            rows.append(jnp.zeros(len(exists), bool).at[indices].set(choices | ~choices.any()))
        return jnp.stack(rows)

    def _at_limit(self, inner: Any, reward: Array, info: Mapping[str, Any]) -> Bool[Array, ""]:
        """Whether an episode that ends now is truncated by the clock."""
        if "truncation" in info:
            return jnp.asarray(info["truncation"]).any()
        if not self.inspection.has_clock:
            return jnp.zeros((), bool)
        late = find_field(inner, "step") >= self.env.max_steps
        return late & ~self._ended_anyway(inner, reward, info)

    def _ended_anyway(self, inner: Any, reward: Array, info: Mapping[str, Any]) -> Bool[Array, ""]:
        """Whether the episode would have ended without the clock, where that is known."""
        if (alive := find_field(inner, "unit_alive")) is not None:
            ours, theirs = self._sides(alive)
            return ~(ours & theirs)
        if "TimeO" in info:
            return ~jnp.asarray(info["TimeO"], bool).any()
        if type(self.env).__name__ == "SwitchRiddle":
            return (reward != 0).any()
        return jnp.zeros((), bool)

    def _sides(self, alive: Array) -> tuple[Array, Array]:
        """SMAX: whether any ally, and any enemy, is alive."""
        n = self.env.num_allies
        return alive[:n].any(), alive[n:].any()

    def _victory(self, inner: Any) -> dict[str, Array]:
        """SMAX: whether the battle is `won`."""
        if (alive := find_field(inner, "unit_alive")) is None:
            return {}
        ours, theirs = self._sides(alive)
        return {"won": ours & ~theirs}

    @cached_property
    def _reported_metrics(self) -> tuple[str, ...]:
        if self.metric_names:
            return self.metric_names
        # A battle can be won where the team is one of SMAX's two sides.
        battle = find_field(self.inspection.first[0], "unit_alive") is not None
        return ("won",) if battle and len(self.agents) == self.env.num_allies else ()


def make_env(name: str, variant: str = VARIANT) -> JaxMarl:
    """An environment by name and options, as in `default:reward=sum,env.num_agents=3`.

    `env.scenario=3m` names a map of SMAX, `env.layout=coord_ring` a layout of overcooked.
    """
    return JaxMarl.read(name, variant)
