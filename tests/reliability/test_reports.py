"""Campaigns against reports: hostile names stay text in every format."""

import json
import re
import string
from html.parser import HTMLParser
from pathlib import Path

import pytest
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from report_runs import make

from fp3o.reports import read_runs, report, summary_text
from fp3o.reports.experiment_report import CaptionedFigure, ExperimentReport, Failure, ResultTable
from fp3o.reports.marl_eval import marl_eval
from fp3o.reports.pages import curves, markup, results
from fp3o.reports.pages.experiment_page import experiment_page
from fp3o.reports.pages.latex import ESCAPES, latex_tables
from fp3o.reports.pages.markdown import markdown_page
from fp3o.reports.phrasing import visible
from fp3o.runs.run import Run

PIECES = (
    "<script>alert(1)</script>", '"><img src=x onerror=evil()>', "' onload='evil()", "</style><b>",
    "&lt;evil>", "javascript:evil()", "url(//e.vil)", "\\input{/etc/passwd}", "$x$", "%\n\\evil",
    "\\\\", "**", "`evil`", "| a | b |", "[evil](http://e.vil)", "![x](y)", "# evil", "```\n",
    "[/red]", "[bold]", "\x1b[2J", "\x07", "\r", "\0", "\u202e", "\u2066", "\u2028", "-->", "{{x}}",
    "<!--", "]]>", "evil" * 100, "\U0001f608",
)  # fmt: skip
NAMES = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), min_size=1, max_size=5).map("".join)

ELEMENTS = {
    "html", "head", "meta", "link", "title", "style", "body", "main", "h1", "h2", "h3", "h4", "p",
    "nav", "a", "div", "span", "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
    "pre", "code", "figure", "figcaption", "svg", "section", "script", "b", "mark", "ul", "li",
}  # fmt: skip
ATTRIBUTES = {
    "charset", "content", "http-equiv", "name", "rel", "href", "lang", "id", "class", "style",
    "tabindex", "aria-label", "role", "hidden", "data-chart", "type", "open", "viewbox",
}  # fmt: skip


class Elements(HTMLParser):
    """The elements of a page must be those that pages have, with addresses inside the page."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        for name, value in attrs:
            assert name in ATTRIBUTES, name
            assert name != "href" or str(value).startswith(("#part", "data:,")), value
            assert name != "style" or "url" not in str(value), value

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def _named_svg(_: object, text: str) -> markup.Html:
    return markup.tag("svg", aria_label=text)


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take seconds; here they are descriptions only."""
    for module in (results, curves):
        monkeypatch.setattr(
            module, "inline_svg", lambda _, text: markup.tag("svg", aria_label=text)
        )
    for name in ("scores_figure", "diagnostics_figure"):
        monkeypatch.setattr(results, name, lambda *_, **__: None)
    monkeypatch.setattr(curves, "curves_figure", lambda *_, **__: None)
    monkeypatch.setattr("fp3o.reports.pages.experiment_page.inline_svg", _named_svg)


def check_terminal(text: str) -> None:
    """Nothing in a text acts on a terminal."""
    assert all(line.isprintable() for line in text.split("\n")), text


@pytest.mark.usefixtures("no_figures")
def test_hostile_names_in_pages_about_runs(campaign: Campaign, tmp_path: Path) -> None:
    """No element, attribute or escape sequence comes from data, and pages stay small."""
    numbers = iter(range(10**9))

    @given(st.lists(NAMES, min_size=8, max_size=8))
    def attack(names: list[str]) -> None:
        task, algorithm, title, sharing, metric, baseline, setting, command = names
        path = make(
            tmp_path / str(next(numbers)), (-5.0, -6.0), iterations=2, plain=True, task=task,
            algorithm=algorithm, sharing=sharing, row={"title": title, "changes": command},
            baselines={baseline: {"return": -9.0, "episodes": 5, "summary": metric}},
        )  # fmt: skip
        found = json.loads((path / "results.json").read_text())
        found["last"][0]["episode_metrics"] = {metric: 0.5}
        (path / "results.json").write_text(json.dumps(found))
        config = json.loads((path / "config.json").read_text())
        config |= {"command": command, "device": task, "versions": {setting: metric}}
        config["settings"][setting] = metric
        (path / "config.json").write_text(json.dumps(config))
        text = report([path], path / "page.html", figures=False).read_text()
        Elements().feed(text)
        assert len(text) < 300_000
        check_terminal(summary_text([path]))
        (run,) = read_runs([path])
        for name in (run.task, run.algorithm, run.sharing, run.label):
            assert name.isprintable() and len(name) < 500
        json.dumps(marl_eval([run]), allow_nan=False)
        Elements().feed(Run.load(path)._repr_html_())
        campaign.count("text")

    campaign.attack(attack, small=4, medium=30, whole=1_000)


@pytest.mark.usefixtures("no_figures")
def test_hostile_names_in_pages_of_experiments(campaign: Campaign) -> None:
    """In HTML, Markdown and LaTeX."""

    @given(st.lists(NAMES, min_size=9, max_size=9))
    def attack(names: list[str]) -> None:
        title, question, verdict, command, cell, head, caption, label, error = names
        table = ResultTable(title, [head, "score"], [[cell, "1"]], caption)
        figure = CaptionedFigure("figure", Figure(), caption)
        page = ExperimentReport(
            "name", title, question, "", [verdict], command, "smoke", [table], [figure],
            notes=[error], failures=[Failure(label, error)], missing=[label], machines=cell,
        )  # fmt: skip
        Elements().feed(experiment_page(page))
        tex, markdown = latex_tables(page), markdown_page(page)
        assert set(_commands(tex)) <= LATEX_COMMANDS, tex
        assert tex.count("\\begin{") == tex.count("\\end{") == 2
        assert markdown.count("\n```\n") == 1
        assert "<" not in re.sub(r"```sh\n.*\n```|(?<!\\)`[^`]*`", "", markdown)
        for text in (tex, markdown):
            assert visible(text) == text
        campaign.count("text")

    campaign.attack(attack, small=60, medium=300, whole=5_000)


LATEX_COMMANDS = {
    "begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "textbf",
    "texttt", *re.findall(r"\\([a-zA-Z]+)", " ".join(ESCAPES.values())),
}  # fmt: skip
"""What tables and escaped characters consist of."""


def _commands(text: str) -> list[str]:
    """Names of the commands in a LaTeX text, without its comments."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    parts = "\n".join(lines).replace("\\\\", "").split("\\")[1:]
    names = ["".join(x for x in part[:20] if x in string.ascii_letters) for part in parts]
    return [
        next((k for k in sorted(LATEX_COMMANDS, key=len, reverse=True) if part.startswith(k)), name)
        for part, name in zip(parts, names, strict=True)
        if part[:1] in string.ascii_letters
    ]
