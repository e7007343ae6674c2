"""The probe tasks and matrix games, and their presets."""

from collections.abc import Mapping

from fp3o.envs.task import Family, Preset, Task
from fp3o.envs.toys import matrix as matrices
from fp3o.envs.toys.probe import PROBES

PROBE_WORDS = {
    "value": "nothing to do; is the value learned?",
    "credit": "is an action paid two steps later learned?",
    "roles": "do agents that see the same learn to differ?",
    "memory": "is a cue of two steps ago remembered?",
    "unequal": "do agents of unequal sizes learn together?",
    "target": "are continuous actions learned?",
}


def _probe(name: str) -> Task | None:
    if name not in PROBES:
        return None
    game = PROBES[name]
    summary = f"tests: {PROBE_WORDS[name]}"
    return Task(f"probe/{name}", summary, lambda _: game)


def _matrix(name: str) -> Task | None:
    if name not in matrices.GAMES:
        return None
    game = matrices.GAMES[name]
    summary = f"two agents choose once; the best pair is paid {game.best:g}"
    return Task(f"{matrices.FAMILY}/{name}", summary, lambda _: game, presets=MATRIX)


MATRIX: Mapping[str, Preset] = {
    # Policies that begin with strong preferences: about half of the seeds find the best pair, so
    # the best of eight is it. From equal chances hardly any seed does.
    "decided": {
        "sharing": "none", "output_gain": 3.0, "seeds": 8, "num_envs": 64, "rollout": 1,
        "hidden": (16,), "epochs": 4, "actor_lr": 1e-2, "critic_lr": 1e-2, "steps": 60 * 64,
        "eval_episodes": 1, "final_episodes": 1,
    },
}  # fmt: skip
"""Presets of the matrix games."""

FAMILIES = (
    Family("probe", "tiny tasks with known answers", _probe, (*PROBES,)),
    Family(matrices.FAMILY, "matrix games", _matrix, (*matrices.GAMES,)),
)
