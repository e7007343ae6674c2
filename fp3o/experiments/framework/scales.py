"""TODO."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fp3o.experiments.framework.grid import SHARINGS, Cell, Scale
from fp3o.runs.run_config import RunConfig

SMOKE: Mapping[str, Any] = {
    "num_envs": 2, "epochs": 2, "minibatches": 1, "hidden": (8,), "gru_size": 0, "sequence_length": 1,
    "seeds": 2, "eval_every": 1, "eval_episodes": 2, "final_episodes": 2,
}  # fmt: skip
"""What all tasks have in common at the scale `smoke`."""

LAPTOP: Mapping[str, Mapping[str, Any]] = {
    # The demo's settings: a team that talks in a minute.
    "mpe": {
        "num_envs": 64, "epochs": 4, "minibatches": 4, "gru_size": 0, "sequence_length": 1, "gamma": 0.9,
        "actor_lr": 2e-3, "critic_lr": 2e-3, "steps": 640_000, "eval_every": 20,
    },
    "mamujoco": {"steps": 200_000, "minibatches": 8, "eval_every": 10, "eval_episodes": 4},
    "smac": {
        "num_envs": 64, "rollout": 50, "minibatches": 1, "steps": 640_000, "eval_every": 20,
        "final_episodes": 200,
    },
}  # fmt: skip
"""What changes at the scale `laptop`, family by family."""

GPU: Mapping[str, Mapping[str, Any]] = {"mamujoco": {"steps": 2_000_000, "eval_episodes": 8}}
"""What changes at the scale `gpu`; battles have presets for it."""

ROLLOUT = {"mpe": 25, "mamujoco": 20, "smac": 10}
"""Steps of a rollout at the scale `smoke`."""


def plan(task: str, sharing: str, scale: Scale, algorithm: str, **settings: Any) -> RunConfig:
    """A task's plan at a scale, with some settings changed."""
    family = task.split("/")[0]
    kind = "many" if family == "smac" and scale != "paper" else "paper"
    names = RunConfig.from_preset(task).task_info.presets
    preset = f"{kind}-{sharing}"
    made = RunConfig.from_preset(task, preset if preset in names else kind if kind in names else None)
    chosen: dict[str, Any] = {}
    if scale == "gpu":
        chosen |= GPU.get(family, {})
    if scale == "laptop":
        chosen |= LAPTOP.get(family, {})
    if scale == "smoke":
        rollout = ROLLOUT.get(family, 4)
        chosen |= {**SMOKE, "rollout": rollout, "steps": 2 * SMOKE["num_envs"] * rollout}
    given = sharing if sharing in SHARINGS else {}
    chosen |= {"algorithm": algorithm} | ({"sharing": given} if given else {})
    return made.with_settings(chosen | settings)


def cells(
    tasks: Iterable[str],
    sharings: Iterable[str],
    variants: Mapping[str, Mapping[str, Any]],
    scale: Scale,
) -> Iterator[Cell]:
    """Every task under every sharing in every variant; a variant is a name and its settings."""
    sharings = [*sharings]
    for task in tasks:
        for sharing in sharings:
            for name, settings in variants.items():
                yield Cell(task, sharing, name, plan(task, sharing, scale, **settings))


def rows(*algorithms: str) -> dict[str, dict[str, str]]:
    """Algorithms as variants: `fp3o` is called FP3O."""
    return {name.upper().replace("COPPO", "CoPPO"): {"algorithm": name} for name in algorithms}
