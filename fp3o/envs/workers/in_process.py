"""TODO."""

import contextlib
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fp3o.envs.rendering import rendered_frame
from fp3o.envs.workers.protocol import (
    FailureCounts,
    InvalidReplyError,
    WorkerEnv,
    WorkerPoolError,
    check_reply,
)
from fp3o.envs.workers.shared_memory import BufferSpec, Reply


class InProcessPool:
    """Places in this process, one after the other: no pipes, and nobody who watches over them.

    What an environment raises ends everything, and so does an answer that is nonsense.
    """

    def __init__(self, make: Callable[[int], WorkerEnv], form: BufferSpec, num_places: int):
        self.make, self.form = make, form
        self.losses = FailureCounts()
        self.seeds = list(range(num_places))
        self.steps = np.zeros(num_places, np.int64)
        self.episodes = np.zeros(num_places, np.int64)
        self._places: list[WorkerEnv | None] = [None] * num_places
        weakref.finalize(self, clear, self._places)

    def reset(self, who: Sequence[int]) -> list[Reply]:
        """Begin an episode in some of the places."""
        answers = []
        for i in who:
            self.steps[i] = 0
            answers.append(self._order(i, "reset", self.seeds[i], int(self.episodes[i])))
            self.episodes[i] += 1
        return answers

    def step(self, actions: Mapping[int, Any]) -> dict[int, Reply]:
        """Play an action in some of the places."""
        answers = {}
        for i, action in actions.items():
            answers[i] = self._order(i, "step", action)
            self.steps[i] += 1
        return answers

    def close(self) -> None:
        """Close all places; a later order makes new ones."""
        clear(self._places)

    def render(self) -> np.ndarray | None:
        """The first place's picture of itself, if it has one."""
        place: Any = self._places[0]
        return rendered_frame(place.render) if hasattr(place, "render") else None

    def _order(self, i: int, name: str, *args: Any) -> Reply:
        try:
            place = self._places[i]
            if place is None:
                place = self._places[i] = self.make(self.seeds[i])
            return check_reply(getattr(place, name)(*args), self.form.answer)
        except Exception as error:
            self.close()  # nobody knows where it stands now
            raise WorkerPoolError(self._words(i, name, error)) from error

    def _words(self, i: int, name: str, error: Exception) -> str:
        when = "its reset" if name == "reset" else f"step {self.steps[i] + 1} of its episode"
        if isinstance(error, InvalidReplyError):
            return f"environment {i}, in {when}: garbage, {error}"
        at = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error}"
        return f"environment {i}, in {when}: crashed, {what} ({at.filename}, line {at.lineno})"


def clear(places: list[WorkerEnv | None]) -> None:
    """Close places; what goes wrong then does no harm."""
    there = [place for place in places if place is not None]
    places[:] = [None] * len(places)
    for place in there:
        with contextlib.suppress(Exception):
            place.close()
