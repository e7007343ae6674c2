"""Programs that are compiled once per process, and tiny runs for campaigns of many runs."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from small_runs import SMALL

from fp3o.runs import programs
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program

SETTINGS: dict[str, Any] = {**SMALL, "save_every": 0.0, "loggers": ()}
"""Six iterations, with a checkpoint after each."""
QUIET: dict[str, Any] = {"progress": "quiet", "loggers": ()}


BUILT_IN = ("mamujoco", "matrix", "mpe", "probe", "smac")
"""Families whose environments are the same whenever they are made."""
NOT_COMPILED = (
    "steps", "seed", "eval_every", "eval_episodes", "final_episodes", "log_every", "video_every",
    "save_every", "keep_checkpoints", "start_from", "start_agents", "start_critic", "frozen",
    "actor_lr", "critic_lr", "clip_range", "entropy_coef", "gamma", "gae_lambda", "max_grad_norm",
    "huber_delta",
)  # fmt: skip
"""Settings of a run that are no part of its program, or inputs of it."""


def compiled_program(config: RunConfig, devices: Any = None, pool: Any = None) -> Program:
    """In place of `trainer.make_program`: runs of one shape on a built-in task share a program."""
    if devices or pool or config.task.split("/")[0] not in BUILT_IN:
        return programs.make_program(config, devices, pool)
    settings = {name: x for name, x in config.settings.items() if name not in NOT_COMPILED}
    return _compiled(RunConfig().with_settings(settings))


@cache
def _compiled(config: RunConfig) -> Any:
    program: Any = programs.make_program(config)
    program.compile(program.init(config.seed))
    program.compile = lambda state: None
    return program


class StopAfter:
    """A stop signal that comes after some iterations; in place of `trainer.stop_signals`."""

    def __init__(self, iterations: int):
        self._left = iterations

    def __call__(self, say: Any) -> "StopAfter":
        return self

    def __enter__(self) -> "StopAfter":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __bool__(self) -> bool:
        self._left -= 1
        return self._left < 0


class Originals(NamedTuple):
    """A run that was stopped, and the same run finished."""

    stopped: Path
    finished: Path

    def same_result(self, path: Path) -> bool:
        """Whether a run has ended exactly as the undamaged one."""
        metrics = [(run / "metrics.jsonl").read_bytes() for run in (path, self.finished)]
        return metrics[0] == metrics[1] and weights(path) == weights(self.finished)


def weights(path: Path) -> dict[str, bytes]:
    """The weights of all policies of a run."""
    return {
        str(folder.relative_to(path)): (folder / "weights.safetensors").read_bytes()
        for folder in sorted(path.glob("policy/*/[!.]*"))
    }
