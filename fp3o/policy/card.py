"""What `policy.json` says about a policy, and which arrays go with it."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fp3o.policy.schema import Many, PolicyError, Span, check, read_json, show, write_json
from fp3o.sharing.schemes import Sharing, layer_groups
from fp3o.spec import Box, Discrete, EnvSpec

FORMAT = 1
"""Version of the folder's layout."""
CARD, WEIGHTS = "policy.json", "weights.safetensors"
"""The files of a folder."""
ACTIVATIONS, STDS = {"relu", "tanh"}, {"sigmoid", "exp"}

MAX_AGENTS, MAX_LAYERS, MAX_SIZE = 1024, 64, 2**24
MAX_CHOICES = 2**20
"""Most padded choices of a whole team."""
MAX_NUMBERS = 2**26
"""Most weights of a policy: 256 MiB."""
MAX_ARRAYS, MAX_AXES = 1024, 8
"""Most arrays of a network of one's own, and most axes of one."""

SIZE, LAYER, NUMBER = Span(0, MAX_SIZE), Span(1, MAX_SIZE), Span(-1e300, 1e300)
SIZES = {"discrete": Many(Many(LAYER, MAX_CHOICES), MAX_AGENTS), "box": Many(SIZE, MAX_AGENTS)}
VALUE = {"mean": Many(NUMBER, MAX_AGENTS), "std_param": Many(Span(0.0, 1e300), MAX_AGENTS)}
TASK = {
    "name": str,
    "actions": {"kind": {*SIZES}, "sizes": list},
    "obs_size": SIZE,
    "state_size": SIZE,
    "kinds": Many(Span(-MAX_SIZE, MAX_SIZE), MAX_AGENTS),
    "truncates": bool,
}
NORMS = {"layer_norm", "none"}
NETWORK = {
    "hidden": Many(LAYER, MAX_LAYERS),
    "gru_size": SIZE,
    "activation": ACTIVATIONS,
    "std_param": STDS,
    "agent_id": bool,
}
OWN_NETWORK = NETWORK | {
    "own": str,
    "arrays": Many({"name": str, "shape": Many(LAYER, MAX_AXES)}, MAX_ARRAYS),
}
"""A network of one's own: where its class is imported from, and its arrays."""
SCHEMA = {
    "format": Span(FORMAT, FORMAT),
    "task": TASK,
    "network": NETWORK,
    "sharing": Many(Many(Span(0, MAX_AGENTS - 1), MAX_AGENTS), MAX_LAYERS + 2),
    "normalisers": {
        "input": {"kind": NORMS, "epsilon": Span(1e-12, 1.0)},
        "value": object,
    },
    "provenance": dict,
    "weights": {"file": {WEIGHTS}, "sha256": str, "bytes": Span(0, 2**40)},
}
"""All that a `policy.json` holds."""


