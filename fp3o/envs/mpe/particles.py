"""What the particle tasks share: the rules that versions differ in, the physics, the game."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.spec import Discrete, EnvSpec

LENGTH = 25
"""Steps of an episode."""

DT, DAMPING, PUSH = 0.1, 0.25, 5.0

STIFFNESS, MARGIN = 100.0, 1e-3

MOVES, LANDMARKS = 5, 3

NONE = -1
"""The word of the silent, the goal of those that have none."""

Points = TypeVar("Points", Array, np.ndarray)

Choices = tuple[Int[Array, " n"], Int[Array, " n"]]
"""The move and the word of each agent."""


@dataclass(frozen=True)
class Rules:
    """What the versions of a task disagree on; the defaults are the paper's."""

    forth: tuple[int, int] = (1, 3)
    """The moves that push along +x and +y."""
    back: tuple[int, int] = (2, 4)
    """The moves that push along -x and -y."""
    lagged: bool = False
    """Whether a position advances by the velocity before the push, not by the one after it."""
    joint: bool = False
    """Whether a move and a word are one choice, `move + 5·word`, not two sub-actions."""
    reach: float = 0.8
    """Landmarks are drawn from [-reach, reach]²."""
    squared: bool = True
    """Whether the distance from a goal counts squared."""
    self_touch: float = 1.0
    """Fine of an agent for touching itself, at every step."""
    own: float = 0.0
    team: float = 1.0
    """Agent i is paid `own·r_i + team·Σ_j r_j`."""
    truncates: bool = False
    """Whether the last step cuts the episode, not ends it."""


PAPER = Rules()

MPE2 = Rules(
    forth=(2, 4), back=(1, 3), lagged=True, joint=True, reach=1.0, squared=False, self_touch=0.0,
    own=0.5, team=0.0, truncates=True,
)  # fmt: skip


class Particles(NamedTuple):
    """Where everything is."""

    position: Float[Array, "n 2"]
    velocity: Float[Array, "n 2"]
    message: Int[Array, " n"]
    """The word each agent said in the last step, -1 for none."""
    landmarks: Float[Array, "3 2"]
    goal: Int[Array, " n"]
    """The landmark each agent is to reach, -1 for none of its own."""
    time: Int[Array, ""]


def advance(
    position: Points, velocity: Points, force: Points | float, lagged: bool
) -> tuple[Points, Points]:
    """One step of free particles: v' = (1 - damping)·v + dt·force, x' = x + dt·v' (lagged: v)."""
    faster = (1.0 - DAMPING) * velocity + DT * force
    return position + DT * (velocity if lagged else faster), faster


def push(move: Int[Array, " n"], rules: Rules) -> Float[Array, "n 2"]:
    """The force of a move: one axis, one direction, or none."""
    forth = move[:, None] == jnp.asarray(rules.forth)
    back = move[:, None] == jnp.asarray(rules.back)
    return jnp.where(forth, PUSH, jnp.where(back, -PUSH, 0.0))


def contact(gap: Float[Array, "*n 2"], reach: float) -> Float[Array, "*n 2"]:
    """The force that drives apart two discs whose radii add up to `reach`.

    stiffness · depth along the gap, depth = margin · softplus((reach - distance) / margin).
    """
    distance = length(gap)
    depth = MARGIN * jax.nn.softplus((reach - distance) / MARGIN)
    return gap * (STIFFNESS * depth / jnp.maximum(distance, 1e-6))[..., None]


