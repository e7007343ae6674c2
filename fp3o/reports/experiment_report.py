"""The content of an experiment's report, independent of its format: tables, figures, runs, text.

Experiments produce an `ExperimentReport`; `fp3o.reports.pages` writes it as HTML, Markdown and
LaTeX. Texts may contain `**bold**` and code in backticks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fp3o.reports.data.record import RunRecord


@dataclass(frozen=True)
class ResultTable:
    """A table of text and numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    text_columns: int = 1
    """Number of leading columns that contain text; the others contain numbers."""


@dataclass(frozen=True)
class CaptionedFigure:
    """A matplotlib figure and its caption."""

    name: str
    """Stem of its files: `name.png`, `name.pdf`."""
    figure: Any
    caption: str


@dataclass(frozen=True)
class Failure:
    """A cell that ended with an error."""

    label: str
    error: str


@dataclass(frozen=True)
class KeyResult:
    """An experiment's result in short, to stand beside those of others."""

    published: str
    """The paper's numbers; empty if it has none."""
    ours: str
    """Our numbers, with their power."""
    control: str
    """The comparisons at equal gradient steps, or other controls; empty if there is none."""
    verdict: str
    """One sentence."""


@dataclass(frozen=True)
class ExperimentReport:
    """Everything on the page of an experiment."""

    name: str
    """Name on the command line."""
    title: str
    question: str
    """The question of the experiment, in one sentence."""
    claim: str
    """The paper's claim, in one sentence; empty if the experiment is not in the paper."""
    verdict: Sequence[str]
    """The answer of these runs, in about two sentences."""
    command: str
    """Command that reproduces the experiment."""
    scale: str
    tables: Sequence[ResultTable] = ()
    figures: Sequence[CaptionedFigure] = ()
    notes: Sequence[str] = ()
    """Caveats."""
    runs: Sequence[RunRecord] = ()
    """Runs for curves, settings and commands; empty if nothing was trained."""
    failures: Sequence[Failure] = ()
    missing: Sequence[str] = ()
    """Labels of cells that were not run or are unfinished."""
    machines: str = ""
    key_result: KeyResult | None = None
