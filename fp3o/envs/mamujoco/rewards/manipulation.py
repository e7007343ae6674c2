"""Rewards of bodies with a fixed base: reaching, pushing, balancing."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
from typing import Any

import mujoco
import numpy as np

from fp3o.envs.mamujoco.rewards.locomotion import root_x
from fp3o.envs.mamujoco.rewards.rules import (
    Fields,
    RewardInputs,
    RewardRules,
    all_finite,
    noisy_start,
)


def reacher_rules(paper: bool) -> RewardRules:
    """Bring the fingertip to the target. The paper rewards the distance before the step."""

    def closeness(xp: Any, fields: Fields) -> Any:
        xpos = fields["xpos"]
        return -xp.sqrt(xp.square(xpos[..., 3, :] - xpos[..., 4, :]).sum(-1))

    def reward(xp: Any, step: RewardInputs) -> Any:
        near = step.before if paper else step.after
        return near - xp.square(step.action).sum(-1)

    noisy = noisy_start(0.1, 0.005)

    def initial_state(
        random: np.random.Generator, rest: np.ndarray, nv: int
    ) -> tuple[np.ndarray, np.ndarray]:
        qpos, qvel = noisy(random, rest, nv)
        goal = random.uniform(-0.2, 0.2, 2)
        while not paper and np.linalg.norm(goal) >= 0.2:  # the paper: anywhere in the square
            goal = random.uniform(-0.2, 0.2, 2)
        qpos[-2:], qvel[-2:] = goal, 0
        return qpos, qvel

    return RewardRules(closeness, reward, None, initial_state, ("xpos",))


def pusher_bodies(model: mujoco.MjModel) -> tuple[int, int, int]:
    """Ids of the fingertip, the cylinder and the goal of the pusher."""
    tip, cylinder, goal = (model.body(name).id for name in ("tips_arm", "object", "goal"))
    return tip, cylinder, goal


def pusher_rules(model: mujoco.MjModel) -> RewardRules:
    """Push a cylinder to its goal with the tip of an arm."""
    tip, cylinder, goal = pusher_bodies(model)

    def distance(xp: Any, fields: Fields, one: int, other: int) -> Any:
        return xp.sqrt(
            xp.square(fields["xpos"][..., one, :] - fields["xpos"][..., other, :]).sum(-1)
        )

    def closeness(xp: Any, fields: Fields) -> Any:
        return -distance(xp, fields, cylinder, goal)

    def reward(xp: Any, step: RewardInputs) -> Any:
        effort = 0.1 * xp.square(step.action).sum(-1)
        return step.after - effort - 0.5 * distance(xp, step.fields, cylinder, tip)

    return RewardRules(closeness, reward, None, _pusher_start, ("xpos",))


def _pusher_start(
    random: np.random.Generator, rest: np.ndarray, nv: int
) -> tuple[np.ndarray, np.ndarray]:
    qpos, qvel = rest.copy(), random.uniform(-0.005, 0.005, nv)
    place = random.uniform((-0.3, -0.2), (0.0, 0.2))
    while np.linalg.norm(place) <= 0.17:
        place = random.uniform((-0.3, -0.2), (0.0, 0.2))
    qpos[-4:-2], qpos[-2:], qvel[-4:] = place, 0, 0
    return qpos, qvel


def pendulum_rules() -> RewardRules:
    """Balance a pole."""

    def healthy(xp: Any, fields: Fields) -> Any:
        return all_finite(xp, fields) & (xp.abs(fields["qpos"][..., 1]) <= 0.2)

    def reward(xp: Any, step: RewardInputs) -> Any:
        return 1.0 * step.healthy

    return RewardRules(root_x, reward, healthy, noisy_start(0.01))


def double_pendulum_rules() -> RewardRules:
    """Balance a pole on a pole."""

    def height(xp: Any, fields: Fields) -> Any:
        return fields["site_xpos"][..., 0, 2]

    def healthy(xp: Any, fields: Fields) -> Any:
        return height(xp, fields) > 1

    def reward(xp: Any, step: RewardInputs) -> Any:
        velocity = step.fields["qvel"]
        away = 0.01 * step.fields["site_xpos"][..., 0, 0] ** 2 + (step.after - 2) ** 2
        swing = 1e-3 * velocity[..., 1] ** 2 + 5e-3 * velocity[..., 2] ** 2
        return 10.0 * step.healthy - away - swing

    return RewardRules(height, reward, healthy, noisy_start(0.1, normal=True), ("site_xpos",))
