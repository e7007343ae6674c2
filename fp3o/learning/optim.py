"""Adam for parameters shared in groups, with gradients clipped per component.

All arrays of a network with the same agent-to-group map are packed side by side into one matrix
with one row per group. Full sharing and no sharing give one matrix, partial sharing two. Separate
moments *and step counts* per group are then optax's Adam mapped over rows, and the row of a group
that a stage does not update stays unchanged: idle agents never drift by momentum.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from fp3o.networks.layers import Grouped
from fp3o.sharing.maps import Groups, components
from fp3o.types import Scalar

ADAM = optax.scale_by_adam(eps=1e-5)

PackedParams = tuple[Float[Array, "_ _"], ...]
"""Parameters of a network: one matrix `(g, p)` per distinct map."""


class StepSize(NamedTuple):
    """Size of a gradient step."""

    lr: Scalar
    max_grad_norm: Scalar
    """Largest gradient norm per component."""


class ParamLayout:
    """Static layout of a network's arrays in packed matrices.

    `head_lr_factor` multiplies the learning rate of the last layer; the number of agents under
    partial sharing reproduces the authors' release (D6).
    """

    def __init__(self, network: eqx.Module, head_lr_factor: float = 1.0):
        paths, self._structure = jax.tree_util.tree_flatten_with_path(network)
        parts = jax.tree.leaves(network, is_leaf=lambda part: isinstance(part, Grouped))
        self.map_of_leaf: list[Groups] = [
            part.groups for part in parts for _ in jax.tree.leaves(part)
        ]
        """Agent -> group for every array, in the order of the leaves."""
        self._shapes = [array.shape for _, array in paths]
        self.maps: tuple[Groups, ...] = tuple(dict.fromkeys(self.map_of_leaf))
        self.component = components([part.groups for part in parts if part.trained])
        trained = [part.trained for part in parts for _ in jax.tree.leaves(part)]
        factors = [
            float(learned) * (head_lr_factor if _in_head(path) else 1.0)
            for (path, _), learned in zip(paths, trained, strict=True)
        ]
        flat = [
            np.full(_width(shape), factor, np.float32)
            for shape, factor in zip(self._shapes, factors, strict=True)
        ]
        self.lr_factors = tuple(
            np.concatenate(self._with_map(flat, groups)) for groups in self.maps
        )

    def pack(self, network: eqx.Module) -> PackedParams:
        """Pack the arrays of a network."""
        flat = [array.reshape(array.shape[0], -1) for array in jax.tree.leaves(network)]
        return tuple(jnp.concatenate(self._with_map(flat, groups), axis=1) for groups in self.maps)

    def unpack(self, params: PackedParams) -> Any:
        """The network with these packed parameters."""
        pieces = {}
        for groups, matrix in zip(self.maps, params, strict=True):
            shapes = self._with_map(self._shapes, groups)
            ends = np.cumsum([_width(shape) for shape in shapes])[:-1].tolist()
            parts = jnp.split(matrix, ends, axis=1)
            pieces[groups] = iter([p.reshape(s) for p, s in zip(parts, shapes, strict=True)])
        leaves = [next(pieces[groups]) for groups in self.map_of_leaf]
        return jax.tree.unflatten(self._structure, leaves)

    def component_of_group(self, groups: Groups) -> Groups:
        """Group -> component."""
        return tuple(self.component[groups.index(g)] for g in range(max(groups) + 1))

    def _with_map(self, leaves: Sequence[Any], groups: Groups) -> list[Any]:
        pairs = zip(leaves, self.map_of_leaf, strict=True)
        return [leaf for leaf, leaf_groups in pairs if leaf_groups == groups]


def _width(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape[1:]))


def _in_head(path: tuple[Any, ...]) -> bool:
    return any(getattr(key, "name", None) in ("output", "log_std") for key in path)


def membership(groups: Groups, number: int | None = None) -> Float[np.ndarray, "g n"]:
    """1 where the agent belongs to the group (or the group to the component).

    `number` is how many there are, if the last ones may have no member.
    """
    rows = np.arange(max(groups) + 1 if number is None else number)
    return np.equal.outer(rows, np.array(groups)).astype(np.float32)


def init_adam(params: PackedParams) -> Any:
    """Zero moments and a step count of 0 for every group."""
    return tuple(jax.vmap(ADAM.init)(matrix) for matrix in params)


def component_norms(layout: ParamLayout, grads: PackedParams) -> Float[Array, " component"]:
    """Gradient norm of each component."""
    number = max(layout.component) + 1
    squares = [
        membership(layout.component_of_group(groups), number) @ jnp.square(grad).sum(1)
        for groups, grad in zip(layout.maps, grads, strict=True)
    ]
    return jnp.sqrt(sum(squares[1:], squares[0]))


def adam_step(
    layout: ParamLayout,
    params: PackedParams,
    state: Any,
    grads: PackedParams,
    updated: Bool[Array, " n"] | None,
    size: StepSize,
) -> tuple[PackedParams, Any, Float[Array, ""]]:
    """One step of Adam for the groups of the updated agents (None: all of them).

    Returns the new parameters, the new state and the largest gradient norm of a component.
    """
    norms = component_norms(layout, grads)
    scale = jnp.minimum(1.0, size.max_grad_norm / (norms + 1e-6))
    new_params, new_state = [], []
    for j, groups in enumerate(layout.maps):
        grad = grads[j] * scale[np.array(layout.component_of_group(groups))][:, None]
        update, moments = jax.vmap(ADAM.update)(grad, state[j])
        new_params.append(params[j] - size.lr * layout.lr_factors[j] * update)  # pyright: ignore
        new_state.append(moments)
    if updated is not None:
        new_params = update_where(layout, updated, new_params, params)
        new_state = update_where(layout, updated, new_state, state)
    return tuple(new_params), tuple(new_state), norms.max()


def update_where(layout: ParamLayout, updated: Bool[Array, " n"], new: Any, old: Any) -> Any:
    """`new` for the groups of the updated agents, `old` for all others."""
    chosen = []
    for j, groups in enumerate(layout.maps):
        touched = (jnp.asarray(membership(groups)) * updated).any(1)
        choose = lambda a, b, t=touched: jnp.where(_column(t, a), a, b)  # noqa: E731
        chosen.append(jax.tree.map(choose, new[j], old[j]))
    return tuple(chosen)


def _column(flags: Bool[Array, " g"], like: Array) -> Array:
    return flags.reshape(-1, *(1,) * (like.ndim - 1))
