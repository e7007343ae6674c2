"""What an experiment shows, before it becomes a page: tables, figures, runs and words.

An experiment makes an `Exhibit` of its runs. It knows nothing of HTML, Markdown or LaTeX; those
who write pages know nothing of experiments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fp3o.reports.data.record import RunRecord


@dataclass(frozen=True)
class ResultTable:
    """A table of words and numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    words: int = 1
    """How many of the first columns hold words; the others hold numbers."""


@dataclass(frozen=True)
class CaptionedFigure:
    """A figure of matplotlib and what is to be seen in it."""

    name: str
    """Of its files: `name.png`, `name.pdf`."""
    figure: Any
    caption: str


@dataclass(frozen=True)
class Failure:
    """A cell without a result."""

    label: str
    error: str


@dataclass(frozen=True)
class ExperimentReport:
    """All that a page about an experiment says."""

    name: str
    """As on the command line."""
    title: str
    question: str
    """What the experiment asks, in one sentence."""
    claim: str
    """What the paper says about it, in one sentence; empty where it is not in the paper."""
    verdict: Sequence[str]
    """What these runs say, in about two sentences."""
    command: str
    """How to do it again."""
    scale: str
    tables: Sequence[ResultTable] = ()
    pictures: Sequence[CaptionedFigure] = ()
    notes: Sequence[str] = ()
    """What a reader must know before trusting a number."""
    runs: Sequence[RunRecord] = ()
    """For curves, settings and commands; empty where nothing was trained."""
    failures: Sequence[Failure] = ()
    missing: Sequence[str] = ()
    """Labels of cells that have not been run or are not finished."""
    machines: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Anything else worth a line: name -> words."""
