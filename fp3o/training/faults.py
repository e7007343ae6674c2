"""Detection of what an environment must not return: bad numbers, agents without a choice."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from fp3o.errors import EnvError, NonFiniteError
from fp3o.learning.collectives import gather, num_shares, share_index
from fp3o.networks.backend import materialised
from fp3o.spec import EnvSpec
from fp3o.types import LARGEST_NUMBER, TimeStep, Trajectory

NUMBERS = ("reward", "observation", "critic input", "final critic input")
"""Quantities whose numbers are checked, by the first number of a fault."""
NO_CHOICE = len(NUMBERS)
"""First number of a fault: a living agent without an available choice."""

LARGEST_INDEX = 2**31 - 1
"""Stands for no fault where faults are put in order."""

Flags = Bool[Array, "_ e n"]
"""Steps, environments and agents at fault; an array may have the last steps only."""


def first_fault(trajectory: Trajectory, spec: EnvSpec) -> Int[Array, " 4"]:
    """Kind, step, environment and agent of the first fault of a rollout; -1: none."""
    checked = [trajectory.reward, trajectory.obs, trajectory.critic_input]
    if isinstance(trajectory.final_critic_input, (jnp.ndarray, np.ndarray)):
        checked.append(trajectory.final_critic_input)
    faults = {kind: bad_numbers(x) for kind, x in enumerate(checked)}
    if spec.actions.widths:
        faults[NO_CHOICE] = no_choice(spec, trajectory.action_mask, trajectory.alive)
    return _first_of_shares(_first([*faults], [*faults.values()]), trajectory.alive.shape[1])


def _first_of_shares(fault: Int[Array, " 4"], num_envs: int) -> Int[Array, " 4"]:
    """The first fault on any of the devices that share the environments."""
    if num_shares() == 1:
        return fault
    kind, step, env, agent = fault
    here = jnp.stack([kind, step, share_index() * num_envs + env, agent])
    found = gather(jnp.where(step < 0, LARGEST_INDEX, here)[None])
    first = found[jnp.lexsort(found.T[::-1])[0]]
    return jnp.where(first[1] == LARGEST_INDEX, -1, first)


def step_fault(
    spec: EnvSpec, before: TimeStep, reward: Array, running: Bool[Array, " e"], step: Array
) -> Int[Array, " 4"]:
    """The same for one step of an evaluation: time step before it, reward after it."""
    faults = _step_faults(spec, before, reward, running)
    found = _first([*faults], [flags[None] for flags in faults.values()])
    return found.at[1].set(jnp.where(found[1] < 0, -1, step))


def refuse_host_step(spec: EnvSpec, before: TimeStep, reward: Any, running: Any, step: int) -> None:
    """Raise if a step of an evaluation on the host, `(*s, e, ...)`, breaks the interface."""
    for kind, flags in _step_faults(spec, before, reward, running).items():
        if flags.any():
            *seed, env, agent = np.argwhere(flags)[0].tolist()
            where = f"in environment {env}, agent {agent}, step {step} of the evaluation"
            where += "".join(f" (seed number {number})" for number in seed)
            raise _fault_error(kind, spec.name, where, seed[0] if seed else 0)


def _step_faults(spec: EnvSpec, before: TimeStep, reward: Any, running: Any) -> dict[int, Any]:
    """Faults by kind, each `(*s, e, n)`."""
    axes = running.ndim + 1
    faults = {0: bad_numbers(reward, axes), 1: bad_numbers(before.obs, axes)}
    if spec.actions.widths:
        faults[NO_CHOICE] = no_choice(spec, before.action_mask, before.alive)
    return {kind: flags & running[..., None] for kind, flags in faults.items()}


def bad_numbers(x: Any, axes: int = 3) -> Any:
    """Where the first axes of an array have a NaN, an infinity or a huge number."""
    return ~(abs(x) <= LARGEST_NUMBER).reshape(*x.shape[:axes], -1).all(-1)


def no_choice(spec: EnvSpec, action_mask: Any, alive: Any) -> Any:
    """Where a living agent `(..., n)` has no available choice in one of its sub-actions.

    Dead agents may have none: they are excluded from ratios and losses.
    """
    available, missing, start = action_mask & spec.actions.mask, ~alive & alive, 0
    for width in spec.actions.widths:
        missing = missing | ~available[..., start : start + width].any(-1)
        start += width
    return missing & alive


def _first(kinds: Sequence[int], faults: Sequence[Flags]) -> Int[Array, " 4"]:
    num_steps = faults[0].shape[0]

    def locate(flags: Flags) -> Array:
        position = jnp.stack(jnp.unravel_index(flags.reshape(-1).argmax(), flags.shape))
        # An array of fewer steps holds the last ones.
        position = position.at[0].add(num_steps - flags.shape[0])
        return jnp.where(flags.any(), position, -1)

    positions = jnp.stack([materialised(locate(flags)) for flags in faults])
    found = (positions[:, 0] >= 0).argmax()
    return jnp.concatenate([jnp.asarray(kinds)[found][None], positions[found]])


def refuse_fault(fault: Any, task: str, seed: int, phase: str = "rollout") -> None:
    """Raise if an environment broke its interface; the message says where.

    `fault` has one row per seed, from `seed` on; the steps are those of the `phase`.
    """
    for number, (kind, step, env, agent) in enumerate(np.asarray(fault).reshape(-1, 4).tolist()):
        if step >= 0:
            where = (
                f"in environment {env}, agent {agent}, step {step} of the {phase} "
                f"(seed {seed + number})"
            )
            raise _fault_error(kind, task, where, number)


def _fault_error(kind: int, task: str, where: str, index: int) -> EnvError | NonFiniteError:
    unused = "Nothing was learned from it"
    if kind == NO_CHOICE:
        return EnvError(
            f"{task}: no action is available {where}, although the agent is alive. {unused}; leave "
            "one choice in the action mask, or set alive to False while the agent cannot act"
        )
    error = NonFiniteError(
        f"{task}: the {NUMBERS[kind]} is not finite, or beyond {LARGEST_NUMBER:.0e}, {where}. "
        f"{unused}; look for a division by zero or an overflow in the task, or scale its numbers"
    )
    error.index = index
    return error
