"""The pages of an experiment: one to read, one for a documentation site, tables for a paper.

    write_exhibit(exhibit, Path("results/mpe"))

writes `report.html`, `results.md`, `tables.tex` and `figures/`.
"""

from collections.abc import Sequence
from pathlib import Path

from fp3o.reports.data.record import RunRecord, arranged
from fp3o.reports.data.scores import sections
from fp3o.reports.experiment_report import CaptionedFigure, ExperimentReport, Failure, ResultTable
from fp3o.reports.figures.canvas import save
from fp3o.reports.pages.curves import learning_curves
from fp3o.reports.pages.inline import rendered
from fp3o.reports.pages.latex import tables
from fp3o.reports.pages.markdown import markdown
from fp3o.reports.pages.markup import Html, details, join, svg, table, tag
from fp3o.reports.pages.results import MOST, results
from fp3o.reports.pages.run_page import (
    Chapter,
    caveats,
    document,
    insight,
    origins,
    settings,
    with_names,
)
from fp3o.reports.phrasing import reason_text


def write_exhibit(exhibit: ExperimentReport, folder: Path) -> Path:
    """Write all pages and figures of an exhibit; the path of the one to read.

    Args:
        exhibit: what the experiment shows; it may lack runs, tables and figures.
        folder: where `report.html`, `results.md`, `tables.tex` and `figures/` go.
    """
    for picture in exhibit.pictures:
        if not picture.name or Path(picture.name).name != picture.name:
            raise ValueError(f"{picture.name!r} cannot be the name of a figure's file")
    folder.mkdir(parents=True, exist_ok=True)
    for picture in exhibit.pictures:
        save(picture.figure, folder / "figures" / picture.name)
    texts = {"results.md": markdown(exhibit), "tables.tex": tables(exhibit)}
    texts["report.html"] = exhibit_page(exhibit)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "report.html"


def exhibit_page(exhibit: ExperimentReport) -> Html:
    """The page to read: the verdict, its reasons, then every run."""
    beginning = [
        *_question(exhibit),
        *_verdict(exhibit.verdict),
        *_notes(exhibit.notes),
        *_failures(exhibit.failures),
        *_missing(exhibit.missing),
    ]
    parts = [
        Chapter("Tables", [piece for grid in exhibit.tables for piece in _grid(grid)]),
        Chapter("Figures", [_picture(picture) for picture in exhibit.pictures]),
        *_runs(exhibit.runs),
        Chapter("To do it again", [*_again(exhibit), *origins(_named(exhibit.runs))]),
    ]
    return document(exhibit.title, beginning, parts)


def words(text: str) -> Html:
    """Text in which `**bold**` and code in backticks are shown as such."""
    return Html(rendered(text, STYLES))


STYLES = {
    "plain": join,
    "bold": lambda text: tag("b", text),
    "code": lambda text: tag("code", text),
}


def _question(exhibit: ExperimentReport) -> list[Html]:
    lines = {"Question": exhibit.question, "What the paper says": exhibit.claim}
    return [tag("p", tag("b", f"{x}: "), words(text)) for x, text in lines.items() if text]


def _verdict(verdict: Sequence[str]) -> list[Html]:
    lines = [tag("p", words(line), class_="lead") for line in verdict]
    return [tag("div", *lines, class_="verdict")] if lines else []


def _notes(notes: Sequence[str]) -> list[Html]:
    lines = [tag("li", words(note)) for note in notes]
    return [tag("ul", *lines, class_="note")] if lines else []


def _failures(failures: Sequence[Failure]) -> list[Html]:
    if not failures:
        return []
    title = tag("h3", f"Failed: {len(failures)}")
    return [tag("div", title, tag("ul", *map(_failure, failures)), class_="fail")]


def _failure(failure: Failure) -> Html:
    """What went wrong, in a line; all of a long error behind a heading."""
    reason = reason_text(failure.error)
    whole = tag("pre", failure.error)
    more = [details("the whole error", whole)] if failure.error.strip() != reason else []
    return tag("li", tag("b", failure.label), tag("pre", reason), *more)


def _missing(missing: Sequence[str]) -> list[Html]:
    if not missing:
        return []
    labels = tag("ul", *(tag("li", label) for label in missing), class_="many")
    title = f"Not run or not finished: {len(missing)}"
    return [details(title, labels, opened=len(missing) <= MOST)]


def _grid(grid: ResultTable) -> list[Html]:
    rows = [[words(cell) for cell in row] for row in grid.rows]
    shown = table([words(cell) for cell in grid.head], rows, words=range(grid.words))
    heading = [tag("h3", words(grid.title))] if grid.title else []
    caption = [tag("p", words(grid.caption), class_="small")] if grid.caption else []
    return [*heading, shown, *caption]


def _picture(picture: CaptionedFigure) -> Html:
    """A figure at its own size at most; a wide one may scroll, else a phone makes it too small."""
    wide = picture.figure.get_figwidth()
    least = f"min-width:{58 * wide:.0f}px;" if wide > 6 else ""
    style = f"{least}max-width:{110 * wide:.0f}px"
    drawn = tag("div", svg(picture.figure, picture.caption), style=style)
    return tag(
        "figure",
        tag("div", drawn, class_="scroll", tabindex="0"),
        tag("figcaption", words(picture.caption)),
    )


def _named(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs with labels: the experiment's own, or those of reports."""
    return list(runs) if all(run.label for run in runs) else arranged(runs)


def _runs(runs: Sequence[RunRecord]) -> list[Chapter]:
    """What a report would say about the runs: curves first, then run by run."""
    named = _named(runs)
    if not (parts := sections(named)):
        return []
    pairs = with_names(parts)
    tasks = [
        details(part.task, *results(part, name, None), opened=len(parts) == 1)
        for name, part in pairs
    ]
    return [
        Chapter("Learning curves", learning_curves(pairs, None)),
        Chapter("Run by run", [*caveats(named, parts), *tasks]),
        *insight(pairs, None),
        Chapter("Settings", settings(named)),
    ]


def _again(exhibit: ExperimentReport) -> list[Html]:
    told = {"scale": exhibit.scale, "machines": exhibit.machines, **exhibit.facts}
    rows = [[name, words(text)] for name, text in told.items() if text]
    facts = [table(["", ""], rows, words=(0, 1))] if rows else []
    return [tag("pre", exhibit.command), *facts]
