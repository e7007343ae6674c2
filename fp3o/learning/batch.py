"""Conversion of a trajectory to a batch: values, advantages, sequences.

The agent axis moves to the front, `(t, e, n, ...) -> (n, e, t, ...)`, and environments and steps
become one axis of samples, `(n, r, ...)`, in which sequences are contiguous.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from fp3o.learning.collectives import average
from fp3o.learning.config import Hyperparameters
from fp3o.learning.returns import explained_variance, gae, standardise
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.statistics import alive_mean
from fp3o.types import Batch, Trajectory


class TDResiduals(NamedTuple):
    """Temporal-difference residuals, from which A2PO recomputes advantages in every stage."""

    delta: Float[Array, "n e t"]
    """r + γ V' - V."""
    decay: Float[Array, "n e t"]
    """γλ, 0 at the end of an episode."""
    value: Float[Array, "n e t"]
    """V in reward units."""


class IterationData(NamedTuple):
    """Training data of a policy iteration."""

    batch: Batch
    residuals: TDResiduals
    score: Float[Array, " n"]
    """Mean absolute advantage per agent, which determines A2PO's order of updates."""


class _Values(NamedTuple):
    """Critic outputs over a rollout, in normalised units."""

    now: Float[Array, "n e t"]
    next: Float[Array, "n e t"]
    hidden: Float[Array, "n e t h"]
    """Hidden states after every step."""


def agent_first(x: Shaped[Array, "t e n *f"]) -> Shaped[Array, "n e t *f"]:
    """Move the agent axis to the front and time behind the environments."""
    return jnp.moveaxis(x, (2, 1, 0), (0, 1, 2))


def merge_samples(x: Shaped[Array, "n e t *f"]) -> Shaped[Array, "n r *f"]:
    """Merge environments and steps into one axis of samples."""
    return jax.lax.collapse(x, 1, 3)


def make_batch(
    setup: Setup,
    hparams: Hyperparameters,
    learner: Learner,
    trajectory: Trajectory,
    critic_hidden: Float[Array, "e n h"],
) -> tuple[IterationData, Float[Array, "e n h"], dict[str, Array]]:
    """Compute values, advantages and targets of a rollout and lay them out for the learner.

    Also returns the hidden state of the critic after the rollout, and metrics.
    """
    trajectory = _with_network_inputs(setup, learner, trajectory)
    critic_hidden = jnp.swapaxes(critic_hidden, 0, 1)
    values = _values(setup, learner, trajectory, critic_hidden)
    residuals = _residuals(setup, hparams, learner, trajectory, values)
    alive = agent_first(trajectory.alive).astype(residuals.delta.dtype)
    advantage = advantages(residuals, jnp.ones_like(residuals.decay))
    target = advantage + residuals.value
    before = jnp.concatenate([critic_hidden[:, :, None], values.hidden[:, :, :-1]], axis=2)
    merged = lambda x: merge_samples(agent_first(x))  # noqa: E731
    at_sequence_starts = lambda x: merge_samples(x)[:, :: setup.config.sequence_steps]  # noqa: E731
    batch = Batch(
        obs=merged(trajectory.obs),
        critic_input=merged(trajectory.critic_input),
        action_mask=merged(trajectory.action_mask),
        alive=merge_samples(alive),
        episode_start=merge_samples(_per_agent(trajectory.episode_start, trajectory)),
        actor_hidden=at_sequence_starts(agent_first(trajectory.actor_hidden)),
        critic_hidden=at_sequence_starts(before),
        action=merged(trajectory.action),
        log_prob=merged(trajectory.log_prob),
        value=merge_samples(values.now),
        advantage=merge_samples(standardise_advantages(setup, advantage, alive)),
        target=merge_samples(target),
    )
    metrics = _metrics(target, residuals.value, advantage, alive)
    data = IterationData(batch, residuals, metrics["mean_abs_advantage"])
    return data, jnp.swapaxes(values.hidden[:, :, -1], 0, 1), metrics


def bootstraps(setup: Setup) -> bool:
    """Whether truncated episodes continue with the value of their last observation."""
    return setup.spec.truncates and setup.config.time_limit == "bootstrap"


