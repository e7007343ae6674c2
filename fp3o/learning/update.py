"""One policy iteration, from the top down.

`improve` runs the stages of an algorithm, `run_stage` one of them, `fit` its epochs, `one_epoch`
one pass, `gradient_step` one minibatch. What a minibatch maximises is in `losses`.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.algorithms.fp3o import (
    TOLERANCE,
    condition_gap,
    non_overlapping,
    random_split,
)
from fp3o.algorithms.row import Stage
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.learning.batch import TDResiduals, advantages, as_rows, standardised
from fp3o.learning.config import Hyperparameters
from fp3o.learning.metrics import stage_metrics
from fp3o.learning.optim import PackedParams, update_where
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import (
    Metrics,
    StageCarry,
    StageData,
    coupling_weights,
    others_log_ratio,
)
from fp3o.learning.steps import critic_step, gradient_step, shuffled, take
from fp3o.networks.distributions import Distribution
from fp3o.types import Batch


def policy_iteration(
    setup: Setup,
    hparams: Hyperparameters,
    learner: Learner,
    batch: Batch,
    residual: TDResiduals,
    score: Float[Array, " n"],
    key: PRNGKeyArray,
) -> tuple[Learner, Metrics]:
    """One policy iteration: run the stages that the algorithm's schedule lays down.

    `score` is each agent's mean absolute advantage, by which A2PO orders the turns.
    """
    row, config = setup.row, setup.config
    order_key, split_key, pair_key, shuffle_key = jax.random.split(key, 4)
    if row.split == "random":
        batch = batch._replace(advantage=random_split(split_key, batch.advantage))
    stages = SCHEDULES[row.schedule](order_key, score, config.epochs, row)
    partner = non_overlapping(pair_key, setup.spec.num_agents)
    keys = jax.random.split(shuffle_key, len(stages.gated))
    rollout_policy, replay = evaluate_policy(setup, learner.actor, batch)

    def stage_body(before: StageCarry, x: tuple[Stage, Array]) -> tuple[StageCarry, Metrics]:
        epochs = int(stages.epochs.max())
        learner, log = run_stage(setup, hparams, batch, residual, before, *x, epochs)
        policy, log_ratio = evaluate_policy(setup, learner.actor, batch)
        after = StageCarry(learner, log_ratio)
        log |= stage_metrics(
            setup, hparams, batch, x[0], before, after, rollout_policy, policy, partner
        )
        if row.shadow:
            after = jax.tree.map(partial(jnp.where, log["gate"]), after, before)
            log |= {name: log[name] * log["gate"] for name in ("actor_steps", "critic_steps")}
        return after, log

    first = StageCarry(learner, jnp.zeros_like(batch.log_prob))
    progress, log = jax.lax.scan(stage_body, first, (stages, keys))
    # FP3O's condition is about the policies after the independent step, Algorithm 1, line 7.
    judged = 0 if row.schedule == "pipelines" else -1
    certified = log["condition_gap"][judged] >= -TOLERANCE
    # An agent that was dead throughout has learned nothing: momentum must not move it either.
    moves = batch.alive.any(1) & (certified if row.on_failed_condition == "revert" else True)
    learner = revert_frozen(setup, first.learner, progress.learner, moves)
    log |= {
        "replay_error": jnp.abs(replay).max(),
        "condition_holds": certified,
        "condition_matches": certified == (log["constraint_gap"][-1] >= -TOLERANCE),
        "actor_steps": log["actor_steps"].sum(),
        "critic_steps": log["critic_steps"].sum(),
    }
    return learner, log


def revert_frozen(
    setup: Setup, before: Learner, after: Learner, moves: Bool[Array, " n"]
) -> Learner:
    """Policies and their optimisers as before the iteration for agents that must not move."""
    layout = setup.actor_layout
    actor = update_where(layout, moves, after.actor, before.actor)
    adam = update_where(layout, moves, after.actor_adam, before.actor_adam)
    return after._replace(actor=actor, actor_adam=adam)


def evaluate_policy(
    setup: Setup, rows: PackedParams, batch: Batch
) -> tuple[Distribution, Float[Array, "n r"]]:
    """The team's policies on the whole batch, and the log-ratios to the rollout's."""
    policy, _ = setup.actor(rows)(
        batch.obs, batch.action_mask, batch.actor_hidden, batch.episode_start
    )
    return policy, (policy.log_prob(batch.action) - batch.log_prob) * batch.alive


def run_stage(
    setup: Setup,
    hparams: Hyperparameters,
    batch: Batch,
    residual: TDResiduals,
    progress: StageCarry,
    stage: Stage,
    key: PRNGKeyArray,
    epochs: int,
) -> tuple[Learner, Metrics]:
    """Prepare what the stage's agents learn from, ask the gate, and fit."""
    log_ratio = progress.log_ratio
    gap = condition_gap(log_ratio, others_log_ratio(log_ratio), batch.advantage, batch.alive)
    own = batch if setup.whole_team else jax.tree.map(lambda x: x[stage.agents], batch)
    others = coupling_weights(stage.coupling, log_ratio)
    if setup.row.correct_advantages:
        residual = jax.tree.map(lambda x: x[stage.agents], residual)
        own = correct_advantages(setup, own, residual, others, stage.member)
    gate = ~stage.gated | (gap >= -TOLERANCE)
    learner, log = run_epochs(
        setup, hparams, progress, StageData(own, others), batch, stage,
        opens=gate | setup.row.shadow, key=key, epochs=epochs,
    )  # fmt: skip
    return learner, log | {"gate": log["gate"] & gate}


