"""HTML that cannot be broken by what is put into it: text is escaped, figures become inline SVG."""

import hashlib
import html
import io
import json
import re
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from fp3o.reports.figures.canvas import styled
from fp3o.reports.figures.style import SWAPS


class Html(str):
    """Text that is HTML already; any other text is escaped."""


def tag(name: str, *children: str, **attributes: str) -> Html:
    """An element. A trailing underscore lets an attribute have a Python keyword's name."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for key, value in attributes.items()
        if value
    )
    return Html(f"<{name}{words}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Pieces after one another, escaped where they are not HTML."""
    return Html("".join(x if isinstance(x, Html) else html.escape(x) for x in children))


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Sequence[int] = (0,),
    classes: Sequence[str] = (),
) -> Html:
    """A table that scrolls sideways if it must; columns other than `words` hold numbers."""

    def cell(name: str, column: int, content: str) -> Html:
        long = column in words and len(re.sub("<[^>]*>", "", content)) > 40
        return tag(name, content, class_="wrap" if long else "" if column in words else "r")

    top = tag("tr", *(cell("th", k, title) for k, title in enumerate(head)))
    body = [
        tag("tr", *(cell("td", k, x) for k, x in enumerate(row)), class_=kind)
        for row, kind in zip(rows, classes or [""] * len(rows), strict=True)
    ]
    inside = join(tag("thead", top), tag("tbody", *body))
    # The focus lets a keyboard scroll it.
    return tag("div", tag("table", inside), class_="scroll", tabindex="0")


def details(title: str, *children: str, opened: bool = False) -> Html:
    """Content behind a heading that opens it."""
    inside = join(tag("summary", title), *children)
    return Html(f"<details{' open' * opened}>{inside}</details>")


def embedded(name: str, content: Any) -> Html:
    """Data for the page's script, under this id; no text in it can end the element."""
    # Signs that are not ASCII come out as `\\u....` anyway, U+2028 and U+2029 among them.
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return tag("script", Html(text), type="application/json", id=name)


def svg(figure: Figure, description: str) -> Html:
    """A figure as inline SVG: the page's colours, ids of its own, nothing from outside."""
    stream = io.StringIO()
    with styled():
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    whole = stream.getvalue()
    box = re.search(r'viewBox="[^"]*"', whole)
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", whole, flags=re.DOTALL)
    body = body[body.index(">", body.index("<svg")) + 1 :]  # inline SVG needs no namespaces
    prefix = f"f{hashlib.sha256(body.encode()).hexdigest()[:8]}-"
    body = re.sub(r'<g id="[^"]*"', "<g", body).replace("xlink:href", "href")
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{prefix}", body)
    body = re.sub(r' d="[^"]*"', _short_path, body)
    for colour, variable in SWAPS.items():
        body = body.replace(f": {colour}", f": var({variable})")
    frame = box[0] if box else ""
    return Html(f'<svg {frame} role="img" aria-label="{html.escape(description)}">{body}')


def _short_path(path: re.Match[str]) -> str:
    """A path in hundredths of a point, without line breaks: half the size, no visible change."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0]).replace(" \n", "")
