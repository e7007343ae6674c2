"""Actors of a Ray cluster that play the blocks of a run: each has one core of any node.

A node needs fp3o and what the task needs. If a player or its node dies, another actor is started;
until it is there, the other players play its blocks.
"""

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from fp3o.envs.workers.worker import ONE_THREAD
from fp3o.experiments.framework.ray_cluster import connect, import_ray
from fp3o.runs.player import PlayerService, PlayerSettings
from fp3o.runs.player_process import CPU_ALONE, THREADS
from fp3o.runs.progress import Display
from fp3o.training.player_pool import PlayerFailureError, Request
from fp3o.training.players import BlockReply


@dataclass(frozen=True)
class RayPlayers:
    """As many players on a Ray cluster: `fp3o.train(..., players=RayPlayers(8))`."""

    number: int
    timeout: float | None = None
    """Seconds for a rollout; None: ten times the median so far, and at least 60."""
    address: str | None = None
    """Of the cluster; None: the one of RAY_ADDRESS or of this machine, or a new one here."""

    def start(self, settings: PlayerSettings, display: Display) -> "RayPlayer":
        """Start one of them."""
        ray = import_ray()
        if not ray.is_initialized():
            connect(ray, self.address, display)
        return RayPlayer(ray, settings)


class RayPlayer:
    """An actor that plays."""

    def __init__(self, ray: Any, settings: PlayerSettings):
        self._ray = ray
        variables = {**ONE_THREAD, **CPU_ALONE, THREADS: "1"}
        make = ray.remote(num_cpus=1, runtime_env={"env_vars": variables})(PlayerService)
        self._actor = make.remote(settings)
        self.ready: Future[Any] = self._answer(self._actor.start.remote())

    def ask(self, request: Request) -> Future[dict[int, BlockReply]]:
        """Let it play; the result raises `PlayerFailureError` if it dies."""
        return self._answer(self._actor.play.remote(request))

    def end(self) -> None:
        """End the actor, also one that waits for a node."""
        if self._ray.is_initialized():
            self._ray.kill(self._actor)

    def _answer(self, reference: Any) -> Future[Any]:
        """The future answer, with the errors that `PlayerHandle` knows."""
        answer: Future[Any] = Future()

        def pass_on(done: Future[Any]) -> None:
            error, reply = done.exception(), None if done.exception() else done.result()
            if isinstance(error, self._ray.exceptions.RayError):
                error = PlayerFailureError(f"was lost ({type(error).__name__})")
            error = reply if isinstance(reply, Exception) else error
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(reply)

        reference.future().add_done_callback(pass_on)
        return answer
