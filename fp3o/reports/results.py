"""The results of one task as HTML: final table, curves, reference policies, diagnostics."""

import re
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from fp3o.reports import figures as draw
from fp3o.reports.canvas import colours
from fp3o.reports.diagnostics import panels_of
from fp3o.reports.markup import Html, details, join, svg, table, tag
from fp3o.reports.read import Run
from fp3o.reports.scores import REFERENCES, Reference, Section
from fp3o.reports.statistics import Interval, bootstrap_mean, improvement, iqm_interval
from fp3o.reports.style import SWAPS
from fp3o.reports.words import (
    count_text,
    ends_text,
    extra_text,
    number_text,
    score_text,
    speed_text,
)

SPARSE = 8
"""With fewer evaluations than this, the training return is drawn as well."""

Keep = Callable[[Figure, str], object]
"""Called with every figure that is worth a file, and a name for it."""


def results(part: Section, alone: bool, keep: Keep) -> list[Html]:
    """The section of one task; files of several tasks have the task's name in front."""
    name = "" if alone else f"{slug(part.task)}_"
    chart = draw.comparison(part)
    keep(chart, f"{name}comparison")
    image = _figure([svg(chart, f"Final returns on {part.task}")], FINAL_CAPTION)
    return [
        tag("h2", "Results" if alone else part.task),
        tag("div", _final_table(part), image, class_="pair"),
        details("Every seed", _seed_table(part)),
        *_order(part),
        tag("h3", "Learning curves"),
        _curves(part, name, keep),
        tag("h3", "How it learned"),
        *(_diagnostics(run, name, keep, len(part.runs) == 1) for run in part.runs),
    ]


FILES = {"eval_return": "learning_curves", "episode_return": "training_curves"}
FINAL_CAPTION = "Dot and bar: mean and 95 % interval over seeds. Rings: single seeds."
CURVE_CAPTION = (
    "Lines: mean over seeds. Bands: 95 % Student-t interval, from three seeds on. Faint lines: "
    "single seeds. Dashed: reference policies."
)
TRAINING_CAPTION = " Training return: what was seen while exploring."
CUT_CAPTION = " The beginnings of some curves lie below the axis."
DIAGNOSTICS_CAPTION = (
    "Means over seeds after the last stage of an iteration, unless a title says otherwise; bands: "
    "from the lowest to the highest seed. The condition is FP3O's test that the joint update "
    "improves the team."
)


