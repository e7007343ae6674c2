"""Small run directories for tests of reports and experiments, and a reader of HTML pages."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from fp3o.reports import report

RETURNS = (-5.0, -5.2, -4.8, -5.4, -5.1)

WINS = (0.95, 0.9, 0.96, 0.88, 0.98)

COLOURS = {
    "fp3o": ("#d55e00", "#f0813a"),
    "mappo": ("#0072b2", "#4aa3df"),
    "happo": ("#009e73", "#2fc79a"),
}


def battle_metrics(won: float) -> dict[str, float]:
    """Episode metrics of a battle, as runs record them."""
    deaths = {"dead_allies": 5 - 3 * won, "dead_enemies": 2 + 6 * won}
    return {"won": won, **deaths, "damage_dealt": 90 * won, "healed": 7 - 2 * won}


BASELINES = {
    name: {"return": value, "stderr": error, "episodes": 1000, "title": title, "summary": title}
    for name, title, value, error in (
        ("random", "random actions", -34.2, 0.6), ("still", "standing still", -29.4, 0.5),
        ("blind", "best blind policy", -10.1, 0.16), ("planner", "planner", -4.5, 0.12),
    )
}  # fmt: skip
"""Baselines of a particle task."""

SCRIPTS = {
    name: {
        "return": value, "stderr": 0.05, "episodes": 1000, "title": title,
        "summary": f"{title}, a script", "episode_metrics": battle_metrics(won), "length": 31.5,
    }
    for name, title, value, won in (
        ("random", "random actions", 2.0, 0.0), ("nearest", "attack the nearest", 9.5, 0.31),
        ("focus", "focus fire", 12.0, 0.62), ("kite", "kiting", 11.0, 0.7),
    )
}  # fmt: skip
"""Baselines of a battle."""


def algorithm_row(text: str) -> dict[str, Any]:
    """The algorithm as `config.json` records it."""
    name, _, changes = text.partition(":")
    title = {"coppo": "CoPPO"}.get(name) or (name.upper() if name.isalnum() else name)
    row = {"name": name, "changes": changes, "title": title, "summary": "", "fields": {}}
    return row | {"colour": COLOURS.get(name), "gated": name == "fp3o"}


SETTINGS: dict[str, Any] = {
    "task": "mpe/simple_reference", "variant": "default", "algorithm": "fp3o",
    "sharing": "partial", "steps": 38400, "seeds": 0, "num_envs": 128, "rollout": 25,
    "actor_lr": 7e-4, "hidden": [64, 64], "agent_id": False, "sequence_length": None,
}  # fmt: skip
"""Settings of a run, unless others are given."""


def line(iteration: int, seed: int, value: float, agents: int = 2, **more: Any) -> dict[str, Any]:
    """A line of metrics.jsonl of an algorithm with two stages."""
    stages = [[0.01 * (1 + i + s) for i in range(agents)] for s in range(2)]
    quantiles = [[0.0, 0.01 * (s + 1), 0.02 * (s + 1), 0.04, 0.05] for s in range(agents)]
    return {
        "iteration": iteration, "step": 3200 * iteration, "seed": seed, "episode_return": value - 1,
        "episode_length": 25.0, "episodes": 128, "kl": stages, "entropy": stages,
        "clip_fraction": [0.1, 0.2], "gate": [True, iteration % 2 == 0], "actor_steps": 8,
        "condition_gap": [2.0, 0.0], "condition_holds": iteration % 2 == 0,
        "condition_matches": True, "kl_quantiles": quantiles, "product_variance": [0.1, 0.2],
        "effective_sample_size": [0.9, None], "value_loss": [0.5, 0.0], **more,
    }  # fmt: skip


def short_line(iteration: int, seed: int, value: float, _: int, **more: Any) -> dict[str, Any]:
    """A line of metrics.jsonl without diagnostics; before training, without an episode."""
    row = {"iteration": iteration, "step": 3200 * iteration, "seed": seed, **more}
    return row | ({"episode_return": value - 1} if iteration else {})


def make(
    path: Path,
    returns: tuple[float, ...] = RETURNS,
    finished: bool = True,
    baselines: dict[str, Any] | None = None,
    iterations: int = 12,
    plain: bool = False,
    wins: tuple[float, ...] = (),
    row: dict[str, Any] | None = None,
    agents: int = 2,
    **settings: Any,
) -> Path:
    """A small run directory: every seed learns from -30 to its return; `plain`: no diagnostics.

    With `wins` the episodes are battles. `row` replaces the recorded algorithm. Seeds begin at the
    setting `seed`.
    """
    path.mkdir(parents=True)
    settings = {**SETTINGS, "seeds": len(returns), **settings}
    config = {
        "format": 2, "settings": settings, "agents": agents, "commit": None, "device": "cpu",
        "versions": {"fp3o": "0.1.0", "jax": "0.10.2"}, "created": "2026-11-15",
        "algorithm": row or algorithm_row(settings["algorithm"]), "command": "fp3o train",
    }  # fmt: skip
    (path / "config.json").write_text(json.dumps(config))
    rows, first = [], int(settings.get("seed", 0))
    for k in range(iterations + 1):
        for seed, end in enumerate(returns, first):
            value = -30 + (end + 30) * k / iterations
            won = wins[seed - first] * k / iterations if wins else None
            evaluation = evaluation_metrics(k, value, won)
            write = short_line if plain or k == 0 else line
            rows.append(write(k, seed, value, agents, **evaluation))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if finished:
        results = results_of(returns, wins, BASELINES if baselines is None else baselines, first)
        (path / "results.json").write_text(json.dumps(results))
    return path


def evaluation_metrics(iteration: int, value: float, won: float | None) -> dict[str, Any]:
    """Metrics of an evaluation; of battles, where a win rate is given."""
    metrics: dict[str, Any] = {"eval_return": value, "eval_std": 1.0, "eval_episodes": 100}
    battles = {} if won is None else battle_metrics(won)
    metrics |= {f"eval_{name}": end for name, end in battles.items()}
    ended = iteration > 1
    return metrics | {f"episode_{name}": end if ended else None for name, end in battles.items()}


def results_of(
    returns: tuple[float, ...], wins: tuple[float, ...], baselines: dict[str, Any], first: int = 0
) -> dict[str, Any]:
    """The results of a finished run with seeds from `first` on."""
    last: list[dict[str, Any]] = [
        {"seed": seed, "return": end, "std": 3.9, "stderr": 0.12, "length": 25.0}
        for seed, end in enumerate(returns, first)
    ]
    for entry, won in zip(last, wins, strict=False):
        entry["episode_metrics"] = battle_metrics(won)
    return {
        "format": 2, "steps": 38400, "seconds": {"compile": None, "train": 12.5},
        "steps_per_second": 24900.0, "evaluation": {"episodes": 1000, "deterministic": True},
        "last": last, "best": [{**entry, "step": 35200} for entry in last],
        "baselines": baselines,
    }  # fmt: skip


class Page(HTMLParser):
    """A parsed page: tags must match; text, addresses and scripts are collected.

    `words` is the visible text, `scripts` the content of script elements.
    """

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.words = ""
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)
        self._attributes(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(attrs)

    def _attributes(self, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]
        self.handlers += [k for k, _ in attrs if k.startswith("on")]
        self.ids += [v or "" for k, v in attrs if k == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words += data

    def curves(self) -> dict[str, Any]:
        """Data of the script."""
        data, _ = self.scripts
        return json.loads(data)


def written(paths: list[Path], folder: Path) -> tuple[str, Page]:
    """A report about some runs: its text and the parsed page."""
    text = report(paths, folder / "report.html", figures=False).read_text()
    return text, Page(text)


def battle(path: Path, wins: tuple[float, ...] = WINS, **more: Any) -> Path:
    """A run on a task with wins."""
    returns = tuple(4 + 15 * won for won in wins)
    return make(path, returns, **{"wins": wins, "baselines": SCRIPTS, "task": "smac/3m"} | more)
