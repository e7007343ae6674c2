"""Conversion between the learner's parameters (JAX) and policy folders (NumPy)."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.learning.config import Config
from fp3o.learning.optim import PackedParams, ParamLayout
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Setup
from fp3o.networks.actor import Actor
from fp3o.networks.conv_layers import default_conv
from fp3o.networks.layers import EPSILON, normalise
from fp3o.networks.network import MLPGRUNetwork
from fp3o.policy import Card, Policy, PolicyError
from fp3o.policy.files import write_folder


def write_policy(
    folder: str | os.PathLike[str],
    setup: Setup,
    actor: PackedParams,
    provenance: Mapping[str, Any],
    norm: ValueNorm | None = None,
    parents: bool = True,
) -> Policy:
    """Save the actor of one seed as a policy folder, and return the policy.

    `provenance` is free-form: JSON values and arrays. `norm` adds the value normaliser. Missing
    folders around it are made unless `parents` is false. Raises `PolicyError` for weights that are
    not finite, without changing the folder; errors of the disk are passed on to the run that
    writes it.
    """
    policy = make_policy(setup, actor, provenance, norm)
    target = Path(folder).resolve()
    if parents:
        target.parent.mkdir(parents=True, exist_ok=True)
    write_folder(policy.card, policy.weights, target)
    return policy


def make_policy(
    setup: Setup, actor: PackedParams, provenance: Mapping[str, Any], norm: ValueNorm | None = None
) -> Policy:
    """The actor of one seed as a policy, which is not saved."""
    leaves = jax.tree_util.tree_leaves_with_path(unpack_params(setup.actor_layout, actor))
    weights = {array_name(path): np.asarray(leaf, np.float32) for path, leaf in leaves}
    return Policy(card_of(setup, provenance, norm), weights)


def read_actor(policy: Policy, setup: Setup) -> PackedParams:
    """The policy's weights as packed parameters of this setup, to evaluate or train further.

    The task may differ as long as the networks are the same.
    """
    return pack_params(setup.actor_layout, _stored(policy.card, policy.weights, setup))


def config_of(card: Card) -> Config:
    """Settings with which a policy of this card can be evaluated; not those of its training."""
    names = (
        "sharing", "hidden", "gru_size", "std_param", "activation", "agent_id", "layer_norm",
        "obs_norm", "frozen_agents",
    )  # fmt: skip
    network = {name: getattr(card, name) for name in names}
    network["network"] = card.network_class or "mlp_gru"
    # The critic's image may need other convolutions than the actor's.
    network["conv"] = None if card.conv == default_conv(card.spec.image) else card.conv
    return Config(num_envs=1, rollout=1, sequence_length=1, **network)


def _stored(card: Card, weights: Mapping[str, np.ndarray], setup: Setup) -> Any:
    """The actor of this setup with a policy's weights; both must have the same structure."""
    for name, wanted in _structure(card_of(setup)).items():
        if (given := _structure(card)[name]) != wanted:
            raise PolicyError(f"the policy has {name} {given}, the setup has {wanted}")
    return jax.tree_util.tree_map_with_path(
        lambda path, _: weights[array_name(path)], _shapes(setup.actor_layout)
    )


def _shapes(layout: ParamLayout) -> Any:
    """The network of a layout with shapes in place of arrays."""
    rows = tuple(
        jax.ShapeDtypeStruct((max(groups) + 1, rates.size), jnp.float32)
        for groups, rates in zip(layout.maps, layout.lr_factors, strict=True)
    )
    return jax.eval_shape(layout.unpack, rows)


def make_actor_of(card: Card, weights: Mapping[str, np.ndarray]) -> tuple[Setup, Actor]:
    """A setup for policies of this card, and its actor with a policy's weights."""
    setup = Setup(card.spec, config_of(card))
    return setup, jax.tree.map(jnp.asarray, _stored(card, weights, setup))


def parameter_shapes(layout: ParamLayout) -> dict[str, tuple[int, ...]]:
    """Shape of every array of a network, by name."""
    leaves = jax.tree_util.tree_leaves_with_path(_shapes(layout))
    return {array_name(path): leaf.shape for path, leaf in leaves}


def custom_network(
    card: Card, weights: Mapping[str, np.ndarray], agents: Sequence[int]
) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A custom network as a function of NumPy arrays: one step of some agents.

    Its class is imported. Features `(k, r, f)` and hidden state `(k, r, h)` to outputs and the next
    hidden state.
    """
    network = make_actor_of(card, weights)[1].network
    chosen = jnp.asarray(agents)

    @jax.jit
    def step(x: Array, hidden_state: Array) -> tuple[Array, Array]:
        episode_start = jnp.zeros(x.shape[:2], bool)
        out, after = network(
            normalise(x) if card.layer_norm else x, hidden_state, episode_start, chosen
        )
        return out, after

    return lambda x, hidden_state: jax.tree.map(np.array, step(x, hidden_state))


# Compiled once per layout; otherwise every array would need a separate program.
@partial(jax.jit, static_argnums=0)
def unpack_params(layout: ParamLayout, rows: PackedParams) -> Any:
    """The network with these packed parameters."""
    return layout.unpack(rows)


@partial(jax.jit, static_argnums=0)
def pack_params(layout: ParamLayout, network: Any) -> PackedParams:
    """The packed parameters of a network."""
    return layout.pack(network)


def card_of(
    setup: Setup, provenance: Mapping[str, Any] | None = None, norm: ValueNorm | None = None
) -> Card:
    """The card of a policy that is trained with this setup."""
    config, value = setup.config, None
    if norm is not None:
        mean, std = (tuple(np.asarray(moment, float).tolist()) for moment in norm.moments())
        value = (mean, std)
    network_class, arrays = None, ()
    if setup.network is not MLPGRUNetwork:
        network_class = config.network
        arrays = tuple(parameter_shapes(setup.actor_layout).items())
    return Card(
        spec=setup.spec,
        hidden=tuple(config.hidden),
        gru_size=config.gru_size,
        activation=config.activation,
        std_param=config.std_param,
        agent_id=config.agent_id,
        sharing=setup.actor_sharing,
        layer_norm=config.layer_norm,
        epsilon=EPSILON,
        value=value,
        provenance=provenance or {},
        network_class=network_class,
        arrays=arrays,
        conv=setup.network_spec("actor").trunk.conv.layers,
        obs_norm=config.obs_norm,
        frozen_agents=tuple(config.frozen_agents),
    )


def _structure(card: Card) -> dict[str, Any]:
    """The properties that must be equal for two policies to have compatible weights."""
    names = {x.name for x in fields(Card)} - {"spec", "value", "provenance", "frozen_agents"}
    facts = {"actions": card.spec.actions, "obs_size": card.spec.obs_size}
    facts["frozen_agents"] = card.frozen_agents if card.obs_norm else ()
    facts["image"] = card.spec.image if card.conv else None
    return facts | {name: getattr(card, name) for name in sorted(names)}


def array_name(path: tuple[Any, ...]) -> str:
    """`network.hidden.0.weight` from the path of a leaf."""
    return ".".join(str(getattr(key, "name", getattr(key, "idx", key))) for key in path)
