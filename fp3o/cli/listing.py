"""Output of `fp3o list`: tasks, algorithms, sharing schemes and experiments."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

from rich.markup import escape
from rich.table import Table

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.check_facts import action_text
from fp3o.envs.registry import REGISTERED, TASKS, families
from fp3o.envs.task import Task
from fp3o.errors import SettingError, printable
from fp3o.experiments import all_experiments
from fp3o.runs.loggers import LOGGERS
from fp3o.sharing.schemes import SHARINGS

CUSTOM_MAP = {"0,0,1": "a custom map from agent to group; also one map per layer"}
"""How a sharing without a name is written."""

MOST_NEAR = 5
"""Names that a message suggests."""


def listing(pattern: str | None = None) -> dict[str, Any]:
    """All available components, as data; with a pattern, only those that match it."""
    tasks, found = {**TASKS, **REGISTERED}, _texts()
    if pattern is not None:
        found = {
            kind: {name: text for name, text in texts.items() if _matches(pattern, name, text)}
            for kind, texts in found.items()
        }
        if not any(found.values()):
            shown = printable(pattern, 60)
            raise SettingError(f"nothing in the list matches {shown!r}; {_near(pattern)}")
    return {
        **found,
        "tasks": {name: _task_facts(tasks[name]) for name in found["tasks"]},
        "algorithms": {name: asdict(ALGORITHMS[name]) for name in found["algorithms"]},
        "loggers": list(found["loggers"]),
    }


def _texts() -> dict[str, dict[str, str]]:
    """Kind of component -> name -> the text that describes it."""
    others = {name: family.summary for name, family in families().items() if not family.listed}
    return {
        "tasks": {name: task.summary for name, task in {**TASKS, **REGISTERED}.items()},
        "families": others,
        "algorithms": {name: row.summary for name, row in ALGORITHMS.items()},
        "sharings": {name: scheme.summary for name, scheme in SHARINGS.items()} | CUSTOM_MAP,
        "loggers": dict.fromkeys(LOGGERS, ""),
        "experiments": {name: entry.question for name, entry in all_experiments().items()},
    }


def _matches(pattern: str, name: str, text: str) -> bool:
    """Whether a pattern with `*` or `?` fits the name, or any other is part of name or text."""
    pattern = pattern.lower()
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(name.lower(), pattern)
    return pattern in f"{name} {text}".lower()


def _near(pattern: str) -> str:
    """The names with a part that is nearest to a pattern, for a message."""
    parts: dict[str, list[str]] = {}
    for name in (name for texts in _texts().values() for name in texts):
        for part in {name, *re.split(r"[^a-z0-9]+", name.lower())}:
            parts.setdefault(part, []).append(name)
    close = difflib.get_close_matches(pattern.lower().strip("*?"), parts, n=3, cutoff=0.6)
    names = list(dict.fromkeys(name for part in close for name in parts[part]))
    more = ", ..." if len(names) > MOST_NEAR else ""
    return f"nearest: {', '.join(names[:MOST_NEAR])}{more}" if names else "`fp3o list` shows all"


def _task_facts(task: Task) -> dict[str, Any]:
    env = task.env()
    spec = env.spec
    return {
        "summary": task.summary,
        "variants": list(task.variants),
        "agents": spec.num_agents,
        "observation": spec.obs_size,
        "state": spec.state_size,
        "actions": action_text(spec.actions),
        "presets": {name: dict(values) for name, values in task.presets.items()},
        "baselines": {item.name: item.summary for item in task.baselines(env)},
    }


def listing_tables(pattern: str | None = None) -> list[Table]:
    """The listing for the terminal; what has no entry is left out."""
    data = listing(pattern)
    algorithms = {name: ALGORITHMS[name].summary for name in data["algorithms"]}
    loggers = dict.fromkeys(data["loggers"], "")
    texts = {
        "tasks": {name: _task_text(task) for name, task in data["tasks"].items()},
        "families whose tasks are named by you": _escaped(data["families"]),
        "algorithms (--algorithm NAME, or NAME:field=value)": _escaped(algorithms),
        "parameter sharing (--sharing NAME)": _escaped(data["sharings"]),
        "loggers (--loggers NAME ...)": _escaped(loggers),
        "experiments (fp3o experiment NAME)": _escaped(data["experiments"]),
    }
    return [_table(title, entries) for title, entries in texts.items() if entries]


def _task_text(task: Mapping[str, Any]) -> str:
    facts = [f"{task['agents']} agents", f"actions {task['actions']}"]
    if len(task["variants"]) > 1:
        facts.append(f"variants {', '.join(task['variants'])}")
    if task["presets"]:
        facts.append(f"presets {', '.join(task['presets'])}")
    return f"{escape(task['summary'])}\n[dim]{escape(' · '.join(facts))}[/]"


def _escaped(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts without markup: custom components have their own."""
    return {name: escape(text) for name, text in texts.items()}


def _table(title: str, texts: Mapping[str, str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, show_header=False
    )
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, text in texts.items():
        table.add_row(escape(name), text)
    return table