def square(vector: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
    """|vector|², written out: a sum over an axis of two would be a loop of its own."""
    return vector[..., 0] * vector[..., 0] + vector[..., 1] * vector[..., 1]


def length(vector: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
    """|vector|."""
    return jnp.sqrt(square(vector))


def targets(state: Particles) -> Float[Array, "n 2"]:
    """Where the goal of each agent lies; without a goal, the last landmark."""
    first, second, third = state.landmarks
    goal = state.goal[:, None]
    return jnp.where(goal == 0, first, jnp.where(goal == 1, second, third))


def around(state: Particles) -> Float[Array, "n 6"]:
    """The landmarks as each agent sees them from where it is."""
    return state.landmarks.reshape(-1) - jnp.tile(state.position, LANDMARKS)


@dataclass(frozen=True)
class Particle(Env):
    """What the tasks share: the clock, who is paid what, how a team's sight is put together."""

    variant: str = "paper"
    max_episode_steps = LENGTH
    renderable = True

    name: ClassVar[str]
    versions: ClassVar[dict[str, Rules]]
    """The rules of each variant."""
    choices: ClassVar[tuple[tuple[int, ...], ...]]
    """Choices of each agent in each sub-action."""
    obs_sizes: ClassVar[tuple[int, ...]]
    """Numbers each agent sees, before padding."""
    kinds: ClassVar[tuple[int, ...]]
    seekers: ClassVar[tuple[bool, ...]]
    """Agents with a landmark of their own to reach."""
    radius: ClassVar[float]
    """Of an agent."""
    solid: ClassVar[bool] = False
    """Whether agents that touch push each other apart, and are fined."""

    @property
    def rules(self) -> Rules:
        """The rules of this version."""
        return self.versions[self.variant]

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the padded task."""
        tail = "" if self.variant == "paper" else f":{self.variant}"
        joint = tuple((int(np.prod(sizes)),) for sizes in self.choices)
        return EnvSpec(
            f"mpe/{self.name}{tail}", Discrete(joint if self.rules.joint else self.choices),
            max(self.obs_sizes), sum(self.obs_sizes), self.kinds, self.rules.truncates,
            self.shares,
        )  # fmt: skip

    @property
    def shares(self) -> int:
        """Agents whose own rewards are added up in each reward; an agent's part is 1/shares."""
        return 1 if self.rules.own else len(self.kinds)

    def reset(self, key: PRNGKeyArray) -> Particles:
        """Draw agents from [-1, 1]², landmarks and goals; all rest and are silent."""
        n, m = len(self.kinds), LANDMARKS
        # One draw for all: every step of a batch resets, and drawing is most of its cost.
        numbers = 2 * (n + m) + sum(self.seekers)
        drawn = jax.random.uniform(key, (numbers,), minval=-1.0, maxval=1.0)
        picks = iter((0.5 * m * (drawn[2 * (n + m) :] + 1.0)).astype(int))
        goal = [next(picks) if seeks else jnp.full((), NONE) for seeks in self.seekers]
        return Particles(
            drawn[: 2 * n].reshape(n, 2), jnp.zeros((n, 2)), jnp.full(n, NONE),
            self.rules.reach * drawn[2 * n : 2 * (n + m)].reshape(m, 2),
            jnp.stack(goal), jnp.zeros((), int),
        )  # fmt: skip

    def step(self, state: Particles, action: Int[Array, "n d"], key: PRNGKeyArray):
        """Push, move and speak; pay for where everyone is then."""
        (move, word), rules = self.read(action), self.rules
        force = push(move, rules) + self.contacts(state)
        position, velocity = advance(state.position, state.velocity, force, rules.lagged)
        new = Particles(position, velocity, word, state.landmarks, state.goal, state.time + 1)
        each, ended = self.judge(new), new.time >= LENGTH
        reward = rules.own * each + rules.team * each.sum()
        return new, reward, ended & (not rules.truncates), ended & rules.truncates

    def observe(self, state: Particles) -> Observation:
        """What each agent sees; the state is all of it in one row."""
        obs, n = self.observations(state), len(self.kinds)
        team = jnp.concatenate([obs[i, :size] for i, size in enumerate(self.obs_sizes)])
        action_mask = jnp.asarray(self.spec.actions.mask)
        return Observation(
            obs, jnp.broadcast_to(team, (n, team.size)), action_mask, jnp.ones(n, bool)
        )

    def render(self, state: Particles, caption: str) -> np.ndarray:
        """The plane from above."""
        from fp3o.envs.mpe.render import picture  # imports matplotlib

        return picture(self, state, caption)

    def contacts(self, state: Particles) -> Float[Array, "n 2"] | float:
        """Forces between agents; none where they pass through each other."""
        return 0.0

    def read(self, action: Int[Array, "n d"]) -> Choices:
        """The moves and words of an action."""
        raise NotImplementedError

    def write(self, move: Int[Array, " n"], word: Int[Array, " n"]) -> Int[Array, "n d"]:
        """The action of moves and words; `read` backwards."""
        raise NotImplementedError

    def judge(self, state: Particles) -> Float[Array, " n"]:
        """What each agent earns by itself, r_i."""
        raise NotImplementedError

    def observations(self, state: Particles) -> Float[Array, "n f"]:
        """What each agent sees, padded with zeros."""
        raise NotImplementedError
