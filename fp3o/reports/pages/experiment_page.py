"""Pages of an experiment: HTML to read, Markdown for a site, LaTeX tables for a paper.

    write_experiment_page(report, Path("results/mpe"))

writes `report.html`, `results.md`, `tables.tex` and `figures/`.
"""

from collections.abc import Sequence
from pathlib import Path

from fp3o.reports.data.files import writing
from fp3o.reports.data.labels import label_runs
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.experiment_report import CaptionedFigure, ExperimentReport, Failure, ResultTable
from fp3o.reports.figures.canvas import save_figure
from fp3o.reports.pages.curves import curves_section
from fp3o.reports.pages.document import Chapter, html_document
from fp3o.reports.pages.inline import format_inline
from fp3o.reports.pages.latex import latex_tables
from fp3o.reports.pages.markdown import markdown_page
from fp3o.reports.pages.markup import Html, details, html_table, inline_svg, join_html, tag
from fp3o.reports.pages.results import MOST_RUNS, task_results
from fp3o.reports.pages.run_page import (
    detail_chapters,
    provenance_section,
    score_notes,
    settings_section,
    with_prefixes,
)
from fp3o.reports.phrasing import reason_text

LONGEST_ERROR = 20_000
"""Characters of an error that are shown, from its end."""


def write_experiment_page(report: ExperimentReport, folder: Path) -> Path:
    """Write all pages and figures of an experiment and return the path of the HTML page.

    Args:
        report: the content; it may lack runs, tables and figures.
        folder: where `report.html`, `results.md`, `tables.tex` and `figures/` go.
    """
    for figure in report.figures:
        if not figure.name or Path(figure.name).name != figure.name:
            raise ValueError(f"{figure.name!r} is not a valid file name for a figure")
    texts = {"results.md": markdown_page(report), "tables.tex": latex_tables(report)}
    texts["report.html"] = experiment_page(report)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for figure in report.figures:
            save_figure(figure.figure, folder / "figures" / figure.name)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    return folder / "report.html"


def experiment_page(report: ExperimentReport) -> Html:
    """The HTML page: verdict, tables and figures, then every run."""
    introduction = [
        *_question(report),
        *_verdict(report.verdict),
        *_notes(report.notes),
        *_failures(report.failures),
        *_missing(report.missing),
    ]
    chapters = [
        Chapter("Tables", [part for table in report.tables for part in _table(table)]),
        Chapter("Figures", [_figure(figure) for figure in report.figures]),
        *_run_chapters(report.runs),
        Chapter("Reproduce", [*_command(report), *provenance_section(_labelled(report.runs))]),
    ]
    return html_document(report.title, introduction, chapters)


def inline_html(text: str) -> Html:
    """Text with `**bold**` and code in backticks as HTML."""
    return Html(format_inline(text, _STYLES))


_STYLES = {
    "plain": join_html,
    "bold": lambda text: tag("b", text),
    "code": lambda text: tag("code", text),
}


def _question(report: ExperimentReport) -> list[Html]:
    lines = {"Question": report.question, "Claim of the paper": report.claim}
    return [tag("p", tag("b", f"{x}: "), inline_html(text)) for x, text in lines.items() if text]


def _verdict(verdict: Sequence[str]) -> list[Html]:
    lines = [tag("p", inline_html(line), class_="lead") for line in verdict]
    return [tag("div", *lines, class_="verdict")] if lines else []


def _notes(notes: Sequence[str]) -> list[Html]:
    lines = [tag("li", inline_html(note)) for note in notes]
    return [tag("ul", *lines, class_="note")] if lines else []


def _failures(failures: Sequence[Failure]) -> list[Html]:
    if not failures:
        return []
    title = tag("h3", f"Failed: {len(failures)}")
    return [tag("div", title, tag("ul", *map(_failure, failures)), class_="fail")]


def _failure(failure: Failure) -> Html:
    """The reason in one line; a longer error is collapsed behind a heading."""
    reason = reason_text(failure.error)
    full = [details("full error", tag("pre", failure.error[-LONGEST_ERROR:]))]
    shown = full if failure.error.strip() != reason else []
    return tag("li", tag("b", failure.label), tag("pre", reason), *shown)


def _missing(missing: Sequence[str]) -> list[Html]:
    if not missing:
        return []
    labels = tag("ul", *(tag("li", label) for label in missing), class_="many")
    title = f"Not run or unfinished: {len(missing)}"
    return [details(title, labels, opened=len(missing) <= MOST_RUNS)]


def _table(table: ResultTable) -> list[Html]:
    rows = [[inline_html(cell) for cell in row] for row in table.rows]
    head = [inline_html(cell) for cell in table.head]
    heading = [tag("h3", inline_html(table.title))] if table.title else []
    caption = [tag("p", inline_html(table.caption), class_="small")] if table.caption else []
    body = html_table(head, rows, text_columns=range(table.text_columns))
    return [*heading, body, *caption]


def _figure(figure: CaptionedFigure) -> Html:
    """A figure at most at its natural size; a wide one may scroll on a small screen."""
    width = figure.figure.get_figwidth()
    least = f"min-width:{58 * width:.0f}px;" if width > 6 else ""
    style = f"{least}max-width:{110 * width:.0f}px"
    image = tag("div", inline_svg(figure.figure, figure.caption), style=style)
    return tag(
        "figure",
        tag("div", image, class_="scroll", tabindex="0"),
        tag("figcaption", inline_html(figure.caption)),
    )


def _labelled(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs with the experiment's labels, or with those of a report."""
    return list(runs) if all(run.label for run in runs) else label_runs(runs)


def _run_chapters(runs: Sequence[RunRecord]) -> list[Chapter]:
    """The chapters of a report about the runs: curves first, then run by run."""
    labelled = _labelled(runs)
    if not (tasks := scores_by_task(labelled)):
        return []
    named = with_prefixes(tasks)
    results = [
        details(task.task, *task_results(task, prefix, None), opened=len(tasks) == 1)
        for prefix, task in named
    ]
    return [
        Chapter("Learning curves", curves_section(named, None)),
        Chapter("All runs", [*score_notes(labelled, tasks), *results]),
        *detail_chapters(named, None),
        Chapter("Settings", settings_section(labelled)),
    ]


def _command(report: ExperimentReport) -> list[Html]:
    lines = {"scale": report.scale, "machines": report.machines}
    rows = [[name, inline_html(text)] for name, text in lines.items() if text]
    table = [html_table(["", ""], rows, text_columns=(0, 1))] if rows else []
    return [tag("pre", report.command), *table]
