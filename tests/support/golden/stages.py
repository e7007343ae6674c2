"""Stages of an iteration: updated agents and their coupling."""

from typing import NamedTuple

from golden.data import Settings


class Stage(NamedTuple):
    """Updated agents, coupling, ε, and whether the condition must hold."""

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
