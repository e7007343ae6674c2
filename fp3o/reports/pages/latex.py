"""Tables of an exhibit in LaTeX, to be taken into a paper as they are."""

import re
from collections.abc import Sequence

from fp3o.reports.experiment_report import ExperimentReport, ResultTable
from fp3o.reports.pages.inline import rendered

SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
    "[": "{[}", "]": "{]}",  # after the end of a row a bracket would be a length
    "±": r"$\pm$", "−": "$-$", "–": "--", "—": "---", "×": r"$\times$", "·": r"$\cdot$",
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "→": r"$\to$", "↑": r"$\uparrow$",
    "↓": r"$\downarrow$", "…": r"\ldots{}", "“": "``", "”": "''", "’": "'", "°": r"$^\circ$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "ε": r"$\epsilon$", "λ": r"$\lambda$",
    "μ": r"$\mu$", "π": r"$\pi$", "σ": r"$\sigma$", "τ": r"$\tau$", "Δ": r"$\Delta$",
    "\u00a0": "~", "\u202f": r"\,", "\n": " ",
}  # fmt: skip
"""Signs that LaTeX reads in a way of its own, or not at all, and how they are written there."""

HEAD = """% Tables of the experiment {name}: {title}
% Made by: {command}
% They need \\usepackage{{booktabs}} in the preamble.
"""


def tables(exhibit: ExperimentReport) -> str:
    """All tables of the exhibit, each an environment with its caption and a label."""
    words = (exhibit.name, exhibit.title, exhibit.command)
    name, title, command = (" ".join(text.split()) for text in words)
    head = HEAD.format(name=name, title=title, command=command)
    parts = [_table(grid, f"tab:{name}-{k}") for k, grid in enumerate(exhibit.tables, 1)]
    return "\n".join([head, *parts])


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is; a minus before a number gets its width."""
    return "".join(SIGNS.get(sign, sign) for sign in re.sub(r"(?<![\w.)])-(?=[\d.])", "−", text))


STYLES = {
    "plain": escaped,
    "bold": lambda text: rf"\textbf{{{escaped(text)}}}",
    "code": lambda text: rf"\texttt{{{escaped(text)}}}",
}


def _table(grid: ResultTable, label: str) -> str:
    words = min(grid.words, len(grid.head))
    columns = "l" * words + "r" * (len(grid.head) - words)
    caption = " ".join(filter(None, [_sentence(grid.title), grid.caption]))
    lines = [
        r"\begin{table}", r"\centering", rf"\caption{{{rendered(caption, STYLES)}}}",
        rf"\label{{{label}}}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _row(grid.head),
        r"\midrule", *map(_row, grid.rows), r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(rendered(cell, STYLES) for cell in cells) + r" \\"


def _sentence(title: str) -> str:
    return title if not title or title.endswith((".", "?", "!")) else f"{title}."
