"""Limits of a run, known before anything is compiled or written: seeds, counts and memory.

The memory is a lower bound of what a run needs at the same time: parameters with the two moments
of the optimiser, one rollout, the environments of an evaluation, and its results. A run that is
refused cannot fit; one that is accepted may still need several times as much.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from fp3o.errors import SettingError
from fp3o.learning.config import Config
from fp3o.networks.conv_layers import ConvStack
from fp3o.networks.critics import CRITICS
from fp3o.networks.distributions import num_outputs
from fp3o.networks.network import NETWORKS, Network, TrunkSpec
from fp3o.options import check_seeds
from fp3o.policy.read_card import MAX_PARAMETERS
from fp3o.sharing.maps import Sharing, default_critic_sharing
from fp3o.sharing.schemes import SharingSpec, layer_groups, resolve_groups
from fp3o.spec import EnvSpec

MAX_SEEDS = 10_000
"""Largest number of seeds in one run: they are initialised one after another."""

MAX_EPISODES = 10**9
"""Largest number of episodes of an evaluation."""

FLOAT_BYTES = 4

CONTROL_GROUPS = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}
"""Where Linux keeps limits of memory, by the kind of control groups: version 2, version 1."""

PARAMETER_COPIES = 3
"""The parameters and the two moments of Adam."""


class RunCounts(NamedTuple):
    """Numbers of a run that multiply its memory."""

    seeds: int
    episodes_at_once: int
    """Environments of an evaluation, per seed."""
    episodes: int
    """Episodes of the longest evaluation, per seed."""


class Part(NamedTuple):
    """Memory that a part of a run needs, and the settings that reduce it."""

    bytes: int
    settings: str


def check_limits(spec: EnvSpec, learner: Config, seed: int, counts: RunCounts) -> None:
    """Reject seeds that are not different, counts without end, and what cannot fit into memory."""
    check_seeds(seed, counts.seeds)
    if counts.seeds > MAX_SEEDS:
        raise SettingError(f"seeds must be at most {MAX_SEEDS} in one run, got {counts.seeds}")
    check_episodes(counts.episodes, least=0)
    if (actor := num_parameters(spec, learner)[0]) > MAX_PARAMETERS:
        raise SettingError(
            f"the policy would have {actor} parameters, at most {MAX_PARAMETERS} can be saved: "
            "lower hidden, gru_size or conv"
        )
    parts, available = memory_needed(spec, learner, counts), device_memory()
    name, part = max(parts.items(), key=lambda item: item[1].bytes)
    if part.bytes > available:
        raise SettingError(
            f"{name} would need at least {_gib(part.bytes)}, and there are {_gib(available)} of "
            f"memory: lower {part.settings}"
        )


def check_episodes(episodes: int, least: int = 1) -> None:
    """Reject numbers of episodes that no evaluation can have or finish."""
    if episodes < least:
        raise SettingError(f"episodes must be at least {least}, got {episodes}")
    if episodes > MAX_EPISODES:
        raise SettingError(f"an evaluation has at most {MAX_EPISODES} episodes, got {episodes}")


def memory_needed(spec: EnvSpec, learner: Config, counts: RunCounts) -> Mapping[str, Part]:
    """Lower bounds, in bytes, of the largest things that a run holds in memory."""
    team, critic_input = spec.num_agents, _critic_features(spec, learner)
    if _critic_network(learner).scope != "agent":
        critic_input += team  # which agents it looks at
    elif learner.row.critic_input == "obs":
        critic_input = 0  # kept once
    step = team * (spec.obs_size + critic_input)
    step += team * (2 + learner.gru_size)  # log-probabilities, rewards, hidden states
    samples = learner.num_envs * learner.rollout
    state = team * (spec.obs_size + spec.state_size + learner.gru_size)
    numbers = {
        "the networks and their optimisers": Part(
            PARAMETER_COPIES * sum(num_parameters(spec, learner)), "hidden, gru_size or seeds"
        ),
        "a rollout": Part(samples * step, "num_envs, rollout or seeds"),
        "an evaluation": Part(counts.episodes_at_once * state, "eval_episodes or seeds"),
        "the results of an evaluation": Part(
            counts.episodes * (2 + len(spec.episode_metrics)),  # the return, the length
            "final_episodes, eval_episodes or seeds",
        ),
    }
    size = FLOAT_BYTES * counts.seeds
    parts = {name: Part(part.bytes * size, part.settings) for name, part in numbers.items()}
    built_in = learner.network in NETWORKS
    patches = learner.conv_stacks(spec)["actor"].largest_patches if built_in else 0
    # Not multiplied by the seeds, which may be computed one after another.
    parts["the convolutions of a rollout"] = Part(
        FLOAT_BYTES * samples * team * patches, "num_envs, rollout or the kernels of conv"
    )
    return parts


def num_parameters(spec: EnvSpec, learner: Config) -> tuple[int, int]:
    """Weights of the matrices of actor and critic of one seed; 0 if one of them is custom."""
    network, critic_network = _built_in(learner.network), _critic_network(learner)
    if Network in (network, critic_network):
        return 0, 0
    stacks, crosses_agents = learner.conv_stacks(spec), critic_network.scope != "agent"
    trunk = TrunkSpec(learner.hidden, learner.gru_size, learner.activation, conv=stacks["actor"])
    critic_trunk = trunk._replace(conv=stacks["critic"])
    if crosses_agents:
        critic_trunk = trunk._replace(gru_size=0, conv=ConvStack())
    actor = _groups(spec, learner.sharing, network.num_layers(trunk, "actor"))
    num_layers = critic_network.num_layers(critic_trunk, "critic")
    critic = (
        default_critic_sharing(actor, num_layers)
        if learner.critic_sharing is None
        else _groups(spec, learner.critic_sharing, num_layers)
    )
    ids = spec.num_agents if learner.agent_id else 0
    outputs, size = num_outputs(spec.actions), _critic_features(spec, learner) + ids
    return (
        _weights(network.layer_weights(trunk, spec.obs_size + ids, outputs), actor),
        _weights(critic_network.layer_weights(critic_trunk, size, 1), critic),
    )


def device_memory() -> int:
    """Memory of the accelerator where there is one, else of the machine or container, in bytes."""
    device = jax.local_devices()[0]
    stats = {} if device.platform == "cpu" else device.memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"]
    if not hasattr(os, "sysconf"):  # Windows does not tell
        return sys.maxsize
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), container_memory())


def container_memory(
    groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int:
    """The smallest limit of the control groups of this process: of a container or a job."""
    lines = own.read_text().splitlines() if own.exists() else []
    limits: list[Path] = []
    for _, kind, place in (line.split(":", 2) for line in lines):
        if kind in CONTROL_GROUPS:
            root, name = CONTROL_GROUPS[kind]
            folder = groups / root / place.lstrip("/")
            limits += [path / name for path in (folder, *folder.parents)]
    texts = [path.read_text().strip() for path in limits if os.access(path, os.R_OK)]
    return min((int(text) for text in texts if text.isdigit()), default=sys.maxsize)


def _built_in(name: str) -> type[Network]:
    """A built-in network; the base class, whose weights are unknown, instead of a custom one."""
    return {**NETWORKS, **CRITICS}.get(name, Network)


def _critic_network(learner: Config) -> type[Network]:
    return _built_in(learner.critic or learner.network)


def _weights(layers: Sequence[int], sharing: Sharing) -> int:
    groups = [max(layer) + 1 for layer in sharing]
    return sum(number * size for number, size in zip(groups, layers, strict=True))


def _groups(spec: EnvSpec, sharing: SharingSpec, num_layers: int) -> Sharing:
    return layer_groups(resolve_groups(sharing, spec), spec.agent_types, num_layers)


def _critic_features(spec: EnvSpec, learner: Config) -> int:
    central = learner.row.critic_input == "state" and _critic_network(learner).scope == "agent"
    return spec.state_size if central else spec.obs_size


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
