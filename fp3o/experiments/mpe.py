"""The paper's appendix on particle tasks, with enough episodes to tell algorithms apart.

Two tasks x three kinds of sharing x six algorithms x five seeds at the paper's steps; 1,000
deterministic episodes of every seed's last policy; returns of one agent, with intervals over seeds
and the returns of scripted policies to hold them against.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fp3o.experiments.pages import difference, machines, pictures, score, table, title
from fp3o.plan import Plan, change, draft
from fp3o.reports.read import Run, read_run

TASKS = {
    "mpe/simple_reference": "Simple reference",
    "mpe/simple_speaker_listener": "Cooperative communication (simple speaker listener)",
}
SHARINGS = ("full", "partial", "none")
ALGORITHMS = ("fp3o", "happo", "mappo", "ippo", "a2po", "coppo")

PAPER: Mapping[tuple[str, str, str], tuple[float, float]] = {
    (task, sharing, algorithm): score
    for task, sharing, scores in (
        ("mpe/simple_reference", "full", ((-4.9, 4.0), (-9.8, 6.4), (-7.2, 5.6), (-9.2, 7.1))),
        ("mpe/simple_reference", "none", ((-4.6, 2.1), (-6.8, 3.5), (-6.5, 4.8), (-5.1, 2.9))),
        ("mpe/simple_speaker_listener", "full",
         ((-7.3, 8.6), (-13.7, 9.5), (-12.1, 9.0), (-12.9, 10.6))),
        ("mpe/simple_speaker_listener", "none",
         ((-4.8, 5.0), (-6.7, 5.2), (-9.1, 6.8), (-6.9, 5.7))),
    )
    for algorithm, score in zip(("fp3o", "happo", "mappo", "a2po"), scores, strict=True)
}  # fmt: skip
"""The published mean and spread; how many episodes and which return they are of is not said."""

INTRODUCTION = """# Particle tasks

Written by `fp3o experiment mpe`, which trains what is missing and writes this page again.

Return of one agent (mean over the team, summed over an episode of 25 steps) of the **last** policy
of each seed, {episodes} deterministic episodes a seed: mean over {seeds} seeds ± half of the 95 %
interval over seeds (Student's t). The published numbers stand below ours; their spread has the
size of the spread of single episodes, so they cannot tell these algorithms apart. Every seed is
judged in the same episodes under all algorithms, so differences between algorithms are known better
than the returns themselves: the second table of each task has them. Trained on
{machines}.
"""


def label(task: str, sharing: str, algorithm: str) -> str:
    """The name of a run's directory."""
    return "-".join([task.split("/")[1], sharing, algorithm])


def plans() -> Iterator[tuple[str, Plan]]:
    """The grid."""
    for task in TASKS:
        for sharing in SHARINGS:
            for algorithm in ALGORITHMS:
                settings = {"sharing": sharing, "algorithm": algorithm}
                yield label(task, sharing, algorithm), change(draft(task, "paper"), settings)


def write(runs: Sequence[Path], out: Path) -> Path:
    """The page of results, in Markdown."""
    found = {path.name: read_run(path) for path in runs}
    some = next(iter(found.values()))
    lines = [
        INTRODUCTION.format(
            episodes=some.results["evaluation"]["episodes"],
            seeds=some.settings["seeds"],
            machines=machines(found),
        )
    ]
    for task, words in TASKS.items():
        lines += [f"## {words}", "", *references(found, task), "", *scores(found, task), ""]
        lines += ["Difference to MAPPO, seed by seed:", "", *differences(found, task), ""]
        lines += pictures(out, task.split("/")[1].replace("_", "-"))
    lines += ["## Every run", "", *commands(found), ""]
    path = out / "results.md"
    path.write_text("\n".join(lines))
    return path


def references(found: Mapping[str, Run], task: str) -> list[str]:
    """The scripted policies' returns in one sentence."""
    own = next((run for run in found.values() if run.settings["task"] == task), None)
    if own is None:
        return []
    parts = [
        f"{name} {row['return']:.2f} ± {1.96 * row['stderr']:.2f}"
        for name, row in own.results["references"].items()
    ]
    return [f"Scripted policies: {', '.join(parts)}."]


def scores(found: Mapping[str, Run], task: str) -> list[str]:
    """Sharing down, algorithms across; the published numbers under ours."""
    rows = []
    for sharing in SHARINGS:
        ours = [score(found.get(label(task, sharing, name))) for name in ALGORITHMS]
        rows.append([sharing, *ours])
        theirs = [PAPER.get((task, sharing, name)) for name in ALGORITHMS]
        if any(theirs):
            cells = [f"{known[0]} ± {known[1]}" if known else "-" for known in theirs]
            rows.append(["*published*", *cells])
    return table(["sharing", *map(title, ALGORITHMS)], rows)


def differences(found: Mapping[str, Run], task: str) -> list[str]:
    """How much better than MAPPO each algorithm is, paired by seed."""
    rivals = [name for name in ALGORITHMS if name != "mappo"]
    rows = []
    for sharing in SHARINGS:
        base = found.get(label(task, sharing, "mappo"))
        cells = [difference(found.get(label(task, sharing, name)), base) for name in rivals]
        rows.append([sharing, *cells])
    return table(["sharing", *map(title, rivals)], rows)


def commands(found: Mapping[str, Run]) -> list[str]:
    """A line a run: how to do it alone, what each seed reached, the team's sum, the best policy."""
    rows = []
    for run in found.values():
        told, agents = run.settings, run.config["agents"]
        last = [row["return"] for row in run.results["last"]]
        best = [row["return"] for row in run.results["best"]]
        command = (
            f"`fp3o train {told['task']} --preset paper --algorithm {told['algorithm']} "
            f"--sharing {told['sharing']} --steps {told['steps']}`"
        )
        rows.append(
            [
                command,
                " ".join(f"{x:.2f}" for x in last),
                f"{agents * sum(last) / len(last):.2f}",
                f"{sum(best) / len(best):.2f}",
            ]
        )
    return table(["command", "return of each seed", "team's sum", "best policy"], rows)
