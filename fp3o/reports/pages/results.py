"""Results of the runs on a task as HTML: final table, seeds, baselines, diagnostics."""

import re
from collections.abc import Sequence

import numpy as np

from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import Score, TaskScores
from fp3o.reports.figures.canvas import line_styles
from fp3o.reports.figures.diagnostics import diagnostic_panels, diagnostics_figure
from fp3o.reports.figures.results import group_by_sharing, scores_figure
from fp3o.reports.figures.style import css_colour
from fp3o.reports.pages.curves import SaveFigure
from fp3o.reports.pages.markup import Html, details, html_table, inline_svg, join_html, tag
from fp3o.reports.phrasing import (
    DASH,
    baseline_text,
    count_text,
    extra_text,
    interval_text,
    number_text,
    run_text,
    score_text,
    speed_text,
)
from fp3o.reports.stats.intervals import (
    Interval,
    bootstrap_mean,
    improvement,
    iqm_interval,
    median_and_deviation,
)

MOST_RUNS = 12
"""Maximum number of runs whose diagnostics are on a page: more would make it slow."""

SCORE_FILES = {"won": "win_rates", "return": "comparison"}

SCORES_CAPTION = "Dot and bar: mean and 95 % interval over seeds. Circles: single seeds."

DIAGNOSTICS_CAPTION = (
    "Means over seeds after the last stage of an iteration, unless a title says otherwise; bands "
    "span the lowest and the highest seed. The condition is FP3O's test that the joint update "
    "improves the joint policy."
)


def task_results(task: TaskScores, prefix: str, save: SaveFigure | None) -> list[Html]:
    """Final results of the runs on one task; names of files start with `prefix`."""
    charts = []
    for scores in task.main_measures:
        figure = scores_figure(scores)
        if save:
            save(figure, prefix + SCORE_FILES[scores.measure.name])
        charts.append(inline_svg(figure, f"Final {scores.measure.title.lower()}s on {task.task}"))
    return [
        tag("div", _final_table(task), _figure(charts, SCORES_CAPTION), class_="pair"),
        *_episode_metrics(task),
        _every_seed(task),
        *_ranking(task),
        *_baselines(task),
    ]


def diagnostics_section(
    tasks: Sequence[tuple[str, TaskScores]], save: SaveFigure | None
) -> list[Html]:
    """Diagnostics of the runs; of many runs, those of the best."""
    every = [run for _, task in tasks for run in task.runs]
    if not (chosen := diagnosed_runs([task for _, task in tasks])):
        return []
    content = []
    if len(chosen) < len(every):
        text = f"The best {len(chosen)} of {len(every)} runs, the same number per task"
        command = tag("code", "fp3o report DIR")
        content.append(tag("p", f"{text}; ", command, " shows any other.", class_="small"))
    for prefix, task in tasks:
        members = [run for run in task.runs if run in chosen]
        content += [tag("h3", task.task)] if len(tasks) > 1 and members else []
        content += [_diagnostics(run, prefix, save, len(every) == 1) for run in members]
    return content


