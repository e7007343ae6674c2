"""Things by their import paths. Needs nothing but Python: worker processes import it, too."""

from functools import reduce
from importlib import import_module
from typing import Any

from fp3o.errors import nearest


def load(path: str, usual: str | None = None) -> Any:
    """What is at `module:name` or `module.name`; `usual` is taken of a module alone.

    The module is imported by this process; it may be one of the user's own.
    """
    home, _, name = path.partition(":")
    try:
        module, names = (import_module(home), name.split(".")) if name else _imported(path)
    except ModuleNotFoundError as error:
        raise ValueError(f"{path!r} cannot be imported: {error}; is it installed?") from error
    names = names or ([usual] if usual else [])
    try:
        return reduce(getattr, names, module)
    except AttributeError as error:
        known = [word for word in dir(module) if not word.startswith("_")]
        wanted = ".".join(names)
        raise ValueError(
            f"{module.__name__!r} has no {wanted!r}: {nearest(wanted, known)}"
        ) from error


def _imported(path: str) -> tuple[Any, list[str]]:
    """The longest beginning of a path that is a module, and the names behind it."""
    words = path.split(".")
    for end in range(len(words), 0, -1):
        name = ".".join(words[:end])
        try:
            return import_module(name), words[end:]
        except ModuleNotFoundError as error:
            # One that this one imports is missing, or there is nothing shorter to try.
            if end == 1 or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise ValueError("an import path is empty")
