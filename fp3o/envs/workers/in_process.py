"""Host environments stepped one after another in this process."""

import contextlib
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fp3o.envs.rendering import rendered_frame
from fp3o.envs.workers.protocol import (
    EnvPool,
    InvalidReplyError,
    WorkerEnv,
    WorkerPoolError,
    check_reply,
)
from fp3o.envs.workers.shared_memory import BufferSpec, Reply
from fp3o.errors import printable


class InProcessPool(EnvPool):
    """Environments in this process: an exception or an invalid reply ends all of them."""

    def __init__(self, make: Callable[[Any], WorkerEnv], spec: BufferSpec, num_envs: int):
        super().__init__(make, spec, num_envs)
        self._envs: list[WorkerEnv | None] = [None] * num_envs
        weakref.finalize(self, _close_all, self._envs)

    def reset(self, envs: Sequence[int]) -> list[Reply]:
        """Start an episode in some of the environments."""
        replies = []
        for i in envs:
            self.steps[i] = 0
            replies.append(self._call(i, "reset", self.seeds[i], int(self.episodes[i])))
            self.episodes[i] += 1
        return replies

    def step(self, actions: Mapping[int, Any]) -> dict[int, Reply]:
        """Step some of the environments."""
        replies = {}
        for i, action in actions.items():
            replies[i] = self._call(i, "step", action)
            self.steps[i] += 1
        return replies

    def close(self) -> None:
        """Close all environments; a later request makes new ones."""
        _close_all(self._envs)

    def render(self) -> np.ndarray | None:
        """The first environment as an image, if it has one."""
        env = self._envs[0]
        return None if env is None else rendered_frame(env.render)

    def _call(self, i: int, method: str, *args: Any) -> Reply:
        try:
            env = self._envs[i]
            if env is None:
                env = self._envs[i] = self.make(self.seeds[i])
            return check_reply(getattr(env, method)(*args), self.spec.reply)
        except Exception as error:
            self.close()  # the state of the environment is undefined now
            raise WorkerPoolError(self._message(i, method, error)) from error

    def _message(self, i: int, method: str, error: Exception) -> str:
        when = "its reset" if method == "reset" else f"step {self.steps[i] + 1} of its episode"
        if isinstance(error, InvalidReplyError):
            return f"environment {i}, in {when}: invalid, {error}"
        at = traceback.extract_tb(error.__traceback__)[-1]
        what = printable(f"{type(error).__name__}: {error}", 500)
        return f"environment {i}, in {when}: crashed, {what} ({at.filename}, line {at.lineno})"


def _close_all(envs: list[WorkerEnv | None]) -> None:
    """Close environments; errors while closing are ignored."""
    running = [env for env in envs if env is not None]
    envs[:] = [None] * len(envs)
    for env in running:
        with contextlib.suppress(Exception):
            env.close()
