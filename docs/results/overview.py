"""What the pages of results say together: the index, and the results in the README.

Both are made from the `summary.json` and `seeds.json` beside the pages, so that they cannot say
something else.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

from fp3o.experiments.framework.exclusions import CEILING
from fp3o.experiments.framework.paper_results import (
    PAPER_MAMUJOCO,
    PAPER_MPE,
    PAPER_SMAC,
    PaperScores,
)
from fp3o.experiments.framework.scales import FP3O_HALF, MAPPO_TWICE, paper_steps
from fp3o.reports.phrasing import DASH, count_text, score_text, with_sign
from fp3o.reports.stats.intervals import mean_interval

HERE = Path(__file__).parent

INDEX = """# Does FP3O hold?

The paper's claims, and what the runs of this library say of them. The pages are made by
`python docs/results/collect.py` from [data](https://github.com/fp3o/fp3o/tree/main/docs/results/runs)
in the repository, and [the same rules](../experiments.md#statistics) say which cells count. Three
pages are older, of runs whose data was not kept: [condition and constraint](matching-degree.md),
[drift of sequentially updated agents](happo-kl.md) and [cost of an iteration](compute.md). **At
equal epochs FP3O takes twice MAPPO's gradient steps**: the controls compare both at as many.
Battles are those of [our simulator](../smac.md), not of StarCraft II.

"""


def index_page(names: Sequence[str]) -> str:
    """One section per claim of the paper, then the experiments beyond it."""
    summaries = [read_summary(name) for name in names]
    blocks = [INDEX.strip(), "## In short", _verdict_table(summaries)]
    blocks += ["## The cells that matter", CELLS_THAT_MATTER, _cells_table(names), "## The claims"]
    blocks += [_section(summary) for summary in summaries if summary["claim"]]
    blocks.append("## Beyond the paper")
    blocks += [_section(summary) for summary in summaries if not summary["claim"]]
    blocks += ["## What was not run", NOT_RUN, _not_run_table(summaries)]
    blocks.append(
        "Runs beside the experiments: [environments of other libraries, images and mixed "
        "actions](other-environments.md)."
    )
    return "\n\n".join(blocks) + "\n"


def _verdict_table(summaries: Sequence[Mapping[str, Any]]) -> str:
    """All claims with their verdicts, one line each."""
    rows = ["| | verdict |", "|---|---|"]
    rows += [
        f"| [{x['title']}]({x['name']}.md) | {_one_sentence(x)} |" for x in summaries if x["claim"]
    ]
    return "\n".join(rows)


def _one_sentence(summary: Mapping[str, Any]) -> str:
    found = summary["key_result"]
    return found["verdict"] if found else summary["verdict"][-1]


CELLS_THAT_MATTER = (
    "In 14 of the 36 cells of its two main benchmarks the paper's own numbers carry a difference "
    "between FP3O and MAPPO (Welch's t-test on its means and deviations, five seeds; two of them "
    "with p between 5 and 6 %, which is where the line is drawn). The published differences are of "
    "means, those of battles of medians; ours are of means of the last policies, paired by seed, ± "
    "half of the 95 % interval. Steps: of our runs, and of the paper's where those are more. "
    "Ceiling: both win nearly all battles, so the cell does not count."
)

PAIRS = (("FP3O", "MAPPO"), ("FP3O", MAPPO_TWICE), (FP3O_HALF, "MAPPO"))

PAPER_SEEDS, PAPER_LEVEL = 5, 0.06


def differing_cells(paper: PaperScores) -> list[tuple[str, str]]:
    """Tasks and sharings in which the paper's numbers differ, by Welch's test."""
    found = []
    for (task, sharing, variant), ours in paper.items():
        theirs = paper.get((task, sharing, "MAPPO"))
        if variant != "FP3O" or theirs is None:
            continue
        errors = [score.deviation**2 / PAPER_SEEDS for score in (ours, theirs)]
        if not (total := sum(errors)):
            continue
        degrees = total**2 * (PAPER_SEEDS - 1) / sum(x**2 for x in errors)
        if 2 * stdtr(degrees, -abs(ours.centre - theirs.centre) / total**0.5) < PAPER_LEVEL:
            found.append((task, sharing))
    return found


def _cells_table(published: Sequence[str]) -> str:
    """Published difference, ours at equal epochs, and both controls."""
    titles = [f"{ours} - {theirs}" for ours, theirs in PAIRS]
    head = ["task", "sharing", "steps", "published", *titles]
    rows = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * (len(head) - 2)]
    for name in [name for name in ("mamujoco-table", "smac-table") if name in published]:
        cells, paper = json.loads((HERE / name / "seeds.json").read_text()), find_paper(name)
        for task, sharing in differing_cells(paper):
            known = {x["variant"]: x for x in cells if (x["task"], x["sharing"]) == (task, sharing)}
            ours, theirs = (paper[task, sharing, variant] for variant in PAIRS[0])
            texts = [_difference_text(known, *pair) for pair in PAIRS]
            texts.insert(0, f"{ours.centre - theirs.centre:+.4g}")
            compared = [cell for variant, cell in known.items() if any(variant in x for x in PAIRS)]
            steps = _steps_text(compared, paper_steps(task, sharing))
            rows.append(f"| {' | '.join([task, sharing, steps, *texts])} |")
    return "\n".join(rows)


def _steps_text(cells: Iterable[Mapping[str, Any]], published: int) -> str:
    """Steps of a cell's runs, and those of the paper where they are more; a dash without runs."""
    steps = sorted({cell["steps"] for cell in cells})
    if not steps:
        return DASH
    more = f" of {count_text(published)}" if steps[0] < published else ""
    return " and ".join(map(count_text, steps)) + more


def _difference_text(cells: Mapping[str, Mapping[str, Any]], ours: str, theirs: str) -> str:
    if ours not in cells or theirs not in cells:
        return "not run"
    one, other = cells[ours], cells[theirs]
    common = [seed for seed in one["scores"] if seed in other["scores"]]
    interval = mean_interval([one["scores"][seed] - other["scores"][seed] for seed in common])
    rate = one["measure"] == "won"
    highest = rate and all(np.mean([*x["scores"].values()]) >= CEILING for x in (one, other))
    return with_sign(score_text(interval, " %" * rate)) + " (ceiling)" * highest


def read_summary(name: str) -> dict[str, Any]:
    """The summary of an experiment's page."""
    return json.loads((HERE / name / "summary.json").read_text())


def _section(summary: Mapping[str, Any]) -> str:
    """Claim, published numbers, ours, the control, the verdict, a picture."""
    name, title, key_result = summary["name"], summary["title"], summary["key_result"]
    claim = summary["claim"]
    lines = [
        f"### [{title}]({name}.md)",
        f"**Claim.** {claim}" if claim else f"**Question.** {summary['question']}",
    ]
    verdict = _one_sentence(summary)
    cells = f"{summary['done']} of {summary['cells']} cells at the scale `{summary['scale']}`"
    rows = [
        ("Paper", key_result["published"] if key_result else ""),
        ("Here", key_result["ours"] if key_result else " ".join(summary["verdict"][:-1])),
        ("Controls", key_result["control"] if key_result else ""),
        ("Runs", cells),
    ]
    table = ["| | |", "|---|---|", *(f"| {x} | {text} |" for x, text in rows if text)]
    lines += ["\n".join(table), f"**{verdict}**"]
    if summary["figure"]:
        lines.append(f"![{title}]({name}/{summary['figure']}.png)")
    return "\n\n".join(lines)


NOT_RUN = (
    "Cells without a run, for want of time on such a machine, and about the time they would take "
    "on an H200 with 16 cores; maps with many units take longer. Cells of several experiments can "
    "be one run. Cells with fewer steps than planned are not among them: each page names its own."
)


def _not_run_table(summaries: Sequence[Mapping[str, Any]]) -> str:
    rows = ["| experiment | cells | cost |", "|---|---:|---|"]
    for x in summaries:
        if x["missing"]:
            rows.append(f"| [{x['name']}]({x['name']}.md) | {x['missing']} | {x['cost']} |")
    return "\n".join(rows)


README = HERE.parents[1] / "README.md"

MARKS = "<!-- results: written by docs/results/collect.py -->", "<!-- end of results -->"

README_CELLS = (
    ("mamujoco-table", "mamujoco/HalfCheetah-6x1", "full"),
    ("mamujoco-table", "mamujoco/HalfCheetah-6x1", "none"),
    ("mamujoco-table", "mamujoco/ManyagentSwimmer-8x2", "none"),
    ("mpe-table", "mpe/simple_reference", "none"),
    ("smac-table", "smac/6h_vs_8z", "none"),
    ("smac-table", "smac/3s5z", "none"),
)
"""The cells of the table in the README: experiment, task, sharing."""

README_VARIANTS = ("FP3O", MAPPO_TWICE, FP3O_HALF, "MAPPO")

README_VERDICTS = ("mamujoco-table", "mpe-table", "smac-table")


def readme_block() -> str:
    """Scores and verdicts for the README, from the numbers and summaries of the pages."""
    rows = ["| task | sharing | steps | " + " | ".join(README_VARIANTS) + " |"]
    rows.append("|---|---|---|" + "---|" * len(README_VARIANTS))
    rows += [_readme_row(*cell) for cell in README_CELLS]
    lines = []
    for name in README_VERDICTS:
        summary = read_summary(name)
        link = f"https://fp3o.readthedocs.io/en/latest/results/{name}.html"
        lines.append(f"- [{summary['title']}]({link}): {summary['key_result']['verdict']}")
    return "\n\n".join([MARKS[0], "\n".join(rows), "\n".join([*lines, MARKS[1]])])


def _readme_row(name: str, task: str, sharing: str) -> str:
    cells = json.loads((HERE / name / "seeds.json").read_text())
    chosen = {x["variant"]: x for x in cells if (x["task"], x["sharing"]) == (task, sharing)}
    paper = find_paper(name)
    texts = []
    for variant in README_VARIANTS:
        known = paper.get((task, sharing, variant))
        rate = chosen[variant]["measure"] == "won"
        text = score_text(mean_interval([*chosen[variant]["scores"].values()]), " %" * rate)
        texts.append(f"{text} ({known.centre:g})" if known else text)
    steps = count_text(chosen["FP3O"]["steps"])
    return f"| {task.split('/')[1]} | {sharing} | {steps} | {' | '.join(texts)} |"


def find_paper(name: str) -> PaperScores:
    """The paper's scores of one of its three tables."""
    return {
        "mamujoco-table": PAPER_MAMUJOCO, "smac-table": PAPER_SMAC, "mpe-table": PAPER_MPE,
    }[name]  # fmt: skip


def write_readme() -> None:
    """Replace the results in the README."""
    text = README.read_text()
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    README.write_text(f"{before}{readme_block()}{after}")
