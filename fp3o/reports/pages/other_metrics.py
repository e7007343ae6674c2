"""Custom metrics on a page: a table of the last values, and a curve per metric."""

from collections.abc import Sequence

from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import TaskScores, metric_key
from fp3o.reports.figures.results import curves_figure, group_by_sharing
from fp3o.reports.pages.curves import SaveFigure
from fp3o.reports.pages.markup import Html, html_table, inline_svg, tag
from fp3o.reports.pages.results import MOST_RUNS, file_name
from fp3o.reports.phrasing import run_text

MOST_CURVES = 12
"""Maximum number of curves per task."""

CAPTION = (
    "Mean over seeds ± half the width of its 95 % interval: final evaluations of episode metrics, "
    "the last tenth of training of others. Metrics with an entry per stage are those after the "
    "last stage, metrics per agent are means over agents."
)

BEST_MARKED = " The best mean is marked where a metric says which values are better."


def other_metrics_section(
    tasks: Sequence[tuple[str, TaskScores]], save: SaveFigure | None
) -> list[Html]:
    """Metrics that were declared, or that fp3o does not know; nothing if there are none."""
    content = []
    for prefix, task in tasks:
        if metrics := [*task.other_metrics.values()]:
            content += [tag("h3", task.task)] if len(tasks) > 1 else []
            content += [_table(task.runs[:MOST_RUNS], metrics)]
            charts = [_curve(scores, prefix, save) for scores in metrics[:MOST_CURVES]]
            content += [tag("div", *charts, class_="grid")]
    marked = any(x.measure.better for _, task in tasks for x in task.other_metrics.values())
    caption = tag("p", CAPTION + BEST_MARKED * marked, class_="small")
    return [*content, caption] if content else []


def _table(runs: Sequence[RunRecord], metrics: Sequence[TaskScores]) -> Html:
    """One row per metric, one column per run."""
    rows = []
    for scores in metrics:
        best = _best(scores) if len(runs) > 1 else None
        texts = {run.path: run_text(scores, run) for run in runs}
        cells = [tag("b", text) if path == best else text for path, text in texts.items()]
        rows.append([scores.measure.title, *cells])
    return html_table(["metric", *(run.label for run in runs)], rows)


def _best(scores: TaskScores) -> object:
    """The path of the run with the best mean; None if nobody has said what is better."""
    sign = {"higher": 1.0, "lower": -1.0, None: 0.0}[scores.measure.better]
    means = {
        run.path: sign * score.interval.centre
        for run, score in zip(scores.runs, scores.last, strict=True)
    }
    return max(means, key=lambda path: means[path]) if sign else None


def _curve(scores: TaskScores, prefix: str, save: SaveFigure | None) -> Html:
    """The metric over training, of the runs that logged it."""
    key = metric_key(scores.runs[0], scores.measure)
    figure = curves_figure(group_by_sharing(scores.runs), (), key, measure=scores.measure)
    if save:
        save(figure, f"{prefix}metric_{file_name(scores.measure.name)}")
    return inline_svg(figure, f"{scores.measure.title} over steps on {scores.task}")
