"""Probe tasks: tiny cooperative tasks with known optima, to test the whole pipeline.

| task      | requires                                  | best return | without observations |
|-----------|-------------------------------------------|-------------|----------------------|
| `value`   | nothing; the value is known               | 0           | 0                    |
| `credit`  | an action rewarded two steps later        | 1           | 1/2                  |
| `roles`   | different behaviour at equal observations | 1           | 19/27 at random      |
| `memory`  | a cue observed two steps ago              | 1           | 1/2                  |
| `unequal` | agents of unequal sizes                   | 1           | 13/36                |
| `target`  | continuous actions of unequal sizes       | 0           | -0.21                |

All have three agents. Every agent receives the team's reward.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.errors import SettingError, nearest
from fp3o.spec import Box, Discrete, EnvSpec

NUM_AGENTS = 3


class Cue(NamedTuple):
    """State of a probe: the cue of the episode, the score so far, the time."""

    shown: Float[Array, "n f"]
    score: Float[Array, ""]
    time: Int[Array, ""]


@dataclass(frozen=True)
class Probe(Env):
    """Every agent observes a cue, the action of one step is scored, the reward comes at the end.

    Agent `i` observes `sizes[i]` numbers: one of them is 1, and the right choice is its index. For
    a single number, the right choice is its sign.
    """

    name: str
    sizes: tuple[int, ...]
    choices: tuple[int, ...]
    max_episode_steps: int = 1
    shown_at: int = 0
    scored_at: int = 0
    truncates: bool = False

    @property
    def width(self) -> int:
        """Length of the padded cue."""
        return max(1, *self.sizes)

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the padded task."""
        width, types = self.width + 1, tuple(range(NUM_AGENTS))
        actions = Discrete(tuple((c,) for c in self.choices))
        alike = len({*zip(self.sizes, self.choices, strict=True)}) == 1
        return EnvSpec(
            f"probe/{self.name}", actions, width, NUM_AGENTS * width,
            (0,) * NUM_AGENTS if alike else types, self.truncates,
        )  # fmt: skip

    def reset(self, key: PRNGKeyArray) -> Cue:
        """Draw a cue for every agent."""
        sizes = jnp.asarray(self.sizes)
        index = jax.random.randint(key, (NUM_AGENTS,), 0, jnp.maximum(sizes, 2))
        one_hot = jax.nn.one_hot(index, self.width)
        sign = jnp.zeros_like(one_hot).at[:, 0].set(2.0 * index - 1.0)
        shown = jnp.where((sizes == 1)[:, None], sign, one_hot)
        return Cue(shown * (sizes > 0)[:, None], jnp.zeros(()), jnp.zeros((), int))

    def step(self, state: Cue, action: Int[Array, "n 1"], key: PRNGKeyArray):
        """Score the action of one step; the score is the reward of the last one."""
        score = jnp.where(state.time == self.scored_at, self.score(state, action), state.score)
        ended = state.time == self.max_episode_steps - 1
        reward = jnp.full(NUM_AGENTS, jnp.where(ended, score, 0.0))
        truncated = ended & self.truncates
        return Cue(state.shown, score, state.time + 1), reward, ended & ~truncated, truncated

    def score(self, state: Cue, action: Int[Array, "n 1"]) -> Float[Array, ""]:
        """The share of agents that make the right choice."""
        single = jnp.asarray(self.sizes) == 1
        wanted = jnp.where(single, state.shown[:, 0] > 0, state.shown.argmax(-1))
        return (action[:, 0] == wanted).mean()

    def observe(self, state: Cue) -> Observation:
        """The cue while it is visible, and the time."""
        time = jnp.full((NUM_AGENTS, 1), state.time / self.max_episode_steps)
        obs = jnp.concatenate([state.shown * (state.time == self.shown_at), time], axis=1)
        team = jnp.concatenate([state.shown, time], axis=1).reshape(-1)
        everyone = jnp.ones(NUM_AGENTS, bool)
        mask = jnp.asarray(self.spec.actions.mask)
        return Observation(obs, jnp.tile(team, (NUM_AGENTS, 1)), mask, everyone)


@dataclass(frozen=True)
class Value(Probe):
    """The reward is agent 0's cue, whatever the actions: V is known at every step."""

    def score(self, state: Cue, action: Int[Array, "n 1"]) -> Float[Array, ""]:
        """The cue of agent 0."""
        return state.shown[0, 0]


@dataclass(frozen=True)
class Roles(Probe):
    """There is no cue; the team is rewarded for the number of different choices it makes."""

    def score(self, state: Cue, action: Int[Array, "n 1"]) -> Float[Array, ""]:
        """Different choices / agents."""
        first_with_it = (action == action[:, 0]).argmax(0)
        return (first_with_it == jnp.arange(NUM_AGENTS)).mean()


@dataclass(frozen=True)
class Target(Env):
    """Each agent observes a point of its own dimension, and its action should equal it."""

    name: str = "target"
    sizes: tuple[int, ...] = (1, 1, 2)
    max_episode_steps = 1

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the padded task."""
        width = max(self.sizes)
        return EnvSpec(f"probe/{self.name}", Box(self.sizes), width, NUM_AGENTS * width, (0, 0, 1))

    def reset(self, key: PRNGKeyArray) -> Float[Array, "n a"]:
        """Draw the points from [-0.8, 0.8]."""
        mask = jnp.asarray(self.spec.actions.mask)
        points = jax.random.uniform(key, mask.shape, minval=-0.8, maxval=0.8)
        return jnp.where(mask, points, 0.0)

    def step(self, state: Array, action: Float[Array, "n a"], key: PRNGKeyArray):
        """Minus the mean squared error over the dimensions that exist; one step per episode."""
        mask = jnp.asarray(self.spec.actions.mask)
        error = jnp.where(mask, jnp.square(action - state), 0.0).sum() / mask.sum()
        yes = jnp.ones((), bool)
        return state, jnp.full(NUM_AGENTS, -error), yes, ~yes

    def observe(self, state: Array) -> Observation:
        """The point."""
        team = jnp.tile(state.reshape(-1), (NUM_AGENTS, 1))
        everyone = jnp.ones(NUM_AGENTS, bool)
        return Observation(state, team, jnp.asarray(self.spec.actions.mask), everyone)


PROBES: dict[str, Probe | Target] = {
    "value": Value("value", (1, 1, 1), (2, 2, 2), max_episode_steps=2),
    "credit": Probe("credit", (1, 1, 1), (2, 2, 2), max_episode_steps=3),
    "roles": Roles("roles", (0, 0, 0), (3, 3, 3)),
    "memory": Probe("memory", (1, 1, 1), (2, 2, 2), max_episode_steps=3, scored_at=2),
    "unequal": Probe("unequal", (2, 3, 4), (2, 3, 4)),
    "target": Target(),
}
"""The tasks by name."""


def probe(name: str) -> Probe | Target:
    """A probe by its name."""
    if name not in PROBES:
        raise SettingError(f"unknown probe {name!r}: {nearest(name, PROBES)}")
    return PROBES[name]
