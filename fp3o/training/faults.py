"""Detection of non-finite numbers from an environment."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fp3o.errors import NonFiniteError
from fp3o.types import Trajectory

FAULTS = ("reward", "observation", "critic input", "final critic input")
"""Quantities checked for non-finite numbers, in the order of `first_fault`."""


def first_fault(trajectory: Trajectory) -> Int[Array, " 4"]:
    """Kind, step, environment and agent of the first non-finite number; -1: none."""
    num_steps = trajectory.reward.shape[0]

    def locate(x: Float[Array, "t e n *f"]) -> Array:
        bad = ~jnp.isfinite(x).reshape(*x.shape[:3], -1).all(-1)
        position = jnp.stack(jnp.unravel_index(bad.reshape(-1).argmax(), bad.shape))
        # An array of fewer steps holds the last ones.
        position = position.at[0].add(num_steps - x.shape[0])
        return jnp.where(bad.any(), position, -1)

    checked = [trajectory.reward, trajectory.obs, trajectory.critic_input]
    if isinstance(trajectory.final_critic_input, (jnp.ndarray, np.ndarray)):
        checked.append(trajectory.final_critic_input)
    positions = jnp.stack([locate(x) for x in checked])
    kind = (positions[:, 0] >= 0).argmax()
    return jnp.concatenate([kind[None], positions[kind]])


def refuse_fault(fault: Array, task: str) -> None:
    """Raise if an environment produced a non-finite number; the message says where."""
    for seed, (kind, step, env, agent) in enumerate(np.asarray(fault).reshape(-1, 4)):
        if step >= 0:
            raise NonFiniteError(
                f"{task}: the {FAULTS[kind]} is not finite in environment {env}, agent {agent}, "
                f"step {step} of the rollout (seed number {seed}). This rollout was not used for "
                "learning; look for a division by zero or an overflow in the task"
            )
