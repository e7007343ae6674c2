"""Checks of the settings of networks: precision, images, critics that look across agents."""

from fp3o.envs.interface import agent_problems, image_problems
from fp3o.errors import EnvError, SettingError
from fp3o.learning.config import Config
from fp3o.networks.conv_layers import write_conv
from fp3o.networks.network import Scope
from fp3o.spec import MAX_LAYERS, EnvSpec

MAX_UNITS = 10_000
"""Largest number of units of a layer: more would take hours to initialise."""


def check_networks(config: Config, spec: EnvSpec) -> None:
    """Reject networks that cannot do what the settings ask for."""
    for name in (config.network, config.critic or config.network):
        if config.precision != "float32" and name != "mlp_gru":
            raise SettingError(
                f"precision={config.precision} is for the built-in network mlp_gru; the network "
                f"{name} gets float32"
            )
    _check_images(config, spec)


def _check_images(config: Config, spec: EnvSpec) -> None:
    for problem in (*agent_problems(spec), *image_problems(spec)):
        raise EnvError(f"{spec.name}: {problem.what}. Fix: {problem.fix}")
    layers = config.conv or ()
    if layers and not (spec.image or spec.state_image):
        raise SettingError(
            f"conv {write_conv(layers)} needs observations with images, {spec.name} has none"
        )
    if len(layers) + len(config.hidden) > MAX_LAYERS:
        raise SettingError(
            f"networks have at most {MAX_LAYERS} convolutions and hidden layers, got "
            f"{len(layers)} and {len(config.hidden)}"
        )
    for layer in layers:
        if min(layer) < 1 or layer[0] > MAX_UNITS:
            raise SettingError(
                f"a convolution has 1 to {MAX_UNITS} channels, and kernel and stride of at least "
                f"1, got {write_conv((layer,))}"
            )


def check_scopes(config: Config, spec: EnvSpec, actor: Scope, critic: Scope) -> None:
    """Reject actors that look across agents, and critics on a graph that the task does not have."""
    if actor != "agent":
        raise SettingError(
            f"the network {config.network} looks across agents, which an actor must not: each "
            f"agent acts on its own observation. For the critic alone, give critic={config.network}"
        )
    if critic == "graph" and spec.adjacency is None:
        raise SettingError(
            f"critic={config.critic} needs a graph of agents, and {spec.name} has none: give one "
            "in EnvSpec.adjacency, or use critic=attention, which needs none"
        )
