"""Division of a program's seeds and environments among devices.

Devices form a grid of two axes. Along the first they have different seeds, which need no
communication; along the second they share the environments of the same seeds, whose sums are in
`learning.collectives`. Agents and parameters are never divided.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from fp3o.errors import SettingError
from fp3o.learning.collectives import ENV_AXIS

SEED_AXIS = "seed"
"""Axis of the devices that have different seeds."""


class Division(Enum):
    """How an array is divided among devices."""

    SEEDS = "seeds are the first axis"
    ENVS = "seeds are the first axis, environments the next one"
    STEPS = "steps are the first axis, then seeds and environments"


SEEDS, ENVS, STEPS = Division


@dataclass(frozen=True)
class DeviceGrid:
    """Devices that share the seeds and environments of a program."""

    mesh: Mesh
    num_seeds: int | None

    @classmethod
    def make(
        cls, devices: Sequence[jax.Device], num_seeds: int | None, blocks: int
    ) -> "DeviceGrid":
        """A grid of these devices; as many of them as possible have different seeds."""
        shape = split_devices(len(devices), num_seeds or 1, blocks)
        array = np.array(devices).reshape(shape)
        return cls(Mesh(array, (SEED_AXIS, ENV_AXIS), axis_types=(AxisType.Auto,) * 2), num_seeds)

    @property
    def spans_processes(self) -> bool:
        """Whether some devices belong to other processes."""
        return bool(self.mesh.is_multi_process)

    def put(self, tree: Any, divisions: Any) -> Any:
        """Distribute arrays among the devices; every process must have the same arrays."""
        shardings = self._shardings(self._specs(divisions))
        if not self.spans_processes:
            return jax.device_put(tree, shardings)
        put_part = lambda sharding, part: jax.tree.map(partial(_put_array, sharding), part)  # noqa: E731
        return jax.tree.map(put_part, shardings, tree)

    def compiled(self, function: Callable[..., Any], inputs: Any, outputs: Any) -> Any:
        """A function of one device's share as a compiled function of all devices.

        Divisions of inputs and outputs are given for each argument and result, or parts of them.
        """
        specs = self._specs(inputs), self._specs(outputs)
        # Devices that share environments have equal learners because gradients are summed, which
        # the types of `check_vma` cannot express.
        shared = jax.shard_map(
            function, mesh=self.mesh, in_specs=specs[0], out_specs=specs[1], check_vma=False
        )
        # Stated for inputs and outputs alike: arrays without elements lose their division.
        shardings = [self._shardings(each) for each in specs]
        return jax.jit(shared, in_shardings=shardings[0], out_shardings=shardings[1])

    def fetch(self, tree: Any) -> Any:
        """Arrays of all devices on the host; every process has to call this."""
        leaves, structure = jax.tree.flatten(tree)
        if self.spans_processes:
            divided = [k for k, x in enumerate(leaves) if _is_divided(x)]
            whole = self._replicate([leaves[k] for k in divided])
            for k, x in zip(divided, whole, strict=True):
                leaves[k] = x
        return jax.device_get(jax.tree.unflatten(structure, leaves))

    def _specs(self, divisions: Any) -> Any:
        seeds = (SEED_AXIS,) if self.num_seeds else ()
        specs = {
            SEEDS: PartitionSpec(*seeds),
            ENVS: PartitionSpec(*seeds, ENV_AXIS),
            STEPS: PartitionSpec(None, *seeds, ENV_AXIS),
        }
        return jax.tree.map(specs.get, divisions)

    def _shardings(self, specs: Any) -> Any:
        return jax.tree.map(
            lambda spec: NamedSharding(self.mesh, spec),
            specs,
            is_leaf=lambda x: isinstance(x, PartitionSpec),
        )

    @cached_property
    def _replicate(self) -> Any:
        return jax.jit(lambda x: x, out_shardings=self._shardings(PartitionSpec()))


def _is_divided(x: Any) -> bool:
    return isinstance(x, jax.Array) and not x.is_fully_addressable and not x.is_fully_replicated


def _put_array(sharding: NamedSharding, x: Any) -> jax.Array:
    """An array on devices of several processes, each of which has all of it."""
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put_array(sharding, jax.random.key_data(x)))
    host = np.asarray(x)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def split_devices(num_devices: int, num_seeds: int, blocks: int) -> tuple[int, int]:
    """Number of devices along the axes of seeds and of environments.

    As many as possible have different seeds. The rest has to divide the blocks.
    """
    for seeds in range(min(num_devices, num_seeds), 0, -1):
        envs, rest = divmod(num_devices, seeds)
        if not rest and num_seeds % seeds == 0 and blocks % envs == 0:
            return seeds, envs
    possible = [
        number for number in range(1, num_seeds * blocks + 1) if _divides(number, num_seeds, blocks)
    ]
    near = ", ".join(map(str, possible[:8]))
    raise SettingError(
        f"{num_devices} devices cannot share {num_seeds} seeds with {blocks} blocks of "
        f"environments: possible numbers are {near}. A new run with blocks={num_devices} can use "
        "them all; it has other random streams than one with fewer blocks"
    )


def _divides(number: int, num_seeds: int, blocks: int) -> bool:
    parts = (divmod(number, seeds) for seeds in range(1, num_seeds + 1) if num_seeds % seeds == 0)
    return any(rest == 0 and blocks % envs == 0 for envs, rest in parts if envs)
