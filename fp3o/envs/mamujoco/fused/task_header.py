"""The header of a task: its model, and its rules and observations for `environment.h`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fp3o.envs.mamujoco.fused.model_header import model_header, table
from fp3o.envs.mamujoco.rewards.rules import ForwardRules
from fp3o.envs.mamujoco.task import BodyTask
from fp3o.errors import SettingError

OBSERVABLE: tuple[str, ...] = ("qpos", "qvel", "clipped_qvel")
"""What `environment.h` can observe, in its order."""


def task_header(task: BodyTask) -> str:
    """The text of `model.h`; an error if the task has something that `environment.h` lacks."""
    rules, lacking = task.body.rewards.forward, {*task.sources} - {*OBSERVABLE}
    if lacking:
        raise SettingError(f"the fused simulation cannot observe {', '.join(sorted(lacking))}")
    if rules is None:
        raise SettingError("the fused simulation does not have its reward")
    lines = [f"#define {name} {value}" for name, value in _sizes(task, rules)]
    lines += [table(name, values) for name, values in _tables(task, rules)]
    return "\n".join([model_header(task.model), *lines, ""])


def _sizes(task: BodyTask, rules: ForwardRules) -> Iterator[tuple[str, Any]]:
    model, spec = task.model, task.spec
    yield from {
        "FRAME_SKIP": task.body.frame_skip, "NUM_READINGS": model.nq + 2 * model.nv + 2,
        "NUM_AGENTS": spec.num_agents, "OBS_WIDTH": spec.obs_size,
        "TEAM_WIDTH": spec.state_size, "ACTION_WIDTH": spec.actions.action_size,
        "STANDARDISED": int(task.variant.profile == "paper"),
        "MAX_STEPS": task.body.max_episode_steps, "STEP_SECONDS": repr(float(task.step_seconds)),
        "CONTROL_COST": repr(float(rules.control)),
        "ALIVE_BONUS": repr(float(rules.alive)), "BONUS_ON_FAILURE": int(rules.bonus_on_failure),
        "PROGRESS_OF_TORSO": int(rules.of_torso), "START_NOISE": repr(float(rules.noise)),
        "START_NORMAL": int(rules.normal), "NUM_BOUNDS": len(rules.bounds),
    }.items()  # fmt: skip


def _tables(task: BodyTask, rules: ForwardRules) -> Iterator[tuple[str, Any]]:
    columns = _reading_columns(task)
    yield "OBS_COLUMNS", columns[task.obs_indices]
    yield "TEAM_COLUMNS", columns[task.state_indices]
    yield "CONTROL_INDEX", task.control_indices
    yield "REST", task.model.qpos0
    bounds = rules.bounds or ((0, 0.0, 0.0),)
    yield "BOUND_INDEX", [index for index, _, _ in bounds]
    yield "BOUND_RANGE", [[low, high] for _, low, high in bounds]


def _reading_columns(task: BodyTask) -> np.ndarray:
    """Index of a reading of the task -> index in the readings of `environment.h`."""
    model = task.model
    sizes = dict(zip(OBSERVABLE, (model.nq, model.nv, model.nv), strict=True))
    starts = dict(zip(OBSERVABLE, (0, model.nq, model.nq + model.nv), strict=True))
    parts = [starts[name] + np.arange(sizes[name]) for name in task.sources]
    return np.concatenate([*parts, model.nq + 2 * model.nv + np.arange(2)])
