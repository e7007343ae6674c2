"""The card of a policy: the content of `policy.json`, and the arrays that belong to it."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fp3o.files import with_checksum
from fp3o.networks.conv_layers import ConvSpec, ConvStack
from fp3o.policy.schema import PolicyError, dump_json, quote, to_plain
from fp3o.sharing.maps import Groups, Sharing, obs_groups
from fp3o.spec import FORMAT, ActionSpace, Box, Discrete, EnvSpec, Mixed

CARD, WEIGHTS = "policy.json", "weights.safetensors"
"""The files of a policy folder."""

TASK_FIELDS = (
    "obs_size",
    "state_size",
    "agent_types",
    "truncates",
    "reward_sum_over",
    "episode_metrics",
    "agents",
    "obs_sizes",
    "action_names",
    "image",
    "state_image",
)
"""Fields of `EnvSpec` that are saved as they are."""


@dataclass(frozen=True)
class Card:
    """Description of a policy, without its weights: task, network, sharing, provenance."""

    spec: EnvSpec
    hidden: tuple[int, ...]
    gru_size: int
    activation: str
    std_param: str
    agent_id: bool
    sharing: Sharing
    """One map from agent to group per layer: convolutions, hidden layers, GRU, output."""
    layer_norm: bool
    """Whether there is a LayerNorm before every layer."""
    epsilon: float
    """Added to the variance by LayerNorm."""
    value: tuple[tuple[float, ...], tuple[float, ...]] | None
    """Mean and standard deviation of returns per critic; not needed for acting."""
    provenance: Mapping[str, Any]
    """Origin of the policy: free-form, not validated."""
    network_class: str | None = None
    """Import path of a custom network class; None: the built-in network."""
    arrays: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Names and shapes of the arrays of a custom network."""
    conv: ConvSpec = ()
    """Channels, kernel and stride of the convolutions of the image in an observation."""
    obs_norm: bool = False
    """Whether observations are normalised with running moments."""
    frozen_agents: tuple[int, ...] = ()
    """Agents that were not trained; the normaliser has separate moments for each of them."""

    @property
    def num_outputs(self) -> int:
        """Network outputs per agent, padded: choices of all sub-actions, or dimensions."""
        return self.spec.actions.num_outputs

    @property
    def conv_stack(self) -> ConvStack:
        """The convolutions with the image that they are applied to."""
        return ConvStack(self.conv, self.spec.image) if self.spec.image else ConvStack()

    @property
    def num_layers(self) -> int:
        """Number of layers of the built-in network that have a map in `sharing`."""
        return len(self.conv) + len(self.layers)

    @property
    def layers(self) -> list[str]:
        """Names of the layers that follow a LayerNorm, in order: the last maps of `sharing`."""
        hidden = [f"network.hidden.{j}" for j in range(len(self.hidden))]
        return [*hidden, *["network.gru.input"] * bool(self.gru_size), "network.output"]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the arrays that go with this card."""
        if self.network_class is not None:
            return dict(self.arrays)
        groups, size = [max(layer) + 1 for layer in self.sharing], self.gru_size
        ids, stack = self.spec.num_agents if self.agent_id else 0, self.conv_stack
        first = stack.num_features(self.spec.obs_size + ids)
        ins = [first, *self.hidden, *[size] * bool(size)]
        outs = [*self.hidden, *[3 * size] * bool(size), self.num_outputs]
        dense = zip(self.layers, ins, outs, strict=True)
        named = [(f"network.conv.{j}", *shape) for j, shape in enumerate(stack.matrices)]
        shapes: dict[str, tuple[int, ...]] = {}
        for own, (name, num_in, num_out) in zip(groups, [*named, *dense], strict=True):
            shapes[f"{name}.weight"] = (own, num_in, num_out)
            shapes[f"{name}.bias"] = (own, num_out)
        for j, num_in in enumerate(ins if self.layer_norm else ()):
            for part in ("scale", "shift"):
                shapes[f"network.norms.{j}.{part}"] = (max(self.norm_groups(j)) + 1, num_in)
        if size:
            shapes["network.gru.weight"] = (groups[-2], size, 3 * size)
            shapes["network.gru.bias"] = (groups[-2], 3 * size)
        if num_dimensions := self.spec.actions.num_dimensions:
            shapes["log_std.value"] = (groups[-1], num_dimensions)
        return shapes | self.moment_shapes()

    def moment_shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the moments of the running normaliser, if there is one."""
        if not self.obs_norm:
            return {}
        number = max(obs_groups(self.spec, self.frozen_agents)) + 1
        size = self.spec.obs_size - self.conv_stack.image_size
        widths = {"count": 1, "mean": size, "std": size}
        return {f"obs_norm.{name}": (number, width) for name, width in widths.items()}

    def norm_groups(self, number: int) -> Groups:
        """The map of a LayerNorm: that of the layer whose output it normalises.

        The norm of the network's input has the map of the first layer.
        """
        return self.sharing[max(len(self.conv) + number - 1, 0)]

    @property
    def num_parameters(self) -> int:
        """Number of parameters."""
        return sum(map(math.prod, self.shapes().values()))

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Reject anything but exactly the arrays of this card."""
        names = self.shapes().keys()
        if missing := sorted(names - given.keys()):
            raise PolicyError(f"lacks the array {missing[0]!r} ({len(missing)} missing)")
        if extra := sorted(given.keys() - names):
            raise PolicyError(f"has the array {quote(extra[0])} the network does not have")

    def to_json(self, weights: bytes) -> bytes:
        """The content of `policy.json` for these weights."""
        spec, names = self.spec, ("hidden", "gru_size", "activation", "std_param", "agent_id")
        value = None if self.value is None else {"mean": self.value[0], "std": self.value[1]}
        norm = {"kind": "layer_norm" if self.layer_norm else "none", "epsilon": self.epsilon}
        norms = {"input": norm, "value": value} | ({"obs": True} if self.obs_norm else {})
        frozen = {"frozen_agents": self.frozen_agents} if self.frozen_agents else {}
        document = {
            "format": FORMAT,
            "task": {
                "name": spec.name,
                "actions": _actions_document(spec.actions),
                **{name: getattr(spec, name) for name in TASK_FIELDS},
            },
            "network": {name: getattr(self, name) for name in names} | self._optional_network(),
            "sharing": self.sharing,
            **frozen,
            "normalisers": norms,
            "provenance": self.provenance,
            "weights": {"file": WEIGHTS, **weights_digest(weights)},
        }
        return dump_json(with_checksum(to_plain(document)))

    def _optional_network(self) -> dict[str, Any]:
        if self.network_class is None:
            return {"conv": self.conv} if self.conv else {}
        arrays = [{"name": name, "shape": shape} for name, shape in self.arrays]
        return {"network_class": self.network_class, "arrays": arrays}


def _actions_document(actions: ActionSpace) -> dict[str, Any]:
    match actions:
        case Discrete():
            return {"kind": "discrete", "sizes": actions.sizes}
        case Box():
            return {"kind": "box", "sizes": actions.sizes}
        case Mixed():
            sizes = [*zip(actions.discrete.sizes, actions.box.sizes, strict=True)]
            return {"kind": "mixed", "sizes": sizes}


def weights_digest(weights: bytes) -> dict[str, Any]:
    """Checksum and size of the file of weights."""
    return {"sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)}
