"""Radio tasks: agents with mixed actions, who choose a channel and steer.

| task    | agents                                                                        |
|---------|-------------------------------------------------------------------------------|
| `guide` | one knows the goal and chooses a channel; the other one hears it and steers   |
| `pair`  | both know the other's goal, choose a channel and steer at the same time       |

"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.envs.task import Baseline
from fp3o.spec import Box, Discrete, EnvSpec, Mixed

RADIO = "radio"
"""The family."""

BEACONS = np.array([(-0.7, 0.7), (0.7, 0.7), (-0.7, -0.7), (0.7, -0.7)], np.float32)
NUM_CHANNELS = len(BEACONS)

MAX_SPEED, REACHED = 0.2, 0.15
"""Longest move per step in x and in y; distance from a goal at which it is reached."""

SILENCE = -1
"""Heard before the first step, and by an agent whose partner has no radio."""


class RadioState(NamedTuple):
    """Positions, goals, the channels heard at the last step, and the time."""

    position: Float[Array, "2 2"]
    goal: Int[Array, " 2"]
    heard: Int[Array, " 2"]
    time: Int[Array, ""]


@dataclass(frozen=True)
class RadioEnv(Env):
    """Two agents; each has a radio, a vehicle or both."""

    name: str
    speaks: tuple[bool, bool]
    moves: tuple[bool, bool]
    agents: tuple[str, str]
    max_episode_steps = 20
    renderable = True

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the task; an agent without a radio or without a vehicle has shorter arrays."""
        channels = tuple(f"channel {c}" for c in range(NUM_CHANNELS))
        sizes = tuple(NUM_CHANNELS * s + (2 + NUM_CHANNELS) * m for s, m in self._abilities)
        names = [(channels if s else ("no choice",)) + ("x", "y") * m for s, m in self._abilities]
        choices = Discrete(tuple((NUM_CHANNELS if s else 1,) for s in self.speaks))
        return EnvSpec(
            f"{RADIO}/{self.name}",
            Mixed(choices, Box(tuple(2 * m for m in self.moves))),
            obs_size=max(sizes),
            state_size=sum(sizes),
            agent_types=(0, int(self._abilities[0] != self._abilities[1])),
            truncates=True,
            episode_metrics=("won",),
            agents=self.agents,
            obs_sizes=sizes,
            action_names=tuple(names),
        )

    @property
    def _abilities(self) -> tuple[tuple[bool, bool], ...]:
        """Whether each agent speaks, and whether it moves."""
        return tuple(zip(self.speaks, self.moves, strict=True))

    def reset(self, key: PRNGKeyArray) -> RadioState:
        """Vehicles start near the centre."""
        position_key, goal_key = jax.random.split(key)
        position = jax.random.uniform(position_key, (2, 2), minval=-0.3, maxval=0.3)
        goal = jax.random.randint(goal_key, (2,), 0, NUM_CHANNELS)
        return RadioState(position, goal, jnp.full(2, SILENCE), jnp.zeros((), int))

    def step(self, state: RadioState, action: Float[Array, "2 3"], key: PRNGKeyArray):
        """The channels are heard by the other agent after the step."""
        heard = jnp.where(jnp.asarray(self.speaks), action[:, 0].astype(int), SILENCE)[::-1]
        move = jnp.asarray(self.moves)[:, None] * jnp.clip(action[:, 1:], -1.0, 1.0)
        position = jnp.clip(state.position + MAX_SPEED * move, -1.0, 1.0)
        after = RadioState(position, state.goal, heard.astype(state.goal.dtype), state.time + 1)
        reward = -jnp.mean(self.distances(after), where=jnp.asarray(self.moves))
        ended = after.time >= self.max_episode_steps
        return after, jnp.full(2, reward), jnp.zeros((), bool), ended

    def observe(self, state: RadioState) -> Observation:
        """Speakers: the other's goal. Vehicles: their position and what they hear."""
        rows = []
        for i, (speaks, moves) in enumerate(self._abilities):
            goal = jax.nn.one_hot(state.goal[1 - i], NUM_CHANNELS)
            heard = jax.nn.one_hot(state.heard[i], NUM_CHANNELS)
            rows.append(jnp.concatenate([goal] * speaks + [state.position[i], heard] * moves))
        width = max(map(len, rows))
        obs = jnp.stack([jnp.pad(row, (0, width - len(row))) for row in rows])
        team = jnp.tile(jnp.concatenate(rows), (2, 1))
        return Observation(obs, team, jnp.asarray(self.spec.actions.mask), jnp.ones(2, bool))

    def episode_metrics(self, state: RadioState) -> Float[Array, " 1"]:
        """Whether all vehicles are at their goals."""
        reached = (self.distances(state) < REACHED) | ~jnp.asarray(self.moves)
        return reached.all().astype(float)[None]

    def distances(self, state: RadioState) -> Float[Array, " 2"]:
        """Distance of each agent from its goal."""
        return jnp.linalg.norm(state.position - jnp.asarray(BEACONS)[state.goal], axis=-1)

    def render(self, state: RadioState, caption: str) -> np.ndarray:
        """Beacons, vehicles and the channels that they hear."""
        from fp3o.envs.toys.render import render_radio

        return render_radio(self, state, caption)


@dataclass(frozen=True)
class Driver:
    """Each agent names the other's goal and steers to its own, or to the centre if not `informed`.

    `noise`: channels and directions are random instead.
    """

    env: RadioEnv
    informed: bool = True
    noise: bool = False

    def __call__(self, state: RadioState, key: PRNGKeyArray) -> Float[Array, "2 3"]:
        """Choices, then directions."""
        first, second = jax.random.split(key)
        speaks = jnp.asarray(self.env.speaks)
        channel = state.goal[::-1] * self.informed
        goal = jnp.asarray(BEACONS)[state.goal] * self.informed
        move = jnp.clip((goal - state.position) / MAX_SPEED, -1.0, 1.0)
        if self.noise:
            channel = jax.random.randint(first, (2,), 0, NUM_CHANNELS)
            move = jax.random.uniform(second, (2, 2), minval=-1.0, maxval=1.0)
        return jnp.concatenate([(channel * speaks)[:, None].astype(float), move], axis=1)


def radio_baselines(env: RadioEnv) -> tuple[Baseline, ...]:
    """The scripted policies of a radio task."""
    return (
        Baseline(
            "random", "random actions", "any channel and any direction, all equally likely",
            Driver(env, noise=True), role="random",
        ),
        Baseline(
            "centre", "waiting at the centre", "the best place for vehicles that hear nothing",
            Driver(env, informed=False), role="uninformed",
        ),
        Baseline(
            "oracle", "oracle", "knows all goals and drives straight to them",
            Driver(env), role="oracle",
        ),
    )  # fmt: skip


RADIO_TASKS = {
    "guide": RadioEnv("guide", (True, False), (False, True), ("guide", "vehicle")),
    "pair": RadioEnv("pair", (True, True), (True, True), ("vehicle_0", "vehicle_1")),
}
"""The tasks by name."""
