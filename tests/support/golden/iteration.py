"""One policy iteration of all six algorithms in plain NumPy: the golden reference.

Loops over stages, epochs, minibatches and agents; NumPy in float64; no JAX, nothing shared with the
library. Random numbers (orders, shuffles, split weights) are given as `Draws`.

Samples (rows) are ordered by environment, then time: row e·T + t. Data of agents are lists over
agents, data of parameter groups are dicts with the key (layer, group).
"""

import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from golden.network import (
    Adam,
    Array,
    Categorical,
    Gaussian,
    Layer,
    Network,
    Params,
    Policy,
    add_gradient,
    backward,
    descend,
    forward,
    huber,
    surrogate,
    weights,
    zeros_like,
)


@dataclass(frozen=True)
class Options:
    """How an algorithm differs from plain PPO of the whole team."""

    surrogate: str = "clip_own"
    refresh_ratios: bool = False
    inner_clip: float | None = None
    blocks: int | None = None
    rounds: int = 1
    clip_slope: float = 0.0
    critic_passes: int = 1
    correct_advantages: bool = False
    steps: str = "both"
    gated: bool = True
    dependent_epochs: int | None = None
    on_failed_condition: str = "keep"
    critic_always: bool = False


TABLE = {
    "ippo": Options(),
    "mappo": Options(),
    "coppo": Options(surrogate="clip_product", refresh_ratios=True, inner_clip=0.5),
    "happo": Options(),
    "a2po": Options(
        surrogate="clip_product",
        inner_clip=0.5,
        clip_slope=0.5,
        critic_passes=2,
        correct_advantages=True,
    ),
    "fp3o": Options(),
}


@dataclass(frozen=True)
class Settings:
    """Everything the formulas depend on besides data."""

    algorithm: str
    actor: Network
    critic: Network
    widths: tuple[int, ...] | None
    """Choices of every sub-action; None: continuous actions."""
    options: Options
    std_param: str = "sigmoid"
    sequence_length: int = 1
    epochs: int = 2
    bootstrap: bool = True
    head_lr_factor: float = 1.0
    mask_value_loss: bool = False
    advantage_norm: str = "agent"
    actor_lr: float = 1e-2
    critic_lr: float = 1e-2
    clip_range: float = 0.2
    value_clip: float | None = None
    entropy_coef: float = 0.01
    gamma: float = 0.99
    gae_lambda: float = 0.95
    max_grad_norm: float = 10.0
    huber_delta: float = 10.0

    @property
    def num_agents(self) -> int:
        """The size of the team."""
        return len(self.actor.groups["output"])


class Draws(NamedTuple):
    """Random numbers of an iteration."""

    orders: list[list[int]]
    """Order of sequential updates, one per round."""
    minibatches: list[list[list[list[int]]]]
    """Sequences of minibatch b in epoch k of stage s: `minibatches[s][k][b]`."""
    split: Array | None
    """Weight of every agent's advantage at every row, (n, r); None: 1."""
    partner: list[int]
    """The agent whose pipeline updates agent i in FP3O's dependent step."""


@dataclass
class Learner:
    """Parameters, optimisers, and [mean, square, weight] of every critic's value normaliser."""

    actor: Params
    critic: Params
    actor_adam: dict[tuple[str, int], Adam]
    critic_adam: dict[tuple[str, int], Adam]
    norm: list[list[float]]


class Rollout(NamedTuple):
    """A trajectory, (t, e, n, ...), with features before any normalisation."""

    features: Array
    critic_input: Array
    final_critic_input: Array
    action_mask: Array
    alive: Array
    episode_start: Array
    hidden_state: Array
    critic_hidden: Array
    """Before the first step, (e, n, h)."""
    action: Array
    log_prob: Array
    reward: Array
    terminated: Array
    truncated: Array


