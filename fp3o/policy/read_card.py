"""Reading `policy.json`: every value is checked before it is used, sizes are limited."""

import math
from typing import Any

from fp3o.errors import SettingError
from fp3o.files import CHECKSUM, document_checksum
from fp3o.networks.conv_layers import conv_stack
from fp3o.policy.card import WEIGHTS, Card
from fp3o.policy.format1 import upgrade_document
from fp3o.policy.schema import (
    ListOf,
    Name,
    NumberRange,
    Optional,
    OrNull,
    PolicyError,
    check_value,
    parse_json,
    quote,
)
from fp3o.sharing.schemes import layer_groups
from fp3o.spec import FORMAT, MAX_LAYERS, ActionSpace, Box, Discrete, EnvSpec, Mixed

ACTIVATION_NAMES, STD_PARAM_NAMES = {"relu", "tanh"}, {"sigmoid", "exp"}

MAX_AGENTS, MAX_SIZE = 1024, 2**24
MAX_SUB_ACTIONS, MAX_OUTPUTS = 1024, 2**20
"""Limits of the choices an agent makes per step, and of the padded outputs of a whole team."""
MAX_PARAMETERS = 2**26
"""Limit of the parameters of a policy: 256 MiB."""
MAX_ARRAYS, MAX_AXES = 1024, 8
"""Limits of the arrays of a custom network, and of the axes of one."""

NAME, SHORT_NAME = Name(1000), Name(200)
"""Texts that appear in messages and tables."""
SIZE, LAYER, NUMBER = NumberRange(0, MAX_SIZE), NumberRange(1, MAX_SIZE), NumberRange(-1e300, 1e300)
ACTION_SIZES = {
    "discrete": ListOf(ListOf(LAYER, MAX_SUB_ACTIONS), MAX_AGENTS),
    "box": ListOf(SIZE, MAX_AGENTS),
    "mixed": ListOf(ListOf(object, 2, least=2), MAX_AGENTS),
}
IMAGE = Optional(OrNull(ListOf(LAYER, 3, least=3)), None)
OUTPUT_NAMES = ListOf(SHORT_NAME, MAX_OUTPUTS, least=0)
VALUE = {"mean": ListOf(NUMBER, MAX_AGENTS), "std": ListOf(NumberRange(0.0, 1e300), MAX_AGENTS)}
TASK = {
    "name": NAME,
    "actions": {"kind": {*ACTION_SIZES}, "sizes": list},
    "obs_size": SIZE,
    "state_size": SIZE,
    "agent_types": ListOf(NumberRange(-MAX_SIZE, MAX_SIZE), MAX_AGENTS),
    "truncates": bool,
    "reward_sum_over": NumberRange(1, MAX_AGENTS),
    "episode_metrics": ListOf(SHORT_NAME, MAX_ARRAYS, least=0),
    "agents": Optional(ListOf(SHORT_NAME, MAX_AGENTS, least=0), ()),
    "obs_sizes": Optional(ListOf(SIZE, MAX_AGENTS, least=0), ()),
    "action_names": Optional(ListOf(OUTPUT_NAMES, MAX_AGENTS, least=0), ()),
    "image": IMAGE,
    "state_image": IMAGE,
}
NETWORK = {
    "hidden": ListOf(LAYER, MAX_LAYERS),
    "gru_size": SIZE,
    "activation": ACTIVATION_NAMES,
    "std_param": STD_PARAM_NAMES,
    "agent_id": bool,
    "conv": Optional(ListOf(ListOf(LAYER, 3, least=3), MAX_LAYERS, least=0), ()),
}
CUSTOM_NETWORK = NETWORK | {
    "network_class": NAME,
    "arrays": ListOf({"name": SHORT_NAME, "shape": ListOf(LAYER, MAX_AXES)}, MAX_ARRAYS),
}
"""A custom network: the import path of its class, and its arrays."""
SCHEMA = {
    "format": NumberRange(FORMAT, FORMAT),
    "task": TASK,
    "network": NETWORK,
    "sharing": ListOf(ListOf(NumberRange(0, MAX_AGENTS - 1), MAX_AGENTS), MAX_LAYERS + 2),
    "frozen_agents": Optional(ListOf(SIZE, MAX_AGENTS, least=0), ()),
    "normalisers": {
        "input": {"kind": {"layer_norm", "none"}, "epsilon": NumberRange(1e-12, 1.0)},
        "value": object,
        "obs": Optional(bool, False),
    },
    "provenance": dict,
    "weights": {"file": {WEIGHTS}, "sha256": SHORT_NAME, "bytes": NumberRange(0, 2**40)},
}
"""The content of a `policy.json`."""


def read_card(text: bytes) -> tuple[Card, dict[str, Any]]:
    """Parse and check a `policy.json`: the card, and format, checksum and size of the weights."""
    document = parse_json(text)
    version = document.get("format") if isinstance(document, dict) else FORMAT
    # Before anything else: another version has other keys.
    if type(version) is not int or version not in (1, FORMAT):
        newer = isinstance(version, int) and version > FORMAT
        hint = ": update fp3o" if newer else ""
        raise PolicyError(
            f"has the format {quote(version)}, this version of fp3o reads 1 and {FORMAT}{hint}"
        )
    if version == 1:
        document = upgrade_document(document)
    # Policies of the first versions with format 2 have no checksum of the card.
    has_checksum = isinstance(document, dict) and version == FORMAT and CHECKSUM in document
    checksum = document.pop(CHECKSUM) if has_checksum else None
    network = document.get("network") if isinstance(document, dict) else None
    custom = isinstance(network, dict) and "network_class" in network
    schema = SCHEMA | {"network": CUSTOM_NETWORK if custom else NETWORK}
    card = _make_card(facts := check_value(document, schema, "policy"), custom)
    _check_sizes(card)
    if has_checksum and checksum != document_checksum(document):
        raise PolicyError("was changed after it was written: its checksum differs")
    return card, {**facts["weights"], "format": version}


