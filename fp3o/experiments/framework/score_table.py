"""TODO."""

import json

import numpy as np

from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.paper_results import Papers, Published
from fp3o.reports.data.measures import WON
from fp3o.reports.experiment_report import ResultTable
from fp3o.reports.phrasing import count_text, score_text
from fp3o.reports.stats.intervals import Interval, mean_interval, smac_win_rate


def score_table(findings: CellResults, papers: Papers, base: str) -> ResultTable:
    """A line a cell: ours, the paper's, the difference to a base, what it took."""
    wins = any(item.measure is WON for item in findings)
    more = any(item.cell.more for item in findings)
    head = [
        "task",
        "sharing",
        "variant",
        *[""] * more,
        "steps",
        "ours",
        *["median of last ten"] * wins,
    ]
    head += ["the paper's", *[f"difference to {base}"] * bool(base), "gradient steps", "minutes"]
    rows = []
    for item in findings:
        row = [*item.place, *[item.cell.more] * more, steps(item), bold(item)]
        row += [*[last_ten(item)] * wins, published(papers.get(item.place), item.measure.unit)]
        row += [difference(item, findings, base)] * bool(base)
        rows.append([*row, f"{gradient_steps(item):,}", f"{minutes(item):.1f}"])
    return ResultTable(
        "Scores", head, rows, CAPTION + (WINS_CAPTION if wins else ""), words=3 + more
    )


CAPTION = (
    "Ours: the last policy of every seed, mean ± half of the 95 % interval over seeds (Student's "
    "t). The paper's: as printed, with its standard deviation. Differences are paired by seed. "
    "Gradient steps are those of a seed's policies, of all turns together; minutes those of all "
    "seeds together, evaluations included (where runs shared a machine they say little)."
)

WINS_CAPTION = (
    " Wins in percent. Median of last ten: per seed the median of its last ten evaluations, then "
    "the median over seeds, with the standard deviation over all of these evaluations. The "
    "paper's win rates are of StarCraft II, ours of a simulator."
)


def steps(item: CellResult) -> str:
    """Environment steps of a seed."""
    return count_text(item.run.step) if item.run else "–"


def planned(item: CellResult) -> int:
    """The steps of a cell's plan, in whole iterations."""
    return item.cell.config.iterations * item.cell.config.steps_per_iteration


def bold(item: CellResult) -> str:
    """The score, its centre in bold."""
    text = score_text(mean_interval(item.seeds), item.measure.unit)
    centre, mark, rest = text.partition(" ±")
    return f"**{centre}**{mark}{rest}"


def last_ten(item: CellResult) -> str:
    """The median of the last ten evaluations' win rates."""
    if item.run is None or item.measure is not WON:
        return "–"
    value = 100 * item.run.series("eval_won").value
    if not value.size:
        return "–"
    found = smac_win_rate(value)
    return f"{found.median:.1f} ({found.pooled_deviation:.1f}) %"


def published(known: Published | None, unit: str = "") -> str:
    """A number of the paper."""
    return f"{known.centre:g} ± {known.deviation:g}{unit}" if known else "–"


def difference(item: CellResult, findings: CellResults, base: str) -> str:
    """How much more a cell reaches than the base under the same task and sharing."""
    other = rival(item, findings, base)
    if other is None or other is item:
        return "–"
    interval = paired(item, other)
    text = score_text(interval, item.measure.unit)
    return text if text.startswith(("-", "–")) else f"+{text}"


def rival(item: CellResult, findings: CellResults, variant: str) -> CellResult | None:
    """The cell of another variant in the same place."""
    place = item.cell.task, item.cell.sharing, variant, item.cell.more
    return next((x for x in findings if (*x.place, x.cell.more) == place), None)


def paired(ours: CellResult, theirs: CellResult) -> Interval:
    """The difference seed by seed; seeds that only one of them has are left out."""
    one, other = ours.by_seed, theirs.by_seed
    return mean_interval([one[seed] - other[seed] for seed in one if seed in other])


def gradient_steps(item: CellResult) -> int:
    """Steps of the policies' optimisers in a seed's whole training, mean over seeds.

    Only some iterations may have been logged.
    """
    if item.run is None:
        return 0
    told = item.run.settings
    iterations = item.run.step / (told["num_envs"] * told["rollout"])
    return round(iterations * float(np.nanmean(item.run.series("actor_steps").value)))


def minutes(item: CellResult) -> float:
    """Of training, all processes of the run together."""
    total, last = 0.0, 0.0
    path = item.path / "timing.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        seconds = json.loads(line)["seconds"]
        if seconds < last:  # the run was stopped here and resumed
            total += last
        last = seconds
    return (total + last) / 60
