"""A training run on disk: settings, metrics, results, policies, evaluation, videos, report."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from fp3o.errors import escaped
from fp3o.policy import Policy
from fp3o.reports import report
from fp3o.runs.evaluation import evaluate
from fp3o.runs.run_config import RunConfig
from fp3o.runs.source import LoadedRun, load_policy
from fp3o.runs.trust import require_trust_in_settings
from fp3o.runs.video import render


@dataclass(frozen=True)
class Run(LoadedRun):
    """A training run on disk: its settings, metrics, results and policies.

    Example:
        run = fp3o.Run.load("runs/my-run")
        run.series("episode_return").value    # (seeds, t)
        policy = run.policy("best")

    A run can be given wherever its path can: `fp3o.evaluate(run)`, `fp3o.report([run, other])`.
    """

    @cached_property
    def config(self) -> RunConfig:
        """The settings as a `RunConfig`."""
        require_trust_in_settings(self.settings, self.trust, self.path / "config.json")
        return RunConfig().with_settings(self.settings)

    def policy(self, which: str = "best", policy_seed: int | None = None) -> Policy:
        """A trained policy; without a seed, the one with the highest evaluated return."""
        return load_policy(self, which, policy_seed)

    def evaluate(self, episodes: int | None = None, **options: Any) -> dict[str, Any]:
        """Evaluate the policies of all seeds; options as in `fp3o.evaluate`."""
        return evaluate(self, episodes, **options)

    def render(self, out: str | Path, **options: Any) -> Path:
        """Render episodes of a policy as GIF or MP4; options as in `fp3o.render`."""
        return render(self, out, **options)

    def report(self, out: str | Path | None = None) -> Path:
        """Write the report of the run; by default `report.html` in its directory."""
        return report(self, out)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._facts().items())
        return f"Run({str(self.path)!r}: {facts})"

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        cells = {"run": str(self.path), **self._facts(), **self._returns()}
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in cells.items()
        )
        return f"<table>{rows}</table>"

    def _facts(self) -> dict[str, str]:
        steps = self.settings.get("steps")
        total = "" if self.finished or type(steps) is not int else f" of {steps:,}"
        facts = {
            "task": self.task,
            "algorithm": self.algorithm,
            "sharing": self.sharing,
            "steps": f"{self.step:,}{total}",
            "seeds": str(len(self.seeds)),
        }
        return {name: escaped(text[:200]) for name, text in facts.items()}

    def _returns(self) -> dict[str, str]:
        """The return per seed of the final evaluation."""
        values = {row["seed"]: row.get("return") for row in self.results.get("last", [])}
        return {
            f"return of seed {seed}": "–" if value is None else f"{value:.3f}"
            for seed, value in values.items()
        }
