"""Between the engine's rows and the policy folder that NumPy reads."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.learning.config import Config
from fp3o.learning.optim import PackedParams, ParamLayout
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Setup
from fp3o.networks.layers import EPSILON, normalise
from fp3o.networks.network import MLPGRUNetwork
from fp3o.policy import Card, Policy, PolicyError


def write_policy(
    folder: str | os.PathLike[str],
    setup: Setup,
    actor_rows: PackedParams,
    provenance: Mapping[str, Any],
    norm: ValueNorm | None = None,
) -> Policy:
    """Save the actor of one seed as a policy folder, and return the policy as NumPy sees it.

    `provenance` is free: what JSON or NumPy can hold. `norm` adds the scale of the critic's values.
    Raises `PolicyError` for weights that are not finite; the folder is then left as it was.
    """
    leaves = jax.tree_util.tree_leaves_with_path(_unpack(setup.actor_layout, actor_rows))
    weights = {_name(path): np.asarray(leaf, np.float32) for path, leaf in leaves}
    policy = Policy(_card(setup, provenance, norm), weights)
    policy.save(folder)
    return policy


def read_actor(policy: Policy, setup: Setup) -> PackedParams:
    """The policy's weights as rows of this setup, to evaluate or go on training with.

    The task may be another one as long as the networks are the same.
    """
    return _pack(setup.actor_layout, _stored(policy.card, policy.weights, setup))


def config_of(card: Card) -> Config:
    """Settings with which a policy of this card can be played; they are not those of its training.

    Its class is imported if the network is one's own.
    """
    return Config(
        network=card.network_class or "mlp_gru", sharing=card.sharing, hidden=card.hidden,
        gru_size=card.gru_size, std_param=card.std_param, activation=card.activation,
        agent_id=card.agent_id, layer_norm=card.layer_norm, num_envs=1, rollout=1, sequence_length=1,
    )  # fmt: skip


def _stored(card: Card, weights: Mapping[str, np.ndarray], setup: Setup) -> Any:
    """The actor of this setup with a policy's weights, which must be made for it."""
    for name, wanted in _structure(_card(setup, {}, None)).items():
        if (given := _structure(card)[name]) != wanted:
            raise PolicyError(f"the policy has {name} {given}, the setup has {wanted}")
    return jax.tree_util.tree_map_with_path(
        lambda path, _: weights[_name(path)], _shapes(setup.actor_layout)
    )


def _shapes(layout: ParamLayout) -> Any:
    """The network of a layout with shapes in the place of arrays."""
    rows = tuple(
        jax.ShapeDtypeStruct((max(groups) + 1, rates.size), jnp.float32)
        for groups, rates in zip(layout.maps, layout.lr_factors, strict=True)
    )
    return jax.eval_shape(layout.unpack, rows)


def acting(
    card: Card, weights: Mapping[str, np.ndarray], agents: Sequence[int]
) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A network of one's own as a policy acts with it: one step of some agents, in and out NumPy.

    The class is imported. Features `(k, r, f)` and memory `(k, r, h)` to outputs and memory.
    """
    actor = _stored(card, weights, Setup(card.spec, config_of(card)))
    network = jax.tree.map(jnp.asarray, actor.network)
    chosen = jnp.asarray(agents)

    @jax.jit
    def step(x: Array, hidden_state: Array) -> tuple[Array, Array]:
        episode_start = jnp.zeros(x.shape[:2], bool)
        out, after = network(
            normalise(x) if card.layer_norm else x, hidden_state, episode_start, chosen
        )
        return out, after

    return lambda x, hidden_state: jax.tree.map(np.array, step(x, hidden_state))


# One program each, kept for the layout: step by step, every array would need one of its own.
@partial(jax.jit, static_argnums=0)
def _unpack(layout: ParamLayout, rows: PackedParams) -> Any:
    return layout.unpack(rows)


@partial(jax.jit, static_argnums=0)
def _pack(layout: ParamLayout, actor: Any) -> PackedParams:
    return layout.pack(actor)


def _card(setup: Setup, provenance: Mapping[str, Any], norm: ValueNorm | None) -> Card:
    config, value = setup.config, None
    if norm is not None:
        mean, std = (tuple(np.asarray(moment, float).tolist()) for moment in norm.moments())
        value = (mean, std)
    own, arrays = None, ()
    if setup.network is not MLPGRUNetwork:
        leaves = jax.tree_util.tree_leaves_with_path(_shapes(setup.actor_layout))
        own, arrays = config.network, tuple((_name(path), leaf.shape) for path, leaf in leaves)
    return Card(
        setup.spec, tuple(config.hidden), config.gru_size, config.activation, config.std_param,
        config.agent_id, setup.actor_sharing, config.layer_norm, EPSILON, value, provenance,
        own, arrays,
    )  # fmt: skip


def _structure(card: Card) -> dict[str, Any]:
    """What two policies must have in common to use the same weights alike."""
    names = "own arrays hidden recurrent activation std agent_id sharing layer_norm epsilon".split()  # noqa: SIM905
    facts = {"actions": card.spec.actions, "obs_size": card.spec.obs_size}
    return facts | {name: getattr(card, name) for name in names}


def _name(path: tuple[Any, ...]) -> str:
    """`network.hidden.0.weight` from a path of the tree."""
    return ".".join(str(getattr(key, "name", getattr(key, "idx", key))) for key in path)
