"""Things by their import paths. Needs nothing but Python: worker processes import it, too."""

from functools import reduce
from importlib import import_module
from typing import Any

from fp3o.errors import nearest


def load(path: str) -> Any:
    """What is at `module:name` or `module.name`; a module, if the path is one.

    The module is imported by this process; it may be one of the user's own.
    """
    home, colon, name = path.partition(":")
    try:
        module, names = _imported(home.split("."))
    except ModuleNotFoundError as error:
        raise ValueError(f"{path!r} cannot be imported: {error}; is it installed?") from error
    return reduce(attribute, [*names, *name.split(".")] if colon else names, module)


def attribute(owner: Any, name: str) -> Any:
    """What an object has under a name, or an error with the nearest one."""
    if not hasattr(owner, name):
        known = [word for word in dir(owner) if not word.startswith("_")]
        where = getattr(owner, "__name__", owner)
        raise ValueError(f"{where!r} has no {name!r}: {nearest(name, known)}")
    return getattr(owner, name)


def _imported(words: list[str]) -> tuple[Any, list[str]]:
    """The longest beginning of a path that is a module, and the names behind it."""
    for end in range(len(words), 1, -1):
        name = ".".join(words[:end])
        try:
            return import_module(name), words[end:]
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise  # it is there, but what it imports is not
    return import_module(words[0]), words[1:]