@dataclass(frozen=True)
class Card:
    """Everything about a policy but its weights: what `policy.json` says."""

    spec: EnvSpec
    hidden: tuple[int, ...]
    gru_size: int
    activation: str
    std_param: str
    agent_id: bool
    sharing: Sharing
    """One agent-to-group map a layer: hidden ones, the recurrent one if there is one, output."""
    layer_norm: bool
    """Whether a LayerNorm stands before every layer."""
    epsilon: float
    """Added to the variance by LayerNorm."""
    value: tuple[tuple[float, ...], tuple[float, ...]] | None
    """Mean and deviation of the returns each critic was trained on; acting does not need them."""
    provenance: Mapping[str, Any]
    """Where the policy comes from; free, and checked by nobody."""
    network_class: str | None = None
    """Import path of the network's class, if it is one's own."""
    arrays: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Names and shapes of its arrays."""

    @property
    def num_outputs(self) -> int:
        """Padded choices (or dimensions) of an agent."""
        actions = self.spec.actions
        return sum(actions.widths) if isinstance(actions, Discrete) else max(actions.sizes)

    @property
    def layers(self) -> list[str]:
        """Names of the layers that follow a norm, in order; one map of `sharing` for each."""
        hidden = [f"network.hidden.{j}" for j in range(len(self.hidden))]
        return [*hidden, *["network.recurrent.input"] * bool(self.gru_size), "network.output"]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The arrays that belong to this card, by name."""
        if self.network_class is not None:
            return dict(self.arrays)
        groups, size = [max(layer) + 1 for layer in self.sharing], self.gru_size
        ids = self.spec.num_agents if self.agent_id else 0
        ins = [self.spec.obs_size + ids, *self.hidden, *[size] * bool(size)]
        outs = [*self.hidden, *[3 * size] * bool(size), self.num_outputs]
        shapes: dict[str, tuple[int, ...]] = {}
        for j, name in enumerate(self.layers):
            shapes[f"{name}.weight"] = (groups[j], ins[j], outs[j])
            shapes[f"{name}.bias"] = (groups[j], outs[j])
            # A norm belongs to the layer whose output it normalises; the first to the first layer.
            for part in ("scale", "shift") if self.layer_norm else ():
                shapes[f"network.norms.{j}.{part}"] = (groups[max(j - 1, 0)], ins[j])
        if size:
            shapes["network.recurrent.weight"] = (groups[-2], size, 3 * size)
            shapes["network.recurrent.bias"] = (groups[-2], 3 * size)
        if isinstance(self.spec.actions, Box):
            shapes["log_std.value"] = (groups[-1], self.num_outputs)
        return shapes

    @property
    def num_numbers(self) -> int:
        """How many numbers the arrays hold."""
        return sum(map(math.prod, self.shapes().values()))

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Refuse anything but exactly the arrays of this card."""
        names = self.shapes().keys()
        if missing := sorted(names - given.keys()):
            raise PolicyError(f"lacks the array {missing[0]!r} ({len(missing)} missing)")
        if extra := sorted(given.keys() - names):
            raise PolicyError(f"has the array {show(extra[0])} the network does not have")

    def text(self, weights: bytes) -> bytes:
        """The JSON that goes with these weights."""
        spec, value = self.spec, self.value
        kind = "discrete" if isinstance(spec.actions, Discrete) else "box"
        document = {
            "format": FORMAT,
            "task": {name: getattr(spec, name) for name in TASK}
            | {"actions": {"kind": kind, "sizes": spec.actions.sizes}},
            "network": {name: getattr(self, name) for name in NETWORK} | self._own_parts(),
            "sharing": self.sharing,
            "normalisers": {
                "input": {
                    "kind": "layer_norm" if self.layer_norm else "none",
                    "epsilon": self.epsilon,
                },
                "value": None if value is None else dict(zip(VALUE, value, strict=True)),
            },
            "provenance": self.provenance,
            "weights": {"file": WEIGHTS, **checksum(weights)},
        }
        return write_json(document)

    def _own_parts(self) -> dict[str, Any]:
        if self.network_class is None:
            return {}
        arrays = [{"name": name, "shape": shape} for name, shape in self.arrays]
        return {"own": self.network_class, "arrays": arrays}


def checksum(weights: bytes) -> dict[str, Any]:
    """What a card says about its file of weights."""
    return {"sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)}


def read_card(text: bytes) -> tuple[Card, dict[str, Any]]:
    """Check every word of a `policy.json`; also what it says about the file of weights."""
    document = read_json(text)
    version = document.get("format") if isinstance(document, dict) else FORMAT
    if version != FORMAT:  # before anything else: another version has other keys
        raise PolicyError(f"has the format {show(version)}, this fp3o reads format {FORMAT}")
    told = document.get("network") if isinstance(document, dict) else None
    own = isinstance(told, dict) and "own" in told
    facts = check(document, SCHEMA | {"network": OWN_NETWORK if own else NETWORK}, "policy")
    task, network, sharing = facts["task"], facts["network"], facts["sharing"]
    actions = _space(**task["actions"], num_agents=len(task["kinds"]))
    num_layers = len(sharing) if own else len(network["hidden"]) + bool(network["gru_size"]) + 1
    if own:
        network["arrays"] = tuple((one["name"], one["shape"]) for one in network["arrays"])
    if layer_groups(sharing, task["kinds"], num_layers) != sharing:
        raise PolicyError("policy.sharing must number groups from 0 in order of appearance")
    card = Card(
        spec=EnvSpec(**{**task, "actions": actions}),
        **network,
        sharing=sharing,
        layer_norm=facts["normalisers"]["input"]["kind"] == "layer_norm",
        epsilon=facts["normalisers"]["input"]["epsilon"],
        value=_value(facts["normalisers"]["value"]),
        provenance=facts["provenance"],
    )
    if own and isinstance(actions, Box):
        wanted = (max(sharing[-1]) + 1, card.num_outputs)
        if (given := card.shapes().get("log_std.value")) != wanted:
            raise PolicyError(f"policy.network.arrays: log_std.value must be {wanted}, is {given}")
    if card.num_outputs * card.spec.num_agents > MAX_CHOICES:
        raise PolicyError(f"pads its actions to more than the {MAX_CHOICES} choices allowed")
    # All arrays, and all vectors once for each agent: as many as acting keeps in memory.
    vectors = sum(shape[-1] for shape in card.shapes().values())
    for total in (card.num_numbers, vectors * card.spec.num_agents):
        if total > MAX_NUMBERS:
            raise PolicyError(f"describes {total} weights, at most {MAX_NUMBERS} are allowed")
    return card, facts["weights"]


def _space(kind: str, sizes: Any, num_agents: int) -> Discrete | Box:
    where = "policy.task.actions.sizes"
    sizes = check(sizes, SIZES[kind], where)
    if len(sizes) != num_agents:
        raise PolicyError(f"{where} is for {len(sizes)} agents, task.kinds for {num_agents}")
    if kind == "box":
        return Box(sizes)
    if len({*map(len, sizes)}) > 1:
        raise PolicyError(f"{where} must give all agents equally many sub-actions")
    return Discrete(sizes)


def _value(moments: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if moments is None:
        return None
    moments = check(moments, VALUE, "policy.normalisers.value")
    if len(moments["mean"]) != len(moments["std_param"]):
        raise PolicyError("policy.normalisers.value must have as many means as deviations")
    return moments["mean"], moments["std_param"]
