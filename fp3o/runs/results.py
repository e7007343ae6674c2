"""Results of a run: the policies of all seeds, and the final evaluation."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from fp3o.learning.setup import Setup
from fp3o.policy.export import write_policy
from fp3o.runs.checkpoint import TrainCheckpoint
from fp3o.runs.directory import DamagedRunError, RunDirectory
from fp3o.runs.evaluation import (
    BEST,
    LAST,
    evaluate_baselines,
    evaluate_params,
    summarise_episodes,
)
from fp3o.runs.run_config import RunConfig
from fp3o.runs.seed_axis import by_seed
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.program import Program

Evaluations = Mapping[str, Any]
"""The final evaluation: rows per seed under `last` and `best`, and more."""


EVALUATE_AGAIN = "Delete {path} and resume: the policies are then evaluated again"


def finished_steps(directory: RunDirectory) -> int:
    """Steps of a finished run, 0 if it is not finished: it is neither trained nor checked again."""
    path = directory.path / "results.json"
    if not path.exists():
        return 0
    try:
        done = directory.read_json("results.json").get("steps")
    except DamagedRunError as error:
        raise DamagedRunError(f"{error}. {EVALUATE_AGAIN.format(path=path)}") from None
    if type(done) is not int:
        raise DamagedRunError(f"{path} is damaged: no steps. {EVALUATE_AGAIN.format(path=path)}")
    return done


def final_evaluation(
    program: Program, config: RunConfig, checkpoint: TrainCheckpoint
) -> dict[str, Any]:
    """Evaluate the last and the best policy of every seed, and the task's baselines."""
    state, best = checkpoint
    best_actor = best.actor if config.seeds > 1 else tuple(x[0] for x in best.actor)
    last_rows = _evaluate_seeds(program, config, state.learner.actor, LAST)
    best_rows = _evaluate_seeds(program, config, best_actor, BEST)
    seeds = config.seed_numbers
    return {
        "evaluation": {"episodes": config.final_episodes, "deterministic": True},
        "last": [{"seed": seed, **row} for seed, row in zip(seeds, last_rows, strict=True)],
        "best": [
            {"seed": seed, "step": int(step), **row}
            for seed, step, row in zip(seeds, best.step, best_rows, strict=True)
        ],
        "baselines": evaluate_baselines(config.task, config.variant, config.final_episodes),
    }


def _evaluate_seeds(
    program: Program, config: RunConfig, actor: Any, purpose: int
) -> list[dict[str, Any]]:
    evaluated = evaluate_params(program, config, actor, config.final_episodes, (purpose,))
    names = program.setup.spec.episode_metrics
    return [summarise_episodes(EvalEpisodes(*one), names) for one in zip(*evaluated, strict=True)]


def write_policies(
    directory: RunDirectory,
    setup: Setup,
    checkpoint: TrainCheckpoint,
    step: int,
    evaluations: Evaluations | None = None,
) -> None:
    """Write the last and the best policy of every seed as self-contained folders."""
    directory.check_in_place()
    record = directory.read_json("config.json")
    settings, best = record["settings"], checkpoint.best
    seeds = len(best.score)
    learner = jax.tree.map(lambda x: by_seed(x, seeds), checkpoint.state.learner)
    for k in range(seeds):
        seed = settings["seed"] + k
        steps = {"last": step, "best": int(best.step[k])}
        for which, rows in (("last", learner.actor), ("best", best.actor)):
            score = _score(best.score[k]) if which == "best" else {}
            provenance = {
                "algorithm": settings["algorithm"],
                "sharing": settings["sharing"],
                "seed": seed,
                "step": steps[which],
                "evaluation": dict(evaluations[which][k]) if evaluations else score,
                **{name: record[name] for name in ("versions", "commit", "created")},
            }
            folder = _seed_folder(directory, seed) / which
            actor, norm = jax.tree.map(lambda x, k=k: jnp.asarray(x[k]), (rows, learner.value_norm))
            write_policy(folder, setup, actor, provenance, norm, parents=False)


def _seed_folder(directory: RunDirectory, seed: int) -> Path:
    """The folder of a seed's policies. It is made, the run directory is not: it may have moved."""
    directory.check_in_place()
    folder = directory.path / "policy" / f"seed-{seed}"
    for place in (folder.parent, folder):
        place.mkdir(exist_ok=True)
    return folder


def _score(value: float) -> dict[str, float]:
    return {"return": float(value)} if math.isfinite(value) else {}
