"""Minibatches of an epoch, and the gradient steps on each of them."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from fp3o.algorithms.schedules import Stage
from fp3o.learning.collectives import block_keys, total
from fp3o.learning.losses import actor_loss, critic_loss, sample_weights
from fp3o.learning.optim import StepSize, adam_step
from fp3o.learning.returns import TargetMoments, target_moments
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import Metrics, StageData, StageInputs


def shuffle_sequences(
    data: StageData, key: PRNGKeyArray, count: int, blocks: int = 1
) -> Int[Array, "m c"]:
    """Random partition of the sequences into minibatches; all agents of a step stay together.

    Blocks of environments are shuffled separately, and a minibatch has equal shares of all.
    """
    num_sequences = data.batch.actor_hidden.shape[1]
    if count == 1:
        return jnp.arange(num_sequences)[None]
    # One sort of random bits; jax.random.permutation sorts several times to rule out ties.
    keys = block_keys(key, blocks)
    size = num_sequences // len(keys)
    order = jax.vmap(lambda key: jnp.argsort(jax.random.bits(key, (size,))))(keys)
    order += size * jnp.arange(len(keys))[:, None]
    return order.reshape(len(keys), count, -1).swapaxes(0, 1).reshape(count, -1)


class Minibatch(NamedTuple):
    """Samples of a gradient step, and what is known about them before it."""

    data: StageData
    """Without the inputs of the networks until `with_inputs` adds them."""
    samples: Int[Array, " r"]
    """Positions of the samples in the batch."""
    actor_weight: Float[Array, "k r"]
    critic_weight: Float[Array, "k r"]
    target_moments: TargetMoments


def select_minibatch(setup: Setup, inputs: StageInputs, sequences: Int[Array, " c"]) -> Minibatch:
    """The samples of these sequences, without the inputs of the networks, which are large."""
    stage, whole, steps = inputs.stage, inputs.data.batch, jnp.arange(setup.config.sequence_steps)
    samples = (steps.size * sequences[:, None] + steps).reshape(-1)
    everything = sequences.size == whole.actor_hidden.shape[1]

    def select(index: Int[Array, " i"], x: Shaped[Array, "k i2 *f"]) -> Shaped[Array, "k i *f"]:
        return x if everything else x[:, index]

    small = whole._replace(obs=None, critic_input=None, actor_hidden=None, critic_hidden=None)  # pyright: ignore
    batch, others = jax.tree.map(partial(select, samples), (small, inputs.data.others))
    batch = batch._replace(
        actor_hidden=select(sequences, whole.actor_hidden),
        critic_hidden=select(sequences, whole.critic_hidden),
    )
    critic_counts = batch.alive if setup.config.mask_value_loss else jnp.ones_like(batch.alive)
    critics = setup.critic_of_agent[stage.agents], stage.member, setup.num_critics
    return Minibatch(
        StageData(batch, others),
        samples,
        sample_weights(batch.alive, stage, setup.actor_sharing),
        sample_weights(critic_counts, stage, setup.critic_sharing),
        target_moments(batch.target, *critics),
    )


def with_inputs(data: StageData, minibatch: Minibatch) -> Minibatch:
    """The minibatch with the inputs of the networks."""
    obs, critic_input = data.batch.obs, data.batch.critic_input
    if minibatch.samples.size < obs.shape[1]:
        obs, critic_input = obs[:, minibatch.samples], critic_input[:, minibatch.samples]
    batch = minibatch.data.batch._replace(obs=obs, critic_input=critic_input)
    return minibatch._replace(data=minibatch.data._replace(batch=batch))


def gradient_step(
    setup: Setup, inputs: StageInputs, gate: Bool[Array, ""], learner: Learner, minibatch: Minibatch
) -> tuple[Learner, Metrics]:
    """One step of the actor and one of the critic on the same minibatch."""
    learner, actor_log = actor_step(setup, inputs, gate, learner, minibatch)
    learner, critic_log = critic_step(setup, inputs, learner, minibatch)
    return learner, actor_log | critic_log


def actor_step(
    setup: Setup, inputs: StageInputs, gate: Bool[Array, ""], learner: Learner, minibatch: Minibatch
) -> tuple[Learner, Metrics]:
    """Update the policies of the stage's agents, unless the gate is closed."""
    stage, hparams = inputs.stage, inputs.hparams
    loss, grads = total(
        jax.value_and_grad(actor_loss)(
            learner.actor, setup, inputs, minibatch.data, minibatch.actor_weight
        )
    )
    updated = updated_agents(setup, stage)
    if setup.row.critic_always:  # the step is taken even if the gate is closed
        everyone = jnp.broadcast_to(gate, (setup.spec.num_agents,))
        updated = everyone if updated is None else updated & gate
    params, adam, norm = adam_step(
        setup.actor_layout,
        learner.actor,
        learner.actor_adam,
        grads,
        updated,
        StepSize(hparams.actor_lr, hparams.max_grad_norm),
    )
    log = {"policy_loss": loss * gate, "actor_grad_norm": norm * gate}
    log |= {"actor_steps": gate.astype(int)}
    return learner._replace(actor=params, actor_adam=adam), log


def critic_step(
    setup: Setup, inputs: StageInputs, learner: Learner, minibatch: Minibatch
) -> tuple[Learner, Metrics]:
    """Update the value normaliser once with the targets (D9), then the critics."""
    stage, hparams = inputs.stage, inputs.hparams
    value_norm = learner.value_norm.add(minibatch.target_moments)
    loss, grads = total(
        jax.value_and_grad(critic_loss)(
            learner.critic, setup, inputs, value_norm, minibatch.data.batch, minibatch.critic_weight
        )
    )
    params, adam, grad_norm = adam_step(
        setup.critic_layout,
        learner.critic,
        learner.critic_adam,
        grads,
        updated_agents(setup, stage),
        StepSize(hparams.critic_lr, hparams.max_grad_norm),
    )
    log = {"value_loss": loss, "critic_grad_norm": grad_norm, "critic_steps": jnp.ones((), int)}
    return learner._replace(critic=params, critic_adam=adam, value_norm=value_norm), log


def updated_agents(setup: Setup, stage: Stage) -> Bool[Array, " n"] | None:
    """Which agents the stage updates; None: the whole team, known before tracing."""
    if setup.whole_team:
        return None
    return jnp.zeros(setup.spec.num_agents, bool).at[stage.agents].max(stage.member > 0)
