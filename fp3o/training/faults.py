"""TODO."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fp3o.errors import NonFiniteError
from fp3o.types import Trajectory

FAULTS = ("reward", "observation", "critic's view")
"""What an environment may spoil, in the order in which `first_fault` looks."""


def first_fault(trajectory: Trajectory) -> Int[Array, " 4"]:
    """Kind, step, environment and agent of the first number that is not finite; -1: none."""

    def find(x: Float[Array, "t e n *f"]) -> Array:
        bad = ~jnp.isfinite(x).reshape(*x.shape[:3], -1).all(-1)
        place = jnp.stack(jnp.unravel_index(bad.reshape(-1).argmax(), bad.shape))
        return jnp.where(bad.any(), place, -1)

    places = jnp.stack(
        [find(x) for x in (trajectory.reward, trajectory.obs, trajectory.critic_input)]
    )
    kind = (places[:, 0] >= 0).argmax()
    return jnp.concatenate([kind[None], places[kind]])


def refuse_fault(fault: Array, task: str) -> None:
    """Raise if an environment produced a number that is not finite, and say where."""
    for seed, (kind, step, env, agent) in enumerate(np.asarray(fault).reshape(-1, 4)):
        if step >= 0:
            raise NonFiniteError(
                f"{task}: the {FAULTS[kind]} is not finite in environment {env}, agent {agent}, "
                f"step {step} of the rollout (seed number {seed}). Nothing was learned from this "
                "rollout; look for a division by zero or an overflow in the task"
            )
