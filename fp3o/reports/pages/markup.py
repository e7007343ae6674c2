"""Building blocks of HTML: text is always escaped, figures become inline SVG."""

import hashlib
import html
import io
import json
import re
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from fp3o.reports.figures.canvas import figure_style
from fp3o.reports.figures.style import VARIABLES
from fp3o.reports.phrasing import visible


class Html(str):
    """Text that is already HTML; any other text is escaped."""


def tag(name: str, *children: str, **attributes: str) -> Html:
    """An element; a trailing underscore in an attribute avoids Python keywords (`class_`)."""
    text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible(value))}"'
        for key, value in attributes.items()
        if value
    )
    return Html(f"<{name}{text}>{join_html(*children)}</{name}>")


def join_html(*children: str) -> Html:
    """Concatenate pieces, escaping those that are not HTML."""
    return Html("".join(x if isinstance(x, Html) else html.escape(visible(x)) for x in children))


def html_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    text_columns: Sequence[int] = (0,),
    classes: Sequence[str] = (),
) -> Html:
    """A table that scrolls horizontally if needed; columns not in `text_columns` are numbers."""

    def cell(name: str, column: int, content: str) -> Html:
        long = column in text_columns and len(re.sub("<[^>]*>", "", content)) > 40
        return tag(name, content, class_="wrap" if long else "" if column in text_columns else "r")

    top = tag("tr", *(cell("th", k, title) for k, title in enumerate(head)))
    body = [
        tag("tr", *(cell("td", k, x) for k, x in enumerate(row)), class_=style)
        for row, style in zip(rows, classes or [""] * len(rows), strict=True)
    ]
    inside = join_html(tag("thead", top), tag("tbody", *body))
    # Focusable, so that it can be scrolled with the keyboard.
    return tag("div", tag("table", inside), class_="scroll", tabindex="0")


def details(title: str, *children: str, opened: bool = False) -> Html:
    """Content that is collapsed behind a heading."""
    inside = join_html(tag("summary", title), *children)
    return Html(f"<details{' open' * opened}>{inside}</details>")


def json_script(name: str, content: Any) -> Html:
    """Data for the page's script under an id; no text in it can end the element."""
    # Characters other than ASCII are written as `\\u....` anyway, U+2028 and U+2029 among them.
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return tag("script", Html(text), type="application/json", id=name)


def inline_svg(figure: Figure, description: str) -> Html:
    """A figure as inline SVG with the page's colours and unique ids."""
    stream = io.StringIO()
    with figure_style():
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    whole = stream.getvalue()
    box = re.search(r'viewBox="[^"]*"', whole)
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", whole, flags=re.DOTALL)
    body = body[body.index(">", body.index("<svg")) + 1 :]  # inline SVG needs no namespaces
    prefix = f"f{hashlib.sha256(body.encode()).hexdigest()[:8]}-"
    body = re.sub(r'<g id="[^"]*"', "<g", body).replace("xlink:href", "href")
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{prefix}", body)
    body = re.sub(r' d="[^"]*"', _short_path, body)
    for colour, variable in VARIABLES.items():
        body = body.replace(f": {colour}", f": var({variable})")
    frame = box[0] if box else ""
    return Html(f'<svg {frame} role="img" aria-label="{html.escape(visible(description))}">{body}')


def _short_path(path: re.Match[str]) -> str:
    """A path rounded to hundredths of a point, without line breaks: half the size, same look."""
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0]).replace(" \n", "")
