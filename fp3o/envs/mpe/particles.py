"""Base of the particle tasks: rules of both variants, physics, the environment."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.adjacency import complete_graph
from fp3o.envs.api import Env, Observation
from fp3o.spec import Discrete, EnvSpec

EPISODE_STEPS = 25

DT, DAMPING, PUSH = 0.1, 0.25, 5.0

STIFFNESS, CONTACT_MARGIN = 100.0, 1e-3

MOVES, LANDMARKS = 5, 3

NONE = -1
"""The message of a silent agent, and the goal of an agent without one."""

Points = TypeVar("Points", Array, np.ndarray)

MovesAndMessages = tuple[Int[Array, " n"], Int[Array, " n"]]
"""The move and the message of each agent."""


@dataclass(frozen=True)
class ParticleRules:
    """Rules in which the variants of a task differ; the defaults are those of `paper`."""

    forward: tuple[int, int] = (1, 3)
    """The moves that push along +x and +y."""
    backward: tuple[int, int] = (2, 4)
    """The moves that push along -x and -y."""
    lagged: bool = False
    """Whether positions advance by the velocity before the push instead of the one after it."""
    joint: bool = False
    """Whether a move and a message are one choice, `move + 5·message`, instead of two
    sub-actions."""
    reach: float = 0.8
    """Landmarks are drawn from [-reach, reach]²."""
    squared: bool = True
    """Whether the distance from a goal is squared."""
    self_touch: float = 1.0
    """Penalty of an agent for colliding with itself, at every step."""
    own: float = 0.0
    team: float = 1.0
    """The reward of agent i is `own·r_i + team·Σ_j r_j`."""
    truncates: bool = False
    """Whether the last step truncates the episode instead of terminating it."""


PAPER_RULES = ParticleRules()

MPE2_RULES = ParticleRules(
    forward=(2, 4), backward=(1, 3), lagged=True, joint=True, reach=1.0, squared=False,
    self_touch=0.0, own=0.5, team=0.0, truncates=True,
)  # fmt: skip


MOVE_NAMES = ("right", "up", "left", "down")
"""Forward along x and y, then backward."""


class ParticleState(NamedTuple):
    """Positions and velocities, messages, landmarks, goals and the time."""

    position: Float[Array, "n 2"]
    velocity: Float[Array, "n 2"]
    message: Int[Array, " n"]
    """Message of each agent in the last step, -1 for none."""
    landmarks: Float[Array, "3 2"]
    goal: Int[Array, " n"]
    """The landmark that each agent has to reach, -1 for none."""
    time: Int[Array, ""]


def advance(
    position: Points, velocity: Points, force: Points | float, lagged: bool
) -> tuple[Points, Points]:
    """One step of free particles: v' = (1 - damping)·v + dt·force, x' = x + dt·v' (lagged: v)."""
    after = (1.0 - DAMPING) * velocity + DT * force
    return position + DT * (velocity if lagged else after), after


def push(move: Int[Array, " n"], rules: ParticleRules) -> Float[Array, "n 2"]:
    """The force of a move: along one axis, or none."""
    forward = move[:, None] == jnp.asarray(rules.forward)
    backward = move[:, None] == jnp.asarray(rules.backward)
    return jnp.where(forward, PUSH, jnp.where(backward, -PUSH, 0.0))


def contact_force(gap: Float[Array, "*n 2"], reach: float) -> Float[Array, "*n 2"]:
    """The repulsion of two discs whose radii add up to `reach`.

    stiffness · depth along the gap, depth = margin · softplus((reach - distance) / margin).
    """
    distance = norm(gap)
    depth = CONTACT_MARGIN * jax.nn.softplus((reach - distance) / CONTACT_MARGIN)
    return gap * (STIFFNESS * depth / jnp.maximum(distance, 1e-6))[..., None]


