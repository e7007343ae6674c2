"""What a minibatch maximises: the surrogate of its agents, and what their critics minimise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.algorithms.row import Stage
from fp3o.algorithms.surrogates import SURROGATES
from fp3o.learning.config import Hyperparameters
from fp3o.learning.optim import PackedParams
from fp3o.learning.returns import ValueNorm, huber
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import StageData, coupling_weights
from fp3o.networks.layers import Agents
from fp3o.sharing.schemes import Sharing, components
from fp3o.types import Batch


def in_order(setup: Setup, stage: Stage) -> Agents:
    """The stage's agents as a network wants them; None: the whole team in order."""
    return None if setup.whole_team else stage.agents


def actor_loss(
    rows: PackedParams, setup: Setup, hparams: Hyperparameters, sample: StageData, stage: Stage
) -> Float[Array, ""]:
    """-⟨surrogate + c_H entropy⟩ over the living agents of the stage."""
    batch, row = sample.batch, setup.row
    policy, _ = setup.actor(rows)(
        batch.obs,
        batch.action_mask,
        batch.actor_hidden,
        batch.episode_start,
        in_order(setup, stage),
    )
    log_ratio = (policy.log_prob(batch.action) - batch.log_prob) * batch.alive
    others = sample.others
    if row.refresh_ratios:
        moved = log_ratio if row.surrogate == "joint" else jax.lax.stop_gradient(log_ratio)
        others = coupling_weights(stage.coupling, moved)
    inner = None if row.inner_clip is None else row.inner_clip * hparams.clip_range
    clip = (hparams.clip_range * stage.clip_factor)[:, None]
    gain = SURROGATES[row.surrogate](jnp.exp(log_ratio), others, batch.advantage, clip, inner)
    weight = sample_weights(batch.alive, stage, setup.actor_sharing)
    return -(weight * (gain + hparams.entropy_coef * policy.entropy())).sum()


def critic_loss(
    rows: PackedParams,
    setup: Setup,
    hparams: Hyperparameters,
    norm: ValueNorm,
    batch: Batch,
    stage: Stage,
) -> Float[Array, ""]:
    """⟨max(h(y - v), h(y - v_clipped))⟩ with normalised targets y and Huber's h."""
    out, _ = setup.critic(rows)(
        batch.critic_input, batch.critic_hidden, batch.episode_start, in_order(setup, stage)
    )
    value = out[..., 0]
    target = norm.normalise(batch.target, setup.critic_of_agent[stage.agents])
    width = hparams.clip_range if hparams.value_clip is None else hparams.value_clip
    near = batch.value + jnp.clip(value - batch.value, -width, width)
    loss = jnp.maximum(
        huber(target - value, hparams.huber_delta), huber(target - near, hparams.huber_delta)
    )
    counts = batch.alive if setup.config.mask_value_loss else jnp.ones_like(batch.alive)
    return (sample_weights(counts, stage, setup.critic_sharing) * loss).sum()


def sample_weights(
    counts: Float[Array, "k r"], stage: Stage, sharing: Sharing
) -> Float[Array, "k r"]:
    """Weights that add up to 1 in every component: the loss is a sum of one mean a component.

    Samples are pooled over agents with one output layer, and a component's output layers count by
    their agents. Full sharing: one pooled mean. Partial: the mean of the agents' means. None: each
    agent's own mean (D7).
    """
    member = stage.member

    def together(groups: tuple[int, ...]) -> Float[Array, "k k"]:
        group = jnp.asarray(groups)[stage.agents]
        return (group[:, None] == group) * member

    head, component = together(sharing[-1]), together(components(sharing))
    pooled = jnp.maximum(head @ counts.sum(1), 1.0)
    share = member * head.sum(1) / jnp.maximum(component.sum(1), 1.0)
    return counts * (share / pooled)[:, None]
