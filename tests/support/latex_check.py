"""A small check of LaTeX tables: what would stop a compiler, or print something else."""

import re
from collections.abc import Iterator

COMMANDS = {
    "begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "textbf",
    "texttt", "textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater",
    "textbar", "ldots", "pm", "times", "cdot", "le", "ge", "approx", "to", "uparrow", "downarrow",
    "circ", "alpha", "beta", "gamma", "epsilon", "lambda", "mu", "pi", "sigma", "tau", "Delta",
    "parallel",
}  # fmt: skip
"""The commands that tables are made of."""

RULES = ("\\toprule", "\\midrule", "\\bottomrule")

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}$&#%_^~]|\s+|[^\\{}$&#%_^~\s]+", re.DOTALL)

_ACCENTED = re.compile("[\\x00-\\x7f\u00c0-\u017f]*")
"""ASCII, and the letters with accents that pdflatex knows."""


def table_problems(text: str) -> list[str]:
    """What is wrong with the tables of a file, line by line; lines of comments are left out."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    body = "\n".join(lines) + "\n"
    found = [
        f"unknown character {line[_ACCENTED.match(line).end()]!r}"  # pyright: ignore
        for line in lines
        if not _ACCENTED.fullmatch(line)
    ]
    return [*found, *_unbalanced(body), *_special(body), *_wrong_rows(body)]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _unbalanced(text: str) -> Iterator[str]:
    """Braces and environments that are not closed, or closed by others."""
    depth, open_environments = 0, []
    for token in _tokens(text):
        depth += (token == "{") - (token == "}")
        if depth < 0:
            yield "a closing brace too many"
            depth = 0
    if depth:
        yield f"{depth} braces are not closed"
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", text):
        if kind == "begin":
            open_environments.append(name)
        elif not open_environments or open_environments.pop() != name:
            yield f"{name} ends where it is not open"
    yield from (f"{name} does not end" for name in open_environments)


def _special(text: str) -> Iterator[str]:
    """Characters with a meaning that are not escaped, and commands that are not known."""
    mathematics = tabular = False
    for previous, token in zip(["", *_tokens(text)], _tokens(text), strict=False):
        if token == "$":
            mathematics = not mathematics
        elif token in ("#", "%", "~") or (token in ("_", "^") and not mathematics):
            yield f"{token} is not escaped after {previous!r}"
        elif token in ("&", "\\\\", "}") and mathematics:
            yield f"a formula is not closed before {token}"
            mathematics = False
        elif token == "&" and not tabular:
            yield "& outside of a table"
        elif token == "tabular":
            tabular = not tabular
        elif re.fullmatch(r"\\[a-zA-Z]+", token) and token[1:] not in COMMANDS:
            yield f"unknown command {token}"
    if mathematics:
        yield "a formula is not closed"


def _wrong_rows(text: str) -> Iterator[str]:
    """Rows with another number of columns than their table."""
    for columns, body in re.findall(
        r"\\begin\{tabular\}\{([^}]*)\}(.*?)\\end\{tabular\}", text, re.DOTALL
    ):
        if not re.fullmatch("[lrc]+", columns):
            yield f"columns {columns!r}"
        *rows, last = _rows(body)
        for row in rows:
            if len(row) != len(columns):
                yield f"{len(row)} of {len(columns)} columns: {row}"
            if row[0].startswith(("[", "*")):
                yield f"a row that begins with an argument of the one before: {row}"
        if last != [""]:
            yield f"a row that does not end: {last}"


def _rows(body: str) -> list[list[str]]:
    """Cells of the rows of a table, without rules; the last row is what follows the last one."""
    rows, depth = [[""]], 0
    for token in _tokens(body):
        depth += (token == "{") - (token == "}")
        if token == "\\\\":
            rows.append([""])
        elif token == "&" and not depth:
            rows[-1].append("")
        elif token not in RULES and (rows[-1][-1] or not token.isspace()):
            rows[-1][-1] += token
    return rows
