"""Inline markup in the texts of an experiment: `**bold**` and code in backticks."""

import re
from collections.abc import Callable, Iterator, Mapping

Style = Callable[[str], str]
"""Text -> text in some format."""

_MARKS = re.compile(r"\*\*(?P<bold>\S|\S.*?\S)\*\*|`(?P<code>[^`]+)`", re.DOTALL)


def inline_spans(text: str) -> Iterator[tuple[str, str]]:
    """Spans of a text: their style (`plain`, `bold` or `code`) and content."""
    end = 0
    for match in _MARKS.finditer(text):
        if match.start() > end:
            yield "plain", text[end : match.start()]
        style = str(match.lastgroup)
        yield style, match[style]
        end = match.end()
    if end < len(text):
        yield "plain", text[end:]


def format_inline(text: str, styles: Mapping[str, Style]) -> str:
    """A text with each span in its style."""
    return "".join(styles[style](content) for style, content in inline_spans(text))
