"""One policy iteration, from the top down.

`policy_iteration` runs the stages of an algorithm, `run_stage` one of them, `run_epochs` its
epochs, `one_epoch` one pass over the minibatches. Gradient steps are in `steps`, losses in
`losses`.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.algorithms.fp3o import TOLERANCE, condition_gap, non_overlapping, random_split
from fp3o.algorithms.schedules import SCHEDULES, Stage
from fp3o.learning.batch import (
    IterationData,
    TDResiduals,
    advantages,
    merge_samples,
    standardise_advantages,
)
from fp3o.learning.collectives import block_keys, maxima, total
from fp3o.learning.config import Hyperparameters
from fp3o.learning.metrics import stage_metrics
from fp3o.learning.optim import PackedParams, update_where
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import (
    Metrics,
    StageCarry,
    StageData,
    StageInputs,
    StageResult,
    coupling_weights,
    others_log_ratio,
    stage_batch,
)
from fp3o.learning.steps import (
    critic_step,
    gradient_step,
    select_minibatch,
    shuffle_sequences,
    with_inputs,
)
from fp3o.networks.backend import on_gpu
from fp3o.networks.distributions import Distribution
from fp3o.types import Batch

ACTOR_METRICS = ("policy_loss", "actor_grad_norm")
"""Metrics that are means over the actor's gradient steps."""

CRITIC_METRICS = ("value_loss", "critic_grad_norm")
"""Metrics that are means over the critic's gradient steps."""

STEP_METRICS = (*ACTOR_METRICS, *CRITIC_METRICS, "actor_steps", "critic_steps")
"""Metrics of a gradient step."""


def policy_iteration(
    setup: Setup, hparams: Hyperparameters, learner: Learner, data: IterationData, key: PRNGKeyArray
) -> tuple[Learner, Metrics]:
    """One policy iteration: run the stages of the algorithm's schedule."""
    row = setup.row
    order_key, split_key, pair_key, shuffle_key = jax.random.split(key, 4)
    if row.split == "random":
        split = split_by_block(setup, split_key, data.batch.advantage)
        data = data._replace(batch=data.batch._replace(advantage=split))
    batch = data.batch
    stages = SCHEDULES[row.schedule](order_key, data.score, setup.config.epochs, row)
    partner = non_overlapping(pair_key, setup.spec.num_agents)
    keys = jax.random.split(shuffle_key, len(stages.gated))
    rollout_policy, replay = evaluate_policy(setup, learner.actor, batch)

    def stage_body(before: StageCarry, x: tuple[Stage, Array]) -> tuple[StageCarry, Metrics]:
        new_learner, log = run_stage(setup, hparams, data, before, *x)
        policy, log_ratio = evaluate_policy(setup, new_learner.actor, batch)
        after = StageCarry(new_learner, log_ratio)
        result = StageResult(x[0], before.log_ratio, log_ratio, rollout_policy, policy)
        log |= stage_metrics(setup, hparams, batch, result, partner)
        if row.shadow:
            after = jax.tree.map(partial(jnp.where, log["gate"]), after, before)
            log |= {name: log[name] * log["gate"] for name in ("actor_steps", "critic_steps")}
        return after, log

    first = StageCarry(learner, jnp.zeros_like(batch.log_prob))
    last, log = jax.lax.scan(stage_body, first, (stages, keys))
    log |= {"replay_error": maxima(jnp.abs(replay).max())} | _iteration_metrics(setup, log)
    # An agent that was dead for the whole rollout has no data: momentum must not move it either.
    keep = log["condition_holds"] if row.on_failed_condition == "revert" else True
    log |= {"largest_log_ratio": jnp.where(keep, jnp.abs(last.log_ratio).max(), 0.0)}
    has_data = total(batch.alive.sum(1)) > 0
    return revert_frozen(setup, learner, last.learner, has_data & keep), log


def split_by_block(
    setup: Setup, key: PRNGKeyArray, advantage: Float[Array, "n r"]
) -> Float[Array, "n r"]:
    """Random split of the advantages, drawn for every block of environments."""
    keys = block_keys(key, setup.config.blocks)
    by_block = advantage.reshape(len(advantage), len(keys), -1)
    return jax.vmap(random_split, (0, 1), 1)(keys, by_block).reshape(advantage.shape)


def _iteration_metrics(setup: Setup, log: Metrics) -> Metrics:
    """Metrics of all stages together."""
    stage = SCHEDULES[setup.row.schedule].condition_stage
    holds = log["condition_gap"][stage] >= -TOLERANCE
    return {
        "condition_holds": holds,
        "condition_matches": holds == (log["constraint_gap"][-1] >= -TOLERANCE),
        "actor_steps": log["actor_steps"].sum(),
        "critic_steps": log["critic_steps"].sum(),
    }


def revert_frozen(
    setup: Setup, before: Learner, after: Learner, updated: Bool[Array, " n"]
) -> Learner:
    """Restore policies and their optimisers for agents that must not be updated."""
    layout = setup.actor_layout
    actor = update_where(layout, updated, after.actor, before.actor)
    adam = update_where(layout, updated, after.actor_adam, before.actor_adam)
    return after._replace(actor=actor, actor_adam=adam)


def evaluate_policy(
    setup: Setup, params: PackedParams, batch: Batch
) -> tuple[Distribution, Float[Array, "n r"]]:
    """The team's policies on the whole batch, and their log-ratios to the rollout policies."""
    policy, _ = setup.actor(params)(
        batch.obs, batch.action_mask, batch.actor_hidden, batch.episode_start
    )
    return policy, (policy.log_prob(batch.action) - batch.log_prob) * batch.alive