def advantages(residuals: TDResiduals, trace: Float[Array, "n e t"]) -> Float[Array, "n e t"]:
    """GAE with the decay multiplied by the next step's trace: A_t = δ_t + γλ c_{t+1} A_{t+1}."""
    later = jnp.concatenate([trace[..., 1:], jnp.ones_like(trace[..., :1])], axis=-1)
    time_first = lambda x: jnp.moveaxis(x, -1, 0)  # noqa: E731
    result = gae(time_first(residuals.delta), time_first(residuals.decay * later))
    return jnp.moveaxis(result, 0, -1)


def standardise_advantages(
    setup: Setup, advantage: Float[Array, "n e t"], alive: Float[Array, "n e t"]
) -> Float[Array, "n e t"]:
    """Standardise advantages per agent or over the team, as configured."""
    if setup.config.advantage_norm == "none":
        return advantage
    if setup.config.advantage_norm == "team":
        return standardise(advantage[None], alive[None])[0]
    return standardise(advantage, alive)


def _with_network_inputs(setup: Setup, learner: Learner, trajectory: Trajectory) -> Trajectory:
    """Replace observations and states by the inputs of the networks; mask padded actions."""
    if setup.config.frozen_agents:
        # To the learner they are dead: no loss, a ratio of 1, and parameters that stay as they are.
        trajectory = trajectory._replace(alive=trajectory.alive & setup.learns)
    obs_norm = setup.actor(learner.actor).obs_norm
    critic_norm = setup.critic(learner.critic).obs_norm
    return trajectory._replace(
        obs=setup.inputs(trajectory.obs, "actor", obs_norm),
        critic_input=setup.inputs(trajectory.critic_input, "critic", critic_norm),
        final_critic_input=setup.inputs(trajectory.final_critic_input, "critic", critic_norm),
        action_mask=trajectory.action_mask & setup.spec.actions.mask,
    )


def _metrics(target: Array, value: Array, advantage: Array, alive: Array) -> dict[str, Array]:
    return {
        "explained_variance": explained_variance(target, value),
        "value": average(value.mean()),
        "mean_abs_advantage": alive_mean(jnp.abs(advantage), alive),
    }


def _per_agent(x: Shaped[Array, "t e"], trajectory: Trajectory) -> Shaped[Array, "n e t"]:
    """Repeat a property of the environments for every agent."""
    return agent_first(jnp.broadcast_to(x[..., None], trajectory.alive.shape))


def _residuals(
    setup: Setup,
    hparams: Hyperparameters,
    learner: Learner,
    trajectory: Trajectory,
    values: _Values,
) -> TDResiduals:
    """Temporal-difference residuals in reward units."""
    value = learner.value_norm.denormalise(values.now, setup.critic_of_agent)
    next_value = learner.value_norm.denormalise(values.next, setup.critic_of_agent)
    ends = trajectory.terminated | trajectory.truncated
    # Termination always stops the bootstrap; truncation only where `bootstraps` is false.
    stops = _per_agent(trajectory.terminated if bootstraps(setup) else ends, trajectory)
    delta = agent_first(trajectory.reward) + hparams.gamma * ~stops * next_value - value
    decay = hparams.gamma * hparams.gae_lambda * ~_per_agent(ends, trajectory)
    return TDResiduals(delta, decay, value)


def _values(
    setup: Setup, learner: Learner, trajectory: Trajectory, hidden_state: Float[Array, "n e h"]
) -> _Values:
    """Normalised values before and after every step, and the hidden states of the critic."""
    critic = setup.critic(learner.critic)
    inputs, final = agent_first(trajectory.critic_input), agent_first(trajectory.final_critic_input)
    episode_start = jnp.broadcast_to(trajectory.episode_start.T, inputs.shape[:3])
    out, hidden = critic(merge_samples(inputs), hidden_state, merge_samples(episode_start))
    value, hidden = (x.reshape(*inputs.shape[:3], x.shape[-1]) for x in (out, hidden))
    # The final input is evaluated with the hidden state after the step, even if a reset follows.
    after = merge_samples(hidden[:, :, -final.shape[2] :])
    last, _ = critic(merge_samples(final), after, jnp.zeros(after.shape[:2], bool))
    value, last = value[..., 0], last.reshape(final.shape[:3])
    if last.shape == value.shape:
        return _Values(value, last, hidden)
    return _Values(value, jnp.concatenate([value[:, :, 1:], last], axis=2), hidden)
