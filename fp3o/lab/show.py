"""What most experiments show: scores beside the paper's, differences seed by seed, a verdict."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fp3o.lab.grid import Cell, Findings, Found, Shown
from fp3o.lab.published import Place, Published
from fp3o.reports.canvas import PANEL, laid_out, styled
from fp3o.reports.exhibit import Grid, Picture
from fp3o.reports.figures import learning_curves
from fp3o.reports.measures import WON
from fp3o.reports.statistics import Interval, mean_band, mean_interval, smac_win_rate
from fp3o.reports.style import FAINT, PALETTE
from fp3o.reports.words import count_text, number_text, score_text

Papers = Mapping[Place, Published]


class Contrast(NamedTuple):
    """A claim about two variants, to be looked at in every task and sharing."""

    ours: str
    theirs: str
    expected: Literal["better", "equal", "worse"] = "better"
    """What the paper says `ours` is."""


class Verdict(NamedTuple):
    """In how many cells a variant was better, worse, and not told apart."""

    better: int
    worse: int
    open: int


def scores(
    contrast: Contrast | None = None,
    papers: Papers | None = None,
    base: str = "",
    said: Callable[[Findings], Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> Callable[[Findings], Shown]:
    """How an experiment about scores is shown: one table, dots, curves, and the contrast."""

    def show(findings: Findings) -> Shown:
        trained = [item for item in findings if item.run]
        if not trained:
            return Shown(["Nothing is finished yet."])
        verdict = [*judged(trained, contrast)] if contrast else []
        verdict += said(trained) if said else []
        table = score_table(trained, papers or {}, base or (contrast.theirs if contrast else ""))
        pictures = [dots(trained, papers or {}), *curves(trained)]
        return Shown(verdict, [table], pictures, [*caveats(trained), *notes])

    return show


# Tables -----------------------------------------------------------------------------------------


def score_table(findings: Findings, papers: Papers, base: str) -> Grid:
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
    return Grid("Scores", head, rows, CAPTION + (WINS_CAPTION if wins else ""), words=3 + more)


CAPTION = (
    "Ours: the last policy of every seed, mean ± half of the 95 % interval over seeds (Student's "
    "t). The paper's: as printed, with its standard deviation. Differences are paired by seed. "
    "Gradient steps are those of a seed's policies, of all turns together; minutes those of all "
    "seeds together, evaluations included."
)
WINS_CAPTION = (
    " Wins in percent. Median of last ten: per seed the median of its last ten evaluations, then "
    "the median over seeds, with the standard deviation over all of these evaluations. The "
    "paper's win rates are of StarCraft II, ours of a simulator."
)


def steps(item: Found) -> str:
    """Environment steps of a seed."""
    return count_text(item.run.step) if item.run else "–"


def bold(item: Found) -> str:
    """The score, its centre in bold."""
    text = score_text(mean_interval(item.seeds), item.measure.unit)
    centre, mark, rest = text.partition(" ±")
    return f"**{centre}**{mark}{rest}"


def last_ten(item: Found) -> str:
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


def difference(item: Found, findings: Findings, base: str) -> str:
    """How much more a cell reaches than the base under the same task and sharing."""
    other = rival(item, findings, base)
    if other is None or other is item:
        return "–"
    interval = paired(item, other)
    text = score_text(interval, item.measure.unit)
    return text if text.startswith(("-", "–")) else f"+{text}"


def rival(item: Found, findings: Findings, variant: str) -> Found | None:
    """The cell of another variant in the same place."""
    place = item.cell.task, item.cell.sharing, variant, item.cell.more
    return next((x for x in findings if (*x.place, x.cell.more) == place), None)


def paired(ours: Found, theirs: Found) -> Interval:
    """The difference seed by seed; seeds that only one of them has are left out."""
    size = min(len(ours.seeds), len(theirs.seeds))
    return mean_interval(ours.seeds[:size] - theirs.seeds[:size])


def gradient_steps(item: Found) -> int:
    """Steps of the policies' optimisers in a seed's whole training."""
    return int(np.nansum(item.run.series("actor_steps").value[0])) if item.run else 0


def minutes(item: Found) -> float:
    """Of training, all processes of the run together."""
    total, last = 0.0, 0.0
    path = item.path / "timing.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        seconds = json.loads(line)["seconds"]
        if seconds < last:  # the run was stopped here and resumed
            total += last
        last = seconds
    return (total + last) / 60


# Words ------------------------------------------------------------------------------------------


def judged(findings: Findings, contrast: Contrast) -> Sequence[str]:
    """Two sentences: what was found, and whether that is what the paper says."""
    found = tally(findings, contrast.ours, contrast.theirs)
    total = sum(found)
    if not total:
        return ["The cells that would answer are not finished."]
    first = (
        f"{contrast.ours} is better than {contrast.theirs} in {found.better} of {total} "
        f"{'cell' if total == 1 else 'cells'}, worse in {found.worse}, and not told apart in "
        f"{found.open} (95 % intervals of the differences, paired by seed)."
    )
    return first, answer(found, contrast.expected)


def tally(findings: Findings, ours: str, theirs: str) -> Verdict:
    """How a variant did against another one, cell by cell."""
    counts = [0, 0, 0]
    for item in findings:
        other = rival(item, findings, theirs)
        if item.cell.variant != ours or other is None:
            continue
        interval = paired(item, other)
        known = interval.known
        counts[0 if known and interval.low > 0 else 1 if known and interval.high < 0 else 2] += 1
    return Verdict(*counts)


def answer(found: Verdict, expected: str) -> str:
    """Whether the paper's claim holds in these cells."""
    total = sum(found)
    if expected == "equal":
        holds, fails = found.open > total / 2, found.better + found.worse > total / 2
    else:
        good, bad = (found.better, found.worse)[:: 1 if expected == "better" else -1]
        holds, fails = good > total / 2 and not bad, bad > good
    if holds:
        return "What the paper says holds here."
    if fails:
        return "What the paper says does not hold here."
    return "What the paper says is neither confirmed nor refuted here."


