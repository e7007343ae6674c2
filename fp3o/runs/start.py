"""Saved policies from which the agents of a run start, or with which frozen agents play.

They are read when a run is created, and again for its first iteration; `config.json` keeps their
paths and checksums. From the first checkpoint on they are not needed any more.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from fp3o.errors import SettingError
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Learner, Setup
from fp3o.policy import Policy
from fp3o.policy.export import card_of, config_of, read_actor
from fp3o.policy.fit import require_fit
from fp3o.policy.transfer import GroupedArrays, Origin, transferred, transferred_params
from fp3o.runs.agent_lists import parse_agents
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.runs.checkpoint_files import arrays_digest
from fp3o.runs.critic_source import critic_arrays, read_critic, require_same_critic
from fp3o.runs.processes import from_leader, is_leader, num_processes, share_bytes
from fp3o.runs.run_config import RunConfig
from fp3o.runs.start_settings import load_start_policy, resolve_frozen, resolve_start_agents
from fp3o.training.mesh import BY_SEED
from fp3o.training.program import Program
from fp3o.training.state import TrainState


class Source(NamedTuple):
    """A saved policy, and the agents of a run that take its parameters."""

    folder: Path
    policy: Policy
    agents: Mapping[int, int]
    """Agent of the run -> agent of the policy."""
    frozen: bool

    @property
    def record(self) -> dict[str, Any]:
        """What `config.json` keeps of it."""
        provenance = self.policy.card.provenance
        facts = {name: provenance.get(name) for name in ("seed", "step")}
        return {
            "path": str(self.folder.resolve()),
            "task": self.policy.card.spec.name,
            **{name: x if isinstance(x, int) else None for name, x in facts.items()},
            "agents": [[new, old] for new, old in self.agents.items()],
            "frozen": self.frozen,
            "sha256": arrays_digest(self.policy.weights, {}),
        }

    def origin(self, setup: Setup) -> Origin:
        """Its parameters, for a network of this setup."""
        card = self.policy.card
        require_fit(card, setup, self.agents, str(self.folder))
        # A custom network is the one that the run names, so nothing else is imported.
        own = Setup(card.spec, config_of(card))
        saved = GroupedArrays.of(own, "actor", read_actor(self.policy, own))
        return Origin(str(self.folder), saved, card.spec.num_agents, self.agents)


@dataclasses.dataclass(frozen=True)
class SavedStart:
    """The parameters with which a run starts."""

    setup: Setup
    actor: Sequence[Origin]
    critic: Sequence[Origin]
    value_norm: Sequence[Origin]
    records: list[dict[str, Any]]

    def learner(self, fresh: Learner) -> Learner:
        """The initial state of one seed, with the saved parameters in it."""
        setup = self.setup
        actor = transferred_params(setup, "actor", fresh.actor, self.actor)
        if not self.critic:
            return fresh._replace(actor=actor)
        critic = transferred_params(setup, "critic", fresh.critic, self.critic)
        moments = {name: np.asarray(x) for name, x in fresh.value_norm._asdict().items()}
        groups = dict.fromkeys(moments, setup.critic_sharing[-1])
        norm = transferred(GroupedArrays(moments, groups, {}), self.value_norm)
        value_norm = ValueNorm(**{name: jnp.asarray(x) for name, x in norm.items()})
        return fresh._replace(actor=actor, critic=critic, value_norm=value_norm)

    def learners(self, fresh: Learner) -> Learner:
        """The same for a state with a leading axis of seeds."""
        count = len(fresh.value_norm.mean)
        parts = [self.learner(jax.tree.map(lambda x, k=k: x[k], fresh)) for k in range(count)]
        return jax.tree.map(lambda *x: jnp.stack(x), *parts)


def check_start(config: RunConfig) -> RunConfig:
    """Raise unless the saved policies fit the settings."""
    start = read_start(config)
    start.learner(start.setup.init(config.seed))
    return config


def check_successor(
    config: RunConfig, before: RunConfig, name: str, agents: str | None, critic: bool
) -> None:
    """Raise unless a run can start from another one, which need not be trained yet."""
    old, new = (Setup(x.task_info.spec(x.variant), x.learner) for x in (before, config))
    chosen = dict(enumerate(resolve_start_agents(agents, new.spec, old.spec, name)))
    require_fit(card_of(old), new, chosen, name)
    learner = old.init(before.seed)
    saved, size = GroupedArrays.of(old, "actor", learner.actor), old.spec.num_agents
    actor, critics = [Origin(name, saved, size, chosen)], [[], []]
    if critic:
        require_same_critic(before.learner, config.learner, name)
        whose = f"the critic of {name}"
        critics = [[Origin(whose, x, size, chosen)] for x in critic_arrays(old, learner)]
    SavedStart(new, actor, *critics, records=[]).learner(new.init(config.seed))


def read_start(config: RunConfig) -> SavedStart:
    """Read the saved policies of resolved settings."""
    setup = Setup(config.task_info.spec(config.variant), config.learner)
    sources = _sources(config)
    records = [source.record for source in sources]
    critic = value_norm = ()
    if config.start_critic:
        found = read_critic(config, sources[0].folder, sources[0].policy.card)
        everyone = dict(enumerate(parse_agents(config.start_agents or "", found.spec, "")))
        name, size = f"the critic of {found.run}", found.spec.num_agents
        critic = (Origin(name, found.critic, size, everyone),)
        value_norm = (Origin(name, found.value_norm, size, everyone),)
        records[0] |= {"critic": found.record}
    return SavedStart(setup, [x.origin(setup) for x in sources], critic, value_norm, records)


def source_records(config: RunConfig) -> dict[str, Any]:
    """The saved policies from which a run starts, for `config.json`; empty: there are none."""
    return {"sources": read_start(config).records} if config.starts else {}


def started(
    config: RunConfig, program: Program, state: TrainState, recorded: Sequence[Mapping[str, Any]]
) -> TrainState:
    """The initial state of a new run with the saved parameters in it.

    They have to be those that were recorded. The first of several processes reads them for all.
    """
    fresh, result = jax.tree.map(jnp.asarray, program.fetch(state.learner)), []

    def read() -> dict[str, Any]:
        start = read_start(config)
        for now, then in zip(start.records, recorded, strict=True):
            if now != then:
                raise SettingError(f"{then['path']} has changed since this run was created")
        result.append((start.learners if program.num_seeds else start.learner)(fresh))
        return {}

    from_leader(read)
    if num_processes() > 1:
        content = to_bytes(to_arrays(result[0])) if is_leader() else None
        result = [from_arrays(fresh, from_bytes(share_bytes(content)))]
    learner = program.grid.put(result[0], BY_SEED) if program.grid else result[0]
    return state._replace(learner=learner)


def _sources(config: RunConfig) -> list[Source]:
    """The saved policies of resolved settings; that of the learning agents is the first."""
    spec, found = config.task_info.spec(config.variant), []
    partners: set[int] = set()
    for text in config.frozen:
        agents, place, chosen = resolve_frozen(text, spec)
        folder, policy = load_start_policy(place, last=False)
        partners |= {*agents}
        found.append(Source(folder, policy, dict(zip(agents, chosen, strict=True)), frozen=True))
    if config.start_from is not None:
        folder, policy = load_start_policy(config.start_from, config.start_critic)
        agents = resolve_start_agents(
            config.start_agents, spec, policy.card.spec, config.start_from
        )
        others = {i: agent for i, agent in enumerate(agents) if i not in partners}
        found.insert(0, Source(folder, policy, others, frozen=False))
    return found