def correct_advantages(
    setup: Setup,
    batch: Batch,
    residual: TDResiduals,
    others: Float[Array, "k r"],
    member: Float[Array, " k"],
) -> Batch:
    """A2PO's preceding-agent correction: advantages and targets under min(1, Π r_j)."""
    trace = jnp.minimum(others, 1.0).reshape(residual.delta.shape)
    advantage = advantages(residual, trace)
    counts = (batch.alive * member[:, None]).reshape(advantage.shape)
    scaled = standardised(setup, advantage, counts)
    return batch._replace(advantage=as_rows(scaled), target=as_rows(advantage + residual.value))


def run_epochs(
    setup: Setup,
    hparams: Hyperparameters,
    progress: StageCarry,
    sample: StageData,
    team: Batch,
    stage: Stage,
    *,
    opens: Bool[Array, ""],
    key: PRNGKeyArray,
    epochs: int,
) -> tuple[Learner, Metrics]:
    """The epochs of a stage; none where its gate is shut."""
    row, stages = setup.row, setup.stage_facts
    may_rest, may_close = stages.gated or stages.uneven, stages.gated and row.refresh_ratios

    def epoch(carry: tuple[Learner, Array], x: tuple[Array, Array]):
        (learner, opens), (epoch_key, number) = carry, x
        if may_close:
            over = number >= stage.epochs
            opens &= over | ~stage.gated | constraint_holds(setup, learner, progress, team)
        work = partial(one_epoch, setup, hparams, sample, stage, opens, epoch_key)
        if not may_rest:
            learner, log = work(learner)
        else:
            runs = (number < stage.epochs) & (opens | row.critic_always)
            nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(work, learner)[1])
            learner, log = jax.lax.cond(runs, work, lambda same: (same, nothing), learner)
        return (learner, opens), log

    keys = jax.random.split(key, epochs)
    (learner, opens), log = jax.lax.scan(
        epoch, (progress.learner, opens), (keys, jnp.arange(epochs))
    )
    total = jax.tree.map(lambda x: x.sum(), log)
    mean = {
        name: total[name] / jnp.maximum(total[steps], 1)
        for names, steps in ((ACTOR_LOG, "actor_steps"), (CRITIC_LOG, "critic_steps"))
        for name in names
    }
    critic_steps = total["critic_steps"] * row.critic_passes
    return learner, total | mean | {"critic_steps": critic_steps, "gate": opens}


ACTOR_LOG = ("policy_loss", "actor_grad_norm")

CRITIC_LOG = ("value_loss", "critic_grad_norm")


def constraint_holds(
    setup: Setup, learner: Learner, progress: StageCarry, team: Batch
) -> Bool[Array, ""]:
    """The constraint of the dependent step (Eq. 11) for the policies as they are now."""
    _, log_ratio = evaluate_policy(setup, learner.actor, team)
    own, others = progress.log_ratio, others_log_ratio(log_ratio)
    return condition_gap(own, others, team.advantage, team.alive) >= -TOLERANCE


def one_epoch(
    setup: Setup,
    hparams: Hyperparameters,
    sample: StageData,
    stage: Stage,
    opens: Bool[Array, ""],
    key: PRNGKeyArray,
    learner: Learner,
) -> tuple[Learner, Metrics]:
    """One pass over the shuffled minibatches (more passes of the critic where the row says so)."""
    parts = shuffled(sample, key, setup.config.minibatches)

    def critic_only(learner: Learner, sequences: Array) -> tuple[Learner, Metrics]:
        return critic_step(setup, hparams, stage, learner, take(setup, sample, sequences))

    def both(learner: Learner, sequences: Array) -> tuple[Learner, Metrics]:
        return gradient_step(setup, hparams, stage, opens, learner, take(setup, sample, sequences))

    for _ in range(setup.row.critic_passes - 1):
        learner, _ = jax.lax.scan(critic_only, learner, parts)
    learner, log = jax.lax.scan(both, learner, parts)
    return learner, {name: values.sum() for name, values in log.items()}
