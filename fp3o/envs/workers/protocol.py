"""The protocol between a pool and its environments: replies, failures, timeouts. NumPy only."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from fp3o.envs.workers.shared_memory import ArraySpec, BufferSpec, Reply
from fp3o.errors import UserError, printable
from fp3o.spec import EnvSpec


class WorkerPoolError(UserError, RuntimeError):
    """An environment failed, or a worker process failed repeatedly; the message says how."""


class InvalidReplyError(ValueError):
    """The reply of an environment does not match its specification."""


class WorkerFailureError(Exception):
    """A worker has failed: `reason` is `crashed`, `hung` or `invalid` (an invalid reply)."""

    def __init__(self, reason: str, details: str):
        super().__init__(reason, details)
        self.reason, self.details = reason, details


class WorkerEnv(ABC):
    """One host environment, in a worker process or in-process."""

    @abstractmethod
    def reset(self, seed: Any, episode: int, /) -> Reply:
        """Start an episode: where possible, the same one for the same seed and episode index."""

    @abstractmethod
    def step(self, action: Any) -> Reply:
        """Apply an action."""

    def close(self) -> None:  # noqa: B027
        """Release all resources."""

    def render(self) -> Any:
        """The environment as an image; None if it has none."""
        return None


class StepReply(NamedTuple):
    """Reply of an environment to a step or a reset; of a batch, `(e, ...)`."""

    obs: np.ndarray
    state: np.ndarray
    action_mask: np.ndarray
    alive: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode_metrics: np.ndarray


class Timeouts(NamedTuple):
    """How long to wait for workers, and how often to restart one."""

    reset: int | float = 300.0
    """Seconds to start an episode, including the start of the process and its environment."""
    step: int | float = 60.0
    """Seconds per step."""
    restarts: int = 3
    """Successive restarts of a worker without a completed step; 0: the first failure is an
    error."""


@dataclass
class FailureCounts:
    """Failures of a pool since it was made."""

    crashed: int = 0
    hung: int = 0
    invalid: int = 0
    restarts: int = 0
    lost_steps: int = 0
    """Steps of episodes that could not be completed."""

    def metrics(self) -> dict[str, int]:
        """The counts by metric name."""
        return {f"env_{name}": count for name, count in asdict(self).items()}


class EnvPool(ABC):
    """Environments that are reset and stepped together."""

    def __init__(self, make: Callable[[Any], WorkerEnv], spec: BufferSpec, num_envs: int):
        self.make, self.spec = make, spec
        self.failures = FailureCounts()
        self.seeds: list[Any] = list(range(num_envs))
        """Random seed of each environment."""
        self.steps = np.zeros(num_envs, np.int64)
        """Steps of the current episodes."""
        self.episodes = np.zeros(num_envs, np.int64)
        """Index of the next episode of each environment."""

    @abstractmethod
    def reset(self, envs: Sequence[int]) -> list[Reply]:
        """Start an episode in some of the environments."""

    @abstractmethod
    def step(self, actions: Mapping[int, Any]) -> dict[int, Reply]:
        """Step some of the environments; an episode whose reply is missing is lost."""

    @abstractmethod
    def close(self) -> None:
        """Close all environments; a later request makes new ones."""

    def render(self) -> np.ndarray | None:
        """The first environment as an image, if it runs in-process and has one."""
        return None


def buffer_spec(spec: EnvSpec) -> BufferSpec:
    """Shapes and types of actions and replies."""
    n, choices = spec.actions.mask.shape
    action = ArraySpec("action", (n, spec.actions.action_size), spec.actions.dtype)
    shapes = {
        "obs": (n, spec.obs_size), "state": (n, spec.state_size), "action_mask": (n, choices),
        "alive": (n,), "reward": (n,), "terminated": (), "truncated": (),
        "episode_metrics": (len(spec.episode_metrics),),
    }  # fmt: skip
    flags = {"action_mask", "alive", "terminated", "truncated"}
    reply = [
        ArraySpec(name, shapes[name], np.bool_ if name in flags else np.float32)
        for name in StepReply._fields
    ]
    return BufferSpec(action, tuple(reply))


def stack_replies(replies: Sequence[Reply]) -> StepReply:
    """The replies of all environments, `(e, ...)`."""
    return StepReply._make(map(np.stack, zip(*replies, strict=True)))


def check_reply(reply: Any, specs: Sequence[ArraySpec]) -> Reply:
    """Return a reply that matches its specification; raise `InvalidReplyError` otherwise."""
    if problem := reply_problem(reply, specs):
        raise InvalidReplyError(problem)
    return reply


def reply_problem(reply: Any, specs: Sequence[ArraySpec]) -> str | None:
    """Description of what is wrong with a reply; None if it is valid."""
    if not isinstance(reply, tuple) or len(reply) != len(specs):
        return f"the reply is not a tuple of {len(specs)} arrays: {printable(str(reply), 100)}"
    for (name, shape, dtype), x in zip(specs, reply, strict=True):
        if not isinstance(x, np.ndarray):
            return f"{name} is a {type(x).__name__}, not an array"
        if x.shape != shape or x.dtype != dtype:
            return f"{name} is {x.dtype}{x.shape}, expected {np.dtype(dtype)}{shape}"
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            return f"{name} is not finite"
    return None
