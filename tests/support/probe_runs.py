"""Tiny runs whose program is compiled once per process, for campaigns of many runs."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.runs import evaluation

SETTINGS: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 2, "rollout": 4, "hidden": (4,), "epochs": 1,
    "steps": 8 * 6, "eval_every": 2, "eval_episodes": 2, "final_episodes": 3, "save_every": 0.0,
    "progress": "quiet", "loggers": (),
}  # fmt: skip
"""Six iterations, with a checkpoint after each."""
QUIET: dict[str, Any] = {"progress": "quiet", "loggers": ()}


@cache
def compiled_program(config: Any) -> Any:
    """In place of `trainer.make_program`."""
    program = evaluation.make_program(config)
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
