"""Output of `fp3o list`: tasks, algorithms, sharing schemes and experiments."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.registry import REGISTERED, TASKS
from fp3o.envs.task import Task
from fp3o.experiments import all_experiments
from fp3o.runs.loggers import LOGGERS
from fp3o.sharing.schemes import SHARINGS
from fp3o.spec import ActionSpace, Box, Mixed

CUSTOM_MAP = {"0,0,1": "a custom map from agent to group; also one map per layer"}
"""How a sharing without a name is written."""


def listing() -> dict[str, Any]:
    """All available components, as data."""
    tasks = {**TASKS, **REGISTERED}
    return {
        "tasks": {name: _task_facts(task) for name, task in tasks.items()},
        "algorithms": {name: asdict(row) for name, row in ALGORITHMS.items()},
        "sharings": {name: scheme.summary for name, scheme in SHARINGS.items()} | CUSTOM_MAP,
        "loggers": list(LOGGERS),
        "experiments": {name: entry.question for name, entry in all_experiments().items()},
    }


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


def action_text(actions: ActionSpace) -> str:
    """`5 x 10` choices per agent, the lengths of its vectors, or both."""
    if isinstance(actions, Mixed):
        return f"choices {action_text(actions.discrete)} and {action_text(actions.box)}"
    if isinstance(actions, Box):
        same = len({*actions.sizes}) == 1
        return "vectors of " + ", ".join(map(str, actions.sizes[:1] if same else actions.sizes))
    each = [" x ".join(map(str, sizes)) for sizes in actions.sizes]
    return each[0] if len({*each}) == 1 else ", ".join(each)


def listing_tables() -> list[Table]:
    """The listing for the terminal."""
    data = listing()
    algorithms = {name: row.summary for name, row in ALGORITHMS.items()}
    return [
        _table("tasks", {name: _task_text(task) for name, task in data["tasks"].items()}),
        _table("algorithms (--algorithm NAME, or NAME:field=value)", _escaped(algorithms)),
        _table("parameter sharing (--sharing NAME)", _escaped(data["sharings"])),
        _table("experiments (fp3o experiment NAME)", _escaped(data["experiments"])),
    ]


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