@dataclass
class Agent:
    """Samples of one agent (hidden states: one per sequence)."""

    features: Array
    critic_input: Array
    action_mask: Array
    alive: Array
    episode_start: Array
    hidden_state: Array
    critic_hidden: Array
    action: Array
    log_prob: Array
    value: Array
    """The critic's prediction at the rollout, in normalised units."""
    units: Array
    """The same in the units of the reward."""
    delta: Array
    decay: Array
    advantage: Array
    target: Array

    def part(self, sequences: list[int], length: int) -> "Agent":
        """The samples of these sequences."""
        rows = [c * length + step for c in sequences for step in range(length)]
        by_sequence = ("hidden_state", "critic_hidden")
        return Agent(
            **{k: x[sequences if k in by_sequence else rows] for k, x in vars(self).items()}
        )


# The value normaliser, returns and advantages ----------------------------------------------------


def statistics(norm: list[float]) -> tuple[float, float]:
    """μ = m / max(d, 1e-5) and σ = sqrt(max(q / max(d, 1e-5) - μ², 1e-2))."""
    weight = max(norm[2], 1e-5)
    mean = norm[0] / weight
    return mean, float(np.sqrt(max(norm[1] / weight - mean**2, 1e-2)))


def update_norm(norm: list[float], targets: Array) -> None:
    """M <- b m + (1 - b) mean(x), likewise q with x² and d with 1; b = 1 - 1e-5."""
    for j, value in enumerate((targets.mean(), (targets**2).mean(), 1.0)):
        norm[j] = (1.0 - 1e-5) * norm[j] + 1e-5 * float(value)


def gae(delta: Array, decay: Array, trace: Array) -> Array:
    """A_t = δ_t + decay_t c_{t+1} A_{t+1} in one environment; decay is γλ, 0 at an end."""
    advantage, later, later_trace = np.zeros_like(delta), 0.0, 1.0
    for t in reversed(range(len(delta))):
        later = delta[t] + decay[t] * later_trace * later
        advantage[t], later_trace = later, trace[t]
    return advantage


def residuals(
    s: Settings, rollout: Rollout, e: int, i: int, value: Array, final: Array
) -> tuple[Array, Array]:
    """δ_t = r_t + γ V_{t+1} - V_t and γλ in one environment.

    V_{t+1} is 0 after a termination and, after a time limit, the value of the last view (or 0).
    """
    length = len(value)
    delta, decay = np.zeros(length), np.zeros(length)
    for t in range(length):
        if rollout.terminated[t, e]:
            after = 0.0
        elif rollout.truncated[t, e]:
            after = final[t] if s.bootstrap else 0.0
        else:
            after = value[t + 1] if t + 1 < length else final[t]
        delta[t] = rollout.reward[t, e, i] + s.gamma * after - value[t]
        ends = rollout.terminated[t, e] or rollout.truncated[t, e]
        decay[t] = 0.0 if ends else s.gamma * s.gae_lambda
    return delta, decay


def evaluate_agent(s: Settings, learner: Learner, rollout: Rollout, i: int) -> tuple[Agent, Array]:
    """One agent's samples with values and residuals, and its critic's last hidden state."""
    steps, envs = rollout.alive.shape[:2]
    own = s.critic.own(learner.critic, i)
    mean, std = statistics(learner.norm[s.critic.groups["output"][i]])
    columns: dict[str, list[Array]] = {k: [] for k in ("value", "delta", "decay", "hidden")}
    last = []
    for e in range(envs):
        first = rollout.critic_hidden[e, i][None]
        value, hidden_states, _ = forward(
            s.critic, own, rollout.critic_input[:, e, i], first, rollout.episode_start[:, e]
        )
        never = np.zeros(steps, bool)
        final, _, _ = forward(
            s.critic, own, rollout.final_critic_input[:, e, i], hidden_states, never
        )
        units, final_units = value[:, 0] * std + mean, final[:, 0] * std + mean
        delta, decay = residuals(s, rollout, e, i, units, final_units)
        before = np.vstack([first, hidden_states[:-1]])
        for name, x in zip(columns, (value[:, 0], delta, decay, before), strict=True):
            columns[name].append(x)
        last.append(hidden_states[-1])
    value = np.concatenate(columns["value"])
    rows = lambda x: x[:, :, i].swapaxes(0, 1).reshape(steps * envs, *x.shape[3:])  # noqa: E731
    agent = Agent(
        features=rows(rollout.features),
        critic_input=rows(rollout.critic_input),
        action_mask=rows(rollout.action_mask),
        alive=rows(rollout.alive).astype(float),
        episode_start=rollout.episode_start.T.reshape(-1),
        hidden_state=rows(rollout.hidden_state)[:: s.sequence_length],
        critic_hidden=np.concatenate(columns["hidden"])[:: s.sequence_length],
        action=rows(rollout.action),
        log_prob=rows(rollout.log_prob),
        value=value,
        units=value * std + mean,
        delta=np.concatenate(columns["delta"]),
        decay=np.concatenate(columns["decay"]),
        advantage=np.zeros_like(value),
        target=np.zeros_like(value),
    )
    return agent, np.stack(last)


