"""Progress in a Jupyter notebook: one output that is updated in place."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import IPython.display
import nbformat
import numpy as np
import pytest
from doc_pages import ROOT
from nbclient import NotebookClient

from fp3o.errors import MissingExtraError
from fp3o.runs import kernel, notebook, progress
from fp3o.runs.notebook import NotebookDisplay
from fp3o.runs.progress import PlainDisplay, QuietDisplay, TrainingStatus, make_display

PNG = 'src="data:image/png;base64,'


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every output of the cell, each with the contents that it had one after another."""
    made: list[list[str]] = []

    def display(content: Any, display_id: bool) -> Any:
        made.append([content.data])
        return SimpleNamespace(update=lambda content, one=made[-1]: one.append(content.data))

    monkeypatch.setattr(IPython.display, "display", display)
    return made


def row(value: float | None, evaluation: float | None = None) -> dict[str, Any]:
    return {"episode_return": value} | ({"eval_return": evaluation} if evaluation else {})


def test_one_output_is_updated(outputs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages, progress and curves are in it; it is drawn at most once per second."""
    display, status = NotebookDisplay(), TrainingStatus("task <b>", 1000, 0, 2)
    with display.waiting("compiling"):
        assert "compiling ..." in outputs[0][-1]
    display.say("compiled in 3 s & more")
    for k in range(20):
        status.advance(50 * (k + 1), [row(1.0 + k, 2.0), row(None)])
        display.update(status)
    before = len(outputs[0])
    monkeypatch.setattr(notebook, "REDRAW_EVERY", 0.0)
    display.update(status)
    assert len(outputs[0]) == before + 1 < 8
    display.close()
    (last,) = [output[-1] for output in outputs]
    assert "task &lt;b&gt;" in last and "compiled in 3 s &amp; more" in last
    assert "100 %" in last and "steps/s" in last and "left" in last and last.count(PNG) == 1
    assert "compiling" not in last


def test_long_curves_keep_their_ends() -> None:
    """Old points are thinned out, the newest one stays."""
    display, status = NotebookDisplay(), TrainingStatus("task", 10**6, 0, 1)
    display._drawn = np.inf
    for k in range(5000):
        status.advance(k, [row(float(k))])
        display.update(status)
    points = display._curves["episode_return"]
    assert len(points) <= notebook.MOST_POINTS
    assert points[-1][0] == 4999 and points[0][0] < 100
    assert [step for step, _ in points] == sorted({step for step, _ in points})


def test_the_display_is_chosen_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` is the notebook's in a kernel only; without IPython it cannot be chosen."""
    assert isinstance(make_display("auto"), PlainDisplay)
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(progress, "notebook_display", QuietDisplay)
    assert isinstance(make_display("auto"), QuietDisplay)
    assert not isinstance(make_display("auto"), PlainDisplay)
    shell.config = {"TerminalIPythonApp": {}}
    assert isinstance(make_display("auto"), PlainDisplay)
    monkeypatch.undo()
    monkeypatch.setattr(kernel, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"fp3o\[notebook\]"):
        make_display("notebook")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_example_notebook(tmp_path: Path) -> None:
    """It runs in a kernel; the loop has one output with curves, and nothing is printed."""
    content: Any = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    loop = next(cell for cell in content.cells if cell.id == "loop")
    loop.source = loop.source.replace("16_000", "1_024").replace("8_000", "512")
    NotebookClient(content, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    (output,) = loop.outputs
    assert output.output_type == "display_data"
    html = output.data["text/html"]
    assert html.count(PNG) == 1 and "100 %" in html and "compiled in" in html
    shown = {cell.id: cell.outputs for cell in content.cells if cell.cell_type == "code"}
    assert "probe/credit" in shown["show"][0].data["text/html"]
    assert re.match(r"array\(\[", shown["series"][0].data["text/plain"])
    assert (tmp_path / "runs" / "notebook" / "report.html").exists()
