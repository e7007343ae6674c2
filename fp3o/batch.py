"""From a trajectory to a batch: values, advantages, chunks.

Here the agent axis moves to the front: `(t, e, n, ...) -> (n, e, t, ...) -> (n, c, l, ...)`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.config import Rates
from fp3o.returns import explained_variance, gae, standardise
from fp3o.setup import Learner, Setup
from fp3o.types import Batch, Trajectory


class Residual(NamedTuple):
    """What advantages are made of; A2PO makes them again in every stage."""

    delta: Float[Array, "n e t"]
    """r + γ V' - V."""
    decay: Float[Array, "n e t"]
    """γλ, 0 at the end of an episode."""
    value: Float[Array, "n e t"]
    """V in the units of the reward."""


def agent_first(x: Float[Array, "t e n *f"]) -> Float[Array, "n e t *f"]:
    """Move the agent axis to the front and time behind the environments."""
    return jnp.moveaxis(x, (2, 1, 0), (0, 1, 2))


def chunked(x: Float[Array, "n e t *f"], length: int) -> Float[Array, "n c l *f"]:
    """Cut every environment's steps into chunks."""
    num_chunks = x.shape[1] * (x.shape[2] // length)
    return x.reshape(x.shape[0], num_chunks, length, *x.shape[3:])


def assemble(
    setup: Setup,
    rates: Rates,
    learner: Learner,
    trajectory: Trajectory,
    critic_memory: Float[Array, "n e h"],
) -> tuple[Batch, Residual, Float[Array, "n e h"], dict[str, Array]]:
    """Values, advantages and targets of a rollout, cut into chunks for the learner.

    Also returns the critic's memory after the rollout, and what is worth reporting.
    """
    length = setup.config.chunk_length
    ends = trajectory.terminated | trajectory.truncated
    each = lambda x: agent_first(  # noqa: E731
        jnp.broadcast_to(x[..., None], trajectory.alive.shape)
    )
    view, start = agent_first(trajectory.view), each(trajectory.start)
    value, next_value, memories = _values(setup, learner, trajectory, view, start, critic_memory)
    value_units = learner.norm.denormalise(value, setup.critic_of_agent)
    next_units = learner.norm.denormalise(next_value, setup.critic_of_agent)

    # Termination stops the bootstrap; a time limit does so only where the setting says it ends.
    stops = trajectory.terminated if bootstraps(setup) else ends
    delta = agent_first(trajectory.reward) + rates.gamma * ~each(stops) * next_units - value_units
    decay = rates.gamma * rates.gae_lambda * ~each(ends)
    residual = Residual(delta, decay, value_units)

    alive = agent_first(trajectory.alive).astype(delta.dtype)
    advantage = advantages(residual, jnp.ones_like(decay))
    target = advantage + value_units
    before = jnp.concatenate([critic_memory[:, :, None], memories[:, :, :-1]], axis=2)
    cut = lambda x: chunked(x, length)  # noqa: E731
    batch = Batch(
        obs=cut(agent_first(trajectory.obs)),
        view=cut(view),
        legal=cut(agent_first(trajectory.legal)),
        alive=cut(alive),
        start=cut(start),
        actor_memory=cut(agent_first(trajectory.memory))[:, :, 0],
        critic_memory=cut(before)[:, :, 0],
        action=cut(agent_first(trajectory.action)),
        log_prob=cut(agent_first(trajectory.log_prob)),
        value=cut(value),
        advantage=cut(standardised(setup, advantage, alive)),
        target=cut(target),
    )
    metrics = {
        "explained_variance": explained_variance(target, value_units),
        "value": value_units.mean(),
        "advantage_size": (jnp.abs(advantage) * alive).sum((1, 2)) / jnp.maximum(alive.sum((1, 2)), 1.0),
    }
    return batch, residual, memories[:, :, -1], metrics


def bootstraps(setup: Setup) -> bool:
    """Whether time limits continue with the value of the last observation."""
    return setup.spec.truncates and setup.config.time_limit == "bootstrap"


def advantages(
    residual: Residual, trace: Float[Array, "n e t"]
) -> Float[Array, "n e t"]:
    """GAE with its decay multiplied by a trace at the next step: A_t = δ_t + γλ c_{t+1} A_{t+1}."""
    later = jnp.concatenate([trace[..., 1:], jnp.ones_like(trace[..., :1])], axis=-1)
    time_first = lambda x: jnp.moveaxis(x, -1, 0)  # noqa: E731
    return jnp.moveaxis(gae(time_first(residual.delta), time_first(residual.decay * later)), 0, -1)


def standardised(
    setup: Setup, advantage: Float[Array, "n e t"], alive: Float[Array, "n e t"]
) -> Float[Array, "n e t"]:
    """Advantages in the scale the actor sees."""
    if setup.config.advantage_norm == "none":
        return advantage
    if setup.config.advantage_norm == "team":
        return standardise(advantage[None], alive[None])[0]
    return standardise(advantage, alive)


def _values(
    setup: Setup,
    learner: Learner,
    trajectory: Trajectory,
    view: Float[Array, "n e t f"],
    start: Array,
    memory: Float[Array, "n e h"],
) -> tuple[Float[Array, "n e t"], Float[Array, "n e t"], Float[Array, "n e t h"]]:
    """Normalised values before and after every step, and the critic's memories."""
    critic = setup.critic(learner.critic)
    out, memories = critic(view, memory, start)
    value, final = out[..., 0], agent_first(trajectory.final_view)
    # The view after a step is judged with the memory after it, whether or not a reset follows.
    after = memories[:, :, -final.shape[2] :]
    flat = jax.lax.collapse(final, 1, 3)[:, :, None]
    held = jax.lax.collapse(after, 1, 3)
    last = critic(flat, held, jnp.zeros(flat.shape[:3], bool))[0].reshape(final.shape[:3])
    if last.shape == value.shape:
        return value, last, memories
    return value, jnp.concatenate([value[:, :, 1:], last], axis=2), memories
