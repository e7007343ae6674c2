"""TODO."""

import jax.numpy as jnp
from jaxtyping import Array

from fp3o.algorithms.fp3o import condition_gap, pipeline_objectives
from fp3o.algorithms.row import Stage
from fp3o.learning import statistics as measure
from fp3o.learning.config import Hyperparameters
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import Metrics, StageCarry, coupling_weights, others_log_ratio
from fp3o.networks.distributions import Distribution
from fp3o.types import Batch


def stage_metrics(
    setup: Setup,
    hparams: Hyperparameters,
    batch: Batch,
    stage: Stage,
    episode_start: StageCarry,
    end: StageCarry,
    rollout_policy: Distribution,
    policy: Distribution,
    partner: Array,
) -> Metrics:
    """What a stage did: where it began, where it ended, and the policies then and now."""
    before, after = episode_start.log_ratio, end.log_ratio
    advantage, alive = batch.advantage, batch.alive
    others = others_log_ratio(after)
    ratio = jnp.exp(after)
    own = alive[stage.agents] * stage.member[:, None]
    product = ratio[stage.agents] * coupling_weights(
        stage.coupling, after if setup.row.refresh_ratios else before
    )
    distance = rollout_policy.kl(policy)  # pyright: ignore
    outside = (jnp.abs(ratio - 1.0) > hparams.clip_range).astype(ratio.dtype)
    return {
        "kl": measure.living_mean(distance, alive),
        "kl_quantiles": measure.quantiles(jnp.maximum(distance, 0.0)[stage.agents], own),
        "product_variance": measure.living_variance(product, own),
        "entropy": measure.living_mean(policy.entropy(), alive),
        "clip_fraction": (outside * alive).sum() / jnp.maximum(alive.sum(), 1.0),
        "ratio_quantiles": measure.quantiles(ratio, alive),
        "others_ratio_quantiles": measure.quantiles(jnp.exp(others), alive),
        "effective_sample_size": measure.effective_sample_size(after.sum(0)),
        "condition_new": (alive * ratio * jnp.exp(others) * advantage).sum(),
        "condition_old": (alive * ratio * advantage).sum(),
        "condition_gap": condition_gap(after, others, advantage, alive),
        "constraint_gap": condition_gap(before, others, advantage, alive),
        "pipeline_objective": pipeline_objectives(after, before, advantage, alive, partner),
    }


import jax.numpy as jnp
from jaxtyping import Array
