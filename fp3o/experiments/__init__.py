"""The paper's tables and figures: each is a grid of plans and a way to write them down."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from fp3o.errors import nearest
from fp3o.experiments import mamujoco, mpe, smac
from fp3o.plan import Plan, change, flatten
from fp3o.progress import display
from fp3o.reports import report
from fp3o.run import plan_of, resume, start
from fp3o.storage import RunDirectory, RunError


@dataclass(frozen=True)
class Experiment:
    """Plans by the name of their run, and how finished runs become a page of results."""

    summary: str
    plans: Callable[[], Iterator[tuple[str, Plan]]]
    write: Callable[[Sequence[Path], Path], Path]


EXPERIMENTS: Mapping[str, Experiment] = {
    "mpe": Experiment(
        "particle tasks x sharing x six algorithms (the paper's appendix)", mpe.plans, mpe.write
    ),
    "mamujoco": Experiment(
        "MuJoCo tasks: HalfCheetah x sharing x algorithms, Hopper without sharing",
        mamujoco.plans,
        mamujoco.write,
    ),
    "smac": Experiment(
        "SMAC-style battles: three maps x sharing x four algorithms, for a GPU",
        smac.plans,
        smac.write,
    ),
}
"""The experiments by name."""


def conduct(name: str, out: Path, part: str = "", steps: int | None = None) -> int:
    """Train what is not finished, then write the results of what is."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}: {nearest(name, EXPERIMENTS)}")
    experiment, console = EXPERIMENTS[name], Console()
    short = {"steps": steps} if steps else {}
    whole = [(label, change(plan, short).check()) for label, plan in experiment.plans()]
    plans = [(label, plan) for label, plan in whole if part in label]
    if not plans:
        raise ValueError(f"no run of {name} has {part!r} in its name")
    for number, (label, plan) in enumerate(plans, 1):
        directory = RunDirectory(out / label)
        if directory.exists() and flatten(plan_of(directory)) != flatten(plan):
            raise RunError(f"{directory.path} has other settings: choose another --out")
        if not (directory.path / "results.json").exists():
            console.print(f"[bold]{number}/{len(plans)}[/] {label}")
            if directory.exists():
                run = resume(directory.path)
            else:
                run = start(plan, directory.path, display(), ("tensorboard",))
            if not run.finished:
                console.print(f"stopped: the same command goes on from here ({out})")
                return 130
    runs = [out / label for label, _ in whole if (out / label / "results.json").exists()]
    with console.status("drawing ..."):
        page = report(runs, out / "report.html")
    console.print(f"report   {page}")
    console.print(f"results  {experiment.write(runs, out)}")
    return 0
