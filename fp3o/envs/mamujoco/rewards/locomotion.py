"""Rewards for moving forward, and for standing up."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
import math
from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import Any

import mujoco

from fp3o.envs.mamujoco.rewards.rules import (
    Fields,
    ForwardRules,
    RewardInputs,
    RewardRules,
    all_finite,
    noisy_start,
)


def root_x(xp: Any, fields: Fields) -> Any:
    """The x coordinate of the root joint."""
    return fields["qpos"][..., 0]


def _forward_reward(
    weight: int | float = 1.0,
    control: int | float = 0.0,
    alive: int | float = 0.0,
    contact: Callable[[Any, Fields], Any] | None = None,
    bonus_on_failure: bool = False,
) -> Callable[[Any, RewardInputs], Any]:
    """Velocity along x, a bonus for being healthy, costs of control and contact.

    With `bonus_on_failure`, the failing step has the bonus too, as in gym before version 3.
    """

    def reward(xp: Any, step: RewardInputs) -> Any:
        velocity = (step.after - step.before) / step.step_seconds
        bonus = alive if bonus_on_failure else alive * step.healthy
        total = weight * velocity + bonus - control * xp.square(step.action).sum(-1)
        return total if contact is None else total - contact(xp, step.fields)

    return reward


def _rules(numbers: ForwardRules, healthy: Callable[[Any, Fields], Any] | None) -> RewardRules:
    """The rules of a body that are these numbers and nothing else."""
    reward = _forward_reward(
        control=numbers.control, alive=numbers.alive, bonus_on_failure=numbers.bonus_on_failure
    )
    start = noisy_start(numbers.noise, normal=numbers.normal)
    progress, fields = (torso_x, ("xpos",)) if numbers.of_torso else (root_x, ())
    return RewardRules(progress, reward, healthy, start, fields, numbers)


def _within(bounds: tuple[tuple[int, float, float], ...]) -> Callable[[Any, Fields], Any]:
    """Whether positions are inside of their bounds."""

    def healthy(xp: Any, fields: Fields) -> Any:
        qpos = fields["qpos"]
        each = [(qpos[..., i] > low) & (qpos[..., i] < high) for i, low, high in bounds]
        return reduce(and_, each)

    return healthy


def cheetah_rules() -> RewardRules:
    """Run; a cheetah cannot fail."""
    return _rules(ForwardRules(control=0.1, noise=0.1, normal=True), None)


def swimmer_rules() -> RewardRules:
    """Swim; a swimmer cannot fail."""
    return _rules(ForwardRules(control=1e-4, noise=0.1), None)


def coupled_cheetah_rules() -> RewardRules:
    """Two cheetahs, rewarded for their mean velocity and mean effort."""

    def mean_x(xp: Any, fields: Fields) -> Any:
        return (fields["qpos"][..., 0] + fields["qpos"][..., 9]) / 2

    return RewardRules(mean_x, _forward_reward(control=0.05), None, noisy_start(0.1, normal=True))


def hopper_rules(paper: bool) -> RewardRules:
    """Hop without falling over."""

    def healthy(xp: Any, fields: Fields) -> Any:
        qpos, qvel = fields["qpos"], fields["qvel"]
        rest = xp.concatenate([qpos[..., 2:], qvel], -1)
        upright = (qpos[..., 1] > 0.7) & (xp.abs(qpos[..., 2]) < 0.2)
        return upright & (xp.abs(rest) < 100).all(-1)

    reward = _forward_reward(control=1e-3, alive=1.0, bonus_on_failure=paper)
    return RewardRules(root_x, reward, healthy, noisy_start(5e-3))


def walker_rules(paper: bool) -> RewardRules:
    """Walk without falling over."""
    bounds = (1, 0.8, 2.0), (2, -1.0, 1.0)
    numbers = ForwardRules(
        control=1e-3, noise=5e-3, alive=1.0, bonus_on_failure=paper, bounds=bounds
    )
    return _rules(numbers, _within(bounds))


def torso_x(xp: Any, fields: Fields) -> Any:
    """The x coordinate of the first body."""
    return fields["xpos"][..., 1, 0]


def ant_rules(paper: bool) -> RewardRules:
    """Walk on four legs; external forces cost, except in the paper, where they are zero."""
    # Heights of exactly 0.2 and 1 are healthy.
    bounds = ((2, math.nextafter(0.2, 0), math.nextafter(1.0, 2)),)

    def contact(xp: Any, fields: Fields) -> Any:
        return 5e-4 * xp.square(xp.clip(fields["cfrc_ext"], -1, 1)).sum((-2, -1))

    def healthy(xp: Any, fields: Fields) -> Any:
        return all_finite(xp, fields) & _within(bounds)(xp, fields)

    if paper:
        numbers = ForwardRules(
            control=0.5, noise=0.1, normal=True, alive=1.0, bonus_on_failure=True, bounds=bounds,
            of_torso=True,
        )  # fmt: skip
        return _rules(numbers, healthy)
    reward = _forward_reward(control=0.5, alive=1.0, contact=contact)
    return RewardRules(
        torso_x, reward, healthy, noisy_start(0.1, normal=True), ("xpos", "cfrc_ext")
    )


def humanoid_rules(model: mujoco.MjModel) -> RewardRules:
    """Walk upright; rewarded for the velocity of the centre of mass."""
    share = model.body_mass / model.body_mass.sum()

    def centre_x(xp: Any, fields: Fields) -> Any:
        return (fields["xipos"][..., 0] * share).sum(-1)

    def healthy(xp: Any, fields: Fields) -> Any:
        return (fields["qpos"][..., 2] > 1.0) & (fields["qpos"][..., 2] < 2.0)

    reward = _forward_reward(weight=1.25, control=0.1, alive=5.0, contact=_impact_cost)
    return RewardRules(centre_x, reward, healthy, noisy_start(0.01), ("xipos", "cfrc_ext"))


def _impact_cost(xp: Any, fields: Fields) -> Any:
    return xp.minimum(5e-7 * xp.square(fields["cfrc_ext"]).sum((-2, -1)), 10.0)


def standup_rules(model: mujoco.MjModel) -> RewardRules:
    """Get up from the floor; rewarded for the height."""

    def height(xp: Any, fields: Fields) -> Any:
        return fields["qpos"][..., 2]

    def reward(xp: Any, step: RewardInputs) -> Any:
        effort = 0.1 * xp.square(step.action).sum(-1)
        return step.after / model.opt.timestep - effort - _impact_cost(xp, step.fields) + 1

    return RewardRules(height, reward, None, noisy_start(0.01), ("cfrc_ext",))
