"""Automatic sharing, `sharing="auto"`: groups of agents whose actions have the same effects.

The team takes random actions for a while. For each agent we estimate the effects E_i of its
actions, a matrix of actions x features, by least squares on the change of its observation that the
observation itself does not predict. Two agents differ by

    d_ij = |E_i - E_j|² / ½ (|E_i|² + |E_j|²),

with the expected contribution of noise subtracted from numerator and denominator: 0 for equal
effects, 2 for effects with nothing in common. Agents with different action spaces differ by 2.
Average linkage merges the most similar agents. The groups with the highest silhouette are chosen if
it is at least ½: what counts as different depends on how much agents of one type differ. Otherwise
there is one group per agent if even the most similar agents are closer to 2 than to 0, and a single
group if not.

This is repeated on both halves of several random splits of the environments, and agents that are
grouped in any of them stay together: boundaries caused by noise do not repeat.

Selective parameter sharing (Christianos et al., 2021) has the same aim with learned embeddings.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fp3o.envs.api import VecEnv
from fp3o.envs.random_play import RandomPlay, play_at_random
from fp3o.errors import SettingError
from fp3o.sharing.maps import Groups, components
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

MIN_SILHOUETTE = 0.5
"""Smallest silhouette at which groups count as a structure (Kaufman and Rousseeuw, 1990)."""

NUM_SPLITS = 4
"""Number of random splits of the environments on which the groups are estimated again."""

MAX_DIFFERENCE = 2.0
"""Difference of agents that have nothing in common."""

MIN_STEPS = 100
"""Number of steps needed per agent."""

NUM_ENVS = 64
"""Number of environments: enough for tasks in which agents die early."""


class Transitions(NamedTuple):
    """Observations, actions and changes of the observation of one agent, one per row."""

    obs: np.ndarray
    action: np.ndarray
    change: np.ndarray


class Effects(NamedTuple):
    """Estimated effect of each action, its variance, and whether there were enough samples."""

    mean: np.ndarray
    variance: np.ndarray
    sampled: np.ndarray


def auto_sharing(env: VecEnv, steps: int = 200, seed: int = 0) -> Groups:
    """Estimate the map from agent to group by random actions; about 64 environments are enough."""
    record, random = play_at_random(env, steps, seed), np.random.default_rng(seed)
    everything = np.arange(env.num_envs)
    splits = [np.array_split(random.permutation(everything), 2) for _ in range(NUM_SPLITS)]
    parts = [everything, *itertools.chain(*splits)]
    return components([cluster(_compare(env.spec, record, part)) for part in parts])


def effect_differences(env: VecEnv, steps: int = 200, seed: int = 0) -> Float[np.ndarray, "n n"]:
    """Pairwise differences of the effects of the agents' actions, 0 to about 2."""
    return _compare(env.spec, play_at_random(env, steps, seed), np.arange(env.num_envs))


def _compare(spec: EnvSpec, record: RandomPlay, envs: np.ndarray) -> Float[np.ndarray, "n n"]:
    """Differences of the agents, estimated on some of the environments."""
    steps = TimeStep._make(np.asarray(part)[:, envs] for part in record.steps)
    team = [*_transitions(spec, steps, record.actions[:, envs])]
    count = min(len(agent.obs) for agent in team)
    if count < MIN_STEPS * len(envs) / record.actions.shape[1]:
        raise SettingError(
            f"an agent of {spec.name} was alive for only {count} random steps, too few to compare "
            f"it with others: take more steps (at least {MIN_STEPS} are needed)"
        )
    effects = _team_effects(_subsample(team, count))
    mask = spec.actions.mask
    result = np.zeros((len(effects), len(effects)))
    for i, one in enumerate(effects):
        for j, other in enumerate(effects[:i]):
            same = np.array_equal(mask[i], mask[j])
            result[i, j] = result[j, i] = _difference(one, other) if same else MAX_DIFFERENCE
    return result


def _transitions(spec: EnvSpec, steps: TimeStep, actions: np.ndarray) -> Iterator[Transitions]:
    """Transitions of each agent at the steps at which it was alive."""
    widths = spec.actions.widths
    choices = actions[..., : len(widths)].astype(int)
    one_hot = [np.eye(width)[choices[..., d]] for d, width in enumerate(widths)]
    vector = actions[..., len(widths) :] * spec.actions.mask[:, sum(widths) :]
    taken = np.concatenate([*one_hot, vector], -1)
    for i in range(spec.num_agents):
        alive = np.asarray(steps.alive)[:-1, :, i]
        before = np.asarray(steps.obs, np.float64)[:-1, :, i][alive]
        after = np.asarray(steps.final_obs, np.float64)[1:, :, i][alive]
        yield Transitions(before, taken[:, :, i][alive], after - before)


