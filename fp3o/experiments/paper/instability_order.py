"""How much the products of ratios in each algorithm's objective vary as teams grow."""

from collections.abc import Iterator

import numpy as np

from fp3o.experiments.framework.grid import (
    Cell,
    CellResult,
    CellResults,
    Experiment,
    Scale,
    Summary,
    side_by_side,
)
from fp3o.experiments.framework.plots import lines_of
from fp3o.experiments.framework.scales import cells, rows
from fp3o.experiments.framework.summary import caveats
from fp3o.reports.experiment_report import CaptionedFigure, ResultTable
from fp3o.reports.phrasing import number_text

MAPS = {
    "paper": ("3m", "5m_vs_6m", "8m", "10m_vs_11m", "25m"), "gpu": ("3m", "8m", "25m"),
    "laptop": ("3m", "5m_vs_6m", "8m"), "smoke": ("3m",),
}  # fmt: skip

STEPS = {"paper": 2_000_000, "gpu": 1_000_000, "laptop": 128_000}


def grid(scale: Scale) -> Iterator[Cell]:
    """Teams of marines, full sharing; the clip is the same for all."""
    small = scale == "smoke"
    tasks = [f"smac/{name}" for name in MAPS[scale]]
    names = ("fp3o", "mappo") if small else ("mappo", "coppo", "happo", "a2po", "fp3o")
    told = {"clip_range": 0.2, **({} if small else {"steps": STEPS[scale]})}
    return cells(tasks, ["full"], {x: {**row, **told} for x, row in rows(*names).items()}, scale)


def worst(item: CellResult) -> np.ndarray:
    """The largest variance of any stage, mean over training, of each seed."""
    assert item.run is not None
    lines = [*item.run.records[item.run.seeds[0]].values()]
    stages = max(len(line.get("product_variance") or []) for line in lines)
    parts = [item.run.series("product_variance", stage).value for stage in range(stages)]
    return np.nanmean(np.nanmax(np.stack(parts), axis=0), axis=1)


def show(findings: CellResults) -> Summary:
    """Variance over the number of agents."""
    if not findings:
        return Summary(["Nothing is finished yet."])
    names = [*dict.fromkeys(item.cell.variant for item in findings)]
    lines = {}
    for name in names:
        own = [item for item in findings if item.cell.variant == name]
        agents = np.array([item.run.config["agents"] for item in own if item.run])
        lines[name] = agents, side_by_side([worst(item) for item in own])
    figure = lines_of({"full sharing": lines}, "agents", "variance of the products", (True, True))
    counts = sorted({int(x) for agents, _ in lines.values() for x in agents})
    rows = []
    for name, (agents, value) in lines.items():
        known = dict(zip(agents.tolist(), np.nanmean(value, axis=0), strict=True))
        rows.append([name, *(number_text(known[x]) if x in known else "–" for x in counts)])
    last = {
        name: float(np.nanmean(value[:, -1]))
        for name, (agents, value) in lines.items()
        if agents[-1] == counts[-1]
    }
    order = sorted(last, key=last.__getitem__)
    verdict = [
        f"With {counts[-1]} agents the variance of the products is, smallest first: "
        + ", ".join(f"{name} {number_text(last[name])}" for name in order) + ".",
        answer(last),
    ]  # fmt: skip
    caption = (
        "Variance, over the samples of an iteration, of the products of ratios in the objective "
        "before any clip: of the stage in which it is largest, mean over training and seeds."
    )
    head = ["algorithm", *(f"{x} agents" for x in counts)]
    return Summary(
        verdict, [ResultTable("Variance of the products", head, rows, caption)],
        [CaptionedFigure("variance", figure, "Variance of the products of ratios as teams grow.")],
        caveats(findings),
    )  # fmt: skip


def answer(last: dict[str, float]) -> str:
    """The paper's order by the number of factors: MAPPO below FP3O, FP3O below its predecessors."""
    if "FP3O" not in last or "MAPPO" not in last:
        return "The cells that would answer are not finished."
    others = [last[name] for name in ("CoPPO", "HAPPO", "A2PO") if name in last]
    below = sum(last["FP3O"] <= other for other in others)
    base = "above" if last["FP3O"] > last["MAPPO"] else "below"
    return (
        f"FP3O's is {base} MAPPO's and at most as large as that of {below} of {len(others)} "
        "predecessors (CoPPO, HAPPO, A2PO)."
    )


EXPERIMENT = Experiment(
    "instability-order", "Products of ratios",
    "How unstable are the objectives by the products of ratios that they hold?",
    grid, show,
    "By the number of factors FP3O's objective is less stable than MAPPO's and not less than those "
    "of CoPPO, HAPPO and A2PO.",
)  # fmt: skip
