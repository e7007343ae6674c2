"""Importing objects by path. Standard library only, since worker processes import it too."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, reduce
from importlib import import_module
from typing import Any

from fp3o.errors import SettingError, UserError, nearest, printable

_MISSING = object()

_FOLDERS: list[str] = []
"""Folders of the user's own modules."""


def search_in(folder: str) -> None:
    """Look for the code that users name in this folder, too, after the installed packages.

    It is not searched before: a package that looks for optional modules (plugins of JAX, loggers)
    must not find them in the folder from which a command was started.
    """
    _FOLDERS.append(folder)


def open_search_folders() -> None:
    """Search the user's folders from now on: called before code that the user names is imported."""
    sys.path += [folder for folder in _FOLDERS if folder not in sys.path]


def load(path: str) -> Any:
    """Import the object at `module:name` or `module.name`, or the module itself.

    The module is imported into this process.
    """
    module_path, colon, name = path.partition(":")
    parts, rest = module_path.split("."), name.split(".") if colon else []
    if not all([*parts, *rest]):
        raise SettingError(f"{printable(path)!r} is not an import path: write my_module:my_name")
    open_search_folders()
    with foreign_code(f"{path!r} cannot be imported"):
        try:
            module, names = _import_longest(parts)
        except ModuleNotFoundError as error:
            message = f"{printable(path)!r} cannot be imported: {printable(str(error))}"
            raise SettingError(f"{message}; is it installed?") from error
    return reduce(attribute, [*names, *rest], module)


def attribute(owner: Any, name: str) -> Any:
    """Attribute of an object; if it does not exist, the error suggests the nearest one."""
    with foreign_code(f"{name!r} cannot be read"):
        value = getattr(owner, name, _MISSING)
    if value is _MISSING:
        public = [other for other in dir(owner) if not other.startswith("_")]
        where = printable(repr(getattr(owner, "__name__", owner)))
        raise SettingError(f"{where} has no {printable(name)!r}: {nearest(name, public)}")
    return value


def readable_name(source: Any) -> str:
    """Name of a function, a class or another callable, as in `outer.inner`; empty for a lambda."""
    if isinstance(source, partial):
        return readable_name(source.func)
    name = getattr(source, "__qualname__", type(source).__qualname__)
    parts = [part for part in name.split(".") if part != "<locals>"]
    return "" if "<lambda>" in parts[-1:] else ".".join(parts)


@contextmanager
def foreign_code(problem: str) -> Iterator[None]:
    """Run code outside fp3o: what it raises is quoted in one line after `problem`, with the place.

    A module or a constructor may raise anything, `SystemExit` included. An interruption and errors
    of fp3o itself pass unchanged.
    """
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{printable(frames[-1].filename)}, line {frames[-1].lineno}"
        message = f"{printable(problem)}: {describe_error(error)} ({place})"
        raise SettingError(message) from error


def describe_error(error: BaseException) -> str:
    """The type and the text of an error, as one short line."""
    try:
        text = str(error)
    except Exception:
        text = "a message that cannot be read"
    name = type(error).__name__
    return printable(f"{name}: {text}" if text else name)


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
