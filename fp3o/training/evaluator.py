"""Evaluation of the policies of a program in separate environments."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Array

from fp3o.envs.api import VecEnv
from fp3o.envs.vectorise import SeedBatchedEnv
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.host_rollout import HostRollout
from fp3o.training.mesh import BY_SEED, DeviceGrid
from fp3o.training.rollout import Evaluation, evaluate_episodes


class Evaluator:
    """Runs first episodes of every seed's actor; compiled once per kind of evaluation.

    Devices that share the environments of a seed all run its whole evaluation.
    """

    def __init__(
        self,
        host: HostRollout,
        grid: DeviceGrid | None,
        num_seeds: int | None,
        compiled: Callable[..., Any],
    ):
        self._host, self._grid, self._num_seeds, self._compiled = host, grid, num_seeds, compiled
        self._programs: dict[tuple[VecEnv, int, bool], Callable[..., Evaluation]] = {}

    def __call__(
        self, params: Any, env: VecEnv, keys: Array, num_steps: int, deterministic: bool
    ) -> tuple[EvalEpisodes, Any]:
        """The episodes, and the first fault of a task in JAX; one on the host raises."""
        if not env.jittable:
            env = SeedBatchedEnv(env, self._num_seeds) if self._num_seeds else env
            return self._host.evaluate(env, params, keys, num_steps, deterministic), None
        options = env, num_steps, deterministic
        if options not in self._programs:
            evaluate = partial(
                evaluate_episodes,
                self._host.setup,
                env,
                num_steps=num_steps,
                deterministic=deterministic,
            )
            self._programs[options] = self._compiled(evaluate, (0, 0), (BY_SEED,) * 2, BY_SEED)
        if self._grid is None:
            return self._programs[options](params, keys)
        params, keys = self._grid.put((self._grid.fetch(params), keys), BY_SEED)
        return self._grid.fetch(self._programs[options](params, keys))
