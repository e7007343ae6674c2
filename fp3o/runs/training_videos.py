"""Videos of a policy during training."""

import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from fp3o.errors import printable
from fp3o.learning.setup import Setup
from fp3o.policy.export import make_policy
from fp3o.runs.directory import RunDirectory
from fp3o.runs.video import render


def video_due(every: int, step: int, iteration_steps: int) -> bool:
    """Whether an iteration has reached a multiple of `every` steps; never if that is 0."""
    return bool(every) and step // every > (step - iteration_steps) // every


class TrainingVideos:
    """Renders one episode at a time into the folder `videos` of a run.

    A failure does not end the run: it is reported once, and no more videos are rendered.
    """

    def __init__(self, directory: RunDirectory, setup: Setup):
        self._directory, self._setup, self._failed = directory, setup, False

    def save(self, step: int, actor: Any) -> Path | None:
        """Render the actor of one seed; None if that failed, now or before."""
        if self._failed:
            return None
        self._directory.check_in_place()
        path = self._directory.path / "videos" / f"step-{step:012d}.gif"
        try:
            policy = make_policy(self._setup, tuple(map(jnp.asarray, actor)), {"step": step})
            path.parent.mkdir(exist_ok=True)
            return render(policy, path, episodes=1)
        except Exception as error:  # of a renderer, an environment or the disk
            self._failed = True
            warnings.warn(
                f"no videos are rendered any more: {printable(f'{error}', 300)}",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
