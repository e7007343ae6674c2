"""Data of a case: a random rollout, for the reference and for the library."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from golden.data import Rollout, Settings
from golden.losses import head_of
from golden.network import Params, forward

from fp3o.learning.setup import Setup
from fp3o.spec import ActionSpace, Discrete, Mixed
from fp3o.training.episodes import EpisodeStats
from fp3o.training.rollout import RolloutState
from fp3o.types import Trajectory
from golden_cases.cases import AGENTS, ENVS, OBS, STATE, STEPS, Case


def with_id(x: np.ndarray) -> np.ndarray:
    """The agent's one-hot behind its features."""
    return np.concatenate([x, np.broadcast_to(np.eye(AGENTS), (*x.shape[:-1], AGENTS))], axis=-1)


def choices(
    actions: Discrete, alive: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random masks, and an available action; dead agents have only the first choice."""
    action_mask = (rng.random((STEPS, ENVS, AGENTS, sum(actions.widths))) < 0.6) & actions.mask
    action = np.zeros((STEPS, ENVS, AGENTS, len(actions.widths)), np.int32)
    for place in np.ndindex(STEPS, ENVS, AGENTS):
        for d, size in enumerate(actions.sizes[place[2]]):
            first = sum(actions.widths[:d])
            if not alive[place]:
                action_mask[(*place, slice(first, first + size))] = np.arange(size) == 0
                continue
            action[(*place, d)] = rng.integers(size)
            action_mask[(*place, first + action[(*place, d)])] = True
    return action_mask, action


def masks_and_actions(
    actions: ActionSpace, alive: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random masks and actions of any space."""
    if isinstance(actions, Discrete):
        return choices(actions, alive, rng)
    if isinstance(actions, Mixed):
        parts = [masks_and_actions(x, alive, rng) for x in (actions.discrete, actions.box)]
        masks, taken = zip(*parts, strict=True)
        return np.concatenate(masks, -1), np.concatenate(taken, -1)
    action_mask = np.broadcast_to(actions.mask, (*alive.shape, actions.num_dimensions))
    return action_mask, rng.normal(0.0, 0.5, action_mask.shape) * action_mask


def ends_and_deaths(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which steps end by termination or by time limit, and which agents are alive."""
    terminated, truncated = np.zeros((2, STEPS, ENVS), bool)
    terminated[5, 1] = terminated[1, 2] = True
    truncated[3, 0] = truncated[6, 2] = True
    alive = np.ones((STEPS, ENVS, AGENTS), bool)
    alive[3:6, 1, 1] = alive[0:2, 2, 2] = alive[4:7, 2, 0] = False
    alive[:, :, 1] &= not case.ghost
    return terminated, truncated, alive


def rollout_of(case: Case, setup: Setup, s: Settings, actor: Params) -> Rollout:
    """Random observations and rewards with ends, time limits and dead agents in the middle."""
    rng, spec = np.random.default_rng(100 + case.seed), setup.spec
    shape = (STEPS, ENVS, AGENTS)
    terminated, truncated, alive = ends_and_deaths(case)
    episode_start = np.concatenate([[[True, False, False]], (terminated | truncated)[:-1]])
    features, states = (rng.normal(size=(STEPS + 1, ENVS, AGENTS, f)) for f in (OBS, STATE))
    for x in (features, states):
        x[:-1][~alive] = 0.0
    inputs = features if setup.row.critic_input == "obs" else states
    ends = (terminated | truncated)[..., None, None]
    final_critic_input = np.where(ends, rng.normal(size=inputs[1:].shape), inputs[1:])
    action_mask, action = masks_and_actions(spec.actions, alive, rng)
    hidden_states = rng.normal(0.0, 0.5, (2, ENVS, AGENTS, setup.config.gru_size))
    rollout = Rollout(
        features=with_id(features[:-1]),
        critic_input=with_id(inputs[:-1]),
        final_critic_input=with_id(final_critic_input),
        action_mask=action_mask,
        alive=alive,
        episode_start=episode_start,
        hidden_state=np.zeros((*shape, setup.config.gru_size)),
        critic_hidden=hidden_states[1],
        action=action,
        log_prob=np.zeros(shape),
        reward=rng.normal(size=shape),
        terminated=terminated,
        truncated=truncated,
    )
    return with_policy_outputs(s, actor, rollout, hidden_states[0])


def with_policy_outputs(
    s: Settings, actor: Params, rollout: Rollout, hidden_state: np.ndarray
) -> Rollout:
    """Fill in the log-probabilities and hidden states that the rollout policy would have stored."""
    for e in range(ENVS):
        for i in range(AGENTS):
            own = s.actor.own(actor, i)
            out, hidden_states, _ = forward(
                s.actor,
                own,
                rollout.features[:, e, i],
                hidden_state[e, i][None],
                rollout.episode_start[:, e],
            )
            rollout.hidden_state[:, e, i] = np.vstack(
                [hidden_state[e, i][None], hidden_states[:-1]]
            )
            policy = head_of(s, own, out, rollout.action_mask[:, e, i])
            rollout.log_prob[:, e, i] = policy.log_prob(rollout.action[:, e, i])
    return rollout


def trajectory_of(setup: Setup, rollout: Rollout) -> tuple[Trajectory, RolloutState]:
    """Input of the library: no one-hots, padded actions marked as available, its precision."""
    real = lambda x: jnp.asarray(x, float)  # noqa: E731
    final_critic_input = rollout.final_critic_input
    if setup.config.time_limit == "terminate":
        final_critic_input = final_critic_input[-1:]
    trajectory = Trajectory(
        obs=real(rollout.features[..., :-AGENTS]),
        critic_input=real(rollout.critic_input[..., :-AGENTS]),
        final_critic_input=real(final_critic_input[..., :-AGENTS]),
        action_mask=jnp.asarray(rollout.action_mask | ~setup.spec.actions.mask),
        alive=jnp.asarray(rollout.alive),
        episode_start=jnp.asarray(rollout.episode_start),
        actor_hidden=real(rollout.hidden_state),
        action=jnp.asarray(rollout.action) if setup.spec.actions.integers else real(rollout.action),
        log_prob=real(rollout.log_prob),
        reward=real(rollout.reward),
        terminated=jnp.asarray(rollout.terminated),
        truncated=jnp.asarray(rollout.truncated),
        episode_metrics=jnp.zeros((*rollout.truncated.shape, 0)),
    )
    critic_hidden = real(rollout.critic_hidden)
    stats = EpisodeStats(jnp.zeros(ENVS), jnp.zeros(ENVS, int))
    unused: Any = None
    return trajectory, RolloutState(unused, unused, critic_hidden, critic_hidden, stats)