def caveats(findings: Findings) -> list[str]:
    """What a reader must know before trusting a number."""
    notes = []
    runs = [item.run for item in findings if item.run]
    few = min(len(run.seeds) for run in runs)
    if few < 5:
        notes.append(f"Some cells have only {few} seeds: their intervals are wide or missing.")
    short = [
        f"{item.cell.label} ({count_text(item.run.step)} of {count_text(item.cell.plan.steps)})"
        for item in findings
        if item.run and item.run.step < item.cell.plan.steps
    ]
    if short:
        more = f" and {len(short) - 6} more" if len(short) > 6 else ""
        notes.append(f"Fewer steps than planned: {', '.join(short[:6])}{more}.")
    return notes


# Figures ----------------------------------------------------------------------------------------


def curves(findings: Findings) -> Iterable[Picture]:
    """Learning curves of every task, a panel a sharing."""
    for task in dict.fromkeys(item.cell.task for item in findings):
        own = [item for item in findings if item.cell.task == task]
        metric = f"eval_{own[0].measure.name}"
        groups = {
            sharing: [item.run for item in own if item.run and item.cell.sharing == sharing]
            for sharing in dict.fromkeys(item.cell.sharing for item in own)
        }
        words = ", ".join(groups)
        yield Picture(
            f"curves_{task.split('/')[-1]}", learning_curves(groups, metric=metric),
            f"{task}: {own[0].measure.title.lower()} over environment steps ({words}); mean and "
            "95 % band over seeds",
        )  # fmt: skip


