"""TODO."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from fp3o.algorithms.row import Stage
from fp3o.learning.config import Hyperparameters
from fp3o.learning.losses import actor_loss, critic_loss
from fp3o.learning.optim import adam_step
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import Metrics, StageData


def shuffled(sample: StageData, key: PRNGKeyArray, count: int) -> Int[Array, "m c"]:
    """The chunks of every minibatch; all agents of a step stay together."""
    num_sequences = sample.batch.actor_hidden.shape[1]
    if count == 1:
        return jnp.arange(num_sequences)[None]
    # One sort of random bits; jax.random.permutation sorts several times to rule out ties.
    return jnp.argsort(jax.random.bits(key, (num_sequences,))).reshape(count, -1)


def take(setup: Setup, sample: StageData, sequences: Int[Array, " c"]) -> StageData:
    """The part of a sample that lies in these chunks."""
    num_sequences, length = sample.batch.actor_hidden.shape[1], setup.config.sequence_steps
    if sequences.size == num_sequences:
        return sample
    rows = (length * sequences[:, None] + jnp.arange(length)).reshape(-1)
    hidden_states = [
        m[:, sequences] for m in (sample.batch.actor_hidden, sample.batch.critic_hidden)
    ]
    part = jax.tree.map(lambda x: x[:, rows], sample)
    batch = part.batch._replace(actor_hidden=hidden_states[0], critic_hidden=hidden_states[1])
    return part._replace(batch=batch)


def gradient_step(
    setup: Setup,
    hparams: Hyperparameters,
    stage: Stage,
    opens: Bool[Array, ""],
    learner: Learner,
    sample: StageData,
) -> tuple[Learner, Metrics]:
    """One step of the actor and one of the critic on the same minibatch."""  # fmt: skip
    learner, actor_log = actor_step(setup, hparams, stage, opens, learner, sample)
    learner, critic_log = critic_step(setup, hparams, stage, learner, sample)
    return learner, actor_log | critic_log


def actor_step(
    setup: Setup,
    hparams: Hyperparameters,
    stage: Stage,
    opens: Bool[Array, ""],
    learner: Learner,
    sample: StageData,
) -> tuple[Learner, Metrics]:
    """Move the policies of the stage's agents, unless the gate is shut."""  # fmt: skip
    loss, grads = jax.value_and_grad(actor_loss)(learner.actor, setup, hparams, sample, stage)
    moves = updated_agents(setup, stage)
    if setup.row.critic_always:
        moves = jnp.broadcast_to(opens, (setup.spec.num_agents,))
    rows, adam, norm = adam_step(
        setup.actor_layout, learner.actor, learner.actor_adam, grads, moves,
        hparams.actor_lr, hparams.max_grad_norm,
    )  # fmt: skip
    log = {"policy_loss": loss * opens, "actor_grad_norm": norm * opens}
    log |= {"actor_steps": opens.astype(int)}
    return learner._replace(actor=rows, actor_adam=adam), log


def critic_step(
    setup: Setup, hparams: Hyperparameters, stage: Stage, learner: Learner, sample: StageData
) -> tuple[Learner, Metrics]:
    """Update the value normaliser once with the targets (D9), then move the critics."""
    critic_of_agent = setup.critic_of_agent[stage.agents]
    norm = learner.value_norm.update(sample.batch.target, critic_of_agent, stage.member)
    loss, grads = jax.value_and_grad(critic_loss)(
        learner.critic, setup, hparams, norm, sample.batch, stage
    )
    rows, adam, grad_norm = adam_step(
        setup.critic_layout, learner.critic, learner.critic_adam, grads, updated_agents(setup, stage),
        hparams.critic_lr, hparams.max_grad_norm,
    )  # fmt: skip
    log = {"value_loss": loss, "critic_grad_norm": grad_norm, "critic_steps": jnp.ones((), int)}
    return learner._replace(critic=rows, critic_adam=adam, value_norm=norm), log


def updated_agents(setup: Setup, stage: Stage) -> Bool[Array, " n"] | None:
    """Which agents the stage moves; None: the whole team, known before tracing."""
    if setup.whole_team:
        return None
    return jnp.zeros(setup.spec.num_agents, bool).at[stage.agents].max(stage.member > 0)
