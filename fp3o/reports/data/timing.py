"""Training time of a run from `timing.jsonl`, over all processes that trained it."""

import math
from pathlib import Path

from fp3o.reports.data.files import read_lines, run_file
from fp3o.reports.data.schema import TIMING_LINE


def elapsed_seconds(run: Path) -> dict[int, float]:
    """Environment step -> seconds of training so far, including those before a restart.

    Every process counts its seconds from zero. A step or a time that does not increase marks the
    first line of another process. Seeds train together: this is the time of all of them.
    """
    path = run_file(run, "timing.jsonl")
    finished, last, elapsed = 0.0, (0, 0.0), {}
    for _, line in read_lines(path, TIMING_LINE) if path else ():
        if line is None or not math.isfinite(line["seconds"]):
            continue  # damaged: times are for information only
        now = line["step"], float(line["seconds"])
        if now[0] <= last[0] or now[1] < last[1]:
            finished += last[1]
        elapsed[now[0]], last = finished + now[1], now
    return elapsed


def training_seconds(run: Path) -> float:
    """Seconds of training of a run in total, work that was lost in a crash included."""
    return max(elapsed_seconds(run).values(), default=0.0)