def estimate(s: Settings, agents: list[Agent], traces: list[Array], envs: int) -> list[Array]:
    """Advantages under these traces in the units of the reward; fills targets and advantages.

    The actor's are standardised over the living: (A - mean) / (std + 1e-5).
    """
    raw = []
    for agent, trace in zip(agents, traces, strict=True):
        cut = [x.reshape(envs, -1) for x in (agent.delta, agent.decay, trace)]
        raw.append(np.concatenate([gae(*(x[e] for x in cut)) for e in range(envs)]))
        agent.target = raw[-1] + agent.units
    for i, agent in enumerate(agents):
        pool = range(len(agents)) if s.advantage_norm == "team" else [i]
        living = np.concatenate([raw[j][agents[j].alive > 0] for j in pool])
        living = living if len(living) else np.zeros(1)
        agent.advantage = (raw[i] - living.mean()) / (living.std() + 1e-5)
        if s.advantage_norm == "none":
            agent.advantage = raw[i]
    return raw


# Stages ------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """Who is updated, under whose ratios, with which ε, whether the condition must hold."""

    agents: list[int]
    coupled: dict[int, list[int]]
    clip: dict[int, float]
    epochs: int
    gated: bool = False


def stages_of(s: Settings, orders: list[list[int]]) -> list[Stage]:
    """The stages of an iteration, algorithm by algorithm."""
    team = list(range(s.num_agents))
    alone: dict[int, list[int]] = {i: [] for i in team}
    others = {i: [j for j in team if j != i] for i in team}
    clip = dict.fromkeys(team, s.clip_range)
    if s.algorithm in ("ippo", "mappo"):
        return [Stage(team, alone, clip, s.epochs)]
    if s.algorithm == "coppo":
        return [Stage(team, others, clip, s.epochs)]
    if s.algorithm == "fp3o":
        later = s.options.dependent_epochs
        later = s.epochs if later is None else later
        both = [
            Stage(team, alone, clip, s.epochs), Stage(team, others, clip, later, s.options.gated)
        ]  # fmt: skip
        return both[:1] if s.options.steps == "independent" else both
    return [stage for number, order in enumerate(orders) for stage in turns(s, order, number)]