def squared_norm(vector: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
    """|vector|², written out: a sum over an axis of two would be compiled to a loop."""
    return vector[..., 0] * vector[..., 0] + vector[..., 1] * vector[..., 1]


def norm(vector: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
    """|vector|."""
    return jnp.sqrt(squared_norm(vector))


def goal_positions(state: ParticleState) -> Float[Array, "n 2"]:
    """The position of each agent's goal; without a goal, the last landmark."""
    first, second, third = state.landmarks
    goal = state.goal[:, None]
    return jnp.where(goal == 0, first, jnp.where(goal == 1, second, third))


def relative_landmarks(state: ParticleState) -> Float[Array, "n 6"]:
    """The landmarks relative to each agent."""
    return state.landmarks.reshape(-1) - jnp.tile(state.position, LANDMARKS)


@dataclass(frozen=True)
class ParticleEnv(Env):
    """Base class of the particle tasks: time limit, rewards, observations of the whole team."""

    variant: str = "paper"
    max_episode_steps = EPISODE_STEPS
    renderable = True

    name: ClassVar[str]
    rules_of: ClassVar[dict[str, ParticleRules]]
    """The rules of each variant."""
    choices: ClassVar[tuple[tuple[int, ...], ...]]
    """Number of choices of each agent in each sub-action."""
    obs_sizes: ClassVar[tuple[int, ...]]
    """Length of each agent's observation, before padding."""
    agent_types: ClassVar[tuple[int, ...]]
    agents: ClassVar[tuple[str, ...]] = ()
    """Names of the agents, as in the original environments; empty: `agent_0` and so on."""
    moving: ClassVar[tuple[bool, ...]]
    """Whether each agent moves; the others only speak."""
    has_goal: ClassVar[tuple[bool, ...]]
    """Whether each agent has a landmark to reach."""
    radius: ClassVar[float]
    observed: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """The agents that each agent sees or hears; empty: all others."""
    solid: ClassVar[bool] = False
    """Whether agents repel each other, and are penalised for collisions."""

    @property
    def rules(self) -> ParticleRules:
        """The rules of this variant."""
        return self.rules_of[self.variant]

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the padded task."""
        tail = "" if self.variant == "paper" else f":{self.variant}"
        joint = tuple((int(np.prod(sizes)),) for sizes in self.choices)
        return EnvSpec(
            f"mpe/{self.name}{tail}", Discrete(joint if self.rules.joint else self.choices),
            max(self.obs_sizes), sum(self.obs_sizes), self.agent_types, self.rules.truncates,
            reward_sum_over=1 if self.rules.own else len(self.agent_types),
            adjacency=self.observed or complete_graph(len(self.agent_types)),
            agents=self.agents, obs_sizes=self.obs_sizes, action_names=self._action_names,
        )  # fmt: skip

    @property
    def _action_names(self) -> tuple[tuple[str, ...], ...]:
        """Moves, messages, or pairs of both, of every agent."""
        directions = dict(zip((*self.rules.forward, *self.rules.backward), MOVE_NAMES, strict=True))
        moves = ("stay", *(directions[move] for move in range(1, MOVES)))
        rows = []
        for sizes, moving in zip(self.choices, self.moving, strict=True):
            messages = tuple(f"message {m}" for m in range(sizes[-1]))
            alone, both = moves if moving else messages, moves + messages
            if self.rules.joint:
                both = tuple(f"{move}, {message}" for message in messages for move in moves)
            rows.append(alone if len(sizes) == 1 else both)
        return tuple(rows)

    def reset(self, key: PRNGKeyArray) -> ParticleState:
        """Draw agents from [-1, 1]², landmarks and goals; agents are at rest and silent."""
        n, m = len(self.agent_types), LANDMARKS
        # One draw for all: every step of a batch resets, and drawing is most of its cost.
        numbers = 2 * (n + m) + sum(self.has_goal)
        drawn = jax.random.uniform(key, (numbers,), minval=-1.0, maxval=1.0)
        picks = iter((0.5 * m * (drawn[2 * (n + m) :] + 1.0)).astype(int))
        goal = [next(picks) if seeks else jnp.full((), NONE) for seeks in self.has_goal]
        return ParticleState(
            drawn[: 2 * n].reshape(n, 2), jnp.zeros((n, 2)), jnp.full(n, NONE),
            self.rules.reach * drawn[2 * n : 2 * (n + m)].reshape(m, 2),
            jnp.stack(goal), jnp.zeros((), int),
        )  # fmt: skip

    def step(self, state: ParticleState, action: Int[Array, "n d"], key: PRNGKeyArray):
        """Push, move and send messages; the rewards depend on the new positions."""
        (move, message), rules = self.split_action(action), self.rules
        force = push(move, rules) + self.contact_forces(state)
        position, velocity = advance(state.position, state.velocity, force, rules.lagged)
        fixed = state.landmarks, state.goal
        new = ParticleState(position, velocity, message, *fixed, state.time + 1)
        each, ended = self.own_rewards(new), new.time >= EPISODE_STEPS
        reward = rules.own * each + rules.team * each.sum()
        return new, reward, ended & (not rules.truncates), ended & rules.truncates

    def observe(self, state: ParticleState) -> Observation:
        """Each agent's observation; the state is all of them concatenated."""
        obs, n = self.observations(state), len(self.agent_types)
        team = jnp.concatenate([obs[i, :size] for i, size in enumerate(self.obs_sizes)])
        action_mask = jnp.asarray(self.spec.actions.mask)
        return Observation(
            obs, jnp.broadcast_to(team, (n, team.size)), action_mask, jnp.ones(n, bool)
        )

    def render(self, state: ParticleState, caption: str) -> np.ndarray:
        """The plane from above."""
        from fp3o.envs.mpe.render import render_particles  # imports matplotlib

        return render_particles(self, state, caption)

    def contact_forces(self, state: ParticleState) -> Float[Array, "n 2"] | float:
        """Forces between agents; none where they pass through each other."""
        return 0.0

    def split_action(self, action: Int[Array, "n d"]) -> MovesAndMessages:
        """The moves and messages of an action."""
        raise NotImplementedError

    def join_action(self, move: Int[Array, " n"], message: Int[Array, " n"]) -> Int[Array, "n d"]:
        """The action with these moves and messages; the inverse of `split_action`."""
        raise NotImplementedError

    def own_rewards(self, state: ParticleState) -> Float[Array, " n"]:
        """The individual reward r_i of each agent."""
        raise NotImplementedError

    def observations(self, state: ParticleState) -> Float[Array, "n f"]:
        """The observation of each agent, padded with zeros."""
        raise NotImplementedError