def _subsample(team: Sequence[Transitions], count: int) -> list[Transitions]:
    """The same number of steps per agent, without constant features (such as its index)."""
    random = np.random.default_rng(0)
    varies = np.any([agent.obs.std(0) > 1e-6 for agent in team], axis=0)
    result = []
    for obs, action, change in team:
        rows = random.permutation(len(obs))[:count]
        result.append(Transitions(obs[rows][:, varies], action[rows], change[rows][:, varies]))
    return result


def _team_effects(team: Sequence[Transitions]) -> list[Effects]:
    """Effects of every agent by least squares, in units of the typical change per feature."""
    obs = np.concatenate([agent.obs for agent in team])
    change = np.concatenate([agent.change for agent in team])
    scale = np.maximum(change.std(0), 1e-6)
    inputs = np.c_[(obs - obs.mean(0)) / np.maximum(obs.std(0), 1e-6), np.ones(len(obs))]
    # Clipped, because single large changes (an agent dies) would dominate.
    change = np.clip(change / scale, -5, 5)
    ridge = inputs.T @ inputs + np.eye(inputs.shape[1])
    predicted = inputs @ np.linalg.solve(ridge, inputs.T @ change)
    residuals = np.split(change - predicted, len(team))
    return [_fit(agent.action, rest) for agent, rest in zip(team, residuals, strict=True)]


def _fit(action: np.ndarray, change: np.ndarray) -> Effects:
    gram = action.T @ action
    sampled = np.diag(gram) > 20
    inverse = np.linalg.inv(gram[np.ix_(sampled, sampled)] + 1e-6 * np.eye(sampled.sum()))
    mean, variance = np.zeros((2, len(gram), change.shape[1]))
    mean[sampled] = inverse @ action[:, sampled].T @ change
    variance[sampled] = np.diag(inverse)[:, None] * (change - action @ mean).var(0)
    return Effects(mean, variance, sampled)


def _difference(one: Effects, other: Effects) -> float:
    both = one.sampled & other.sampled
    gap = np.square(one.mean - other.mean) - one.variance - other.variance
    sizes = [(np.square(agent.mean) - agent.variance)[both].sum() for agent in (one, other)]
    if max(sizes) <= 0:  # neither agent has an observable effect
        return 0.0
    return float(max(gap[both].sum(), 0.0) / max(sum(sizes) / 2, 1e-9))


def cluster(differ: Float[np.ndarray, "n n"]) -> Groups:
    """Groups with the highest silhouette if it is clear; else one per agent, or a single one."""
    levels = [*_average_linkage(differ)]
    cuts = [groups for _, groups in levels[1:-1]]
    best = max(cuts, key=lambda groups: _silhouette(differ, groups), default=None)
    if best is None or _silhouette(differ, best) < MIN_SILHOUETTE:
        # The first two to be merged are the most similar.
        apart = len(levels) > 1 and levels[1][0] >= MAX_DIFFERENCE / 2
        best = levels[0 if apart else -1][1]
    group_of = {i: number for number, group in enumerate(sorted(best)) for i in group}
    return tuple(group_of[i] for i in range(len(differ)))


def _average_linkage(differ: np.ndarray) -> Iterator[tuple[float, list[list[int]]]]:
    """Groups after each merge, with the difference of the two merged groups."""
    groups = [[i] for i in range(len(differ))]
    yield 0.0, groups
    while len(groups) > 1:
        pairs = [(i, j) for i in range(len(groups)) for j in range(i)]
        apart = [differ[np.ix_(groups[i], groups[j])].mean() for i, j in pairs]
        closest = int(np.argmin(apart))
        i, j = pairs[closest]
        rest = [group for k, group in enumerate(groups) if k not in (i, j)]
        groups = sorted([*rest, sorted(groups[i] + groups[j])])
        yield float(apart[closest]), groups


def _silhouette(differ: np.ndarray, groups: Sequence[Sequence[int]]) -> float:
    """Mean silhouette: how much closer agents are to their group than to the next one.

    An agent that is alone in its group counts 0.
    """
    scores = []
    for group in groups:
        others = [other for other in groups if other is not group]
        for i in group:
            within = differ[i, [k for k in group if k != i]]
            next_group = min(differ[i, other].mean() for other in others)
            inside = within.mean() if within.size else next_group
            scores.append((next_group - inside) / max(next_group, inside, 1e-9))
    return float(np.mean(scores))
