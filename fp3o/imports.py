"""Importing objects by path. Standard library only, since worker processes import it too."""

from functools import reduce
from importlib import import_module
from typing import Any

from fp3o.errors import SettingError, nearest

_MISSING = object()


def load(path: str) -> Any:
    """Import the object at `module:name` or `module.name`, or the module itself.

    The module is imported into this process.
    """
    module_path, colon, name = path.partition(":")
    try:
        module, names = _import_longest(module_path.split("."))
    except ModuleNotFoundError as error:
        raise SettingError(f"{path!r} cannot be imported: {error}; is it installed?") from error
    return reduce(attribute, [*names, *name.split(".")] if colon else names, module)


def attribute(owner: Any, name: str) -> Any:
    """Attribute of an object; if it does not exist, the error suggests the nearest one."""
    value = getattr(owner, name, _MISSING)
    if value is _MISSING:
        public = [other for other in dir(owner) if not other.startswith("_")]
        where = getattr(owner, "__name__", owner)
        raise SettingError(f"{where!r} has no {name!r}: {nearest(name, public)}")
    return value


def _import_longest(parts: list[str]) -> tuple[Any, list[str]]:
    """Import the longest prefix of a dotted path that is a module; also return the rest."""
    for end in range(len(parts), 1, -1):
        name = ".".join(parts[:end])
        try:
            return import_module(name), parts[end:]
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise  # the module exists, but something it imports does not
    return import_module(parts[0]), parts[1:]
