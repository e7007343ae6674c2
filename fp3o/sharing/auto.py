"""Which agents should share? Those whose actions do the same: `sharing="auto"`.

The team plays at random for a while. Of every agent, what its actions change in what it sees is
estimated: the effects E_i, a matrix of actions x features, by least squares from the change of its
observation, less what the observation alone foretells. Two agents differ by

    d_ij = |E_i - E_j|² / ½ (|E_i|² + |E_j|²),

both sides freed from the share that is noise: 0 where actions have the same effects, 2 where they
have nothing in common. Agents that may do different things differ by 2. Average linkage joins the
most alike; the groups with the highest silhouette are taken, if it is at least ½: what counts as a
difference depends on how much agents of one kind differ. Else everyone is alone if even the most
alike are nearer to nothing in common than to the same, and all are one group if not.

All this is done again in both halves of the environments, split at random several times: agents
that come together in any of them stay together. Noise has borders, too, but others each time.

Selective parameter sharing (Christianos et al., 2021) has the same aim with learned embeddings.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from fp3o.envs.api import VecEnv
from fp3o.envs.random_play import RandomPlay, play_at_random
from fp3o.sharing.schemes import components
from fp3o.spec import Discrete, EnvSpec
from fp3o.types import TimeStep

CLEAR = 0.5
"""Silhouette from which groups count as a structure (Kaufman and Rousseeuw, 1990)."""

SPLITS = 4
"""How often the environments are split at random, to look for the groups again."""

NOTHING = 2.0
"""The difference of agents that have nothing in common."""

FEWEST = 100
"""Steps of each agent that are needed."""

NUM_ENVS = 64
"""Environments that are played together: enough for battles in which agents soon die."""

Groups = tuple[int, ...]


class Moves(NamedTuple):
    """What one agent saw before it acted, did, and then found changed."""

    obs: np.ndarray
    action: np.ndarray
    change: np.ndarray


class Effects(NamedTuple):
    """What each action changes, how uncertain that is, and whether it was tried often enough."""

    size: np.ndarray
    noise: np.ndarray
    tried: np.ndarray


def auto_sharing(env: VecEnv, steps: int = 200, seed: int = 0) -> Groups:
    """The map from agent to group that random play suggests; a batch of about 64 is enough."""
    record, random = play_at_random(env, steps, seed), np.random.default_rng(seed)
    everything = np.arange(env.num_envs)
    splits = [np.array_split(random.permutation(everything), 2) for _ in range(SPLITS)]
    parts = [everything, *itertools.chain(*splits)]
    return components([cluster(compare(env.spec, record, part)) for part in parts])


def differences(env: VecEnv, steps: int = 200, seed: int = 0) -> Float[np.ndarray, "n n"]:
    """How much the effects of the agents' actions differ, pair by pair: 0 to about 2."""
    return compare(env.spec, play_at_random(env, steps, seed), np.arange(env.num_envs))


def compare(spec: EnvSpec, record: RandomPlay, chosen: np.ndarray) -> Float[np.ndarray, "n n"]:
    """The differences of the agents in some of the environments that were played."""
    seen = TimeStep._make(np.asarray(part)[:, chosen] for part in record.steps)
    moves = [*_moves(spec, seen, record.actions[:, chosen])]
    fewest = min(len(own.obs) for own in moves)
    if fewest < FEWEST * len(chosen) / record.actions.shape[1]:
        raise ValueError(
            f"an agent of {spec.name} lived for {fewest} steps of random play, too few to "
            f"compare it with others: play more (at least {FEWEST} are needed)"
        )
    effects = _effects(_equal(moves, fewest))
    mask = spec.actions.mask
    found = np.zeros((len(effects), len(effects)))
    for i, one in enumerate(effects):
        for j, other in enumerate(effects[:i]):
            same = np.array_equal(mask[i], mask[j])
            found[i, j] = found[j, i] = _difference(one, other) if same else NOTHING
    return found


def _moves(spec: EnvSpec, seen: TimeStep, actions: np.ndarray) -> Iterator[Moves]:
    """Agent by agent, the steps at which it lived."""
    if isinstance(spec.actions, Discrete):
        widths = enumerate(spec.actions.widths)
        done = np.concatenate([np.eye(width)[actions[..., d]] for d, width in widths], -1)
    else:
        done = actions * spec.actions.mask
    for i in range(spec.num_agents):
        lived = np.asarray(seen.alive)[:-1, :, i]
        before = np.asarray(seen.obs, np.float64)[:-1, :, i][lived]
        after = np.asarray(seen.final_obs, np.float64)[1:, :, i][lived]
        yield Moves(before, done[:, :, i][lived], after - before)


