"""The paper's first benchmark: Multi-Agent MuJoCo under full, partial and no sharing.

HalfCheetah with full sharing at the paper's ten million steps; the other cells at two million, a
fifth of the paper's. 100 deterministic episodes of every seed's last policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fp3o.experiments.pages import (
    difference,
    gradient_steps,
    machines,
    pictures,
    score,
    table,
    title,
    wall_clock,
)
from fp3o.plan import Plan, change, draft
from fp3o.reports.read import Run, read_run

PRESET = {"full": "paper", "partial": "paper-partial", "none": "paper-none"}
LONG, SHORT = 10_000_000, 2_000_000
CELLS = (
    *(("HalfCheetah-6x1", "full", name, LONG) for name in ("fp3o", "mappo")),
    *(
        ("HalfCheetah-6x1", sharing, name, SHORT)
        for sharing in ("partial", "none")
        for name in ("fp3o", "mappo", "happo")
    ),
    *(("Hopper-3x1", "none", name, SHORT) for name in ("fp3o", "mappo")),
)
"""Task, sharing, algorithm and steps of every run."""

PAPER: Mapping[tuple[str, str, str], tuple[float, float]] = {
    ("HalfCheetah-6x1", "full", "fp3o"): (4128.3, 366.9),
    ("HalfCheetah-6x1", "full", "mappo"): (3170.5, 116.6),
    ("HalfCheetah-6x1", "partial", "fp3o"): (4879.3, 845.1),
    ("HalfCheetah-6x1", "partial", "mappo"): (4432.6, 196.1),
    ("HalfCheetah-6x1", "partial", "happo"): (4413.7, 840.0),
    ("HalfCheetah-6x1", "none", "fp3o"): (4792.7, 263.9),
    ("HalfCheetah-6x1", "none", "mappo"): (4103.8, 233.9),
    ("HalfCheetah-6x1", "none", "happo"): (4408.7, 170.2),
    ("Hopper-3x1", "none", "fp3o"): (3560.2, 107.7),
    ("Hopper-3x1", "none", "mappo"): (3390.1, 225.9),
}
"""The published mean and standard deviation over five seeds, all at ten million steps."""

INTRODUCTION = """# Multi-Agent MuJoCo

Written by `fp3o experiment mamujoco`, which trains what is missing and writes this page again.

Paper profile, the paper's hyperparameters. Return of an episode of at most 1,000 steps under the
**last** policy of each seed, {episodes} deterministic episodes a seed: mean over {seeds} seeds ±
half of the 95 % interval over seeds (Student's t). The published numbers (mean ± standard deviation
over five seeds) are all of **ten million** steps; compare them with ours only where ours are too.
In training, {during} deterministic episodes every {every} iterations. Differences to MAPPO are
paired by seed. Gradient steps are those of the policies' optimisers, of all turns together where
agents take turns; the wall-clock is that of all seeds together. Trained on {machines}.
"""


def label(task: str, sharing: str, algorithm: str) -> str:
    """The name of a run's directory."""
    return "-".join([task.split("-")[0], sharing, algorithm])


def plans() -> Iterator[tuple[str, Plan]]:
    """The grid."""
    for task, sharing, algorithm, steps in CELLS:
        plan = draft(f"mamujoco/{task}", PRESET[sharing])
        settings = {"algorithm": algorithm, "steps": steps, "eval_episodes": 8}
        yield label(task, sharing, algorithm), change(plan, settings)


def write(runs: Sequence[Path], out: Path) -> Path:
    """The page of results, in Markdown."""
    found = {path.name: read_run(path) for path in runs}
    some = next(iter(found.values()))
    lines = [
        INTRODUCTION.format(
            episodes=some.results["evaluation"]["episodes"],
            seeds=some.settings["seeds"],
            during=some.settings["eval_episodes"],
            every=some.settings["eval_every"],
            machines=machines(found),
        )
    ]
    for task in dict.fromkeys(run.settings["task"].split("/")[1] for run in found.values()):
        lines += [f"## {task}", "", *scores(found, task), ""]
        lines += pictures(out, task.lower())
    lines += ["## Every run", "", *commands(found), ""]
    path = out / "results.md"
    path.write_text("\n".join(lines))
    return path


def scores(found: Mapping[str, Run], task: str) -> list[str]:
    """A line a cell: ours, the published one, the difference to MAPPO, what it took."""
    rows = []
    for own, sharing, algorithm, _ in CELLS:
        run = found.get(label(own, sharing, algorithm))
        if own != task or run is None:
            continue
        known = PAPER.get((task, sharing, algorithm))
        base = None if algorithm == "mappo" else found.get(label(task, sharing, "mappo"))
        rows.append(
            [
                sharing,
                title(algorithm),
                f"{run.settings['steps'] / 1e6:g} M",
                score(run, 0),
                difference(run, base, 0),
                f"{known[0]:.0f} ± {known[1]:.0f}" if known else "-",
                f"{gradient_steps(run):,}",
                f"{wall_clock(run) / 60:.0f} min",
            ]
        )
    titles = ("sharing", "algorithm", "steps", "ours", "difference to MAPPO",
              "published (10 M)", "gradient steps", "wall-clock")  # fmt: skip
    return table(titles, rows)


def commands(found: Mapping[str, Run]) -> list[str]:
    """A line a run: how to do it alone, what each seed reached, the best policy."""
    rows = []
    for run in found.values():
        told = run.settings
        last, best = ([row["return"] for row in run.results[kind]] for kind in ("last", "best"))
        command = (
            f"`fp3o train {told['task']} --preset {PRESET[told['sharing']]} "
            f"--algorithm {told['algorithm']} --steps {told['steps']} --eval-episodes "
            f"{told['eval_episodes']}`"
        )
        spread = " ".join(f"{x:.0f}" for x in last)
        rows.append([command, spread, f"{sum(best) / len(best):.0f}"])
    return table(["command", "return of each seed", "best policy"], rows)
