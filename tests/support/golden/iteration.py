"""One policy iteration of the golden reference."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from golden.data import Agent, Draws, Learner, Rollout, Settings
from golden.losses import actor_loss, critic_loss, log_ratios, policy_of
from golden.network import Array
from golden.optimiser import clip_gradient, descend
from golden.reports import Log, gap, living, report, steps_report, turn_report, value_report
from golden.returns import estimate, evaluate_agent, update_norm
from golden.stages import Stage, stages_of


def iterate(
    s: Settings, learner: Learner, rollout: Rollout, draws: Draws
) -> tuple[Learner, Array, dict[str, Any]]:
    """One policy iteration: the new learner, the critic's hidden state (e, n, h), metrics."""
    learner, first = copy.deepcopy(learner), learner
    agents, hidden_states, metrics = prepare(s, learner, rollout)
    if draws.split is not None:
        for i, agent in enumerate(agents):
            agent.advantage = draws.split[i] * agent.advantage
    rollout_policies = [policy_of(s, learner.actor, a, i)[0] for i, a in enumerate(agents)]
    stages, logs = stages_of(s, draws.orders), []
    log_ratio = [np.zeros_like(agent.value) for agent in agents]
    for number, stage in enumerate(stages):
        log = run_stage(s, learner, agents, stage, log_ratio, draws.minibatches[number])
        after = log_ratios(s, learner.actor, agents)
        policies = [policy_of(s, learner.actor, a, i)[0] for i, a in enumerate(agents)]
        kl = [old.kl(new) for old, new in zip(rollout_policies, policies, strict=True)]
        entropy = [policy.entropy() for policy in policies]
        logs.append(
            steps_report(s, log) | report(s, agents, log_ratio, after, draws.partner)
            | {"kl": living(agents, kl), "entropy": living(agents, entropy)}
            | turn_report(s, stage, agents, kl, log_ratio, after)
        )  # fmt: skip
        log_ratio = after
    metrics |= {name: np.array([log[name] for log in logs]) for name in logs[0]}
    stage = 0 if s.algorithm == "fp3o" else -1  # FP3O's condition: after the independent step
    holds = metrics["condition_gap"][stage] >= -1e-5
    if s.options.on_failed_condition == "revert" and not holds:
        learner.actor, learner.actor_adam = first.actor, first.actor_adam
    restore_dead(s, learner, first, rollout.alive)
    metrics |= {
        "condition_holds": holds,
        "condition_matches": holds == (metrics["constraint_gap"][-1] >= -1e-5),
        "actor_steps": metrics["actor_steps"].sum(),
        "critic_steps": metrics["critic_steps"].sum(),
    }
    return learner, hidden_states, metrics


def restore_dead(s: Settings, learner: Learner, first: Learner, alive: Array) -> None:
    """A group none of whose agents was ever alive stays as it was, its optimiser too."""
    for layer, groups in s.actor.groups.items():
        for group in set(groups):
            if not any(alive[:, :, i].any() for i, own in enumerate(groups) if own == group):
                learner.actor[layer, group] = first.actor[layer, group]
                learner.actor_adam[layer, group] = first.actor_adam[layer, group]


def prepare(
    s: Settings, learner: Learner, rollout: Rollout
) -> tuple[list[Agent], Array, dict[str, Any]]:
    """The agents' data with advantages and targets, the critic's hidden states, and metrics."""
    evaluated = [evaluate_agent(s, learner, rollout, i) for i in range(s.num_agents)]
    agents = [agent for agent, _ in evaluated]
    raw = estimate(s, agents, [np.ones_like(a.value) for a in agents])
    hidden_states = np.stack([hidden_state for _, hidden_state in evaluated], 1)
    return agents, hidden_states, value_report(agents, raw)


def run_stage(
    s: Settings,
    learner: Learner,
    agents: list[Agent],
    stage: Stage,
    log_ratio: list[Array],
    minibatches: list[list[list[int]]],
) -> Log:
    """The epochs of a stage; `log_ratio` is that of its beginning. Changes the learner."""
    frozen = {
        i: np.exp(sum((log_ratio[j] for j in stage.coupled[i]), np.zeros_like(log_ratio[i])))
        for i in stage.agents
    }
    own = [replace(agent) for agent in agents]
    if s.options.correct_advantages:
        turn = [own[i] for i in stage.agents]
        estimate(s, turn, [np.minimum(1.0, frozen[i]) for i in stage.agents])
    log = Log()
    if stage.gated:
        log.gate = gap(agents, log_ratio, log_ratio) >= -1e-5
    for epoch in range(stage.epochs):
        if stage.gated and s.options.refresh_ratios:
            now = log_ratios(s, learner.actor, agents)
            log.gate = log.gate and gap(agents, log_ratio, now) >= -1e-5
        for _ in range(s.options.critic_passes - 1):
            for sequences in minibatches[epoch]:
                critic_step(
                    s, learner, [a.part(sequences, s.sequence_length) for a in own], stage, Log()
                )
        for sequences in minibatches[epoch]:
            part = [a.part(sequences, s.sequence_length) for a in own]
            if log.gate:
                cut = part_of(frozen, sequences, s.sequence_length)
                actor_step(s, learner, part, stage, cut, log)
            if log.gate or s.options.critic_always:
                critic_step(s, learner, part, stage, log)
    return log


def part_of(frozen: dict[int, Array], sequences: list[int], length: int) -> dict[int, Array]:
    """The samples of these sequences."""
    return {i: x.reshape(-1, length)[sequences].reshape(-1) for i, x in frozen.items()}


def actor_step(
    s: Settings,
    learner: Learner,
    part: list[Agent],
    stage: Stage,
    frozen: dict[int, Array],
    log: Log,
) -> None:
    """One gradient step of the policies of the stage."""
    loss, grads = actor_loss(s, learner.actor, part, stage, frozen)
    rates = dict.fromkeys(s.actor.groups, s.actor_lr) | {"output": s.actor_lr * s.head_lr_factor}
    clipped, norm = clip_gradient(s.actor, grads, s.max_grad_norm)
    descend(s.actor, learner.actor, learner.actor_adam, clipped, stage.agents, rates)
    log.policy_loss.append(loss)
    log.actor_grad_norm.append(norm)


def critic_step(s: Settings, learner: Learner, part: list[Agent], stage: Stage, log: Log) -> None:
    """Update the normaliser of every critic of the stage once, then move the critics."""
    heads = s.critic.groups["output"]
    for head in sorted({heads[i] for i in stage.agents}):
        members = [i for i in stage.agents if heads[i] == head]
        update_norm(learner.norm[head], np.concatenate([part[i].target for i in members]))
    loss, grads = critic_loss(s, learner.critic, part, stage, learner.norm)
    rates = dict.fromkeys(s.critic.groups, s.critic_lr)
    clipped, norm = clip_gradient(s.critic, grads, s.max_grad_norm)
    descend(s.critic, learner.critic, learner.critic_adam, clipped, stage.agents, rates)
    log.value_loss.append(loss)
    log.critic_grad_norm.append(norm)
