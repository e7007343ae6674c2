"""The paper's second benchmark on our simulator: three maps under full, partial and no sharing.

It is SMAC-style and not the paper's game: the published win rates are of StarCraft II.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fp3o.experiments.pages import (
    difference,
    gradient_steps,
    machines,
    median,
    pictures,
    score,
    seeds,
    table,
    title,
    wall_clock,
)
from fp3o.plan import Plan, change, draft
from fp3o.reports.read import Run, read_run

MAPS = ("3s5z", "5m_vs_6m", "6h_vs_8z")
PRESET = {"full": "many", "partial": "many-partial", "none": "many-none"}
ALGORITHMS = ("fp3o", "mappo", "happo", "ippo")

PAPER: Mapping[tuple[str, str, str], tuple[float, float]] = {
    (name, sharing, algorithm): published
    for name, sharing, row in (
        ("3s5z", "full", ((100.0, 3.7), (93.8, 3.6), (87.5, 24.7), (87.5, 34.0))),
        ("3s5z", "partial", ((96.9, 3.9), (93.8, 4.6), (0.0, 31.0), (90.6, 6.5))),
        ("3s5z", "none", ((100.0, 2.5), (93.8, 5.3), (90.6, 4.8), (96.9, 8.1))),
        ("5m_vs_6m", "full", ((93.8, 6.1), (81.3, 10.0), (18.8, 12.8), (62.5, 19.1))),
        ("5m_vs_6m", "partial", ((93.8, 4.2), (87.5, 7.7), (31.3, 15.4), (90.6, 11.1))),
        ("5m_vs_6m", "none", ((90.6, 6.4), (62.5, 10.0), (68.8, 16.8), (62.5, 11.3))),
        ("6h_vs_8z", "full", ((90.6, 6.6), (87.5, 9.2), (53.1, 20.2), (87.5, 10.4))),
        ("6h_vs_8z", "partial", ((81.3, 18.3), (15.6, 21.1), (9.4, 18.8), (46.9, 23.0))),
        ("6h_vs_8z", "none", ((87.5, 15.3), (43.8, 15.8), (43.8, 10.2), (46.9, 20.5))),
    )
    for algorithm, published in zip(ALGORITHMS, row, strict=True)
}
"""The published median win rates in StarCraft II and their standard deviations."""

INTRODUCTION = """# SMAC-style battles

Written by `fp3o experiment smac`, which trains what is missing and writes this page again.

**These are not StarCraft II.** The published numbers are of the game itself, ours of a simulator
that follows its rules ([what is exact and what is not](../battles.md)): compare the order of
algorithms, not the win rates.

Presets `many`, `many-partial` and `many-none`: the paper's hyperparameters and steps (or fewer
where a table says so), but {envs} environments x {rollout} steps in {minibatches} minibatches
instead of 8 x 400 in one. Win rate of the **last** policy of each seed, {episodes} deterministic
episodes a seed: mean over {seeds} seeds ± half of the 95 % interval over seeds (Student's t), and
the median over seeds with their standard deviation in brackets. The published numbers are medians
over five seeds with standard deviations. In training, {during} deterministic episodes every
{every} iterations. Differences to MAPPO are paired by seed. Gradient steps are those of the
policies' optimisers, of all turns together where agents take turns. The wall-clock is that of all
seeds together, evaluations included, of a run that shared the machine with others.
Trained on {machines}.
"""


def label(name: str, sharing: str, algorithm: str) -> str:
    """The name of a run's directory."""
    return f"{name}-{sharing}-{algorithm}"


def plans() -> Iterator[tuple[str, Plan]]:
    """The grid."""
    for name in MAPS:
        for sharing, preset in PRESET.items():
            for algorithm in ALGORITHMS:
                plan = draft(f"smac/{name}", preset)
                yield label(name, sharing, algorithm), change(plan, {"algorithm": algorithm})


def write(runs: Sequence[Path], out: Path) -> Path:
    """The page of results, in Markdown."""
    found = {path.name: read_run(path) for path in runs}
    some = next(iter(found.values()))
    told = some.settings
    lines = [
        INTRODUCTION.format(
            episodes=some.results["evaluation"]["episodes"],
            seeds=told["seeds"],
            envs=told["num_envs"],
            rollout=told["rollout"],
            minibatches=told["minibatches"],
            during=told["eval_episodes"],
            every=told["eval_every"],
            machines=machines(found),
        )
    ]
    for name in MAPS:
        if rows := scores(found, name):
            lines += [f"## {name}", "", *references(found, name), "", *rows, ""]
            lines += pictures(out, f"smac-{name.replace('_', '-')}-paper")
    lines += ["## Every run", "", *commands(found), ""]
    path = out / "results.md"
    path.write_text("\n".join(lines))
    return path


def references(found: Mapping[str, Run], name: str) -> list[str]:
    """What the scripted teams win, in one sentence."""
    own = next(run for run in found.values() if run.settings["task"] == f"smac/{name}")
    parts = [
        f"{rule} {100 * row['outcomes']['won']:.1f} %"
        for rule, row in own.results["references"].items()
    ]
    return [f"Scripted teams win: {', '.join(parts)}."]


def scores(found: Mapping[str, Run], name: str) -> list[str]:
    """A line a cell: ours, the published one, the difference to MAPPO, what it took."""
    rows = []
    for sharing in PRESET:
        base = found.get(label(name, sharing, "mappo"))
        for algorithm in ALGORITHMS:
            run = found.get(label(name, sharing, algorithm))
            if run is None:
                continue
            published = PAPER[name, sharing, algorithm]
            rows.append(
                [
                    sharing,
                    title(algorithm),
                    millions(run),
                    score(run, 1, "won"),
                    median(run),
                    "-" if run is base else difference(run, base, 1, "won"),
                    score(run),
                    f"{published[0]} ({published[1]}) %",
                    f"{gradient_steps(run):,}",
                    f"{wall_clock(run) / 60:.1f} min",
                ]
            )
    titles = ("sharing", "algorithm", "steps", "wins", "median", "difference to MAPPO", "return",
              "published (StarCraft II)", "gradient steps", "wall-clock")  # fmt: skip
    return table(titles, rows) if rows else []


def millions(run: Run) -> str:
    """The steps of a run, and the paper's where they are more."""
    told = run.settings
    done, planned = told["steps"], draft(told["task"], PRESET[told["sharing"]]).steps
    return f"{done / 1e6:g} M" + (f" of {planned / 1e6:g} M" if done != planned else "")


def commands(found: Mapping[str, Run]) -> list[str]:
    """A line a run: how to do it alone, what each seed won."""
    rows = []
    for run in found.values():
        told = run.settings
        command = (
            f"`fp3o train {told['task']} --preset {PRESET[told['sharing']]} "
            f"--algorithm {told['algorithm']} --steps {told['steps']}`"
        )
        rows.append([command, " ".join(f"{x:.1f}" for x in seeds(run, "won"))])
    return table(["command", "wins of each seed (%)"], rows)