def _equal(moves: Sequence[Moves], count: int) -> list[Moves]:
    """As many steps of everyone; without features that never change, as one's own number."""
    random = np.random.default_rng(0)
    told = np.any([own.obs.std(0) > 1e-6 for own in moves], axis=0)
    equal = []
    for own in moves:
        chosen = random.permutation(len(own.obs))[:count]
        equal.append(
            Moves(own.obs[chosen][:, told], own.action[chosen], own.change[chosen][:, told])
        )
    return equal


def _effects(moves: Sequence[Moves]) -> list[Effects]:
    """By least squares, in units of how much each feature changes."""
    obs, change = (np.concatenate([getattr(own, k) for own in moves]) for k in ("obs", "change"))
    scale = np.maximum(change.std(0), 1e-6)
    seen = np.c_[(obs - obs.mean(0)) / np.maximum(obs.std(0), 1e-6), np.ones(len(obs))]
    # Single large changes (somebody dies) would drown the rest.
    change = np.clip(change / scale, -5, 5)
    foretold = seen @ np.linalg.solve(seen.T @ seen + np.eye(seen.shape[1]), seen.T @ change)
    left = np.split(change - foretold, len(moves))
    return [_fit(own.action, rest) for own, rest in zip(moves, left, strict=True)]


def _fit(action: np.ndarray, change: np.ndarray) -> Effects:
    gram = action.T @ action
    tried = np.diag(gram) > 20
    inverse = np.linalg.inv(gram[np.ix_(tried, tried)] + 1e-6 * np.eye(tried.sum()))
    size, noise = np.zeros((2, len(gram), change.shape[1]))
    size[tried] = inverse @ action[:, tried].T @ change
    noise[tried] = np.diag(inverse)[:, None] * (change - action @ size).var(0)
    return Effects(size, noise, tried)


def _difference(one: Effects, other: Effects) -> float:
    both = one.tried & other.tried
    gap = np.square(one.size - other.size) - one.noise - other.noise
    sizes = [(np.square(own.size) - own.noise)[both].sum() for own in (one, other)]
    if max(sizes) <= 0:  # what neither of them does can be seen
        return 0.0
    return float(max(gap[both].sum(), 0.0) / max(sum(sizes) / 2, 1e-9))


def cluster(differ: Float[np.ndarray, "n n"]) -> Groups:
    """The groups with the highest silhouette, if it is clear; else everyone alone or together."""
    levels = [*_joined(differ)]
    cuts = [groups for _, groups in levels[1:-1]]
    best = max(cuts, key=lambda groups: _silhouette(differ, groups), default=None)
    if best is None or _silhouette(differ, best) < CLEAR:
        # The first to be joined are the most alike.
        apart = len(levels) > 1 and levels[1][0] >= NOTHING / 2
        best = levels[0 if apart else -1][1]
    place = {i: number for number, group in enumerate(sorted(best)) for i in group}
    return tuple(place[i] for i in range(len(differ)))


def _joined(differ: np.ndarray) -> Iterator[tuple[float, list[list[int]]]]:
    """Average linkage: the groups after each joining, and how much the joined ones differed."""
    groups = [[i] for i in range(len(differ))]
    yield 0.0, groups
    while len(groups) > 1:
        pairs = [(i, j) for i in range(len(groups)) for j in range(i)]
        apart = [differ[np.ix_(groups[i], groups[j])].mean() for i, j in pairs]
        nearest = int(np.argmin(apart))
        i, j = pairs[nearest]
        rest = [group for k, group in enumerate(groups) if k not in (i, j)]
        groups = sorted([*rest, sorted(groups[i] + groups[j])])
        yield float(apart[nearest]), groups


def _silhouette(differ: np.ndarray, groups: Sequence[Sequence[int]]) -> float:
    """How much nearer agents are to their own group than to the next one; alone counts 0."""
    scores = []
    for group in groups:
        others = [other for other in groups if other is not group]
        for i in group:
            own = differ[i, [k for k in group if k != i]]
            next_one = min(differ[i, other].mean() for other in others)
            inside = own.mean() if own.size else next_one
            scores.append((next_one - inside) / max(next_one, inside, 1e-9))
    return float(np.mean(scores))
