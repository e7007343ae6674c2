"""What there is to choose from, as data and as tables."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.registry import TASKS
from fp3o.experiments import EXPERIMENTS
from fp3o.runs.loggers import LOGGERS
from fp3o.spec import Box, Discrete

ALGORITHM_WORDS = {
    "fp3o": "two steps: everyone alone, then everyone coupled to all others if the condition holds",
    "mappo": "everyone at once, a critic that sees the state",
    "ippo": "everyone at once, a critic that sees the agent's own observation",
    "happo": "one agent after another, in random order, weighted by those before it",
    "a2po": "one agent after another, semi-greedy order, advantages corrected for those before it",
    "coppo": "everyone at once, coupled to all others, the product clipped",
}

SHARING_WORDS = {
    "full": "one network for all agents",
    "partial": "all layers shared but the last",
    "none": "a network for each agent",
    "by_type": "one network for each kind of agent",
    "auto": "one network for each group of agents whose actions do the same, found by random play",
    "0,0,1": "your own map from agent to group; also one map for each layer",
}


def catalogue() -> dict[str, Any]:
    """Tasks, algorithms, sharings, presets, loggers and experiments."""
    tasks = {}
    for task in TASKS.values():
        spec = task.spec()
        tasks[task.name] = {
            "summary": task.summary,
            "variants": list(task.variants),
            "agents": spec.num_agents,
            "observation": spec.obs_size,
            "state": spec.state_size,
            "actions": action_words(spec.actions),
            "presets": {name: dict(values) for name, values in task.presets.items()},
        }
    return {
        "tasks": tasks,
        "algorithms": {name: asdict(row) for name, row in ALGORITHMS.items()},
        "sharings": SHARING_WORDS,
        "loggers": list(LOGGERS),
        "experiments": {name: entry.question for name, entry in EXPERIMENTS.items()},
    }


def action_words(actions: Discrete | Box) -> str:
    """`5 x 10` choices of each agent, or the lengths of its vectors."""
    if isinstance(actions, Box):
        same = len({*actions.sizes}) == 1
        return "vectors of " + ", ".join(map(str, actions.sizes[:1] if same else actions.sizes))
    each = [" x ".join(map(str, own)) for own in actions.sizes]
    return each[0] if len({*each}) == 1 else ", ".join(each)


def tables() -> list[Table]:
    """The catalogue for people."""
    found = catalogue()
    tasks = {}
    for name, task in found["tasks"].items():
        facts = [f"{task['agents']} agents", f"actions {task['actions']}"]
        for kind in ("variants", "presets"):
            if len(task[kind]) > 1 or (kind == "presets" and task[kind]):
                facts.append(f"{kind} {', '.join(task[kind])}")
        tasks[name] = f"{task['summary']}\n[dim]{' · '.join(facts)}[/]"
    return [
        _table("tasks", tasks),
        _table("algorithms (--algorithm NAME, or NAME:field=value)", ALGORITHM_WORDS),
        _table("parameter sharing (--sharing NAME)", SHARING_WORDS),
        _table("experiments (fp3o experiment NAME)", found["experiments"]),
    ]


def _table(title: str, words: Mapping[str, str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, show_header=False
    )
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, text in words.items():
        table.add_row(name, text)
    return table