def diagnosed_runs(tasks: Sequence[TaskScores]) -> list[RunRecord]:
    """The runs whose diagnostics are shown: all if they are few, else the best per task."""
    if sum(len(task.runs) for task in tasks) <= MOST_RUNS:
        return [run for task in tasks for run in task.runs]
    each = max(1, MOST_RUNS // len(tasks))
    return [task.runs[k] for task in tasks for k in task.order[:each]][:MOST_RUNS]


def file_name(text: str) -> str:
    """A text as the stem of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "run"


def _final_table(task: TaskScores) -> Html:
    top, wins = task.order[0], 1 if task.wins else 0
    colours = {
        run.path: css_colour(style.colour, style.dark)
        for group in group_by_sharing(task.runs).values()
        for run, style in zip(group, line_styles(group), strict=True)
    }
    rows, classes = [], []
    for k, run in enumerate(task.runs):
        dot = tag("span", class_="dot", style=f"background:{colours[run.path]}")
        rows.append([join_html(dot, run.algorithm), *_final_row(task, k)])
        classes.append("top" if k == top and len(task.runs) > 1 else "")
    for baseline in task.baselines:
        values = [baseline_text(scores, baseline.name) for scores in task.main_measures]
        rows.append([baseline.title, "", *values, "", "", "", "", ""])
        classes.append("faint")
    head = ["algorithm", "sharing", *["wins"] * wins, "last", "best"]
    head += ["seeds", "steps", "steps/s", "note"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return html_table(head, rows, text_columns=(0, 1, 7 + wins), classes=classes)


def _final_row(task: TaskScores, k: int) -> list[str]:
    """Cells of a run in the final table, after its algorithm."""
    run, last, best = task.runs[k], task.last[k], task.best[k]
    notes = filter(None, [extra_text(run), "" if last.final else f"so far: {last.source}"])
    return [
        run.sharing, *[run_text(task.wins, run)] * bool(task.wins), score_text(last.interval),
        score_text(best.interval) if best else DASH, str(len(last.seeds)),
        count_text(run.step), speed_text(run), "; ".join(notes),
    ]  # fmt: skip


def _every_seed(task: TaskScores) -> Html:
    """Scores per seed; for battles also medians of the win rate."""
    caption = (
        "IQM: mean of the middle half of the seeds. Percentile bootstraps of few seeds are narrow."
    )
    if task.wins:
        caption += " In brackets: standard deviation over seeds."
    tables = [_seed_table(scores, task.wins is not None) for scores in task.main_measures]
    notes = tag("p", caption, class_="small")
    return details("Every seed", *tables, notes)


def _seed_table(scores: TaskScores, battles: bool) -> Html:
    seeds = sorted({seed for score in scores.last for seed in score.seeds})
    rows = []
    for run, score in zip(scores.runs, scores.last, strict=True):
        cells = _seed_cells(score, seeds)
        cells += [_median(score.values)] * battles
        intervals = iqm_interval([score.values]), bootstrap_mean(score.values)
        rows.append([run.label, *cells, *map(interval_text, intervals)])
    measure = scores.measure
    title = f"{measure.axis}{measure.unit and ','}{measure.unit}"
    head = [title if battles else "run", *(f"seed {seed}" for seed in seeds)]
    head += [*["median"] * battles, "IQM, bootstrap", "mean, bootstrap"]
    return html_table(head, rows)


def _seed_cells(score: Score, seeds: Sequence[int]) -> list[str]:
    values = dict(zip(score.seeds, score.values.tolist(), strict=True))
    spread = score.interval.half
    return [number_text(values[seed], spread) if seed in values else DASH for seed in seeds]


def _median(values: np.ndarray) -> str:
    """`93.8 (4.1)`: median and standard deviation over seeds."""
    middle, deviation = median_and_deviation(values)
    return f"{number_text(middle, deviation)} ({number_text(deviation, deviation)})"


def _episode_metrics(task: TaskScores) -> list[Html]:
    """What happened in an episode, of tasks that measure more than wins: runs and baselines."""
    if not task.episode_metrics.keys() - {"won", "length"}:
        return []
    columns = [*task.episode_metrics.values()]
    rows = [[run.label, *(run_text(scores, run) for scores in columns)] for run in task.runs]
    for item in task.baselines:
        rows.append([item.title, *(baseline_text(scores, item.name) for scores in columns)])
    classes = [""] * len(task.runs) + ["faint"] * len(task.baselines)
    measures = [scores.measure for scores in columns]
    table = html_table(["run", *(x.title.lower() for x in measures)], rows, classes=classes)
    meanings = [f"{x.title}: {x.axis}" for x in measures if x.title.lower() != x.axis]
    caption = tag("p", f"Last policies. {'; '.join(meanings)}.", class_="small")
    what = "a battle" if task.wins else "an episode"
    return [details(f"What happened in {what}", table, caption, opened=True)]


def _ranking(task: TaskScores) -> list[Html]:
    """How often a seed of the best run is better than one of each other run."""
    if len(task.runs) == 1:
        return []
    first, *rest = task.order
    ranked = zip(task.ranking.runs, task.ranking.last, strict=True)
    seeds = {run.path: score.values for run, score in ranked}
    best = seeds[task.runs[first].path]
    rows = [
        [task.runs[k].label, _share_text(improvement(best, seeds[task.runs[k].path]))] for k in rest
    ]
    by = " in wins" if task.ranking is task.wins else ""
    head = ["run", f"probability that a seed of {task.runs[first].label} is better{by}"]
    caption = tag("p", "With bootstrap intervals. 0.50: no difference.", class_="small")
    return [details("How certain is the order?", html_table(head, rows), caption)]


def _share_text(interval: Interval) -> str:
    ends = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval.known else ""
    return f"{interval.centre:.2f}{ends}"


def _figure(charts: Sequence[Html], caption: str, style: str = "") -> Html:
    return tag("figure", tag("div", *charts, class_=style), tag("figcaption", caption))


def _baselines(task: TaskScores) -> list[Html]:
    rows = []
    for item in task.baselines:
        values = [baseline_text(x, item.name, with_error=True) for x in task.main_measures]
        summary = tag("div", item.summary, class_="small wrap")
        rows.append([join_html(item.title, summary), *values, count_text(item.episodes)])
    head = ["baseline", *(scores.measure.axis for scores in task.main_measures), "episodes"]
    return [details("Baselines (scripted policies)", html_table(head, rows))] if rows else []


def _diagnostics(run: RunRecord, prefix: str, save: SaveFigure | None, only: bool) -> Html:
    panels = diagnostic_panels(run)
    if not panels:
        return tag("p", f"{run.label}: no diagnostics were logged.", class_="small")
    if save:
        suffix = "" if only else f"_{file_name(run.label)}"
        save(diagnostics_figure(run), f"{prefix}diagnostics{suffix}")
    half = -(-len(panels) // 2)
    charts = [
        inline_svg(diagnostics_figure(run, some, columns=1), f"Diagnostics of {run.label}")
        for some in (panels[:half], panels[half:])
        if some
    ]
    return details(run.label, _figure(charts, DIAGNOSTICS_CAPTION, "grid"), opened=only)