def slug(text: str) -> str:
    """A name for a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "run"


def _final_table(part: Section) -> Html:
    top = max(range(len(part.runs)), key=lambda k: part.last[k].interval.centre)
    groups = draw.panels(part.runs).values()
    hues = {
        run.path: look[0]
        for group in groups
        for run, look in zip(group, colours(group), strict=True)
    }
    rows, classes = [], []
    for k, (run, last, best) in enumerate(zip(part.runs, part.last, part.best, strict=True)):
        dot = tag("span", class_="dot", style=f"background:var({SWAPS[hues[run.path]]})")
        notes = filter(None, [extra_text(run), "" if last.final else f"so far: {last.source}"])
        rows.append([
            join(dot, run.algorithm), run.sharing, score_text(last.interval),
            score_text(best.interval) if best else "–", str(len(last.seeds)),
            count_text(run.step), speed_text(run), "; ".join(notes),
        ])  # fmt: skip
        classes.append("top" if k == top and len(part.runs) > 1 else "")
    for reference in part.references:
        rows.append([reference.label, "", number_text(reference.value), "", "", "", "", ""])
        classes.append("faint")
    head = ["algorithm", "sharing", "last", "best", "seeds", "steps", "steps/s", "note"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table(head, rows, words=(0, 1, 7), classes=classes)


def _seed_table(part: Section) -> Html:
    seeds = sorted({seed for score in part.last for seed in score.seeds})
    rows = []
    for run, score in zip(part.runs, part.last, strict=True):
        own = dict(zip(score.seeds, score.values.tolist(), strict=True))
        spread = score.interval.half
        cells = [number_text(own[seed], spread) if seed in own else "–" for seed in seeds]
        others = iqm_interval([score.values]), bootstrap_mean(score.values)
        rows.append([run.label, *cells, *map(ends_text, others)])
    head = ["run", *(f"seed {seed}" for seed in seeds), "IQM, bootstrap", "mean, bootstrap"]
    small = (
        "IQM: mean of the middle half of the seeds. Percentile bootstraps of few seeds are narrow."
    )
    return join(table(head, rows), tag("p", small, class_="small"))


def _order(part: Section) -> list[Html]:
    """How often a seed of the best run beats one of each other run."""
    if len(part.runs) == 1:
        return []
    order = sorted(range(len(part.runs)), key=lambda k: -part.last[k].interval.centre)
    first = part.last[order[0]].values
    rows = [
        [part.runs[k].label, _share(improvement(first, part.last[k].values))] for k in order[1:]
    ]
    best = part.runs[order[0]].label
    head = ["run", f"probability that a seed of {best} beats one of it"]
    small = "With bootstrap intervals. 0.50: a coin toss. 1.00: all pairs won."
    return [details("How sure is the order?", table(head, rows), tag("p", small, class_="small"))]


def _share(interval: Interval) -> str:
    ends = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval.known else ""
    return f"{interval.centre:.2f}{ends}"


def _curves(part: Section, name: str, keep: Keep) -> Html:
    groups, charts, caption = draw.panels(part.runs), [], CURVE_CAPTION
    sparse = any(run.series("eval_return").step.size < SPARSE for run in part.runs)
    for metric in ("eval_return", "episode_return")[: 1 + sparse]:
        values = [run.series(metric).value for run in part.runs]
        if not any(value.size for value in values):
            continue
        limits = draw.curve_limits(part.runs, part.references, metric)
        together = draw.learning_curves(groups, part.references, metric, limits)
        keep(together, name + FILES[metric])
        for title, runs in groups.items():
            one = {title: runs}
            alone = (
                together
                if len(groups) == 1
                else draw.learning_curves(one, part.references, metric, limits)
            )
            charts.append(svg(alone, f"{draw.METRICS[metric]} over steps {title}"))
        caption += TRAINING_CAPTION if metric == "episode_return" else ""
        if any((value < limits[0]).any() for value in values) and CUT_CAPTION not in caption:
            caption += CUT_CAPTION
    if not charts:
        return tag("p", "Nothing was logged during training.", class_="small")
    return _figure([*charts, *_references(part.references)], caption, "grid")


def _figure(charts: Sequence[Html], caption: str, kind: str = "") -> Html:
    return tag("figure", tag("div", *charts, class_=kind), tag("figcaption", caption))


def _references(references: Sequence[Reference]) -> list[Html]:
    rows = []
    for item in references:
        error = 1.96 * item.stderr
        value = score_text(Interval(item.value, item.value - error, item.value + error, 1))
        meaning = tag("div", REFERENCES.get(item.name, ("", ""))[1], class_="small wrap")
        rows.append([join(item.label, meaning), value, count_text(item.episodes)])
    head = ["reference policy", "return per agent", "episodes"]
    return [table(head, rows)] if rows else []


def _diagnostics(run: Run, name: str, keep: Keep, only: bool) -> Html:
    chosen = panels_of(run)
    if not chosen:
        return tag("p", f"{run.label}: nothing was logged.", class_="small")
    keep(draw.diagnostics(run), f"{name}diagnostics" + ("" if only else f"_{slug(run.label)}"))
    half = -(-len(chosen) // 2)
    charts = [
        svg(draw.diagnostics(run, some, columns=1), f"Diagnostics of {run.label}")
        for some in (chosen[:half], chosen[half:])
        if some
    ]
    return details(run.label, _figure(charts, DIAGNOSTICS_CAPTION, "grid"), opened=only)
