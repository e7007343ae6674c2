"""What the runs of a task reached as HTML: final table, every seed, references, diagnostics."""

import re
from collections.abc import Sequence

import numpy as np

from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import REFERENCES, Section
from fp3o.reports.figures import results as draw
from fp3o.reports.figures.canvas import colours
from fp3o.reports.figures.diagnostics import panels_of
from fp3o.reports.figures.style import SWAPS
from fp3o.reports.pages.curves import Keep
from fp3o.reports.pages.markup import Html, details, join, svg, table, tag
from fp3o.reports.phrasing import (
    count_text,
    ends_text,
    extra_text,
    number_text,
    reference_text,
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

MOST = 12
"""Diagnostics of so many runs at most go into a page: more make it slow, and nobody reads them."""


def results(part: Section, name: str, keep: Keep | None) -> list[Html]:
    """What the runs of one task reached; names of files begin with `name`."""
    charts = []
    for section in part.headed:
        chart = draw.comparison(section)
        if keep:
            keep(chart, name + FINAL_FILES[section.measure.name])
        charts.append(svg(chart, f"Final {section.measure.title.lower()}s on {part.task}"))
    return [
        tag("div", _final_table(part), _figure(charts, FINAL_CAPTION), class_="pair"),
        _every_seed(part),
        *_order(part),
        *_references(part),
    ]


def how_it_learned(parts: Sequence[tuple[str, Section]], keep: Keep | None) -> list[Html]:
    """Diagnostics of the runs; of many runs those of the best."""
    every = [run for _, part in parts for run in part.runs]
    if not (some := diagnosed([part for _, part in parts])):
        return []
    found = []
    if len(some) < len(every):
        best = f"Of {len(every)} runs the best {len(some)} are here, the same number for each task"
        how = tag("code", "fp3o report DIR")
        found.append(tag("p", f"{best}; ", how, " shows any other.", class_="small"))
    for name, part in parts:
        own = [run for run in part.runs if run in some]
        found += [tag("h3", part.task)] if len(parts) > 1 and own else []
        found += [_diagnostics(run, name, keep, len(every) == 1) for run in own]
    return found


def diagnosed(parts: Sequence[Section]) -> list[RunRecord]:
    """The runs whose diagnostics are shown: all of a few, else the best of each task."""
    if sum(len(part.runs) for part in parts) <= MOST:
        return [run for part in parts for run in part.runs]
    each = max(1, MOST // len(parts))
    return [part.runs[k] for part in parts for k in part.order[:each]][:MOST]


FINAL_FILES = {"won": "win_rates", "return": "comparison"}

FINAL_CAPTION = "Dot and bar: mean and 95 % interval over seeds. Rings: single seeds."

DIAGNOSTICS_CAPTION = (
    "Means over seeds after the last stage of an iteration, unless a title says otherwise; bands: "
    "from the lowest to the highest seed. The condition is FP3O's test that the joint update "
    "improves the team."
)


def slug(text: str) -> str:
    """A name for a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "run"


def _final_table(part: Section) -> Html:
    top, wins = part.order[0], 1 if part.wins else 0
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
            join(dot, run.algorithm), run.sharing, *[run_text(part.wins, run)] * wins,
            score_text(last.interval),
            score_text(best.interval) if best else "–", str(len(last.seeds)),
            count_text(run.step), speed_text(run), "; ".join(notes),
        ])  # fmt: skip
        classes.append("top" if k == top and len(part.runs) > 1 else "")
    for reference in part.references:
        told = [reference_text(own, reference.name) for own in part.headed]
        rows.append([reference.label, "", *told, "", "", "", "", ""])
        classes.append("faint")
    head = ["algorithm", "sharing", *["wins"] * wins, "last", "best"]
    head += ["seeds", "steps", "steps/s", "note"]
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return table(head, rows, words=(0, 1, 7 + wins), classes=classes)


def _every_seed(part: Section) -> Html:
    """The seeds one by one; of battles also the median of the wins, and the other outcomes."""
    small = (
        "IQM: mean of the middle half of the seeds. Percentile bootstraps of few seeds are narrow."
    )
    if part.wins:
        small += " In brackets: standard deviation over seeds."
    tables = [_seed_table(own, part.wins is not None) for own in part.headed]
    return details("Every seed", *tables, tag("p", small, class_="small"), *_outcome_table(part))


def _seed_table(part: Section, battles: bool) -> Html:
    seeds = sorted({seed for score in part.last for seed in score.seeds})
    rows = []
    for run, score in zip(part.runs, part.last, strict=True):
        own = dict(zip(score.seeds, score.values.tolist(), strict=True))
        spread = score.interval.half
        cells = [number_text(own[seed], spread) if seed in own else "–" for seed in seeds]
        cells += [_median(score.values)] * battles
        others = iqm_interval([score.values]), bootstrap_mean(score.values)
        rows.append([run.label, *cells, *map(ends_text, others)])
    title = f"{part.measure.axis}{part.measure.unit and ','}{part.measure.unit}"
    head = [title if battles else "run", *(f"seed {seed}" for seed in seeds)]
    head += [*["median"] * battles, "IQM, bootstrap", "mean, bootstrap"]
    return table(head, rows)


def _median(values: np.ndarray) -> str:
    """`93.8 (4.1)`: the median over seeds and their standard deviation."""
    middle, deviation = median_and_deviation(values)
    return f"{number_text(middle, deviation)} ({number_text(deviation, deviation)})"


def _outcome_table(part: Section) -> list[Html]:
    """What episodes ended with beside return and win, of runs and references."""
    others = [own for name, own in part.outcomes.items() if name != "won"]
    rows = [[run.label, *(run_text(own, run) for own in others)] for run in part.runs]
    for item in part.references:
        rows.append([item.label, *(reference_text(own, item.name) for own in others)])
    classes = [""] * len(part.runs) + ["faint"] * len(part.references)
    head = ["run", *(own.measure.title.lower() for own in others)]
    return [table(head, rows, classes=classes)] if others else []


def _order(part: Section) -> list[Html]:
    """How often a seed of the best run beats one of each other run."""
    if len(part.runs) == 1:
        return []
    first, *rest = part.order
    seeds = [score.values for score in part.lead.last]
    rows = [[part.runs[k].label, _share(improvement(seeds[first], seeds[k]))] for k in rest]
    by = " in wins" if part.lead is part.wins else ""
    head = ["run", f"probability that a seed of {part.runs[first].label} beats one of it{by}"]
    small = "With bootstrap intervals. 0.50: a coin toss. 1.00: all pairs won."
    return [details("How sure is the order?", table(head, rows), tag("p", small, class_="small"))]


def _share(interval: Interval) -> str:
    ends = f" [{interval.low:.2f}, {interval.high:.2f}]" if interval.known else ""
    return f"{interval.centre:.2f}{ends}"


def _figure(charts: Sequence[Html], caption: str, kind: str = "") -> Html:
    return tag("figure", tag("div", *charts, class_=kind), tag("figcaption", caption))


def _references(part: Section) -> list[Html]:
    rows = []
    for item in part.references:
        told = [reference_text(own, item.name, exact=True) for own in part.headed]
        meaning = tag("div", REFERENCES.get(item.name, ("", ""))[1], class_="small wrap")
        rows.append([join(item.label, meaning), *told, count_text(item.episodes)])
    head = ["reference policy", *(own.measure.axis for own in part.headed), "episodes"]
    return [details("What the reference policies are", table(head, rows))] if rows else []


def _diagnostics(run: RunRecord, name: str, keep: Keep | None, only: bool) -> Html:
    chosen = panels_of(run)
    if not chosen:
        return tag("p", f"{run.label}: nothing was logged.", class_="small")
    if keep:
        keep(draw.diagnostics(run), f"{name}diagnostics" + ("" if only else f"_{slug(run.label)}"))
    half = -(-len(chosen) // 2)
    charts = [
        svg(draw.diagnostics(run, some, columns=1), f"Diagnostics of {run.label}")
        for some in (chosen[:half], chosen[half:])
        if some
    ]
    return details(run.label, _figure(charts, DIAGNOSTICS_CAPTION, "grid"), opened=only)
