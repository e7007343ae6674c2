"""Links, navigation and the API reference are complete."""

import importlib
import re
from pathlib import Path

import pytest
from doc_pages import DOCS, PAGES, ROOT, anchors, links, page_id, prose

import fp3o


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links(page: Path) -> None:
    """Every link to a page or file of this repository has a target, anchors included."""
    for target, anchor in links(page):
        assert target.exists(), f"{page_id(page)} links to {target}"
        if anchor:
            assert anchor in anchors(target), f"{page_id(page)} links to {target.name}#{anchor}"


def test_navigation() -> None:
    """The navigation of the site lists every page, and only pages that exist."""
    listed = {*re.findall(r"(\S+\.md)", (ROOT / "mkdocs.yml").read_text().split("nav:")[1])}
    assert listed == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


def test_reference_is_complete() -> None:
    """Every public name of `fp3o` is documented on the reference page, under its own name."""
    entries = re.findall(r"(?m)^::: (\S+)$", (DOCS / "api.md").read_text())
    documented = {}
    for entry in entries:
        home, _, name = entry.rpartition(".")
        documented[name] = getattr(importlib.import_module(home), name)
    for name in {*fp3o.__all__} - {"__version__"}:
        assert documented.get(name) is getattr(fp3o, name), name


def test_readme_is_short_and_absolute() -> None:
    """At most 120 lines, and no relative links: the README is also the page of the package."""
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    targets = re.findall(r"\]\((\S+?)\)", text) + re.findall(r"(?m)^\[.*?\]: (\S+)$", text)
    assert all(target.startswith("https://") for target in targets)


def test_readme_has_two_commands() -> None:
    """Quick start: one command trains the demo, one runs the tests, each in its own block."""
    section = (ROOT / "README.md").read_text().split("## Quick start")[1].split("\n## ")[0]
    assert re.findall(r"```sh\n(.*?)```", section, re.DOTALL) == ["make demo\n", "make test\n"]
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_named_files_exist(page: Path) -> None:
    """Files and tests that the text names in code style exist."""
    if page.name == "CHANGELOG.md" or page.parent.name == "results":
        return
    text = prose(page)
    for name in re.findall(r"`((?:fp3o|tests|benchmarks|docs|examples)/[\w./-]+?)`", text):
        assert (ROOT / name).exists() or "NAME" in name, f"{page_id(page)} names {name}"
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in tests, f"{page_id(page)} names {name}"
