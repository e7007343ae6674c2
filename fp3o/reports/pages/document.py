"""A self-contained HTML document: title, introduction, chapters; nothing is fetched."""

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from fp3o.reports.pages.css import CSS
from fp3o.reports.pages.curves import chart_script
from fp3o.reports.pages.markup import Html, join_html, tag

SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; "
    "base-uri 'none'; form-action 'none'; script-src 'sha256-{}'"
)
"""Content security policy: the browser fetches nothing and runs no other script."""


class Chapter(NamedTuple):
    """A part of a page with a heading; left out if it has no content."""

    title: str
    content: Sequence[str]


def html_document(title: str, introduction: Sequence[str], chapters: Sequence[Chapter]) -> Html:
    """A complete page."""
    present = [chapter for chapter in chapters if chapter.content]
    body = [tag("h1", title), *introduction, *_contents(present)]
    for k, chapter in enumerate(present):
        body += [tag("h2", chapter.title, id=f"part{k}"), *chapter.content]
    script = chart_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = SECURITY_POLICY.format(digest)
    head = join_html(
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<link rel="icon" href="data:,">'),
        tag("title", title),
        tag("style", Html(CSS)),
    )
    content = tag("body", tag("main", *body), tag("script", Html(script)))
    page = tag("html", tag("head", head), content, lang="en")
    return join_html(Html("<!doctype html>\n"), page, Html("\n"))


def _contents(chapters: Sequence[Chapter]) -> list[Html]:
    """Links to the chapters."""
    links = [tag("a", chapter.title, href=f"#part{k}") for k, chapter in enumerate(chapters)]
    return [tag("nav", *links, aria_label="Contents")] if len(links) > 2 else []