def run_stage(
    setup: Setup,
    hparams: Hyperparameters,
    data: IterationData,
    start: StageCarry,
    stage: Stage,
    key: PRNGKeyArray,
) -> tuple[Learner, Metrics]:
    """Prepare the data of the stage's agents, evaluate the gate, and run the epochs."""
    team, log_ratio = data.batch, start.log_ratio
    gap = total_gap(log_ratio, others_log_ratio(log_ratio), team)
    batch = stage_batch(setup, team, stage)
    others = coupling_weights(stage.coupling, log_ratio)
    if setup.row.correct_advantages:
        residuals = jax.tree.map(lambda x: x[stage.agents], data.residuals)
        batch = correct_advantages(setup, batch, residuals, others, stage.member)
    gate = ~stage.gated | (gap >= -TOLERANCE)
    inputs = StageInputs(hparams, stage, StageData(batch, others), team, log_ratio)
    learner, log = run_epochs(setup, inputs, start.learner, gate | setup.row.shadow, key)
    return learner, log | {"gate": log["gate"] & gate}


def correct_advantages(
    setup: Setup,
    batch: Batch,
    residuals: TDResiduals,
    others: Float[Array, "k r"],
    member: Float[Array, " k"],
) -> Batch:
    """A2PO's preceding-agent correction: advantages and targets under min(1, Π r_j)."""
    trace = jnp.minimum(others, 1.0).reshape(residuals.delta.shape)
    advantage = advantages(residuals, trace)
    counts = (batch.alive * member[:, None]).reshape(advantage.shape)
    scaled = standardise_advantages(setup, advantage, counts)
    return batch._replace(
        advantage=merge_samples(scaled), target=merge_samples(advantage + residuals.value)
    )


def run_epochs(
    setup: Setup, inputs: StageInputs, learner: Learner, gate: Bool[Array, ""], key: PRNGKeyArray
) -> tuple[Learner, Metrics]:
    """The epochs of a stage; none if its gate is closed."""
    row, facts, stage = setup.row, setup.stage_facts, inputs.stage
    may_skip, may_close = facts.gated or facts.uneven, facts.gated and row.refresh_ratios

    def epoch(carry: tuple[Learner, Array], x: tuple[Array, Array]):
        (learner, gate), (epoch_key, number) = carry, x
        if may_close:
            over = number >= stage.epochs
            gate &= over | ~stage.gated | constraint_holds(setup, learner, inputs)
        work = partial(one_epoch, setup, inputs, gate, epoch_key)
        if not may_skip:
            learner, log = work(learner)
        else:
            runs = (number < stage.epochs) & (gate | row.critic_always)
            nothing = jax.tree.map(jnp.zeros_like, jax.eval_shape(work, learner)[1])
            learner, log = jax.lax.cond(runs, work, lambda same: (same, nothing), learner)
        return (learner, gate), log

    keys = jax.random.split(key, facts.max_epochs)
    numbers = jnp.arange(facts.max_epochs)
    (learner, gate), log = jax.lax.scan(epoch, (learner, gate), (keys, numbers))
    total = jax.tree.map(lambda x: x.sum(), log)
    mean = {
        name: total[name] / jnp.maximum(total[steps], 1)
        for names, steps in ((ACTOR_METRICS, "actor_steps"), (CRITIC_METRICS, "critic_steps"))
        for name in names
    }
    steps = {
        "actor_steps": total["actor_steps"].astype(int),
        "critic_steps": total["critic_steps"].astype(int) * row.critic_passes,
    }
    return learner, total | mean | steps | {"gate": gate}


def constraint_holds(setup: Setup, learner: Learner, inputs: StageInputs) -> Bool[Array, ""]:
    """The constraint of the dependent step (Eq. 11) for the current policies."""
    team = inputs.team
    _, log_ratio = evaluate_policy(setup, learner.actor, team)
    others = others_log_ratio(log_ratio)
    return total_gap(inputs.log_ratio, others, team) >= -TOLERANCE


def total_gap(
    own: Float[Array, "n r"], others: Float[Array, "n r"], team: Batch
) -> Float[Array, ""]:
    """The gap of FP3O's condition over all environments."""
    return total(condition_gap(own, others, team.advantage, team.alive))


def one_epoch(
    setup: Setup, inputs: StageInputs, gate: Bool[Array, ""], key: PRNGKeyArray, learner: Learner
) -> tuple[Learner, Metrics]:
    """One pass over shuffled minibatches (and additional passes of the critic, if configured)."""
    config = setup.config
    minibatches: Any = shuffle_sequences(inputs.data, key, config.minibatches, config.blocks)
    select = partial(select_minibatch, setup, inputs)
    if on_gpu():  # all at once: fewer kernels; on a CPU, slicing the result costs more
        minibatches, select = jax.vmap(select)(minibatches), lambda minibatch: minibatch

    def critic_only(learner: Learner, part: Any) -> tuple[Learner, Metrics]:
        return critic_step(setup, inputs, learner, with_inputs(inputs.data, select(part)))

    def both(learner: Learner, part: Any) -> tuple[Learner, Array]:
        minibatch = with_inputs(inputs.data, select(part))
        learner, log = gradient_step(setup, inputs, gate, learner, minibatch)
        return learner, jnp.stack([log[name] for name in STEP_METRICS])  # one array to write

    for _ in range(setup.row.critic_passes - 1):
        learner, _ = jax.lax.scan(critic_only, learner, minibatches)
    learner, log = jax.lax.scan(both, learner, minibatches)
    return learner, dict(zip(STEP_METRICS, log.sum(0), strict=True))
