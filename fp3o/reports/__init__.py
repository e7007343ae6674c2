"""Reports on run directories: an offline HTML page, figures, a table for the terminal.

    report("runs/a")
    report(["runs/a", "runs/b"], "report.html")
    rich.print(summary_table(["runs/a"]))

Reading runs needs no JAX, and matplotlib is imported only to draw.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fp3o.reports.data.files import ReportError, writing
from fp3o.reports.data.labels import RunPath, read_runs
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.terminal import summary_table, summary_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ReportError", "RunRecord", "read_runs", "report", "summary_table", "summary_text"]


def report(
    runs: RunPath | Iterable[RunPath],
    out: str | Path | None = None,
    figures: str | Path | Literal[False] | None = None,
) -> Path:
    """Write one self-contained HTML file about one or more runs and return its path.

    Args:
        runs: a run or a run directory, finished or not, or several of them, on one or more tasks.
        out: the file to write; for a folder, `report.html` in it. None: `report.html` in the
            directory of the run, or, of several runs, in the current one.
        figures: folder for the figures as PNG and PDF; None: `figures` beside the file; False: no
            files.
    """
    from fp3o.reports.figures.canvas import save_figure
    from fp3o.reports.pages.run_page import run_page

    records = read_runs(runs)
    tasks = scores_by_task(records)
    if not tasks:
        empty = ", ".join(str(run.path) for run in records)
        raise ReportError(f"nothing to report: no return has been logged yet ({empty})")
    if out is None:
        out = records[0].path if len(records) == 1 else "."
    out = Path(out) / "report.html" if Path(out).is_dir() else Path(out)
    folder = out.parent / "figures" if figures is None else Path(figures or ".")

    def save(figure: "Figure", name: str) -> None:
        with writing(folder):
            save_figure(figure, folder / name)

    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        text = run_page(records, tasks, None if figures is False else save)
        out.write_text(text, encoding="utf-8")
    return out
