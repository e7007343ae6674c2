"""The value normaliser, returns and advantages of the golden reference."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.data import Agent, Learner, Rollout, Settings
from golden.network import Array, Layer, forward


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


def predict(
    s: Settings, own: dict[str, Layer], rollout: Rollout, e: int, i: int
) -> tuple[Array, Array, Array]:
    """The critic's values in one environment, those of the last views, and its hidden states."""
    first, never = rollout.critic_hidden[e, i][None], np.zeros(len(rollout.alive), bool)
    starts, last_views = rollout.episode_start[:, e], rollout.final_critic_input[:, e, i]
    value, hidden_states, _ = forward(s.critic, own, rollout.critic_input[:, e, i], first, starts)
    final, _, _ = forward(s.critic, own, last_views, hidden_states, never)
    return value[:, 0], final[:, 0], np.vstack([first, hidden_states])


def evaluate_agent(s: Settings, learner: Learner, rollout: Rollout, i: int) -> tuple[Agent, Array]:
    """One agent's samples with values and residuals, and its critic's last hidden state."""
    own = s.critic.own(learner.critic, i)
    mean, std = statistics(learner.norm[s.critic.groups["output"][i]])
    columns: dict[str, list[Array]] = {k: [] for k in ("value", "delta", "decay", "hidden")}
    last = []
    for e in range(s.num_envs):
        value, final, hidden_states = predict(s, own, rollout, e, i)
        delta, decay = residuals(s, rollout, e, i, value * std + mean, final * std + mean)
        for name, x in zip(columns, (value, delta, decay, hidden_states[:-1]), strict=True):
            columns[name].append(x)
        last.append(hidden_states[-1])
    value = np.concatenate(columns["value"])
    agent = Agent(
        features=rows_of(rollout.features, i),
        critic_input=rows_of(rollout.critic_input, i),
        action_mask=rows_of(rollout.action_mask, i),
        alive=rows_of(rollout.alive, i).astype(float),
        episode_start=rollout.episode_start.T.reshape(-1),
        hidden_state=rows_of(rollout.hidden_state, i)[:: s.sequence_length],
        critic_hidden=np.concatenate(columns["hidden"])[:: s.sequence_length],
        action=rows_of(rollout.action, i),
        log_prob=rows_of(rollout.log_prob, i),
        value=value,
        units=value * std + mean,
        delta=np.concatenate(columns["delta"]),
        decay=np.concatenate(columns["decay"]),
        advantage=np.zeros_like(value),
        target=np.zeros_like(value),
    )
    return agent, np.stack(last)


def rows_of(x: NDArray[Any], i: int) -> NDArray[Any]:
    """Agent i's samples, ordered by environment, then time."""
    steps, envs = x.shape[:2]
    return x[:, :, i].swapaxes(0, 1).reshape(steps * envs, *x.shape[3:])


def estimate(s: Settings, agents: list[Agent], traces: list[Array]) -> list[Array]:
    """Advantages under these traces in the units of the reward; fills targets and advantages.

    The actor's are standardised over the living: (A - mean) / (std + 1e-5).
    """
    raw, envs = [], s.num_envs
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
