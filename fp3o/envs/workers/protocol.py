"""What one environment of a batch on the host tells after a step or a reset. Needs NumPy only."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fp3o.envs.workers.shared_memory import ArraySpec, BufferSpec, Reply
from fp3o.spec import Discrete, EnvSpec


class StepReply(NamedTuple):
    """What one environment shows after a step or a reset; of many, with an axis in front."""

    obs: np.ndarray
    state: np.ndarray
    action_mask: np.ndarray
    alive: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode_metrics: np.ndarray


def buffer_spec(spec: EnvSpec) -> BufferSpec:
    """What actions and reports have to be."""
    n, choices = spec.actions.mask.shape
    action = ArraySpec("action", (n, choices), np.float32)
    if isinstance(spec.actions, Discrete):
        action = ArraySpec("action", (n, len(spec.actions.widths)), np.int32)
    shapes = {
        "obs": (n, spec.obs_size), "state": (n, spec.state_size), "action_mask": (n, choices),
        "alive": (n,), "reward": (n,), "terminated": (), "truncated": (),
        "episode_metrics": (len(spec.episode_metrics),),
    }  # fmt: skip
    flags = {"action_mask", "alive", "terminated", "truncated"}
    report = [
        ArraySpec(name, shapes[name], np.bool_ if name in flags else np.float32)
        for name in StepReply._fields
    ]
    return BufferSpec(action, tuple(report))


def stack_replies(reports: Sequence[Reply]) -> StepReply:
    """The reports of all environments, `(e, ...)`."""
    return StepReply._make(map(np.stack, zip(*reports, strict=True)))


from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from fp3o.envs.workers.shared_memory import BufferSpec, Reply


class WorkerPoolError(RuntimeError):
    """Environments fail, in workers again and again; the message says how, and what to do."""


class InvalidReplyError(ValueError):
    """An environment's answer makes no sense."""


@runtime_checkable
class WorkerEnv(Protocol):
    """What a worker owns."""

    def reset(self, seed: int, episode: int, /) -> Reply:
        """Begin an episode: if the game allows it, the same one for the same two numbers."""
        ...

    def step(self, action: Any) -> Reply:
        """Play an action."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Timeouts(NamedTuple):
    """How long to wait, and how often to try again."""

    reset: int | float = 300.0
    """Seconds an episode may take to begin, the start of the worker and of its game included."""
    step: int | float = 60.0
    """Seconds a step may take."""
    restarts: int = 3
    """Of one worker, in succession, without a finished step; 0: the first failure is an error."""


@dataclass
class FailureCounts:
    """What went wrong since the beginning."""

    crashed: int = 0
    hung: int = 0
    garbage: int = 0
    restarts: int = 0
    steps: int = 0
    """Steps of episodes that could not be played to their ends."""

    def metrics(self) -> dict[str, int]:
        """The counts by the names they have among the metrics of a run."""
        return {
            "env_crashed": self.crashed,
            "env_hung": self.hung,
            "env_garbage": self.garbage,
            "env_restarts": self.restarts,
            "env_lost_steps": self.steps,
        }


class FailureError(Exception):
    """A worker has failed: `crashed`, `hung` or (returned) `garbage`."""

    def __init__(self, reason: str, words: str):
        super().__init__(reason, words)
        self.reason, self.words = reason, words


def check_reply(answer: Any, form: Sequence[ArraySpec]) -> Reply:
    """An answer, if it makes sense."""
    if found := reply_problem(answer, form):
        raise InvalidReplyError(found)
    return answer


def reply_problem(answer: Any, form: Sequence[ArraySpec]) -> str | None:
    """What is wrong with an answer, if anything."""
    if not isinstance(answer, tuple) or len(answer) != len(form):
        return f"an answer that is no tuple of {len(form)} arrays: {str(answer)[:100]}"
    for (name, shape, dtype), x in zip(form, answer, strict=True):
        if not isinstance(x, np.ndarray):
            return f"{name} is a {type(x).__name__}, not an array"
        if x.shape != shape or x.dtype != dtype:
            return f"{name} is {x.dtype}{x.shape}, expected {np.dtype(dtype)}{shape}"
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            return f"{name} is not finite"
    return None


from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from fp3o.envs.workers.shared_memory import BufferSpec, Reply
from fp3o.spec import EnvSpec


@runtime_checkable
class EnvPool(Protocol):
    """Places where games are played, as a `Crew` has them."""

    losses: FailureCounts
    seeds: list[int]
    steps: np.ndarray
    episodes: np.ndarray

    def reset(self, who: Sequence[int]) -> list[Reply]:
        """Begin an episode in some of the places."""
        ...

    def step(self, actions: Mapping[int, Any]) -> dict[int, Reply]:
        """Play an action in some of the places; where no answer comes, the episode is lost."""
        ...

    def close(self) -> None:
        """Let go of everything; a later order begins anew."""
        ...