def dots(findings: Findings, papers: Papers) -> Picture:
    """Every cell's score with its interval, and the paper's as a hollow diamond."""
    tasks = [*dict.fromkeys(item.cell.task for item in findings)]
    columns = min(3, len(tasks))
    lines = max(len(_lines(findings, task)) for task in tasks)
    height = (0.8 + 0.22 * lines) * -(-len(tasks) // columns) + 0.3
    with styled():
        figure = Figure(figsize=(PANEL[0] * (0.35 + 0.65 * columns), height), layout="constrained")
        grid = figure.subplots(-(-len(tasks) // columns), columns, squeeze=False).ravel()
        for axis in grid[len(tasks) :]:
            axis.set_visible(False)
        for axis, task in zip(grid, tasks, strict=False):
            _dots(axis, task, [item for item in findings if item.cell.task == task], papers)
        words = "Scores of all cells: mean, 95 % interval, seeds as rings"
        caption = f"{words}; diamonds are the paper's" if papers else words
        return Picture("scores", laid_out(figure), f"{caption}.")


def _lines(findings: Findings, task: str) -> list[tuple[str, str, str]]:
    """The lines of a panel: a heading a sharing, then its variants."""
    own = [item.cell for item in findings if item.cell.task == task]
    lines = []
    for sharing in dict.fromkeys(cell.sharing for cell in own):
        lines.append((sharing, "", ""))
        lines += [_line_of(cell) for cell in own if cell.sharing == sharing]
    return lines


def _line_of(cell: Cell) -> tuple[str, str, str]:
    return cell.sharing, cell.variant, cell.more


def _dots(axis: Axes, task: str, own: Findings, papers: Papers) -> None:
    lines = _lines(own, task)
    names = []
    for height, (sharing, variant, more) in enumerate(lines):
        names.append(f"{variant} {more}".strip() if variant else sharing)
        item = next(
            (
                x
                for x in own
                if (x.cell.sharing, x.cell.variant, x.cell.more) == (sharing, variant, more)
            ),
            None,
        )
        if item is None:
            continue
        colour = colour_of(variant, [x[1] for x in lines])
        interval = mean_interval(item.seeds)
        rings = np.full(item.seeds.size, height + 0.22)
        axis.scatter(item.seeds, rings, s=9, facecolors="none", edgecolors=colour, lw=0.7)
        if interval.known:
            ends = np.clip([interval.low, interval.high], *item.measure.ends)
            axis.plot(ends, [height - 0.1] * 2, color=colour, lw=2.2)
        axis.plot([interval.centre], [height - 0.1], "o", color=colour, ms=4)
        if known := papers.get(item.place):
            axis.plot([known.centre], [height - 0.1], "D", mfc="none", mec=FAINT, ms=6, mew=1.1)
    axis.set_yticks(range(len(lines)), names)
    for label, line in zip(axis.get_yticklabels(), lines, strict=True):
        label.set_fontweight("normal" if line[1] else "bold")
        label.set_fontsize(8)
    axis.set_ylim(len(lines) - 0.4, -0.8)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    axis.set_title(task)
    axis.set_xlabel(own[0].measure.axis + (" (%)" if own[0].measure.share else ""))


def colour_of(variant: str, among: Sequence[str]) -> str:
    """An algorithm's own colour; other variants take the next ones."""
    if variant.lower() in PALETTE:
        return PALETTE[variant.lower()][0]
    others = [x for x in dict.fromkeys(among) if x and x.lower() not in PALETTE]
    spare = [light for name, (light, _) in PALETTE.items() if name]
    return spare[(others.index(variant) + 1) % len(spare)]


def lines_of(
    panels: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]],
    across: str,
    up: str,
    log: tuple[bool, bool] = (False, False),
) -> Figure:
    """Panel -> name -> (x, values of every seed (s, x)): lines with 95 % intervals over seeds."""
    with styled():
        width = PANEL[0] if len(panels) == 1 else 0.72 * PANEL[0] * len(panels)
        figure = Figure(figsize=(width, PANEL[1]), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        names = [name for lines in panels.values() for name in lines]
        for axis, (title, lines) in zip(axes, panels.items(), strict=True):
            for name, (x, value) in lines.items():
                _line(axis, x, np.atleast_2d(value), name, colour_of(name, names))
            axis.set_title(title)
            axis.set_xlabel(across)
            axis.set_xscale("log" if log[0] else "linear")
            axis.set_yscale("log" if log[1] else "linear")
        axes[0].set_ylabel(up)
        handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
        if handles:
            figure.legend(
                list(handles.values()), list(handles), loc="outside lower center",
                ncols=min(4, len(handles)), fontsize=8,
            )  # fmt: skip
        return laid_out(figure)


def _line(axis: Axes, x: np.ndarray, value: np.ndarray, name: str, colour: str) -> None:
    mean, low, high = mean_band(value)
    axis.plot(x, mean, color=colour, label=name, marker="o", ms=4)
    if len(value) > 2:
        axis.fill_between(x, low, high, color=colour, alpha=0.16, lw=0)


def number_rows(values: Mapping[str, Iterable[float]]) -> list[list[str]]:
    """Names and numbers as lines of a table."""
    return [[name, *(number_text(x) for x in row)] for name, row in values.items()]