def _make_card(facts: dict[str, Any], custom: bool) -> Card:
    task, network, sharing = facts["task"], facts["network"], facts["sharing"]
    actions = _action_space(**task["actions"], num_agents=len(task["agent_types"]))
    if custom:
        network["arrays"] = tuple((one["name"], one["shape"]) for one in network["arrays"])
    norms = facts["normalisers"]
    card = Card(
        spec=EnvSpec(**{**task, "actions": actions}),
        **network,
        sharing=sharing,
        layer_norm=norms["input"]["kind"] == "layer_norm",
        epsilon=norms["input"]["epsilon"],
        value=_value_moments(norms["value"]),
        provenance=facts["provenance"],
        obs_norm=norms["obs"],
        frozen_agents=facts["frozen_agents"],
    )
    num_layers = len(sharing) if custom else card.num_layers
    if layer_groups(sharing, task["agent_types"], num_layers) != sharing:
        raise PolicyError("policy.sharing must number groups from 0 in order of appearance")
    return card


def _check_sizes(card: Card) -> None:
    """Reject a card whose arrays would not fit or would take too much memory."""
    _check_spec(card.spec)
    frozen, team = {*card.frozen_agents}, {*range(card.spec.num_agents)}
    if len(frozen) < len(card.frozen_agents) or not frozen < team:
        raise PolicyError("policy.frozen_agents must be some of the agents, each once")
    _check_conv(card)
    if card.network_class is not None:
        needed = card.moment_shapes()
        if num_dimensions := card.spec.actions.num_dimensions:
            needed["log_std.value"] = (max(card.sharing[-1]) + 1, num_dimensions)
        for name, wanted in needed.items():
            if (given := card.shapes().get(name)) != wanted:
                raise PolicyError(f"policy.network.arrays: {name} must be {wanted}, is {given}")
    if card.num_outputs * card.spec.num_agents > MAX_OUTPUTS:
        raise PolicyError(f"pads its actions to more than the {MAX_OUTPUTS} outputs allowed")
    # All arrays, and all vectors once per agent: as many as acting keeps in memory.
    vectors = sum(shape[-1] for shape in card.shapes().values())
    vectors += card.spec.obs_size + card.gru_size + card.conv_stack.largest_patches
    for total in (card.num_parameters, vectors * card.spec.num_agents):
        if total > MAX_PARAMETERS:
            raise PolicyError(f"describes {total} parameters, at most {MAX_PARAMETERS} are allowed")


def _check_spec(spec: EnvSpec) -> None:
    """Reject names and sizes that do not fit the agents."""
    for field in ("agents", "obs_sizes", "action_names"):
        if (given := len(getattr(spec, field))) not in (0, spec.num_agents):
            raise PolicyError(
                f"policy.task.{field} is for {given} agents, agent_types for {spec.num_agents}"
            )
    if len({*spec.agents}) < len(spec.agents):
        raise PolicyError("policy.task.agents has the same name twice")
    if max(spec.agent_obs_sizes) > spec.obs_size:
        raise PolicyError("policy.task.obs_sizes must be at most obs_size")
    for image, size in ((spec.image, spec.obs_size), (spec.state_image, spec.state_size)):
        if image and math.prod(image) > size:
            raise PolicyError(f"has an image of shape {image} in an input of {size} numbers")


def _check_conv(card: Card) -> None:
    """Reject convolutions of no image, of a custom network, or with kernels that do not fit."""
    if card.conv and (card.spec.image is None or card.network_class is not None):
        raise PolicyError("policy.network.conv needs an image, and the built-in network")
    try:
        conv_stack(card.conv, card.spec.image)
    except SettingError as error:
        raise PolicyError(f"policy.network.{error}") from None


def _action_space(kind: str, sizes: Any, num_agents: int) -> ActionSpace:
    where = "policy.task.actions.sizes"
    sizes = check_value(sizes, ACTION_SIZES[kind], where)
    if len(sizes) != num_agents:
        raise PolicyError(f"{where} is for {len(sizes)} agents, agent_types for {num_agents}")
    if kind == "mixed":
        choices, dimensions = map(list, zip(*sizes, strict=True))
        parts = (
            _action_space("discrete", choices, num_agents),
            _action_space("box", dimensions, num_agents),
        )
        return Mixed(*parts)  # pyright: ignore[reportArgumentType]
    if kind == "box":
        return Box(sizes)
    if len({*map(len, sizes)}) > 1:
        raise PolicyError(f"{where} must give all agents the same number of sub-actions")
    return Discrete(sizes)


def _value_moments(moments: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if moments is None:
        return None
    moments = check_value(moments, VALUE, "policy.normalisers.value")
    if len(moments["mean"]) != len(moments["std"]):
        raise PolicyError("policy.normalisers.value must have as many means as deviations")
    return moments["mean"], moments["std"]
