"""What the pages of results have in common: scores of runs, differences, commands."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fp3o.reports.measures import measure
from fp3o.reports.read import Run
from fp3o.reports.statistics import mean_interval, median_and_deviation


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def title(algorithm: str) -> str:
    """An algorithm as people write it."""
    return algorithm.upper().replace("COPPO", "CoPPO")


def seeds(run: Run | None, what: str) -> np.ndarray:
    """What the last policies reached: the return or an outcome such as `won`; maybe nothing."""
    rows = run.results["last"] if run else []
    values = np.array([measure(what).of(row) for row in rows])
    return values[np.isfinite(values)]


def score(run: Run | None, digits: int = 2, what: str = "return") -> str:
    """The mean of the last policies, and half of its interval over seeds; of wins in percent."""
    if not (own := seeds(run, what)).size:
        return "-"
    interval, unit = mean_interval(own), measure(what).unit
    return f"**{interval.centre:.{digits}f}** ± {interval.half:.{digits}f}{unit}"


def difference(run: Run | None, base: Run | None, digits: int = 2, what: str = "return") -> str:
    """How much more a run reaches than another one, seed by seed; of wins in percent points."""
    own, other = seeds(run, what), seeds(base, what)
    if not own.size or not other.size:
        return "-"
    interval, unit = mean_interval(own - other), measure(what).unit
    return f"{interval.centre:+.{digits}f} ± {interval.half:.{digits}f}{unit}"


def median(run: Run | None, what: str = "won", digits: int = 1) -> str:
    """The median over seeds and, in brackets, their standard deviation: how win rates are told."""
    if not (own := seeds(run, what)).size:
        return "-"
    middle, deviation = median_and_deviation(own)
    return f"**{middle:.{digits}f}** ({deviation:.{digits}f}){measure(what).unit}"


def gradient_steps(run: Run) -> int:
    """Steps of the policies' optimisers in a seed's whole training, those of all turns together."""
    return int(np.nansum(run.series("actor_steps").value[0]))


def wall_clock(run: Run) -> float:
    """Seconds of training, all processes of the run together; evaluations included."""
    total, last = 0.0, 0.0
    for line in (run.path / "timing.jsonl").read_text().splitlines():
        seconds = json.loads(line)["seconds"]
        if seconds < last:  # the run was stopped here and resumed
            total += last
        last = seconds
    return total + last


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
