"""User-facing errors: what was wrong, what is allowed, and the nearest match."""

import difflib
from collections.abc import Iterable


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Suggest the closest allowed name and list them all: `did you mean 'full'? Known: ...`."""
    names = sorted(allowed)
    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.4)
    hint = f"did you mean {lowered[close[0]]!r}? " if close else ""
    return f"{hint}Known: {', '.join(names)}"


def escaped(text: str) -> str:
    """Foreign text with control characters written out, so that a terminal only shows it.

    Line breaks stay; marks of the direction of writing are written out too.
    """
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def printable(text: str, size: int = 200) -> str:
    """Foreign text for a message: one line of at most `size` characters, escaped."""
    shown = escaped(text[: size + 1]).replace("\n", "\\n")
    return shown if len(shown) <= size else f"{shown[: size - 1]}…"


class UserError(Exception):
    """An error that the user can fix; the message says what was wrong and what is allowed.

    The command line prints only the message of a `UserError`. Every other exception is a bug and
    keeps its traceback.
    """


class SettingError(UserError, ValueError):
    """A value that is unknown, out of range or does not fit the task."""


class NonFiniteError(UserError, FloatingPointError):
    """A NaN or infinite number, from an environment, a policy or a diverged update."""

    index: int | None = None
    """Index of the seed among those of its program, where it is known."""


class EnvError(UserError, ValueError):
    """An environment that breaks the interface: shapes, types, or an agent without a choice."""


class MissingExtraError(UserError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str):
        super().__init__(
            f"this needs the optional package {package!r}: pip install 'fp3o[{extra}]'"
        )
