"""Errors that say what was wrong, what is allowed, and what was probably meant."""

import difflib
from collections.abc import Iterable


def nearest(given: str, allowed: Iterable[str]) -> str:
    """Name the closest allowed word, then all of them: `did you mean 'full'? Known: ...`."""
    known = sorted(allowed)
    close = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(known)}"


class NonFiniteError(FloatingPointError):
    """An environment produced a number that is not finite; nothing was learned from it."""


class MissingExtraError(ImportError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str):
        super().__init__(
            f"this needs the optional package {package!r}: pip install 'fp3o[{extra}]'"
        )
