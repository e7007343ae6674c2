"""A report in a browser: charts are drawn, interactive and fit on a phone; nothing is fetched."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PROGRAM, Browser
from report_runs import battle, make

from fp3o.reports import report

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium on this machine")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    try:
        browser.connect()
        yield browser
    finally:
        browser.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of six runs on two tasks, one of which can be won."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [
        make(folder / f"{algorithm}-{sharing}", algorithm=algorithm, sharing=sharing, plain=True)
        for algorithm in ("fp3o", "mappo")
        for sharing in ("full", "none")
    ]
    paths += [
        battle(folder / "a", plain=True),
        battle(folder / "b", (0.5, 0.6), algorithm="mappo", plain=True),
    ]
    return report(paths, folder / "report.html", figures=False)


LINES = "[...document.querySelectorAll('.chart:not([hidden]) .curve .mean')]"
TIPS = "[...document.querySelectorAll('.tip:not([hidden])')]"
COUNT = "document.querySelector('#filters [role=status]').textContent"


def box(words: str) -> str:
    """The check box with this label."""
    labels = "[...document.querySelectorAll('#filters label')]"
    return f"{labels}.find((label) => label.textContent === {words!r}).firstChild"


def chart(place: int) -> str:
    """One of the charts that are shown."""
    return f"document.querySelectorAll('.chart:not([hidden]) .plot > svg')[{place}]"


def spot(browser: Browser, place: int, across: float) -> tuple[float, float]:
    """Position of the pointer at a point in a chart, scrolled into view."""
    browser.see(f"{chart(place)}.scrollIntoView({{block: 'center'}})")
    at = browser.see(f"{chart(place)}.getBoundingClientRect().toJSON()")
    return at["x"] + across * at["width"], at["y"] + at["height"] / 2


def test_charts_are_drawn_without_a_network(browser: Browser, page: Path) -> None:
    browser.open(page)
    # returns under two sharings with two runs each; of the battles wins and returns of two runs
    assert browser.see(f"{LINES}.map((line) => line.getTotalLength() > 100)") == [True] * 8
    assert browser.see("document.querySelectorAll('.chart:not([hidden])').length") == 4
    assert browser.see("document.querySelectorAll('.chart > svg').length") == 0
    # five seeds have a band, two have none
    assert browser.see("document.querySelectorAll('.band').length") == 6
    assert browser.see(f"{chart(0)}.textContent").startswith("−30−20−10")
    assert "planner −4.5" in browser.see(f"{chart(0)}.textContent")
    assert browser.see(COUNT) == "6 of 6 runs shown"
    assert browser.complaints() == []


def test_filters_and_names_hide_runs(browser: Browser, page: Path) -> None:
    browser.open(page)
    runs = f"{LINES}.map((line) => line.parentNode.dataset.run)"
    assert len(browser.see(runs)) == 8
    browser.see(f"{box('MAPPO')}.click()")
    assert browser.see(COUNT) == "3 of 6 runs shown" and len(browser.see(runs)) == 4
    browser.see(f"{box('full')}.click()")
    assert browser.see(COUNT) == "2 of 6 runs shown" and len(browser.see(runs)) == 3
    browser.see(f"{box('smac/3m')}.click()")
    assert browser.see("[...document.querySelectorAll('.curves')].map((x) => x.hidden)") == [
        False,
        True,
    ]
    browser.see(f"{box('Training return')}.click()")
    titles = "[...document.querySelectorAll('.chart:not([hidden]) h4')].map((x) => x.textContent)"
    assert browser.see(titles) == ["Evaluation return, no sharing", "Training return, no sharing"]
    name = "document.querySelector('.chart:not([hidden]) .legend li:not([hidden]) button')"
    browser.see(f"{name}.click()")
    assert browser.see(COUNT) == "0 of 6 runs shown" and browser.see(runs) == []
    assert browser.see(f"{name}.getAttribute('aria-pressed')") == "false"
    assert "All runs are hidden" in browser.see(f"{chart(0)}.textContent")
    browser.see(f"{name}.click()")
    assert len(browser.see(runs)) == 2  # of both metrics
    browser.see(f"{box('single seeds')}.click()")
    assert browser.see("document.querySelectorAll('.chart:not([hidden]) .seed').length") == 0
    assert browser.complaints() == []


def test_pointing_shows_the_values_of_the_runs(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.mouse("mouseMoved", *spot(browser, 0, 0.8))
    browser.wait(f"{TIPS}.length === 1")
    rows = "[...document.querySelectorAll('.tip:not([hidden]) td')].map((x) => x.textContent)"
    assert browser.see(rows)[1::3] == ["FP3O", "MAPPO"]
    browser.see(f"{chart(0)}.focus()")
    browser.key("End")
    browser.wait(f"{TIPS}[0].textContent.includes('38.4k steps')")
    assert browser.see(rows)[2::3] == ["−5.10 [−5.38, −4.82]"] * 2
    browser.key("ArrowLeft")
    browser.wait(f"{TIPS}[0].textContent.includes('35.2k steps')")
    browser.key("Escape")
    browser.wait(f"{TIPS}.length === 0")
    browser.mouse("mouseMoved", *spot(browser, 1, 0.5))
    browser.wait(f"{TIPS}.length === 1")
    browser.mouse("mouseMoved", 1, 1)
    browser.wait(f"{TIPS}.length === 0")
    assert browser.complaints() == []


def test_a_tap_shows_the_values_until_the_next_one(browser: Browser, page: Path) -> None:
    browser.open(page, 390, 844, touch=True)
    x, y = spot(browser, 2, 0.7)
    for end in ({"x": x, "y": y}, {"x": 5, "y": 5}):
        browser.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[end])
        browser.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        browser.wait(f"{TIPS}.length === {int(end['x'] == x)}")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_the_page_fits_its_window(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width, 844, touch=width < 500)
    browser.see("document.querySelectorAll('details').forEach((x) => (x.open = true))")
    browser.mouse("mouseMoved", *spot(browser, 0, 0.9))
    wide = "document.documentElement.scrollWidth"
    assert browser.see(wide) <= browser.see("window.innerWidth") == width
    inside = (
        "[...document.querySelectorAll('.plot, .tip')].every((x) => x.clientWidth <= innerWidth)"
    )
    assert browser.see(inside)


def test_colours_are_those_of_a_light_or_a_dark_page(browser: Browser, page: Path) -> None:
    first = "document.querySelector('.chart:not([hidden]) [data-run=\"0\"] .mean')"
    found = []
    for scheme in ("light", "dark"):
        wish = {"name": "prefers-color-scheme", "value": scheme}
        browser.ask("Emulation.setEmulatedMedia", features=[wish])
        browser.open(page)
        found.append(browser.see(f"getComputedStyle({first}).stroke"))
    browser.ask("Emulation.setEmulatedMedia", features=[])
    assert found == ["rgb(213, 94, 0)", "rgb(240, 129, 58)"]


def test_hostile_names_do_nothing(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=window.hacked=1>\"'&\u2028${hacked=1}"
    run = make(
        tmp_path / "run", task=evil, algorithm=evil, sharing=evil, plain=True,
        baselines={evil: {"return": -9.0, "stderr": 0.1, "episodes": 5}},
    )  # fmt: skip
    other = make(tmp_path / "other", plain=True)
    browser.open(report([run, other], tmp_path / "report.html", figures=False))
    browser.mouse("mouseMoved", *spot(browser, 0, 0.5))
    browser.wait(f"{TIPS}.length === 1")
    assert evil[:30] in browser.see(f"{TIPS}[0].textContent")
    assert browser.see("document.querySelectorAll('img').length") == 0
    assert browser.see("typeof window.hacked") == "undefined"
    shown = evil.replace("\u2028", r"\u2028")
    assert shown in browser.see("document.querySelector('#filters').textContent")
    assert browser.complaints() == []


def test_without_scripts_the_figures_stay(browser: Browser, page: Path) -> None:
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        assert browser.see("document.querySelectorAll('.chart:not([hidden]) > svg').length") == 4
        assert browser.see("document.querySelector('#filters').hidden") is True
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
