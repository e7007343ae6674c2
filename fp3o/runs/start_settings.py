"""Settings that name saved policies: the agents they are for, by index, before training."""

from pathlib import Path

from fp3o.errors import SettingError
from fp3o.policy import Policy
from fp3o.policy.files import find_policy
from fp3o.runs.agent_lists import (
    matching_agents,
    parse_agents,
    parse_frozen,
    same_names,
    write_agents,
    write_frozen,
)
from fp3o.runs.run_config import RunConfig
from fp3o.spec import EnvSpec


def resolve_start(config: RunConfig) -> RunConfig:
    """The same settings with all agents by index and the frozen ones in the learner's settings."""
    spec, changes = config.task_info.spec(config.variant), {}
    if config.start_from is None:
        for name in ("start_agents", "start_critic"):
            if getattr(config, name):
                raise SettingError(f"{name} also needs start_from (--from), a policy or a run")
    else:
        _, policy = load_start_policy(config.start_from, config.start_critic)
        agents = resolve_start_agents(
            config.start_agents, spec, policy.card.spec, config.start_from
        )
        changes["start_agents"] = write_agents(agents)
    frozen = [resolve_frozen(text, spec) for text in config.frozen]
    changes["frozen"] = [write_frozen(*entry) for entry in frozen]
    partners = [agent for agents, _, _ in frozen for agent in agents]
    if len({*partners}) < len(partners):
        raise SettingError(f"frozen names an agent twice: {', '.join(config.frozen)}")
    changes["frozen_agents"] = sorted({*config.learner.frozen_agents, *partners})
    return config.with_settings(changes)


def load_start_policy(place: str, last: bool) -> tuple[Path, Policy]:
    """A policy folder, or the best policy of a run (`last`: the last one of its best seed)."""
    folder = find_policy(Path(place), "last" if last else "best", None)
    return folder, Policy.load(folder)


def resolve_start_agents(
    text: str | None, team: EnvSpec, saved: EnvSpec, place: str
) -> tuple[int, ...]:
    """The agent of the saved team from which each agent starts."""
    if text is not None:
        agents = parse_agents(text, saved, "start_agents")
        if len(agents) != team.num_agents:
            raise SettingError(
                f"start_agents has {len(agents)} agents, {team.name} has {team.num_agents}: give "
                f"one of the agents of {place} for each"
            )
        return agents
    everyone = range(team.num_agents)
    if team.num_agents != saved.num_agents and not same_names(team, saved, everyone):
        example = write_agents(i % saved.num_agents for i in everyone)
        raise SettingError(
            f"{place} has {saved.num_agents} agents, {team.name} has {team.num_agents}: say from "
            f"which of them each agent starts, such as --from-agents {example}"
        )
    return tuple(matching_agents(team, saved, everyone).values())


def resolve_frozen(text: str, spec: EnvSpec) -> tuple[tuple[int, ...], str, tuple[int, ...]]:
    """Frozen agents, their policy, and its agents, by index."""
    names, place, chosen = parse_frozen(text)
    agents = parse_agents(names, spec, "frozen")
    saved = load_start_policy(place, last=False)[1].card.spec
    if chosen is not None:
        others = parse_agents(chosen, saved, "frozen: agents")
        if len(others) != len(agents):
            raise SettingError(
                f"frozen: {text} has {len(agents)} agents but {len(others)} agents of the policy"
            )
        return agents, place, others
    pairs = matching_agents(spec, saved, agents)
    if missing := [agent for agent in agents if agent not in pairs]:
        raise SettingError(
            f"frozen: {place} has {saved.num_agents} agents, none for agent {missing[0]}: name "
            f"one, as in {names}={place}:agents=0"
        )
    return agents, place, tuple(pairs[agent] for agent in agents)
