"""Metrics of a stage: how far the policies moved, and FP3O's condition."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from fp3o.algorithms.fp3o import condition_gap, pipeline_objectives
from fp3o.learning import statistics
from fp3o.learning.collectives import total
from fp3o.learning.config import Hyperparameters
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import Metrics, StageResult, coupling_weights, others_log_ratio
from fp3o.types import Batch


def stage_metrics(
    setup: Setup,
    hparams: Hyperparameters,
    batch: Batch,
    result: StageResult,
    partner: Int[Array, " n"],
) -> Metrics:
    """Metrics of one stage; `partner` is FP3O's non-overlapping selection."""
    stage, before, after = result.stage, result.before, result.after
    advantage, alive = batch.advantage, batch.alive
    others = others_log_ratio(after)
    ratio = jnp.exp(after)
    updated = alive[stage.agents] * stage.member[:, None]
    product = ratio[stage.agents] * coupling_weights(
        stage.coupling, after if setup.row.refresh_ratios else before
    )
    kl = result.rollout_policy.kl(result.policy)  # pyright: ignore[reportArgumentType]
    return {
        "kl": statistics.alive_mean(kl, alive),
        "kl_quantiles": statistics.quantiles(jnp.maximum(kl, 0.0)[stage.agents], updated),
        "product_variance": statistics.alive_variance(product, updated),
        "entropy": statistics.alive_mean(result.policy.entropy(), alive),
        "clip_fraction": _clip_fraction(ratio, alive, hparams),
        "ratio_quantiles": statistics.quantiles(ratio, alive),
        "others_ratio_quantiles": statistics.quantiles(jnp.exp(others), alive),
        "effective_sample_size": statistics.effective_sample_size(after.sum(0)),
        "pipeline_objective": statistics.alive_mean(
            pipeline_objectives(after, before, advantage, partner), alive
        ),
        **total(
            {
                "condition_new": (alive * ratio * jnp.exp(others) * advantage).sum(),
                "condition_old": (alive * ratio * advantage).sum(),
                "condition_gap": condition_gap(after, others, advantage, alive),
                "constraint_gap": condition_gap(before, others, advantage, alive),
            }
        ),
    }


def _clip_fraction(ratio: Array, alive: Array, hparams: Hyperparameters) -> Float[Array, ""]:
    outside = (jnp.abs(ratio - 1.0) > hparams.clip_range).astype(ratio.dtype)
    count, number = total(((outside * alive).sum(), alive.sum()))
    return count / jnp.maximum(number, 1.0)
