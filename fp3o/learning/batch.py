"""From a trajectory to a batch: values, advantages, chunks.

Here the agent axis moves to the front, `(t, e, n, ...) -> (n, e, t, ...)`, and environments and
steps become one axis of rows, `(n, r, ...)`, in which the chunks are neighbours.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from fp3o.learning.config import Hyperparameters
from fp3o.learning.returns import explained_variance, gae, standardise
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.statistics import living_mean
from fp3o.types import Batch, Trajectory


class TDResiduals(NamedTuple):
    """What advantages are made of; A2PO makes them again in every stage."""

    delta: Float[Array, "n e t"]
    """r + γ V' - V."""
    decay: Float[Array, "n e t"]
    """γλ, 0 at the end of an episode."""
    value: Float[Array, "n e t"]
    """V in the units of the reward."""


def agent_first(x: Shaped[Array, "t e n *f"]) -> Shaped[Array, "n e t *f"]:
    """Move the agent axis to the front and time behind the environments."""
    return jnp.moveaxis(x, (2, 1, 0), (0, 1, 2))


def as_rows(x: Shaped[Array, "n e t *f"]) -> Shaped[Array, "n r *f"]:
    """One axis for all steps of all environments."""
    return jax.lax.collapse(x, 1, 3)


def make_batch(
    setup: Setup,
    hparams: Hyperparameters,
    learner: Learner,
    trajectory: Trajectory,
    critic_hidden: Float[Array, "e n h"],
) -> tuple[Batch, TDResiduals, Float[Array, "e n h"], dict[str, Array]]:
    """Values, advantages and targets of a rollout, in rows for the learner.

    Also returns the critic's memory after the rollout, and what is worth reporting.
    """
    ends = trajectory.terminated | trajectory.truncated
    each = lambda x: agent_first(  # noqa: E731
        jnp.broadcast_to(x[..., None], trajectory.alive.shape)
    )
    see = setup.inputs
    trajectory = trajectory._replace(
        obs=see(trajectory.obs),
        critic_input=see(trajectory.critic_input),
        final_critic_input=see(trajectory.final_critic_input),
        action_mask=trajectory.action_mask & setup.spec.actions.mask,
    )
    critic_hidden = jnp.swapaxes(critic_hidden, 0, 1)
    value, next_value, hidden_states = _values(setup, learner, trajectory, critic_hidden)
    value_units = learner.value_norm.denormalise(value, setup.critic_of_agent)
    next_units = learner.value_norm.denormalise(next_value, setup.critic_of_agent)

    # Termination stops the bootstrap; a time limit does so only where the setting says it ends.
    stops = trajectory.terminated if bootstraps(setup) else ends
    delta = agent_first(trajectory.reward) + hparams.gamma * ~each(stops) * next_units - value_units
    decay = hparams.gamma * hparams.gae_lambda * ~each(ends)
    residual = TDResiduals(delta, decay, value_units)

    alive = agent_first(trajectory.alive).astype(delta.dtype)
    advantage = advantages(residual, jnp.ones_like(decay))
    target = advantage + value_units
    before = jnp.concatenate([critic_hidden[:, :, None], hidden_states[:, :, :-1]], axis=2)
    rows = lambda x: as_rows(agent_first(x))  # noqa: E731
    at_sequence_starts = lambda x: as_rows(x)[:, :: setup.config.sequence_steps]  # noqa: E731
    batch = Batch(
        obs=rows(trajectory.obs),
        critic_input=rows(trajectory.critic_input),
        action_mask=rows(trajectory.action_mask),
        alive=as_rows(alive),
        episode_start=as_rows(each(trajectory.episode_start)),
        actor_hidden=at_sequence_starts(agent_first(trajectory.actor_hidden)),
        critic_hidden=at_sequence_starts(before),
        action=rows(trajectory.action),
        log_prob=rows(trajectory.log_prob),
        value=as_rows(value),
        advantage=as_rows(standardised(setup, advantage, alive)),
        target=as_rows(target),
    )
    metrics = {
        "explained_variance": explained_variance(target, value_units),
        "value": value_units.mean(),
        "mean_abs_advantage": living_mean(jnp.abs(advantage), alive),
    }
    return batch, residual, jnp.swapaxes(hidden_states[:, :, -1], 0, 1), metrics


def bootstraps(setup: Setup) -> bool:
    """Whether time limits continue with the value of the last observation."""
    return setup.spec.truncates and setup.config.time_limit == "bootstrap"


def advantages(residual: TDResiduals, trace: Float[Array, "n e t"]) -> Float[Array, "n e t"]:
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
    setup: Setup, learner: Learner, trajectory: Trajectory, hidden_state: Float[Array, "n e h"]
) -> tuple[Float[Array, "n e t"], Float[Array, "n e t"], Float[Array, "n e t h"]]:
    """Normalised values before and after every step, and the critic's memories."""
    critic = setup.critic(learner.critic)
    view, final = agent_first(trajectory.critic_input), agent_first(trajectory.final_critic_input)
    episode_start = jnp.broadcast_to(trajectory.episode_start.T, view.shape[:3])
    out, hidden_states = critic(as_rows(view), hidden_state, as_rows(episode_start))
    value, hidden_states = (x.reshape(*view.shape[:3], x.shape[-1]) for x in (out, hidden_states))
    # The view after a step is judged with the memory after it, whether or not a reset follows.
    after = as_rows(hidden_states[:, :, -final.shape[2] :])
    last, _ = critic(as_rows(final), after, jnp.zeros(after.shape[:2], bool))
    value, last = value[..., 0], last.reshape(final.shape[:3])
    if last.shape == value.shape:
        return value, last, hidden_states
    return value, jnp.concatenate([value[:, :, 1:], last], axis=2), hidden_states
