"""Quantities read from a simulation: sources of columns, written once for NumPy and JAX."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from fp3o.envs.mamujoco.rewards.rules import Fields


@cache
def zero_and_one(shape: tuple[int, ...]) -> np.ndarray:
    """The constants 0 and 1, for padding and one-hot indices, `(*shape, 2)`."""
    return np.broadcast_to(np.array([0.0, 1.0]), (*shape, 2))


def standardise_rows(xp: Any, x: Any) -> Any:
    """Standardise every vector by its own mean and deviation, padding included (the paper)."""
    # Sums, not a matrix product: on some CPUs a row of a product depends on the number of rows.
    count = x.shape[-1]
    centred = x - x.sum(-1, keepdims=True) / count
    return centred / xp.sqrt((centred * centred).sum(-1, keepdims=True) / count)


def _flat(name: str) -> Callable[[Any, Fields], Any]:
    return lambda xp, fields: fields[name].reshape(*fields["qpos"].shape[:-1], -1)


def _tendon(xp: Any, fields: Fields) -> Any:
    """Derivatives of the tendon's length by x and z of both cheetahs; its length; its velocity."""
    jacobian = fields["ten_J"].reshape(*fields["qpos"].shape[:-1], -1)
    # Stored for all 18 velocities, or in newer versions for the 6 that move its ends.
    columns = (0, 1, 9, 10) if jacobian.shape[-1] == 18 else (0, 1, 3, 4)
    return xp.concatenate(
        [jacobian[..., np.array(columns)], fields["ten_length"], fields["ten_velocity"]], -1
    )


SOURCES: Mapping[str, tuple[tuple[str, ...], Callable[[Any, Fields], Any]]] = {
    "qpos": ((), lambda xp, f: f["qpos"]),
    "qvel": ((), lambda xp, f: f["qvel"]),
    "clipped_qvel": ((), lambda xp, f: xp.clip(f["qvel"], -10, 10)),
    "sin": ((), lambda xp, f: xp.sin(f["qpos"])),
    "cos": ((), lambda xp, f: xp.cos(f["qpos"])),
    "target_offset": (("xpos",), lambda xp, f: f["xpos"][..., 3, :] - f["xpos"][..., 4, :]),
    "position": (("xpos",), _flat("xpos")),
    "clipped_force": (("cfrc_ext",), lambda xp, f: xp.clip(_flat("cfrc_ext")(xp, f), -1, 1)),
    "force": (("cfrc_ext",), _flat("cfrc_ext")),
    "inertia": (("cinert",), _flat("cinert")),
    "velocity": (("cvel",), _flat("cvel")),
    "torque": (("qfrc_actuator",), _flat("qfrc_actuator")),
    "constraint": (
        ("qfrc_constraint",), lambda xp, f: xp.clip(f["qfrc_constraint"], -10, 10),
    ),
    "tendon": (("ten_J", "ten_length", "ten_velocity"), _tendon),
}  # fmt: skip
"""Source -> the MuJoCo fields it needs besides qpos and qvel, and how it is computed."""
