"""The little markup that words of an exhibit may have: `**bold**` and code in backticks."""

import re
from collections.abc import Callable, Iterator, Mapping

Style = Callable[[str], str]
"""From words to words in a format."""

_MARKS = re.compile(r"\*\*(?P<bold>\S|\S.*?\S)\*\*|`(?P<code>[^`]+)`", re.DOTALL)


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """The text piece by piece: what it is (`plain`, `bold` or `code`), and its words."""
    end = 0
    for found in _MARKS.finditer(text):
        if found.start() > end:
            yield "plain", text[end : found.start()]
        kind = str(found.lastgroup)
        yield kind, found[kind]
        end = found.end()
    if end < len(text):
        yield "plain", text[end:]


def rendered(text: str, styles: Mapping[str, Style]) -> str:
    """The text with each piece in its style."""
    return "".join(styles[kind](words) for kind, words in pieces(text))
