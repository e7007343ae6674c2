"""The report of an experiment as HTML, Markdown and LaTeX."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from report_runs import Page, make

from fp3o.reports import RunRecord, read_runs
from fp3o.reports.experiment_report import CaptionedFigure, ExperimentReport, Failure, ResultTable
from fp3o.reports.pages import latex as tex
from fp3o.reports.pages import markdown
from fp3o.reports.pages.experiment_page import (
    experiment_page,
    inline_html,
    write_experiment_page,
)
from fp3o.reports.pages.inline import inline_spans

EVIL = "<script>x</script> & 50 % | a_b _c_ [d](e) *f* `"
EMPTY = ExperimentReport(
    name="sharing",
    title="Does sharing matter?",
    question="Is FP3O better under every sharing?",
    claim="",
    verdict=[],
    command="fp3o experiment sharing --out results",
    scale="small",
)
GRID = ResultTable(
    "Returns & wins",
    ["task", "wins_last", "difference"],
    [["3m", "**93.4** ± 5.2 %", "-1.50 – 2"], [EVIL, "[-5, 3]", "x"]],
    "Mean ± half an interval; `bold`: best.",
)


def picture(name: str = "curves") -> CaptionedFigure:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], [0, 1], color="#d55e00")
    return CaptionedFigure(name, figure, f"A **line** {EVIL}")


def full(**more: object) -> ExperimentReport:
    content = {
        "claim": f"It is {EVIL}.", "verdict": ["**No.** It is not.", "Two are open."],
        "notes": ["Five seeds only."], "tables": [GRID], "figures": [picture()],
        "failures": [Failure("3m-none", f"Traceback\n  ...\nValueError: {EVIL}")],
        "missing": ["8m-full", EVIL], "machines": "H200; jax 0.11",
    }  # fmt: skip
    return replace(EMPTY, **content | more)


def test_everything_is_written(tmp_path: Path) -> None:
    path = write_experiment_page(full(), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "report.html"
    found = sorted(str(x.relative_to(path.parent)) for x in path.parent.rglob("*.*"))
    assert found == [
        "figures/curves.pdf", "figures/curves.png", "report.html", "results.md", "tables.tex",
    ]  # fmt: skip
    assert (path.parent / "figures" / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="is not a valid file name"):
        write_experiment_page(full(figures=[picture("../x")]), tmp_path)


def test_inline_text_is_plain_bold_or_code() -> None:
    assert list(inline_spans("a **b c** `d_e` f")) == [
        ("plain", "a "), ("bold", "b c"), ("plain", " "), ("code", "d_e"), ("plain", " f"),
    ]  # fmt: skip
    assert list(inline_spans("2 ** 3 ** 4 `")) == [("plain", "2 ** 3 ** 4 `")]
    assert inline_html("**-4.8** ± `<a>` <b>") == "<b>-4.8</b> ± <code>&lt;a&gt;</code> &lt;b&gt;"


# The page ------------------------------------------------------------------------------------


def test_the_page_leads_with_the_verdict_and_hides_nothing() -> None:
    text = experiment_page(full())
    page = Page(text)
    places = [
        page.words.index(part)
        for part in (
            "Does sharing matter?", "Is FP3O better", "Claim of the paper", "No. It is not.",
            "Five seeds only.", "Failed: 1", "ValueError", "Not run or unfinished: 2",
            "Returns & wins", "fp3o experiment sharing", "H200; jax 0.11",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert '<div class="fail">' in text and "<b>93.4</b> ± 5.2 %" in text
    assert '<td class="r"><b>93.4</b>' in text and "<td>3m</td>" in text
    assert "ValueError" in text.split("full error")[0].split('<div class="fail">')[1]
    assert page.tags.count("svg") == 1 and page.tags.count("script") == 1 and not page.handlers
    assert page.words.count("<script>x</script>") >= 4 and "http" not in text.replace("http-", "")
    assert len(page.ids) == len(set(page.ids))
    assert {x[1:] for x in page.addresses if x.startswith("#")} <= set(page.ids)


def test_runs_of_an_experiment_have_curves_and_details(tmp_path: Path) -> None:
    paths = [make(tmp_path / "a"), make(tmp_path / "b", algorithm="mappo", plain=True)]
    runs = [RunRecord.read(path) for path in reversed(paths)]
    assert not any(run.label for run in runs)
    page = Page(experiment_page(full(runs=runs)))
    assert [curve["name"] for curve in page.curves()["charts"][0]["curves"]] == [
        "FP3O · partial",
        "MAPPO · partial",
    ]
    for title in ("Learning curves", "All runs", "Diagnostics", "Settings", "actor_lr"):
        assert title in page.words, title
    own = [replace(run, label=f"cell {k}") for k, run in enumerate(runs)]
    page = Page(experiment_page(full(runs=own)))
    assert "cell 0" in page.words and "MAPPO · partial" not in page.words


def test_an_empty_experiment_is_a_page(tmp_path: Path) -> None:
    waiting = make(tmp_path / "waiting", (), finished=False)
    for empty in (EMPTY, replace(EMPTY, runs=read_runs([waiting]))):
        folder = write_experiment_page(empty, tmp_path / "out").parent
        page = Page((folder / "report.html").read_text())
        assert "Is FP3O better" in page.words and "Reproduce" in page.words
        assert "Learning curves" not in page.words and "Failed" not in page.words
        assert "Incomplete" not in (folder / "results.md").read_text()
        assert "tabular" not in (folder / "tables.tex").read_text()
        assert not (folder / "figures").exists()


# Markdown ------------------------------------------------------------------------------------


def test_the_markdown_page_has_all_of_it_and_no_html() -> None:
    text = markdown.markdown_page(full())
    lines = text.splitlines()
    assert lines[0] == "# Does sharing matter?" and not re.search("<[a-z/]", text)
    assert "**Result of these runs.** **No.** It is not. Two are open." in lines
    assert "**Incomplete.** 1 cells failed, 2 are unfinished; they are listed at the end." in (
        lines
    )
    top = lines.index("| task | wins_last | difference |")
    assert lines[top + 1] == "| --- | ---: | ---: |"
    assert lines[top + 2] == "| 3m | **93.4** ± 5.2 % | -1.50 – 2 |"
    # every row has as many cells, whatever is in them
    assert len(re.findall(r"(?<!\\)\|", lines[top + 3])) == 4
    assert any(re.fullmatch(r"!\[A line .*\]\(figures/curves\.png\)", line) for line in lines)
    assert "```sh\nfp3o experiment sharing --out results\n```" in text
    assert "- Machines: H200; jax 0.11" in lines
    assert any(line.startswith("- **3m-none**: ValueError: &lt;script") for line in lines)
    assert "- 8m-full" in lines


def test_markdown_special_characters_are_literal() -> None:
    assert markdown.escape_markdown("a_b _c_ *d* [e] `f` g|h \\") == (
        r"a_b \_c\_ \*d\* \[e\] \`f\` g\|h \\"
    )
    assert markdown.inline_markdown("x\n# y") == "x # y"
    renderer = pytest.importorskip("markdown")
    page = renderer.markdown(markdown.markdown_page(full()), extensions=["tables", "fenced_code"])
    parsed = Page(page.replace("/>", ">"))
    assert "script" not in parsed.tags and parsed.tags.count("td") == 6
    assert EVIL.rstrip(" `") in parsed.words and "93.4" in parsed.words
    assert parsed.addresses == ["figures/curves.png"]


# LaTeX ---------------------------------------------------------------------------------------


def test_latex_special_characters_are_escaped() -> None:
    assert tex.escape_latex("a_b & 5 % ± 3 – #$^~{}") == (
        r"a\_b \& 5 \% $\pm$ 3 -- \#\$\textasciicircum{}\textasciitilde{}\{\}"
    )
    assert tex.escape_latex("-4.8 [-5, 3-4] \\x") == r"$-$4.8 {[}$-$5, 3-4{]} \textbackslash{}x"


def test_tables_are_booktabs() -> None:
    text = tex.latex_tables(full(tables=[GRID, replace(GRID, text_columns=2, title="")]))
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 2
    assert r"\begin{tabular}{lrr}" in text and r"\begin{tabular}{llr}" in text
    lines = text.splitlines()
    assert r"3m & \textbf{93.4} $\pm$ 5.2 \% & $-$1.50 -- 2 \\" in lines
    assert r"task & wins\_last & difference \\" in lines
    assert r"\label{tab:sharing-1}" in lines and r"\label{tab:sharing-2}" in lines
    assert r"\caption{Returns \& wins. Mean $\pm$ half an interval; \texttt{bold}: best.}" in lines
    # of every row: two signs between cells and none that LaTeX would read
    for row in (line for line in lines if line.endswith(r" \\")):
        assert len(re.findall(r"(?<!\\)&", row)) == 2 and not re.search(r"(?<!\\)[%_#]", row)


def test_data_for_a_script_cannot_end_its_element() -> None:
    from fp3o.reports.pages.markup import json_script

    text = json_script("x", {"a": "</script><!--&\u2028\u2029"})
    inside = text[text.index(">") + 1 : text.rindex("<")]
    assert not set(inside) & set("<>&\u2028\u2029")
    assert json.loads(inside) == {"a": "</script><!--&\u2028\u2029"}
