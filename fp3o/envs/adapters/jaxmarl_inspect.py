"""Sizes of a JaxMARL environment, found by tracing its reset and inspecting its spaces."""

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fp3o.envs.adapters.jax_common import flat
from fp3o.envs.adapters.jaxmarl_library import find_field
from fp3o.errors import SettingError
from fp3o.spec import Box, Discrete


@dataclass(frozen=True, eq=False)
class JaxMarlInspection:
    """The agents, spaces and state of a JaxMARL environment."""

    name: str
    env: Any

    @cached_property
    def agents(self) -> list[Any]:
        """The names of the agents."""
        return [*self.env.agents]

    def obs_row(self, agent: Any, obs: Any) -> Float[Array, " f"]:
        """An observation as a vector; a single choice is one-hot encoded."""
        space = self.env.observation_space(agent)
        if jnp.ndim(obs) == 0 and type(space).__name__ == "Discrete":
            return jax.nn.one_hot(obs, space.n)
        return flat(obs)

    def team_state(self, inner: Any, obs: Any) -> Float[Array, "*n f"]:
        """The world state, of the team or per agent; without one, all observations."""
        if "world_state" in obs:
            world = obs["world_state"]
        elif hasattr(self.env, "get_world_state"):
            world = self.env.get_world_state(inner)
        else:
            return jnp.concatenate([self.obs_row(a, obs[a]) for a in self.agents])
        if isinstance(world, Mapping):
            return stack_padded([flat(world[a]) for a in self.agents])
        per_agent = world.ndim > 1 and len(world) == len(self.agents)
        return stack_padded([*map(flat, world)]) if per_agent else flat(world)

    @cached_property
    def first(self) -> tuple[Any, Any, dict[Any, int]]:
        """Shapes of the first state and critic input, and sizes of the observations by agent."""
        env = self.env  # made before anything is traced: modules that it imports make arrays

        def reset(key: Array) -> tuple[Any, Array, dict[Any, Array]]:
            obs, inner = env.reset(key)
            if not (isinstance(obs, Mapping) and {*self.agents} <= {*obs}):
                raise SettingError(f"{self.name} does not give observations by agent")
            rows = {a: self.obs_row(a, obs[a]) for a in self.agents}
            return inner, self.team_state(inner, obs), rows

        inner, team, rows = jax.eval_shape(reset, jnp.zeros(2, jnp.uint32))
        return inner, team, {a: x.size for a, x in rows.items()}

    @cached_property
    def action_spaces(self) -> list[Any]:
        """The action space of every agent."""
        # They are kept, so they must not contain tracers.
        with jax.ensure_compile_time_eval():
            return [self.env.action_space(a) for a in self.agents]

    @cached_property
    def actions(self) -> Discrete | Box:
        """The actions of the team."""
        spaces = self.action_spaces
        names = {type(space).__name__ for space in spaces}
        if names == {"Box"}:
            return Box(tuple(math.prod(space.shape) for space in spaces))
        if not names <= {"Discrete", "MultiDiscrete"}:
            raise SettingError(
                f"{self.name} has action spaces {', '.join(sorted(names))}; supported are all Box, "
                "or Discrete and MultiDiscrete"
            )
        sizes = [_choices(space) for space in spaces]
        most = max(map(len, sizes))
        return Discrete(tuple(own + (1,) * (most - len(own)) for own in sizes))

    @cached_property
    def agent_types(self) -> tuple[int, ...]:
        """Agents with equal sizes and equal names, numbers aside, are of one type."""
        obs_sizes, sizes = self.first[2], self.actions.sizes
        marks = [
            (str(a).rstrip("0123456789"), obs_sizes[a], sizes[i]) for i, a in enumerate(self.agents)
        ]
        order = list(dict.fromkeys(marks))
        return tuple(map(order.index, marks))

    @cached_property
    def available_actions(self) -> Callable[[Any], Any] | None:
        """The function that returns the available actions of a state, if there is one."""
        if isinstance(self.actions, Box):
            return None
        for name in ("get_avail_actions", "get_legal_moves"):
            function = getattr(self.env, name, None)
            with contextlib.suppress(NotImplementedError):
                if function is not None and jax.eval_shape(function, self.first[0]) is not None:
                    return function
        return None

    @cached_property
    def has_clock(self) -> bool:
        """Whether there is a limit on the steps and the state counts them."""
        limited = getattr(self.env, "max_steps", None) is not None
        return limited and find_field(self.first[0], "step") is not None


def stack_padded(rows: list[Array]) -> Float[Array, "n f"]:
    """Stack vectors of unequal lengths, padded with zeros."""
    width = max(x.size for x in rows)
    return jnp.stack([jnp.pad(x, (0, width - x.size)) for x in rows])


def decode_action(space: Any, action: Array) -> Array:
    """An agent's action as an element of its space."""
    if type(space).__name__ == "Box":
        inside = action[: math.prod(space.shape)].reshape(space.shape)
        return jnp.clip(inside, space.low, space.high).astype(space.dtype)
    if type(space).__name__ == "Discrete":
        return action[0].astype(space.dtype)
    return action[: space.shape[0]].astype(space.dtype)


def _choices(space: Any) -> tuple[int, ...]:
    if type(space).__name__ == "Discrete":
        return (int(space.n),)
    return tuple(np.asarray(space.num_categories).tolist())
