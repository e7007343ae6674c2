"""What the pages of results have in common: scores of runs, differences, commands."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fp3o.reports.read import Run
from fp3o.reports.statistics import mean_interval


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def title(algorithm: str) -> str:
    """An algorithm as people write it."""
    return algorithm.upper().replace("COPPO", "CoPPO")


def score(run: Run | None, digits: int = 2) -> str:
    """The mean return of the last policies, and half of its interval over seeds."""
    if run is None:
        return "-"
    interval = mean_interval([row["return"] for row in run.results["last"]])
    return f"**{interval.centre:.{digits}f}** ± {interval.half:.{digits}f}"


def difference(run: Run | None, base: Run | None, digits: int = 2) -> str:
    """How much better a run is than another one, seed by seed."""
    if run is None or base is None:
        return "-"
    pairs = zip(run.results["last"], base.results["last"], strict=True)
    interval = mean_interval([one["return"] - other["return"] for one, other in pairs])
    return f"{interval.centre:+.{digits}f} ± {interval.half:.{digits}f}"


def machines(found: Mapping[str, Run]) -> str:
    """The devices and versions of some runs in a few words, those they were resumed on included."""
    parts = [
        part for run in found.values() for part in (run.config, *run.config.get("resumed", []))
    ]
    devices = dict.fromkeys(str(part["device"]) for part in parts)
    versions = sorted({str(part["versions"]["jax"]) for part in parts})
    return f"{'; '.join(devices)}; jax {', '.join(versions)}"


def pictures(out: Path, name: str) -> list[str]:
    """The report's figures of a task, if they have been drawn."""
    drawn = sorted(out.glob(f"figures/*{name}*.png"))
    names = [path.name for path in drawn if "diagnostics" not in path.name]
    return [line for name in names for line in (f"![{name}](figures/{name})", "")]
