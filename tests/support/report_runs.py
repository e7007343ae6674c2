"""TODO."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from fp3o.reports import report


def fought(won: float) -> dict[str, float]:
    """What battles ended with, as runs write it down."""
    return {"won": won, "dead_allies": 5 - 3 * won, "dead_enemies": 2 + 6 * won}


RETURNS = (-5.0, -5.2, -4.8, -5.4, -5.1)


REFERENCES = {
    "random": {"return": -34.2, "stderr": 0.6, "episodes": 1000},
    "still": {"return": -29.4, "stderr": 0.5, "episodes": 1000},
    "blind": {"return": -10.1, "stderr": 0.16, "episodes": 1000},
    "planner": {"return": -4.5, "stderr": 0.12, "episodes": 1000},
}


WINS = (0.95, 0.9, 0.96, 0.88, 0.98)


SCRIPTS = {
    name: {"return": back, "stderr": 0.05, "episodes": 1000, "outcomes": fought(won)}
    for name, back, won in (
        ("random", 2.0, 0.0), ("nearest", 9.5, 0.31), ("focus", 12.0, 0.62), ("kite", 11.0, 0.7)
    )
}  # fmt: skip


def line(iteration: int, seed: int, value: float, agents: int = 2, **more: Any) -> dict[str, Any]:
    """A line of metrics.jsonl of an algorithm with two stages."""
    stages = [[0.01 * (1 + i + s) for i in range(agents)] for s in range(2)]
    return {
        "iteration": iteration, "step": 3200 * iteration, "seed": seed, "episode_return": value - 1,
        "episode_length": 25.0, "episodes": 128, "kl": stages, "entropy": stages,
        "clip_fraction": [0.1, 0.2], "gate": [True, iteration % 2 == 0],
        "condition_new": [3.0, 2.0], "condition_old": [1.0, 2.0],
        "effective_sample_size": [0.9, None], "value_loss": [0.5, 0.0], **more,
    }  # fmt: skip


def make(
    path: Path,
    returns: tuple[float, ...] = RETURNS,
    finished: bool = True,
    references: dict[str, Any] | None = None,
    iterations: int = 12,
    plain: bool = False,
    wins: tuple[float, ...] = (),
    **settings: Any,
) -> Path:
    """A small run directory: every seed learns from -30 to its return; `plain`: no diagnostics.

    With `wins` the episodes are battles.
    """
    path.mkdir(parents=True)
    told = {
        "task": "mpe/simple_reference", "variant": "default", "algorithm": "fp3o",
        "sharing": "partial", "steps": 38400, "seeds": len(returns), "num_envs": 128, "rollout": 25,
        "actor_lr": 7e-4, "hidden": [64, 64], "agent_id": False, "sequence_length": None, **settings,
    }  # fmt: skip
    config = {
        "format": 1, "settings": told, "agents": 2, "versions": {"fp3o": "0.1.0", "jax": "0.10.2"},
        "commit": None, "device": "cpu", "created": "2026-11-15", "command": "fp3o train",
    }  # fmt: skip
    (path / "config.json").write_text(json.dumps(config))
    rows = []
    for k in range(iterations + 1):
        for seed, end in enumerate(returns):
            value = -30 + (end + 30) * k / iterations
            judged = {"eval_return": value, "eval_std": 1.0, "eval_episodes": 100}
            if wins:
                ends = fought(wins[seed] * k / iterations)
                judged |= {f"eval_{name}": end for name, end in ends.items()}
                judged |= {f"episode_{name}": end if k > 1 else None for name, end in ends.items()}
            place = {"iteration": k, "step": 3200 * k, "seed": seed, **judged}
            short = place | ({"episode_return": value - 1} if k else {})
            rows.append(short if plain or k == 0 else line(k, seed, value, **judged))
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if finished:
        last = [
            {"seed": seed, "return": end, "std_param": 3.9, "stderr": 0.12}
            for seed, end in enumerate(returns)
        ]
        last = [
            row | ({"outcomes": fought(won)} if wins else {})
            for row, won in zip(last, wins or returns, strict=True)
        ]
        results = {
            "format": 1, "steps": 38400, "seconds": {"compile": None, "train": 12.5},
            "steps_per_second": 24900.0, "evaluation": {"episodes": 1000, "deterministic": True},
            "last": last, "best": [{**row, "step": 35200} for row in last],
            "references": REFERENCES if references is None else references,
        }  # fmt: skip
        (path / "results.json").write_text(json.dumps(results))
    return path


class Page(HTMLParser):
    """Reads a page as a browser would: tags must match, text and addresses are collected.

    `words` is what people see, `scripts` what programs see.
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
        """What the script draws."""
        data, _ = self.scripts
        return json.loads(data)


def written(paths: list[Path], folder: Path) -> tuple[str, Page]:
    text = report(paths, folder / "report.html", figures=False).read_text()
    return text, Page(text)


def battle(path: Path, wins: tuple[float, ...] = WINS, **more: Any) -> Path:
    """A run on a task that can be won."""
    returns = tuple(4 + 15 * won for won in wins)
    return make(path, returns, **{"wins": wins, "references": SCRIPTS, "task": "smac/3m"} | more)
