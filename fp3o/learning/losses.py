"""Losses of a minibatch: the surrogate of the actors and the value loss of the critics."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.algorithms.schedules import Stage
from fp3o.algorithms.surrogates import SURROGATES, ratio_of
from fp3o.learning.collectives import total
from fp3o.learning.optim import PackedParams
from fp3o.learning.returns import ValueNorm, huber
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import StageData, StageInputs, coupling_weights
from fp3o.networks.backend import materialised
from fp3o.networks.layers import Agents
from fp3o.sharing.maps import Sharing, components
from fp3o.types import Batch


def network_agents(setup: Setup, stage: Stage) -> Agents:
    """Agents of the stage, as passed to networks; None: the whole team in order."""
    return None if setup.whole_team else stage.agents


def actor_loss(
    params: PackedParams,
    setup: Setup,
    inputs: StageInputs,
    data: StageData,
    weight: Float[Array, "k r"],
) -> Float[Array, ""]:
    """-⟨surrogate + c_H entropy⟩ over the living agents of the stage."""
    hparams, stage = inputs.hparams, inputs.stage
    batch, row, surrogate = data.batch, setup.row, SURROGATES[setup.row.surrogate]
    policy, _ = setup.actor(params)(
        batch.obs,
        batch.action_mask,
        batch.actor_hidden,
        batch.episode_start,
        network_agents(setup, stage),
    )
    log_prob = materialised(policy.log_prob(batch.action))
    log_ratio = (log_prob - batch.log_prob) * batch.alive
    others = data.others
    if row.refresh_ratios:
        frozen = jax.lax.stop_gradient(log_ratio)
        ratios = log_ratio if surrogate.differentiates_others else frozen
        others = coupling_weights(stage.coupling, ratios)
    inner = None if row.inner_clip is None else row.inner_clip * hparams.clip_range
    clip = (hparams.clip_range * stage.clip_factor)[:, None]
    objective = surrogate(ratio_of(log_ratio), others, batch.advantage, clip, inner)
    return -(weight * (objective + hparams.entropy_coef * policy.entropy())).sum()


def critic_loss(
    params: PackedParams,
    setup: Setup,
    inputs: StageInputs,
    value_norm: ValueNorm,
    batch: Batch,
    weight: Float[Array, "k r"],
) -> Float[Array, ""]:
    """⟨max(h(y - v), h(y - v_clipped))⟩ with normalised targets y and Huber's h."""
    hparams, stage = inputs.hparams, inputs.stage
    out, _ = setup.critic(params)(
        batch.critic_input, batch.critic_hidden, batch.episode_start, network_agents(setup, stage)
    )
    value = out[..., 0]
    target = value_norm.normalise(batch.target, setup.critic_of_agent[stage.agents])
    width = hparams.clip_range if hparams.value_clip is None else hparams.value_clip
    clipped = batch.value + jnp.clip(value - batch.value, -width, width)
    loss = jnp.maximum(
        huber(target - value, hparams.huber_delta), huber(target - clipped, hparams.huber_delta)
    )
    return (weight * loss).sum()


def sample_weights(
    counts: Float[Array, "k r"], stage: Stage, sharing: Sharing
) -> Float[Array, "k r"]:
    """Weights that sum to 1 in every component: the loss is a sum of one mean per component.

    Samples are pooled over agents that share an output layer, and output layers of a component are
    weighted by their number of agents. Full sharing: one pooled mean. Partial: the mean of the
    agents' means. None: a separate mean per agent (D7).
    """
    member = stage.member

    def same_group(groups: tuple[int, ...]) -> Float[Array, "k k"]:
        group = jnp.asarray(groups)[stage.agents]
        return (group[:, None] == group) * member

    head, component = same_group(sharing[-1]), same_group(components(sharing))
    pooled = jnp.maximum(head @ total(counts.sum(1)), 1.0)
    share = member * head.sum(1) / jnp.maximum(component.sum(1), 1.0)
    return counts * (share / pooled)[:, None]
