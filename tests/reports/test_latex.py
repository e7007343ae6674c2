"""The LaTeX tables of all published experiments compile."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from latex_check import table_problems

from fp3o.reports.experiment_report import ExperimentReport, ResultTable
from fp3o.reports.pages.latex import ESCAPES, latex_tables

RESULTS = Path(__file__).parents[2] / "docs" / "results"

TABLES = sorted(RESULTS.glob("*/tables.tex"))

COMPILERS = {
    "pdflatex": ["-interaction=nonstopmode", "-halt-on-error"],
    "xelatex": ["-interaction=nonstopmode", "-halt-on-error"],
    "tectonic": [],
}
"""Programs that compile a document, and their options."""

GOOD = r"""% Tables of an experiment: 50 % & more
\begin{table}
\centering
\caption{Scores. Mean $\pm$ half, in \%; \texttt{a\_b}.}
\label{tab:a-b-1}
\begin{tabular}{lrr}
\toprule
task & \textbf{wins} & steps \\
\midrule
3m \& 8m & \textbf{93} $\pm$ 5 \% & {[}$-$1, 2{]} \\
8m & -- & \\
\bottomrule
\end{tabular}
\end{table}
"""


def report(*rows: list[str], caption: str = "") -> ExperimentReport:
    table = ResultTable("Scores", ["task", "ours"], [*rows], caption)
    return ExperimentReport("x", "X", "X?", "", [], "fp3o experiment x", "smoke", [table])


def test_a_good_table_has_no_problems() -> None:
    assert table_problems(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("wins} &", "wins}", "2 of 3 columns"),
        ("8m & --", "8m & & --", "4 of 3 columns"),
        ("3m \\& 8m", "3m & 8m", "4 of 3 columns"),
        ("{lrr}", "{lr}", "3 of 2 columns"),
        ("8m & -- & \\\\", "8m & -- & ", "a row that does not end"),
        ("3m", "[3m", "begins with an argument"),
        ("8m & --", "* & --", "begins with an argument"),
        ("5 \\%", "5 %", "% is not escaped"),
        ("a\\_b", "a_b", "_ is not escaped"),
        ("3m", "#3m", "# is not escaped"),
        ("3m", "3^m", "^ is not escaped"),
        ("3m", "3~m", "~ is not escaped"),
        ("$\\pm$ 5", "$\\pm 5", "a formula is not closed"),
        ("half, in", "half & in", "& outside of a table"),
        ("\\textbf{93}", "\\textbf{93", "braces are not closed"),
        ("\\textbf{93}", "\\textbf93}", "a closing brace too many"),
        ("\\end{table}\n", "", "table does not end"),
        ("\\end{tabular}", "\\end{tabbing}", "tabbing ends where it is not open"),
        ("\\textbf{93}", "\\strong{93}", "unknown command \\strong"),
        ("$\\pm$ 5", "± 5", "unknown character '±'"),
    ],
)
def test_the_check_finds_what_is_wrong(old: str, new: str, problem: str) -> None:
    broken = GOOD.replace(old, new)
    assert broken != GOOD and any(problem in found for found in table_problems(broken))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_published_tables_are_well_formed(path: Path) -> None:
    text = path.read_text()
    assert table_problems(text) == []
    assert text.startswith("% Tables of the experiment") and "{booktabs}" in text


def test_special_characters_are_well_formed() -> None:
    """Every character with an escape, alone in a cell and in a caption."""
    characters = [char for char in ESCAPES if char not in "\n\u00a0"]
    rows = [[char, f"a{char}1"] for char in characters]
    text = latex_tables(report(*rows, caption=" ".join(characters)))
    assert table_problems(text) == [] and text.count(r" \\") == len(rows) + 1


@pytest.mark.slow
def test_published_tables_compile(tmp_path: Path) -> None:
    """In one document, with the packages that the files name."""
    program = next(filter(shutil.which, COMPILERS), None)
    if program is None:
        pytest.skip(f"none of {', '.join(COMPILERS)} is installed")
    texts = [path.read_text() for path in TABLES]
    packages = sorted({name for text in texts for name in re.findall(r"usepackage\{(\w+)\}", text)})
    assert packages == ["booktabs"]
    lines = [
        r"\documentclass{article}", *(rf"\usepackage{{{name}}}" for name in packages),
        r"\begin{document}", "Tables.", *(f"{text}\n\\clearpage" for text in texts),
        r"\end{document}", "",
    ]  # fmt: skip
    (tmp_path / "tables.tex").write_text("\n".join(lines))
    command = [program, *COMPILERS[program], "tables.tex"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert (tmp_path / "tables.pdf").stat().st_size > 1000
