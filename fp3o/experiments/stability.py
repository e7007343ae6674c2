"""How much repetitions of the same training differ from one another."""

from collections.abc import Iterator

import numpy as np

from fp3o.lab.draw import curves, lines_of
from fp3o.lab.grid import Cell, Experiment, Findings, Found, Scale, Shown, cells, rows
from fp3o.lab.show import score_table
from fp3o.reports.exhibit import Grid, Picture
from fp3o.reports.words import number_text

TASKS = {"paper": "smac/3s5z", "gpu": "smac/3s5z", "laptop": "mpe/simple_reference"}
DOUBLE = {"FP3O, double clip": {"algorithm": "fp3o:inner_clip=0.5"}}


def grid(scale: Scale) -> Iterator[Cell]:
    """Full sharing."""
    task = TASKS.get(scale, "mpe/simple_speaker_listener")
    names = ("fp3o",) if scale == "smoke" else ("happo", "a2po", "mappo", "fp3o")
    return cells([task], ["full"], {**rows(*names), **DOUBLE}, scale)


def spread(item: Found) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the standard deviation over seeds at each evaluation."""
    assert item.run is not None
    step, value = item.run.series(f"eval_{item.measure.name}")
    return step, item.measure.scale * value.std(0, ddof=1)


def show(findings: Findings) -> Shown:
    """Deviation over training, and its mean."""
    if not findings:
        return Shown(["Nothing is finished yet."])
    lines = {item.cell.variant: spread(item) for item in findings}
    means = {name: float(np.mean(value)) for name, (_, value) in lines.items()}
    order = sorted(means, key=means.__getitem__)
    unit = findings[0].measure.unit
    told = ", ".join(f"{name} {number_text(means[name])}{unit}" for name in order)
    verdict = [f"Mean standard deviation over seeds along training, steadiest first: {told}.",
               answer(means)]  # fmt: skip
    rows = [
        [name, number_text(means[name]), number_text(float(lines[name][1][-1]))] for name in order
    ]
    head = ["variant", "mean deviation in training", "deviation at the end"]
    caption = f"Standard deviation over {findings[0].seeds.size} seeds of what an evaluation shows."
    task = findings[0].cell.task
    figure = lines_of({task: lines}, "environment steps", "deviation over seeds")
    picture = Picture("deviation", figure, "Standard deviation over seeds along training.")
    tables = [Grid("Stability", head, rows, caption), score_table(findings, {}, "")]
    note = "A standard deviation of five seeds is itself known only to about a factor of two."
    return Shown(verdict, tables, [picture, *curves(findings)], [note])


def answer(means: dict[str, float]) -> str:
    """The paper's order: HAPPO and A2PO fluctuate more than FP3O."""
    ours, others = means.get("FP3O"), [means[x] for x in ("HAPPO", "A2PO") if x in means]
    if ours is None or not others:
        return "The cells that would answer are not finished."
    if ours < min(others):
        return "FP3O fluctuates less than those who take turns: what the paper says holds here."
    if ours > max(others):
        return "FP3O fluctuates more than those who take turns: what the paper says does not hold."
    return "FP3O lies between those who take turns: what the paper says holds only in part."


EXPERIMENT = Experiment(
    "stability", "Stability over repetitions",
    "How much do repetitions with other seeds differ, and does a double clip help?",
    grid, show,
    "FP3O fluctuates less than HAPPO and A2PO, and the double clip makes it steadier still.",
)  # fmt: skip