def turns(s: Settings, order: list[int], round_: int) -> list[Stage]:
    """HAPPO and A2PO: blocks of the order, each coupled to the blocks before it.

    In a later round all others have been updated. ε_k = ε (w k/n + 1 - w) at position k.
    """
    n, blocks = s.num_agents, s.options.blocks or s.num_agents
    sizes = [n // blocks + (b < n % blocks) for b in range(blocks)]
    stages, done = [], 0
    for size in sizes:
        agents, before = order[done : done + size], order[:done]
        coupled = {i: [j for j in order if j != i] if round_ else before for i in agents}
        w = s.options.clip_slope
        clip = {i: s.clip_range * (w * (order.index(i) + 1) / n + 1.0 - w) for i in agents}
        stages.append(Stage(agents, coupled, clip, -(-s.epochs // s.options.rounds)))
        done += size
    return stages


# Losses and their gradients ----------------------------------------------------------------------


def policy_of(
    s: Settings, params: Params, agent: Agent, i: int
) -> tuple[Policy, dict[str, Layer], Any]:
    """Agent i's action distribution at its rows, and what the way back needs."""
    own = s.actor.own(params, i)
    out, _, tape = forward(s.actor, own, agent.features, agent.hidden_state, agent.episode_start)
    return head_of(s, own, out, agent.action_mask), own, tape


def head_of(s: Settings, own: dict[str, Layer], out: Array, action_mask: Array) -> Policy:
    """The distribution that the outputs of the last layer stand for."""
    if s.widths is None:
        return Gaussian(out, action_mask, own["output"]["log_std"], s.std_param)
    return Categorical(out, action_mask, s.widths)


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

    `frozen` holds the others' product at the start of the stage; live algorithms take it anew.
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


# The iteration -----------------------------------------------------------------------------------


@dataclass
class Log:
    """What the gradient steps of a stage report."""

    policy_loss: list[float] = field(default_factory=list)
    actor_grad_norm: list[float] = field(default_factory=list)
    value_loss: list[float] = field(default_factory=list)
    critic_grad_norm: list[float] = field(default_factory=list)
    gate: bool = True


def iterate(
    s: Settings, learner: Learner, rollout: Rollout, draws: Draws
) -> tuple[Learner, Array, dict[str, Any]]:
    """One policy iteration: the new learner, the critic's hidden state (e, n, h), metrics."""
    learner, first = copy.deepcopy(learner), learner
    envs = rollout.alive.shape[1]
    agents, hidden_states, metrics = prepare(s, learner, rollout)
    if draws.split is not None:
        for i, agent in enumerate(agents):
            agent.advantage = draws.split[i] * agent.advantage
    rollout_policies = [policy_of(s, learner.actor, a, i)[0] for i, a in enumerate(agents)]
    stages, logs = stages_of(s, draws.orders), []
    log_ratio = [np.zeros_like(agent.value) for agent in agents]
    for number, stage in enumerate(stages):
        log = run_stage(s, learner, agents, stage, log_ratio, envs, draws.minibatches[number])
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
    raw = estimate(s, agents, [np.ones_like(a.value) for a in agents], rollout.alive.shape[1])
    hidden_states = np.stack([hidden_state for _, hidden_state in evaluated], 1)
    return agents, hidden_states, value_report(agents, raw)


def run_stage(
    s: Settings,
    learner: Learner,
    agents: list[Agent],
    stage: Stage,
    log_ratio: list[Array],
    envs: int,
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
        estimate(s, turn, [np.minimum(1.0, frozen[i]) for i in stage.agents], envs)
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
    hparams = dict.fromkeys(s.actor.groups, s.actor_lr) | {"output": s.actor_lr * s.head_lr_factor}
    norm = descend(
        s.actor, learner.actor, learner.actor_adam, grads, stage.agents, hparams, s.max_grad_norm
    )
    log.policy_loss.append(loss)
    log.actor_grad_norm.append(norm)


def critic_step(s: Settings, learner: Learner, part: list[Agent], stage: Stage, log: Log) -> None:
    """Update the normaliser of every critic of the stage once, then move the critics."""
    heads = s.critic.groups["output"]
    for head in sorted({heads[i] for i in stage.agents}):
        members = [i for i in stage.agents if heads[i] == head]
        update_norm(learner.norm[head], np.concatenate([part[i].target for i in members]))
    loss, grads = critic_loss(s, learner.critic, part, stage, learner.norm)
    hparams = dict.fromkeys(s.critic.groups, s.critic_lr)
    norm = descend(
        s.critic, learner.critic, learner.critic_adam, grads, stage.agents, hparams, s.max_grad_norm
    )
    log.value_loss.append(loss)
    log.critic_grad_norm.append(norm)


# What is reported --------------------------------------------------------------------------------


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
