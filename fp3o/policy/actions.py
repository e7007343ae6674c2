"""Actions of single agents, in the form of each agent's own space instead of padded rows."""

from itertools import accumulate
from typing import Any

import numpy as np

from fp3o.spec import ActionSpace, Box, Discrete, Mixed


def own_action(actions: ActionSpace, agent: int, row: np.ndarray) -> Any:
    """An agent's own action from its padded row `(*batch, d)`, as its space has it.

    | the agent has        | action                                                     |
    |----------------------|------------------------------------------------------------|
    | one choice           | integers `(*batch)`; without batch axes one integer        |
    | several sub-actions  | integers `(*batch, d_i)`                                   |
    | a vector             | floats `(*batch, a_i)`                                     |
    | choices and a vector | a pair of both                                             |
    """
    match actions:
        case Discrete():
            used = len(own_choices(actions, agent))
            return row[..., 0][()] if used == 1 else row[..., :used]
        case Box():
            return row[..., : actions.sizes[agent]]
        case Mixed():
            num_choices = len(actions.widths)
            vector = own_action(actions.box, agent, row[..., num_choices:])
            if not own_choices(actions, agent):
                return vector
            rounded = np.rint(row[..., :num_choices]).astype(np.int64)
            choices = own_action(actions.discrete, agent, rounded)
            return (choices, vector) if actions.box.sizes[agent] else choices


def own_choices(actions: ActionSpace, agent: int) -> tuple[int, ...]:
    """Numbers of choices in an agent's sub-actions, without those that only other agents have."""
    if isinstance(actions, Box):
        return ()
    discrete = actions.discrete if isinstance(actions, Mixed) else actions
    sizes, widths = discrete.sizes[agent], discrete.widths
    used = len(sizes)
    while used and sizes[used - 1] == 1 < widths[used - 1]:
        used -= 1
    vector_only = isinstance(actions, Mixed) and actions.box.sizes[agent] and max(sizes) == 1
    return () if vector_only else sizes[: max(used, 1)]


def mask_indices(actions: ActionSpace, agent: int) -> np.ndarray:
    """Places of an agent's own choices among the padded outputs; without choices, of its vector."""
    choices = own_choices(actions, agent)
    if not choices:
        return np.flatnonzero(actions.mask[agent])[-own_dimensions(actions, agent) :]
    first = [0, *accumulate(actions.widths)]
    return np.concatenate([first[d] + np.arange(size) for d, size in enumerate(choices)])


def own_dimensions(actions: ActionSpace, agent: int) -> int:
    """Length of the vector in an agent's action; 0: there is none."""
    if isinstance(actions, Discrete):
        return 0
    return (actions.box if isinstance(actions, Mixed) else actions).sizes[agent]
