"""Losses of the golden reference, and their gradients."""

from typing import Any

import numpy as np

from golden.data import Agent, Settings
from golden.network import (
    Array,
    Layer,
    Mask,
    Network,
    Params,
    add_gradient,
    backward,
    forward,
    zeros_like,
)
from golden.policies import Categorical, Gaussian, Mixed, Policy
from golden.returns import statistics
from golden.stages import Stage


def weights(net: Network, members: list[int], counts: dict[int, Array]) -> dict[int, Array]:
    """Weights of the samples: in a component, heads weigh by their agents, samples are pooled.

    counts / (Σ counts over the agents with the same output layer)
    times (agents with that output layer) / (agents in the component).
    """
    heads, component = net.groups["output"], net.components()
    result = {}
    for i in members:
        same_head = [j for j in members if heads[j] == heads[i]]
        same_component = [j for j in members if component[j] == component[i]]
        pooled = max(sum(counts[j].sum() for j in same_head), 1.0)
        result[i] = counts[i] / pooled * len(same_head) / len(same_component)
    return result


def surrogate(
    kind: str, ratio: Array, others: Array, advantage: Array, clip: float, inner: float | None
) -> tuple[Array, Array, Array]:
    """What is maximised, and its derivatives by log r_i and by log Π r_j.

    clip_own: min(r g A, clip(r) g A);   clip_product: min(r g A, clip(r g) A);
    joint: min(r Π A, clip(r g) A), the only one with a gradient through the others;
    with Π the others' product and g = clip(Π).
    """
    g = others if inner is None else np.clip(others, 1.0 - inner, 1.0 + inner)
    bounded = ratio if kind == "clip_own" else ratio * g
    inside = np.abs(bounded - 1.0) <= clip
    clipped = np.clip(bounded, 1.0 - clip, 1.0 + clip) * advantage
    clipped = clipped * g if kind == "clip_own" else clipped
    plain = ratio * (others if kind == "joint" else g) * advantage
    first = plain <= clipped
    own = np.where(first, plain, np.where(inside, clipped, 0.0))
    free = np.ones_like(inside) if inner is None else np.abs(others - 1.0) <= inner
    through = np.where(first, plain, np.where(inside & free, clipped, 0.0))
    return np.minimum(plain, clipped), own, through if kind == "joint" else np.zeros_like(own)


def huber(error: Array, delta: float) -> tuple[Array, Array]:
    """e²/2 up to |e| = δ, then δ (|e| - δ/2); and its derivative."""
    small = np.abs(error) <= delta
    value = np.where(small, 0.5 * error**2, delta * (np.abs(error) - 0.5 * delta))
    return value, np.where(small, error, delta * np.sign(error))


def policy_of(
    s: Settings, params: Params, agent: Agent, i: int
) -> tuple[Policy, dict[str, Layer], Any]:
    """Agent i's action distribution at its rows, and the tape for the backward pass."""
    own = s.actor.own(params, i)
    out, _, tape = forward(s.actor, own, agent.features, agent.hidden_state, agent.episode_start)
    return head_of(s, own, out, agent.action_mask), own, tape


def head_of(s: Settings, own: dict[str, Layer], out: Array, action_mask: Mask) -> Policy:
    """The distribution that the outputs of the last layer stand for."""
    if not s.num_dimensions:
        return Categorical(out, action_mask, s.widths)
    number = sum(s.widths)
    free = own["output"]["log_std"]
    vector = Gaussian(out[:, number:], action_mask[:, number:], free, s.std_param)
    if not s.widths:
        return vector
    return Mixed(Categorical(out[:, :number], action_mask[:, :number], s.widths), vector)


def log_ratios(s: Settings, params: Params, agents: list[Agent]) -> list[Array]:
    """Log π - log π_rollout of the actions taken, 0 for dead agents."""
    return [
        (policy_of(s, params, agent, i)[0].log_prob(agent.action) - agent.log_prob) * agent.alive
        for i, agent in enumerate(agents)
    ]


def actor_loss(
    s: Settings, params: Params, part: list[Agent], stage: Stage, frozen: dict[int, Array]
) -> tuple[float, Params]:
    """-Σ w (surrogate + c_H H) over the agents of the stage, and its gradient.

    `frozen` is the others' product at the start of the stage; with `refresh_ratios` it is
    recomputed.
    """
    found = {i: policy_of(s, params, part[i], i) for i in stage.agents}
    log_ratio = {
        i: (found[i][0].log_prob(part[i].action) - part[i].log_prob) * part[i].alive for i in found
    }
    weight = weights(s.actor, stage.agents, {i: part[i].alive for i in stage.agents})
    inner = None if s.options.inner_clip is None else s.options.inner_clip * s.clip_range
    loss, dlog_ratio = 0.0, {i: np.zeros_like(x) for i, x in log_ratio.items()}
    for i in stage.agents:
        others = frozen[i]
        if s.options.refresh_ratios:
            others = np.exp(sum((log_ratio[j] for j in stage.coupled[i]), np.zeros(len(others))))
        gain, own, through = surrogate(
            s.options.surrogate, np.exp(log_ratio[i]), others, part[i].advantage, stage.clip[i],
            inner,
        )  # fmt: skip
        loss -= float((weight[i] * (gain + s.entropy_coef * found[i][0].entropy())).sum())
        dlog_ratio[i] -= weight[i] * own
        for j in stage.coupled[i]:
            if j in dlog_ratio:
                dlog_ratio[j] -= weight[i] * through
    grads = zeros_like(params)
    for i, (policy, own, tape) in found.items():
        dlog_prob = dlog_ratio[i] * part[i].alive
        dout, head = policy.back(part[i].action, dlog_prob, -s.entropy_coef * weight[i])
        layers = backward(s.actor, own, tape, dout)
        layers["output"] |= head
        add_gradient(grads, s.actor, i, layers)
    return loss, grads


def critic_loss(
    s: Settings, params: Params, part: list[Agent], stage: Stage, norm: list[list[float]]
) -> tuple[float, Params]:
    """Σ w max(h(y - v), h(y - v_clip)), v_clip = v_old + clip(v - v_old), and its gradient."""
    counts = {i: part[i].alive for i in stage.agents}
    if not s.mask_value_loss:
        counts = {i: np.ones_like(alive) for i, alive in counts.items()}
    weight = weights(s.critic, stage.agents, counts)
    width = s.clip_range if s.value_clip is None else s.value_clip
    loss, grads = 0.0, zeros_like(params)
    for i in stage.agents:
        own = s.critic.own(params, i)
        out, _, tape = forward(
            s.critic, own, part[i].critic_input, part[i].critic_hidden, part[i].episode_start
        )
        value, old = out[:, 0], part[i].value
        mean, std = statistics(norm[s.critic.groups["output"][i]])
        target = (part[i].target - mean) / std
        near = old + np.clip(value - old, -width, width)
        free, dfree = huber(target - value, s.huber_delta)
        held, _ = huber(target - near, s.huber_delta)
        inside = np.abs(value - old) <= width
        dvalue = np.where(inside, -dfree, np.where(free >= held, -dfree, 0.0))
        loss += float((weight[i] * np.maximum(free, held)).sum())
        layers = backward(s.critic, own, tape, (weight[i] * dvalue)[:, None])
        add_gradient(grads, s.critic, i, layers)
    return loss, grads
