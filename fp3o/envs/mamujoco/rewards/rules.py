"""`RewardRules`: the reward, failure condition and initial states of a task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Fields = Mapping[str, Any]
"""Fields of a simulation by their MuJoCo names: qpos, qvel, xpos, ..."""

InitialState = Callable[[np.random.Generator, np.ndarray, int], tuple[np.ndarray, np.ndarray]]
"""Random generator, qpos at rest and the number of velocities -> initial qpos and qvel."""


class RewardInputs(NamedTuple):
    """Inputs of a reward function."""

    fields: Fields
    """The simulation after the step."""
    before: Any
    """The progress before the step."""
    after: Any
    """The progress after the step."""
    action: Any
    """The requested controls, before MuJoCo's limits."""
    healthy: Any
    """True where the body has not failed."""
    step_seconds: float


@dataclass(frozen=True)
class RewardRules:
    """The reward, failure condition and initial states of a task."""

    progress: Callable[[Any, Fields], Any]
    """The quantity whose change is rewarded: a position, or the distance to a goal."""
    reward: Callable[[Any, RewardInputs], Any]
    healthy: Callable[[Any, Fields], Any] | None
    """False where the body has failed, which ends the episode; None: it cannot fail."""
    initial_state: InitialState
    field_names: tuple[str, ...] = ()
    """Fields that progress, reward and healthy read besides qpos and qvel."""
    forward: "ForwardRules | None" = None
    """The same rules as numbers, if they can be stated so."""


@dataclass(frozen=True)
class ForwardRules:
    """Rules of a body that is rewarded for its velocity along x, as numbers."""

    control: float
    """Cost of the sum of squared controls."""
    noise: float
    """Width of the initial noise."""
    normal: bool = False
    """Whether initial velocities are normally distributed; otherwise uniformly."""
    alive: float = 0.0
    """Reward for every step in which the body is healthy."""
    bonus_on_failure: bool = False
    """Whether the failing step has that reward too, as in gym before version 3."""
    bounds: tuple[tuple[int, float, float], ...] = ()
    """Healthy positions: index, and what the position is above and below."""
    of_torso: bool = False
    """Whether the torso's position is the progress; otherwise the root joint's."""


def noisy_start(scale: float, velocity: float | None = None, normal: bool = False) -> InitialState:
    """The rest position with uniform noise; velocities uniform or normally distributed."""

    def initial_state(
        random: np.random.Generator, rest: np.ndarray, nv: int
    ) -> tuple[np.ndarray, np.ndarray]:
        qpos = rest + random.uniform(-scale, scale, rest.size)
        if normal:
            return qpos, scale * random.standard_normal(nv)
        width = scale if velocity is None else velocity
        return qpos, random.uniform(-width, width, nv)

    return initial_state


def all_finite(xp: Any, fields: Fields) -> Any:
    """Whether all positions and velocities are finite."""
    return xp.isfinite(fields["qpos"]).all(-1) & xp.isfinite(fields["qvel"]).all(-1)
