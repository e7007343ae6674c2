"""Reports on run directories: an offline HTML page, figures, a table for the terminal.

    report(["runs/a", "runs/b"], "report.html")
    rich.print(summary_table(["runs/a"]))

Reading runs needs no JAX, and matplotlib is imported only to draw.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fp3o.reports.data.files import ReportError, writing
from fp3o.reports.data.labels import read_runs
from fp3o.reports.data.record import RunRecord
from fp3o.reports.data.scores import scores_by_task
from fp3o.reports.terminal import summary_table, summary_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ReportError", "RunRecord", "read_runs", "report", "summary_table", "summary_text"]


def report(
    paths: Sequence[str | Path],
    out: str | Path,
    figures: str | Path | Literal[False] | None = None,
) -> Path:
    """Write one self-contained HTML file about some runs and return its path.

    Args:
        paths: run directories, finished or not, on one or more tasks.
        out: the file to write; for a folder, `report.html` in it.
        figures: folder for the figures as PNG and PDF; None: `figures` beside the file; False: no
            files.
    """
    from fp3o.reports.figures.canvas import save_figure
    from fp3o.reports.pages.run_page import run_page

    runs = read_runs(paths)
    tasks = scores_by_task(runs)
    if not tasks:
        empty = ", ".join(str(run.path) for run in runs)
        raise ReportError(f"nothing to report: no return has been logged yet ({empty})")
    out = Path(out) / "report.html" if Path(out).is_dir() else Path(out)
    folder = out.parent / "figures" if figures is None else Path(figures or ".")

    def save(figure: "Figure", name: str) -> None:
        with writing(folder):
            save_figure(figure, folder / name)

    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        text = run_page(runs, tasks, None if figures is False else save)
        out.write_text(text, encoding="utf-8")
    return out
