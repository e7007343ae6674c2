"""Table of scores: ours, the paper's, differences, cost."""

import numpy as np

from fp3o.experiments.framework.grid import CellResult, CellResults
from fp3o.experiments.framework.paper_results import PaperScore, PaperScores
from fp3o.experiments.framework.scales import paper_steps
from fp3o.reports.data.measures import MEASURES, RETURN, WIN_RATE, Measure
from fp3o.reports.data.timing import training_seconds
from fp3o.reports.experiment_report import ResultTable
from fp3o.reports.phrasing import DASH, count_text, score_text
from fp3o.reports.stats.intervals import (
    Interval,
    mean_interval,
    mean_over_training,
    smac_win_rate,
)

CELLS_CAPTION = (
    "Ours: the last policy of every seed, mean ± half of the 95 % interval over seeds (Student's "
    "t). Area under the curve: mean of the evaluations over training, by trapezoids over steps. "
    "Paper: as printed, with its standard deviation. Gradient steps: policy updates per seed, "
    "summed over stages. Minutes: all seeds together, including evaluations (not comparable where "
    "runs shared a machine)."
)

WINS_CAPTION = (
    " Win rates in percent. Median of last ten: per seed the median of its last ten evaluations, "
    "then the median over seeds, with the standard deviation over all of these evaluations. The "
    "paper's win rates are in StarCraft II, ours in a simulator."
)

KILLS_CAPTION = (
    " Kills, per battle, replace win rates where no variant wins more battles than random actions: "
    "in our scores, their differences and the area under the curve."
)

POLICY_CAPTION = (
    "Mean over agents ± half of the 95 % interval over seeds. KL: divergence of the policies after "
    "an iteration from those before it, mean over the halves of training. Entropy: in the last "
    "tenth of training."
)

BATTLES_CAPTION = (
    "Last policies, means per battle ± half of the 95 % interval over seeds. Damage dealt: points "
    "of health and shields that enemies lost. Healed: points that they got back; the reward counts "
    "a step in which this is more as damage, too. Length: in steps."
)


def score_table(results: CellResults, paper: PaperScores) -> ResultTable:
    """One row per cell: our score, the area under its curve, the paper's score, the cost."""
    wins = _has_wins(results)
    detail = any(item.cell.detail for item in results)
    head = ["task", "sharing", "variant", *[""] * detail, "seeds", "steps", "ours"]
    head += [*["median of last ten"] * wins, "area under the curve", *["paper"] * bool(paper)]
    rows = []
    for item in results:
        row = [*item.key, *[item.cell.detail] * detail, str(item.seeds.size)]
        row += [steps_text(item), bold_score(item), *[_last_ten(item)] * wins, _area_text(item)]
        row += [_paper_text(paper.get(item.key), item.task_measure.unit)] * bool(paper)
        rows.append([*row, f"{gradient_steps(item):,}", _minutes_text(item)])
    judged = any(item.judged_by for item in results)
    caption = CELLS_CAPTION + WINS_CAPTION * wins + KILLS_CAPTION * judged
    head += ["gradient steps", "minutes"]
    return ResultTable("Scores", head, rows, caption, text_columns=3 + detail)


def battle_table(results: CellResults) -> list[ResultTable]:
    """What happened in the battles, one row per cell; empty if the tasks are no battles."""
    measures = [measure for measure in MEASURES.values() if measure is not RETURN]
    battles = [item for item in results if item.task_measure is WIN_RATE]
    rows = [[*item.key, item.cell.detail, *(_mean(item, x) for x in measures)] for item in battles]
    head = ["task", "sharing", "variant", "", *(measure.title.lower() for measure in measures)]
    if not any(item.cell.detail for item in battles):
        head, rows = (head[:3] + head[4:]), [row[:3] + row[4:] for row in rows]
    columns = len(head) - len(measures)
    table = ResultTable("What happened in a battle", head, rows, BATTLES_CAPTION, columns)
    return [table] if battles else []


def policy_table(results: CellResults) -> list[ResultTable]:
    """How far the policies move and how random they stay; empty if no cell has logged it."""
    rows = []
    for item in results:
        divergence, entropy = (_last_stage(item, name) for name in ("kl", "entropy"))
        if divergence.size and entropy.size:
            half = divergence.shape[1] // 2
            parts = divergence[:, :half], divergence[:, half:], entropy[:, -1:]
            texts = [_small_text(mean_interval(np.nanmean(part, axis=1))) for part in parts]
            rows.append([*item.key, item.cell.detail, *texts])
    head = ["task", "sharing", "variant", "", "KL, first half", "KL, second half", "entropy"]
    if not any(row[3] for row in rows):
        head, rows = (head[:3] + head[4:]), [row[:3] + row[4:] for row in rows]
    table = ResultTable("Change of the policies", head, rows, POLICY_CAPTION, len(head) - 3)
    return [table] if rows else []


