"""Pixel tasks: agents on a grid see an image around themselves, and should cover all targets.

| task             | agents, targets | grid  | image, channels last |
|------------------|-----------------|-------|----------------------|
| `pixels/cover-2` | 2               | 4 x 4 | 7 x 7 x 3            |
| `pixels/cover-3` | 3               | 5 x 5 | 9 x 9 x 3            |

An agent is in the middle of its image, which shows the whole grid. The channels are the cells
outside of the grid, the targets, and the other agents. The time follows the image. The reward of a
step is the share of the targets that are covered, divided by the number of steps of an episode.
In the variant `blind` all images are black.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.envs.rendering import AGENT_COLOURS, ALERT, EDGE, GRID, INK, PAPER, add_caption
from fp3o.envs.task import Baseline
from fp3o.spec import Discrete, EnvSpec

PIXEL_FAMILY = "pixels"

CELL_MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
"""Change of row and column per action: stay, up, down, left, right."""

IMAGE_CHANNELS = 3
CELL_PIXELS = 64
"""Size of a cell in a rendered frame."""


class Cells(NamedTuple):
    """Rows and columns of agents and targets, and the time."""

    agents: Int[Array, "n 2"]
    targets: Int[Array, "n 2"]
    time: Int[Array, ""]


@dataclass(frozen=True)
class Cover(Env):
    """As many agents as targets; agents may be in the same cell."""

    num_agents: int
    size: int
    blind: bool = False
    max_episode_steps: int = 10
    renderable = True

    @property
    def spec(self) -> EnvSpec:
        """Images of the agents; those of all agents are the state."""
        n, side = self.num_agents, 2 * self.size - 1
        image, state_image = (side, side, IMAGE_CHANNELS), (side, side, n * IMAGE_CHANNELS)
        rules = "blind" if self.blind else "default"
        return EnvSpec(
            f"{PIXEL_FAMILY}/cover-{n}:{rules}", Discrete(((len(CELL_MOVES),),) * n),
            obs_size=side * side * IMAGE_CHANNELS + 1,
            state_size=side * side * n * IMAGE_CHANNELS + 1,
            agent_types=(0,) * n, episode_metrics=("won",), image=image, state_image=state_image,
            action_names=(("stay", "up", "down", "left", "right"),) * n,
        )  # fmt: skip

    def reset(self, key: PRNGKeyArray) -> Cells:
        """Agents anywhere, targets in different cells."""
        agent_key, target_key = jax.random.split(key)
        agents = jax.random.randint(agent_key, (self.num_agents, 2), 0, self.size)
        cells = jax.random.permutation(target_key, self.size**2)[: self.num_agents]
        targets = jnp.stack([cells // self.size, cells % self.size], axis=1)
        return Cells(agents, targets, jnp.zeros((), int))

    def step(self, state: Cells, action: Int[Array, "n 1"], key: PRNGKeyArray):
        """Move, but not out of the grid; the reward is the share of covered targets."""
        moved = state.agents + jnp.asarray(CELL_MOVES)[action[:, 0]]
        state = Cells(moved.clip(0, self.size - 1), state.targets, state.time + 1)
        reward = self.covered(state).mean() / self.max_episode_steps
        ended = state.time >= self.max_episode_steps
        return state, jnp.full(self.num_agents, reward), ended, jnp.zeros((), bool)

    def covered(self, state: Cells) -> Array:
        """Which targets have an agent in their cell."""
        return (state.targets[:, None] == state.agents).all(-1).any(1)

    def observe(self, state: Cells) -> Observation:
        """The image around every agent, and the time; all images together are the state."""
        n = self.num_agents
        images = jax.vmap(self.image, (None, 0))(state, jnp.arange(n)) * (not self.blind)
        time = jnp.full((n, 1), state.time / self.max_episode_steps)
        obs = jnp.concatenate([images.reshape(n, -1), time], axis=1)
        stacked = jnp.moveaxis(images, 0, 2).reshape(-1)  # (h, w, n c)
        team = jnp.concatenate([jnp.tile(stacked, (n, 1)), time], axis=1)
        return Observation(obs, team, jnp.ones((n, len(CELL_MOVES)), bool), jnp.ones(n, bool))

    def image(self, state: Cells, agent: Int[Array, ""]) -> Float[Array, "h w c"]:
        """The grid with this agent in the middle: outside, targets, other agents."""
        side, middle = 2 * self.size - 1, self.size - 1
        # The grid in the middle of a canvas, of which the agent sees a window.
        canvas = jnp.zeros((side + middle, side + middle, IMAGE_CHANNELS)).at[..., 0].set(1.0)
        inside = slice(middle, middle + self.size)
        canvas = canvas.at[inside, inside, 0].set(0.0)
        rows, columns = (state.targets + middle).T
        canvas = canvas.at[rows, columns, 1].set(1.0)
        rows, columns = (state.agents + middle).T
        others = (jnp.arange(self.num_agents) != agent).astype(canvas.dtype)
        canvas = canvas.at[rows, columns, 2].max(others)
        row, column = state.agents[agent]
        return jax.lax.dynamic_slice(canvas, (row, column, 0), (side, side, IMAGE_CHANNELS))

    def episode_metrics(self, state: Cells) -> Float[Array, " 1"]:
        """Whether all targets are covered at the end."""
        return self.covered(state).all()[None].astype(float)

    def render(self, state: Cells, caption: str) -> np.ndarray:
        """The grid from above: targets are squares, agents are discs."""
        from PIL import Image, ImageDraw

        width = self.size * CELL_PIXELS
        picture = Image.new("RGB", (width, width), PAPER)
        pen = ImageDraw.Draw(picture)
        for line in range(0, width + 1, CELL_PIXELS):
            pen.line((line, 0, line, width), GRID, 2)
            pen.line((0, line, width, line), GRID, 2)
        for row, column in np.asarray(state.targets).tolist():
            x, y = column * CELL_PIXELS, row * CELL_PIXELS
            box = (x + 6, y + 6, x + CELL_PIXELS - 6, y + CELL_PIXELS - 6)
            pen.rectangle(box, EDGE, ALERT, 3)
        for number, (row, column) in enumerate(np.asarray(state.agents).tolist()):
            x, y = column * CELL_PIXELS + 5 * number, row * CELL_PIXELS + 5 * number
            box = (x + 14, y + 14, x + CELL_PIXELS - 24, y + CELL_PIXELS - 24)
            pen.ellipse(box, AGENT_COLOURS[number % len(AGENT_COLOURS)], INK)
        return add_caption(np.array(picture), caption)


def pixel_baselines(env: Cover) -> tuple[Baseline, ...]:
    """Random moves, and agents that take the shortest ways to different targets."""
    orders = jnp.asarray([*permutations(range(env.num_agents))])

    def random(state: Cells, key: PRNGKeyArray) -> Array:
        return jax.random.randint(key, (env.num_agents, 1), 0, len(CELL_MOVES))

    def assigned(state: Cells, key: PRNGKeyArray) -> Array:
        goals = state.targets[orders]  # (orders, agents, 2)
        distance = jnp.abs(goals - state.agents).sum(-1)
        # Of the orders with the least total, the one that covers targets soonest, then the first.
        best = (distance.sum(1) * 100 + distance.max(1)).argmin()
        way = jnp.sign(goals[best] - state.agents)
        step = jnp.where((way[:, :1] != 0), way * jnp.array([1, 0]), way * jnp.array([0, 1]))
        same = (step[:, None] == jnp.asarray(CELL_MOVES)).all(-1)
        return same.argmax(1)[:, None]

    return (
        Baseline("random", "random", "uniformly random moves", random, "random"),
        Baseline("assigned", "assigned", "shortest ways to different targets", assigned, "oracle"),
    )


PIXEL_TASKS = {"cover-2": (2, 4), "cover-3": (3, 5)}
"""Agents and size of the grid by name."""
