"""Small policies of every kind, their inputs, and the actions of the JAX policy."""

from functools import cache
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.networks.distributions import Categorical, Gaussian, MixedDistribution
from fp3o.policy import Policy
from fp3o.policy.export import write_policy
from fp3o.spec import Box, Discrete, EnvSpec, Mixed
from fp3o.training.rollout import decide
from fp3o.types import TimeStep

DISCRETE = Discrete(((3, 2), (2, 4), (4, 1), (3, 2)))
SPACES = {
    "discrete": DISCRETE,
    "box": Box((2, 1, 3, 2)),
    "mixed": Mixed(DISCRETE, Box((2, 0, 3, 1))),
}
OBS_SIZES = (5, 3, 4, 2)
"""Lengths of the agents' observations."""
NAMES = ("scout_0", "scout_1", "tank_0", "tank_1")
BATCH = 6


@cache
def make_actor(sharing: str, gru_size: int, space: str) -> tuple[Setup, Any]:
    """A setup and rows in which no number is at its initial value."""
    layers = ((0, 1, 2, 3), (0, 0, 1, 1), *[(0, 1, 0, 2)] * bool(gru_size), (0, 1, 1, 0))
    config = Config(
        sharing=layers if sharing == "custom" else sharing, gru_size=gru_size, hidden=(6, 7),
        sequence_length=8, activation="relu" if space == "discrete" else "tanh",
        std_param="exp" if gru_size else "sigmoid", agent_id=sharing != "none",
        layer_norm=sharing != "none",
    )  # fmt: skip
    spec = EnvSpec(
        "test/team", SPACES[space], 5, 9, (0, 0, 1, 1), truncates=True, agents=NAMES,
        obs_sizes=OBS_SIZES,
    )  # fmt: skip
    setup = Setup(spec, config)
    layout, random = setup.actor_layout, np.random.default_rng(7)
    widths = {
        groups: factors.size for groups, factors in zip(layout.maps, layout.lr_factors, strict=True)
    }
    sizes = [(max(groups) + 1, width) for groups, width in widths.items()]
    return setup, tuple(jnp.asarray(random.normal(0.0, 0.5, size), jnp.float32) for size in sizes)


def saved_policy(sharing: str, gru_size: int, space: str, folder: Path) -> Policy:
    """The policy of `make_actor`, loaded from the folder it was saved to."""
    write_policy(folder, *make_actor(sharing, gru_size, space), {"step": 5})
    return Policy.load(folder)


def observe(random: np.random.Generator, num_outputs: int) -> dict[str, Any]:
    """Inputs of a team at one step: padded observations, action masks, episode starts."""
    padding = np.arange(5) >= np.array(OBS_SIZES)[:, None]
    obs = random.normal(1.0, 2.0, size=(BATCH, 4, 5)) * ~padding
    action_mask = random.random((BATCH, 4, num_outputs)) < 0.7
    action_mask[..., ::4] = True
    return {
        "obs": obs, "action_mask": action_mask, "episode_start": random.random(BATCH) < 0.3,
    }  # fmt: skip


def decide_with_engine(setup: Setup, rows: Any, step: dict[str, Any], hidden_state: Any) -> Any:
    """Actions and distribution of the JAX policy."""
    nothing, flag = jnp.zeros((BATCH, 4)), jnp.zeros(BATCH, bool)
    obs, state = jnp.asarray(step["obs"], float), jnp.zeros((BATCH, 4, 9))
    timestep = TimeStep(
        obs, state, step["action_mask"], jnp.ones((BATCH, 4), bool), nothing, flag, flag,
        step["episode_start"],
        obs, state, jnp.zeros((BATCH, 0)),
    )  # fmt: skip
    choice = decide(setup, setup.actor(rows).folded(), timestep, hidden_state, None)
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    action_mask = jnp.asarray(step["action_mask"]) & setup.spec.actions.mask
    start = jnp.broadcast_to(jnp.asarray(step["episode_start"])[:, None], (BATCH, 4))
    inputs = setup.inputs(obs)
    policy, _ = setup.actor(rows)(swap(inputs), swap(action_mask), swap(hidden_state), swap(start))
    if isinstance(policy, MixedDistribution):
        return choice, (*parts(policy.choices), *parts(policy.vector))
    return choice, parts(policy)


def parts(policy: Categorical | Gaussian) -> tuple[Any, ...]:
    """Probabilities, or means and deviations, with the agent axis behind the batch."""
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    if isinstance(policy, Categorical):
        return (swap(jnp.exp(policy.log_p)),)
    std = jnp.broadcast_to(policy.std, policy.mean.shape)
    return tuple(swap(jnp.where(policy.action_mask, x, 0.0)) for x in (policy.mean, std))
