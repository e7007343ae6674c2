"""Metrics of the golden reference, per stage and per iteration."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from golden.data import Agent, Settings
from golden.network import Array
from golden.stages import Stage


@dataclass
class Log:
    """Metrics of the gradient steps of a stage."""

    policy_loss: list[float] = field(default_factory=list)
    actor_grad_norm: list[float] = field(default_factory=list)
    value_loss: list[float] = field(default_factory=list)
    critic_grad_norm: list[float] = field(default_factory=list)
    gate: bool = True


def gap(agents: list[Agent], own: list[Array], now: list[Array]) -> float:
    """The condition Σ_i Σ alive A^i h_i (Π_{j≠i} r_j - 1), to be at least -1e-5."""
    total = 0.0
    for i, agent in enumerate(agents):
        others = np.exp(sum(now) - now[i])
        total += float((agent.alive * agent.advantage * np.exp(own[i]) * (others - 1.0)).sum())
    return total


def living(agents: list[Agent], x: list[Array]) -> Array:
    """Each agent's mean over the rows at which it is alive."""
    pairs = zip(agents, x, strict=True)
    return np.array([(a.alive * y).sum() / max(a.alive.sum(), 1.0) for a, y in pairs])


def value_report(agents: list[Agent], raw: list[Array]) -> dict[str, Any]:
    """Explained variance 1 - var(y - V) / var(y), mean value, and |A| of every agent."""
    target, units = np.stack([a.target for a in agents]), np.stack([a.units for a in agents])
    return {
        "explained_variance": 1.0 - (target - units).var() / target.var(),
        "value": units.mean(),
        "mean_abs_advantage": living(agents, [np.abs(x) for x in raw]),
    }


def steps_report(s: Settings, log: Log) -> dict[str, Any]:
    """Means over the gradient steps of a stage (0 where there were none), and their number.

    Where the critic makes several passes, its means are those of the last one, with the actor.
    """
    mean = {name: np.mean(x) if x else 0.0 for name, x in vars(log).items() if name != "gate"}
    critic_steps = len(log.value_loss) * s.options.critic_passes
    steps = {"actor_steps": len(log.policy_loss), "critic_steps": critic_steps}
    return mean | steps | {"gate": log.gate}


def report(
    s: Settings, agents: list[Agent], before: list[Array], after: list[Array], partner: list[int]
) -> dict[str, Any]:
    """Measures of a stage from the log-ratios before and after it."""
    alive = np.stack([agent.alive for agent in agents])
    advantage = np.stack([agent.advantage for agent in agents])
    now, then = np.stack(after), np.stack(before)
    ratio, joint = np.exp(now), np.exp(now.sum(0))
    objective = [
        (np.exp(now[i] + then.sum(0) - then[i]) - np.exp(then[j])) * advantage[i]
        for i, j in enumerate(partner)
    ]
    return {
        "clip_fraction": (np.abs(ratio - 1.0) > s.clip_range)[alive > 0].mean(),
        "ratio_quantiles": quantiles(ratio[alive > 0]),
        "others_ratio_quantiles": quantiles((joint / ratio)[alive > 0]),
        "effective_sample_size": joint.sum() ** 2 / (joint.size * (joint**2).sum()),
        "condition_new": (alive * joint * advantage).sum(),
        "condition_old": (alive * ratio * advantage).sum(),
        "condition_gap": gap(agents, after, after),
        "constraint_gap": gap(agents, before, after),
        "pipeline_objective": living(agents, objective),
    }


def turn_report(
    s: Settings,
    stage: Stage,
    agents: list[Agent],
    kl: list[Array],
    before: list[Array],
    after: list[Array],
) -> dict[str, Any]:
    """Of the agents that a stage updates: their KL step by step, the products in its objective."""
    own = [(i, agents[i].alive.reshape(-1) > 0) for i in stage.agents]
    coupled = after if s.options.refresh_ratios else before
    products = [
        np.exp(after[i] + sum(coupled[j] for j in stage.coupled[i])).reshape(-1)[alive]
        for i, alive in own
    ]
    distances = [kl[i].reshape(-1)[alive] for i, alive in own]
    return {
        "kl_quantiles": quantiles(np.maximum(np.concatenate(distances), 0.0)),
        "product_variance": np.concatenate(products).var() if any(map(len, products)) else 0.0,
    }


def quantiles(x: Array) -> Array:
    """Least, 5 %, median, 95 %, largest: the entry of nearest rank."""
    ranked = np.sort(x.reshape(-1)) if x.size else np.zeros(1)
    return ranked[[round(q * (len(ranked) - 1)) for q in (0.0, 0.05, 0.5, 0.95, 1.0)]]
