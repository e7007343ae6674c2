"""Agents by index or name, as settings write them: `0,0,1` and `1,2=runs/partner`. Needs no JAX.

| setting        | text                              | Python                                  |
|----------------|-----------------------------------|-----------------------------------------|
| `start_agents` | `0,0,1` or `scout,scout,medic`    | `(0, 0, 1)`                             |
| `frozen`       | `1,2=runs/partner`                | `{(1, 2): "runs/partner"}`              |
|                | `1=runs/partner:agents=0`         | `{1: "runs/partner:agents=0"}`          |
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fp3o.errors import SettingError, nearest
from fp3o.options import parse_options, show
from fp3o.reports.data.record import RunRecord
from fp3o.spec import EnvSpec

FROZEN_GRAMMAR = "AGENTS=POLICY, such as 1,2=runs/partner"


def read_place(name: str, value: Any) -> str | None:
    """The path of a policy folder or run, given as text, a path or a run."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, RunRecord):
        return str(value.path)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise SettingError(f"{name} must be a policy folder or a run directory, got {show(value)}")


def read_agents(name: str, value: Any) -> str | None:
    """Agents as text, `0,0,1`, from a text, one agent or a list of them."""
    if value is None or isinstance(value, str):
        return value
    agents = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(x, bool) or not isinstance(x, int | str) for x in agents):
        raise SettingError(f"{name} must be indices or names of agents, got {show(value)}")
    return ",".join(map(str, agents))


def read_frozen(name: str, value: Any) -> tuple[str, ...]:
    """Frozen agents as texts, `1,2=runs/partner`, from a mapping, a text or several."""
    if isinstance(value, Mapping):
        pairs = [(read_agents(name, key), read_place(name, x)) for key, x in value.items()]
        return tuple(f"{agents}={place}" for agents, place in pairs)
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(x, str) for x in texts):
        raise SettingError(f"{name} must be {FROZEN_GRAMMAR}, got {show(value)}")
    return tuple(texts)


def parse_agents(text: str, spec: EnvSpec, setting: str) -> tuple[int, ...]:
    """Indices of the agents of a task that a text lists by index or name."""
    names = spec.agent_names
    found = []
    for word in (word.strip() for word in text.split(",")):
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None
        if word in names:
            found.append(names.index(word))
        elif number is not None and number < spec.num_agents:
            found.append(number)
        elif number is not None:
            raise SettingError(
                f"{setting}: {spec.name} has no agent {number}, only 0 to {spec.num_agents - 1}"
            )
        else:
            raise SettingError(
                f"{setting}: {spec.name} has no agent {show(word)}: {nearest(word, names)}"
            )
    return tuple(found)


def parse_frozen(text: str) -> tuple[str, str, str | None]:
    """Agents, policy and, if they are given, the agents of the policy."""
    agents, equals, place = (part.strip() for part in text.partition("="))
    if not (agents and equals and place):
        raise SettingError(f"frozen must be {FROZEN_GRAMMAR}, got {show(text)}")
    place, options = parse_options(place)
    chosen = options.pop("agents", None)
    if options:
        raise SettingError(
            f"frozen: unknown option {show(next(iter(options)))} in {show(text)}: only agents"
        )
    return agents, place, read_agents("frozen: agents", chosen)


def write_frozen(agents: Sequence[int], place: str, chosen: Sequence[int]) -> str:
    """The text that `parse_frozen` reads."""
    return f"{write_agents(agents)}={place}:agents={write_agents(chosen)}"


def write_agents(agents: Iterable[int]) -> str:
    """The text that `parse_agents` reads."""
    return ",".join(map(str, agents))


def same_names(team: EnvSpec, saved: EnvSpec, agents: Iterable[int]) -> bool:
    """Whether both teams have names, and these agents of the first are in the second."""
    named = bool(team.agents and saved.agents)
    return named and all(team.agents[i] in saved.agents for i in agents)


def matching_agents(team: EnvSpec, saved: EnvSpec, agents: Sequence[int]) -> dict[int, int]:
    """Agent of a team -> agent of a saved one: of the same name, else of the same index.

    Those without a counterpart are left out.
    """
    if same_names(team, saved, agents):
        return {i: saved.agents.index(team.agents[i]) for i in agents}
    return {i: i for i in agents if i < saved.num_agents}
