"""Minibatches of an epoch, and the gradient steps on each of them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from fp3o.algorithms.schedules import Stage
from fp3o.learning.losses import actor_loss, critic_loss
from fp3o.learning.optim import StepSize, adam_step
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import Metrics, StageData, StageInputs


def shuffle_sequences(data: StageData, key: PRNGKeyArray, count: int) -> Int[Array, "m c"]:
    """Random partition of the sequences into minibatches; all agents of a step stay together."""
    num_sequences = data.batch.actor_hidden.shape[1]
    if count == 1:
        return jnp.arange(num_sequences)[None]
    # One sort of random bits; jax.random.permutation sorts several times to rule out ties.
    return jnp.argsort(jax.random.bits(key, (num_sequences,))).reshape(count, -1)


def select_sequences(setup: Setup, data: StageData, sequences: Int[Array, " c"]) -> StageData:
    """The samples of these sequences."""
    num_sequences, length = data.batch.actor_hidden.shape[1], setup.config.sequence_steps
    if sequences.size == num_sequences:
        return data
    samples = (length * sequences[:, None] + jnp.arange(length)).reshape(-1)
    part = jax.tree.map(lambda x: x[:, samples], data)
    batch = part.batch._replace(
        actor_hidden=data.batch.actor_hidden[:, sequences],
        critic_hidden=data.batch.critic_hidden[:, sequences],
    )
    return part._replace(batch=batch)


def gradient_step(
    setup: Setup, inputs: StageInputs, gate: Bool[Array, ""], learner: Learner, minibatch: StageData
) -> tuple[Learner, Metrics]:
    """One step of the actor and one of the critic on the same minibatch."""
    learner, actor_log = actor_step(setup, inputs, gate, learner, minibatch)
    learner, critic_log = critic_step(setup, inputs, learner, minibatch)
    return learner, actor_log | critic_log


def actor_step(
    setup: Setup, inputs: StageInputs, gate: Bool[Array, ""], learner: Learner, minibatch: StageData
) -> tuple[Learner, Metrics]:
    """Update the policies of the stage's agents, unless the gate is closed."""
    stage, hparams = inputs.stage, inputs.hparams
    loss, grads = jax.value_and_grad(actor_loss)(learner.actor, setup, hparams, minibatch, stage)
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
    setup: Setup, inputs: StageInputs, learner: Learner, minibatch: StageData
) -> tuple[Learner, Metrics]:
    """Update the value normaliser once with the targets (D9), then the critics."""
    stage, hparams, batch = inputs.stage, inputs.hparams, minibatch.batch
    critic_of_agent = setup.critic_of_agent[stage.agents]
    value_norm = learner.value_norm.update(batch.target, critic_of_agent, stage.member)
    loss, grads = jax.value_and_grad(critic_loss)(
        learner.critic, setup, hparams, value_norm, batch, stage
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
