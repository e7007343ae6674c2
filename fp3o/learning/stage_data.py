"""Inputs, carried state and results of the stages of an iteration."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float

from fp3o.algorithms.schedules import Stage
from fp3o.algorithms.surrogates import ratio_of
from fp3o.learning.config import Hyperparameters
from fp3o.learning.setup import Learner, Setup
from fp3o.networks.distributions import Distribution
from fp3o.types import Batch

Metrics = dict[str, Array]


class StageCarry(NamedTuple):
    """State that one stage passes on to the next."""

    learner: Learner
    log_ratio: Float[Array, "n r"]
    """log π - log π_rollout of the actions taken, 0 for dead agents."""


class StageData(NamedTuple):
    """Training data of a stage, or a minibatch of it."""

    batch: Batch
    """Samples of the agents of the stage."""
    others: Float[Array, "k r"]
    """W before any clip: product of the coupled agents' ratios at the start of the stage."""


class StageInputs(NamedTuple):
    """Inputs that stay fixed during the epochs of a stage."""

    hparams: Hyperparameters
    stage: Stage
    data: StageData
    team: Batch
    """Samples of all agents."""
    log_ratio: Float[Array, "n r"]
    """Log-ratios of all agents at the start of the stage."""


class StageResult(NamedTuple):
    """Policies before and after a stage, on the whole batch."""

    stage: Stage
    before: Float[Array, "n r"]
    """Log-ratios of all agents at the start of the stage."""
    after: Float[Array, "n r"]
    rollout_policy: Distribution
    policy: Distribution
    """Policies after the stage."""


def stage_batch(setup: Setup, team: Batch, stage: Stage) -> Batch:
    """Samples of the agents of a stage; critics that look across agents need inputs of all."""
    if setup.whole_team:
        return team
    batch = jax.tree.map(lambda x: x[stage.agents], team)
    return batch._replace(critic_input=team.critic_input) if setup.crosses_agents else batch


def others_log_ratio(log_ratio: Float[Array, "n r"]) -> Float[Array, "n r"]:
    """Σ_{j≠i} log r_j."""
    return log_ratio.sum(0) - log_ratio


def coupling_weights(
    coupling: Float[Array, "k n"], log_ratio: Float[Array, "n r"]
) -> Float[Array, "k r"]:
    """W_i = exp(Σ_j C_ij log r_j): products of ratios as sums of logarithms."""
    return ratio_of(coupling @ log_ratio)
