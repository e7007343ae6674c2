"""TODO."""

import jax.numpy as jnp
from jaxtyping import Array

from fp3o.algorithms.fp3o import condition_gap, pipeline_objectives
from fp3o.algorithms.row import Stage
from fp3o.learning import statistics as measure
from fp3o.learning.config import Rates
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import Metrics, Progress, coupled, others_of
from fp3o.networks.distributions import Distribution
from fp3o.types import Batch


def report(
    setup: Setup,
    rates: Rates,
    batch: Batch,
    stage: Stage,
    start: Progress,
    end: Progress,
    rollout_policy: Distribution,
    policy: Distribution,
    partner: Array,
) -> Metrics:
    """What a stage did: where it began, where it ended, and the policies then and now."""
    before, after = start.log_ratio, end.log_ratio
    advantage, alive = batch.advantage, batch.alive
    others = others_of(after)
    ratio = jnp.exp(after)
    own = alive[stage.agents] * stage.member[:, None]
    product = ratio[stage.agents] * coupled(stage.coupling, after if setup.row.live else before)
    distance = rollout_policy.kl(policy)  # pyright: ignore
    outside = (jnp.abs(ratio - 1.0) > rates.clip).astype(ratio.dtype)
    return {
        "kl": measure.living_mean(distance, alive),
        "kl_quantiles": measure.quantiles(jnp.maximum(distance, 0.0)[stage.agents], own),
        "product_variance": measure.living_variance(product, own),
        "entropy": measure.living_mean(policy.entropy(), alive),
        "clip_fraction": (outside * alive).sum() / jnp.maximum(alive.sum(), 1.0),
        "ratio_quantiles": measure.quantiles(ratio, alive),
        "others_quantiles": measure.quantiles(jnp.exp(others), alive),
        "effective_sample_size": measure.effective_sample_size(after.sum(0)),
        "condition_new": (alive * ratio * jnp.exp(others) * advantage).sum(),
        "condition_old": (alive * ratio * advantage).sum(),
        "certificate": condition_gap(after, others, advantage, alive),
        "constraint": condition_gap(before, others, advantage, alive),
        "pipeline_objective": pipeline_objectives(after, before, advantage, alive, partner),
    }


import jax.numpy as jnp
from jaxtyping import Array