def _small_text(interval: Interval) -> str:
    """An interval; a small one with powers of ten."""
    if abs(interval.centre) >= 0.001 or not interval.known:
        return score_text(interval)
    return f"{interval.centre:.1e} ± {interval.half:.0e}"


def _last_stage(item: CellResult, name: str) -> np.ndarray:
    """A metric per agent after the last stage of an iteration, mean over agents: (seeds, t)."""
    value = item.run.series(name, -1).value if item.run else np.empty((0, 0))
    value = value.mean(-1) if value.ndim == 3 else value
    known = np.isfinite(value).all(0) & (len(value) > 0)
    return value[:, known] if known.sum() > 1 else np.empty((0, 0))


def _has_wins(results: CellResults) -> bool:
    return any(item.task_measure is WIN_RATE for item in results)


def _mean(item: CellResult, measure: Measure) -> str:
    """Mean of a measure over the last policies of a cell."""
    rows = item.run.results["last"] if item.run else []
    return score_text(mean_interval([measure.value(row) for row in rows]), measure.unit)


def steps_text(item: CellResult) -> str:
    """Environment steps per seed."""
    return count_text(item.run.step) if item.run else DASH


def planned_steps(item: CellResult) -> int:
    """Steps per seed in the cell's configuration, in whole iterations."""
    return item.cell.config.iterations * item.cell.config.steps_per_iteration


def published_steps(item: CellResult) -> int:
    """Steps per seed of the paper's runs of the cell's task and sharing."""
    return paper_steps(item.cell.config.task, item.cell.sharing)


def bold_score(item: CellResult) -> str:
    """The score with its mean in bold; a dash if no seed finished an episode."""
    text = score_text(mean_interval(item.seeds), item.measure.unit)
    centre, mark, rest = text.partition(" ±")
    return text if text == DASH else f"**{centre}**{mark}{rest}"


def _last_ten(item: CellResult) -> str:
    """Median win rate of the last ten evaluations."""
    value = item.run.series("eval_won").value if item.run else np.empty(0)
    if item.task_measure is not WIN_RATE or not value.size:
        return DASH
    rate = smac_win_rate(100 * value)
    return f"{rate.median:.1f} ({rate.pooled_deviation:.1f}) %"


def area_under_curve(item: CellResult) -> dict[int, float]:
    """Mean over training of the evaluations of every seed; seeds with less than two left out."""
    if item.run is None:
        return {}
    step, value = item.run.series(f"eval_{item.measure.name}")
    areas = mean_over_training(step, item.measure.scale * value)
    known = zip(sorted(item.run.metrics), areas.tolist(), strict=False)
    return {seed: area for seed, area in known if np.isfinite(area)}


def _area_text(item: CellResult) -> str:
    areas = [*area_under_curve(item).values()]
    return score_text(mean_interval(areas), item.measure.unit) if areas else DASH


def _paper_text(score: PaperScore | None, unit: str = "") -> str:
    return f"{score.centre:g} ± {score.deviation:g}{unit}" if score else DASH


def same_cell(item: CellResult, results: CellResults, variant: str) -> CellResult | None:
    """The cell of another variant with the same task, sharing and detail."""
    key = item.cell.task, item.cell.sharing, variant, item.cell.detail
    return next((x for x in results if (*x.key, x.cell.detail) == key), None)


def gradient_steps(item: CellResult) -> int:
    """Steps of the policy optimiser per seed over training, mean over seeds.

    Extrapolated from the logged iterations.
    """
    value = item.run.series("actor_steps").value if item.run else np.empty(0)
    if item.run is None or not value.size:
        return 0
    settings = item.run.settings
    iterations = item.run.step / (settings["num_envs"] * settings["rollout"])
    return round(iterations * float(np.nanmean(value)))


def failed_condition(item: CellResult) -> tuple[int, int]:
    """In how many of the logged iterations, over all seeds, FP3O's condition failed."""
    value = item.run.series("condition_holds").value if item.run else np.empty(0)
    known = value[np.isfinite(value)]
    return int((known < 0.5).sum()), int(known.size)


def _minutes_text(item: CellResult) -> str:
    minutes = training_minutes(item)
    return f"{minutes:.1f}" if minutes else DASH


def training_minutes(item: CellResult) -> float:
    """Minutes of training over all processes of the run."""
    return training_seconds(item.path) / 60
