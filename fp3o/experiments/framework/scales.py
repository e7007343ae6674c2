"""Run configurations of cells at each scale."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.registry import get_task
from fp3o.experiments.framework.grid import PAPER_SHARINGS, Cell, Scale
from fp3o.runs.run_config import RunConfig

SMOKE: Mapping[str, Any] = {
    "num_envs": 2, "epochs": 2, "minibatches": 1, "hidden": (8,), "gru_size": 0,
    "sequence_length": 1, "seeds": 2, "eval_every": 1, "eval_episodes": 2, "final_episodes": 2,
}  # fmt: skip
"""Settings of all tasks at the scale `smoke`."""

LAPTOP: Mapping[str, Mapping[str, Any]] = {
    # Settings with which agents learn to communicate within a minute.
    "mpe": {
        "num_envs": 64, "epochs": 4, "minibatches": 4, "gru_size": 0, "sequence_length": 1,
        "gamma": 0.9, "actor_lr": 2e-3, "critic_lr": 2e-3, "steps": 640_000, "eval_every": 20,
    },
    "mamujoco": {"steps": 200_000, "minibatches": 8, "eval_every": 10, "eval_episodes": 4},
    "smac": {
        "num_envs": 64, "rollout": 50, "minibatches": 1, "steps": 640_000, "eval_every": 20,
        "final_episodes": 200,
    },
}  # fmt: skip
"""Settings changed at the scale `laptop`, per family of tasks."""

_FUSED: Mapping[str, Any] = {"eval_episodes": 8, "variant": "paper:backend=fused"}

GPU: Mapping[str, Mapping[str, Any]] = {
    "mamujoco": {"eval_episodes": 8},
    "mamujoco/Ant-2x4": {**_FUSED, "steps": 5_000_000},
    "mamujoco/ManyagentSwimmer-8x2": _FUSED,
    "mamujoco/Walker2d-2x3": _FUSED,
}
"""Settings changed at the scale `gpu`, per family or task; battles have presets for it."""

MAPPO_TWICE, FP3O_HALF = "MAPPO, equal gradient steps", "FP3O, half the epochs"
"""Controls of FP3O against MAPPO: as many gradient steps for MAPPO, or as few for FP3O."""

ABLATIONS: Mapping[Scale, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "paper": (
        ("mamujoco/Hopper-3x1", PAPER_SHARINGS),
        ("smac/5m_vs_6m", PAPER_SHARINGS),
    ),
    "gpu": (("mpe/simple_reference", ("full", "none")), ("smac/3s5z", ("full",))),
    "laptop": (
        ("mpe/simple_speaker_listener", PAPER_SHARINGS),
        ("mpe/simple_reference", PAPER_SHARINGS),
    ),
    "smoke": (("mpe/simple_speaker_listener", ("full",)),),
}
"""Tasks of the paper's ablations at each scale, and their sharings."""

PAPER_ABLATION_TASKS = tuple(task for task, _ in ABLATIONS["paper"])
"""Tasks that the paper's claims about its ablations are about."""

SMOKE_ROLLOUT = {"mpe": 25, "mamujoco": 20, "smac": 10}
"""Steps per environment and iteration at the scale `smoke`, per family."""


def cell_config(
    task: str, sharing: str, scale: Scale, algorithm: str, **settings: Any
) -> RunConfig:
    """The configuration of a task at a scale, with some settings changed.

    A variant that sets the sharing itself may call it as it likes.
    """
    family = task.split("/")[0]
    kind = "many" if family in ("smac", "smacv2") and scale != "paper" else "paper"
    presets = get_task(task).presets
    # Bodies that are not in the paper have `farama` in place of `paper`.
    names = (f"{kind}-{sharing}", kind, "farama")
    preset = next((name for name in names if name in presets), None)
    chosen: dict[str, Any] = {}
    if scale == "gpu":
        chosen |= GPU.get(task, GPU.get(family, {}))
    if scale == "laptop":
        chosen |= LAPTOP.get(family, {})
    if scale == "smoke":
        rollout = SMOKE_ROLLOUT.get(family, 4)
        chosen |= {**SMOKE, "rollout": rollout, "steps": 2 * SMOKE["num_envs"] * rollout}
    chosen |= {"algorithm": algorithm}
    chosen |= {"sharing": sharing}
    return RunConfig.from_preset(task, preset).with_settings(chosen | settings)


def paper_steps(task: str, sharing: str) -> int:
    """Steps of the paper's runs of a task."""
    return cell_config(task, sharing, "paper", "mappo").steps


def make_cells(
    tasks: Iterable[str],
    sharings: Iterable[str],
    variants: Mapping[str, Mapping[str, Any]],
    scale: Scale,
) -> Iterator[Cell]:
    """All combinations of tasks, sharings and variants; a variant is a title and its settings."""
    sharings = [*sharings]
    for task in tasks:
        for sharing in sharings:
            for title, settings in variants.items():
                yield Cell(task, sharing, title, cell_config(task, sharing, scale, **settings))


def algorithm_variants(*names: str, **settings: Any) -> dict[str, dict[str, Any]]:
    """Algorithms as variants, by their titles, with common settings."""
    return {algorithm_title(name): {"algorithm": name, **settings} for name in names}


def controls(task: str, scale: Scale) -> dict[str, dict[str, Any]]:
    """MAPPO with twice the epochs, and FP3O with half of them, as variants.

    With equal epochs FP3O takes twice the gradient steps of MAPPO: a dependent step follows every
    independent one. An odd number of epochs is divided so that FP3O takes exactly MAPPO's; one
    epoch cannot be divided.
    """
    epochs = cell_config(task, "full", scale, "mappo").learner.epochs
    second = max(1, epochs // 2)
    return {
        MAPPO_TWICE: {"algorithm": "mappo", "epochs": 2 * epochs},
        FP3O_HALF: {
            "algorithm": f"fp3o:dependent_epochs={second}", "epochs": max(1, epochs - second),
        },
    }  # fmt: skip


def with_controls(
    tasks: Iterable[str],
    sharings: Iterable[str],
    variants: Mapping[str, Mapping[str, Any]],
    scale: Scale,
    **settings: Any,
) -> Iterator[Cell]:
    """All combinations as in `make_cells`, with both controls of FP3O against MAPPO.

    The `settings` are common to all variants.
    """
    sharings = [*sharings]
    for task in tasks:
        every = {**variants, **controls(task, scale)}
        changed = {title: {**variant, **settings} for title, variant in every.items()}
        yield from make_cells([task], sharings, changed, scale)


def algorithm_title(name: str) -> str:
    """Title of a built-in algorithm."""
    return ALGORITHMS[name].title
