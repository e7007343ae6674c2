"""From run directories to something to read: an offline HTML file, figures, a table.

    report(["runs/a", "runs/b"], "report.html")
    rich.print(summary_table(["runs/a"]))

Nothing here needs JAX, and matplotlib is imported only when something is drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from fp3o.reports.data.record import RunRecord, read_run, read_runs
from fp3o.reports.data.scores import sections
from fp3o.reports.terminal import summary_table, summary_text

__all__ = ["RunRecord", "read_run", "read_runs", "report", "summary_table", "summary_text"]


def report(
    paths: Sequence[str | Path],
    out: str | Path,
    figures: str | Path | Literal[False] | None = None,
) -> Path:
    """Write one self-contained HTML file about these runs; its path.

    Args:
        paths: run directories, finished or not, of one task or several.
        out: the file to write; for a folder, `report.html` in it.
        figures: where the figures go as PNG and PDF; None: `figures` beside the file; False:
            nowhere.
    """
    from fp3o.reports.figures import results as draw
    from fp3o.reports.pages.run_page import page

    runs = read_runs(paths)
    parts = sections(runs)
    if not parts:
        empty = ", ".join(str(run.path) for run in runs)
        raise ValueError(f"nothing to report: no returns in metrics.jsonl yet ({empty})")
    out = Path(out) / "report.html" if Path(out).is_dir() else Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = out.parent / "figures" if figures is None else Path(figures or ".")

    def keep(figure: draw.Figure, name: str) -> None:
        draw.save(figure, folder / name)

    text = page(runs, parts, None if figures is False else keep)
    out.write_text(text, encoding="utf-8")
    return out
