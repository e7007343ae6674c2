"""Import paths: what a module or a constructor raises is quoted in one short, harmless line."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fp3o.envs.registry import get_task
from fp3o.errors import SettingError
from fp3o.imports import load
from fp3o.learning.config import Config
from fp3o.networks.network import network_class
from fp3o.sharing.schemes import parse_sharing, resolve_groups

MODULES = {
    "raises_at_import": r"raise RuntimeError('red \x1b[31m text\n' * 500)",
    "exits_at_import": "import sys\nsys.exit(3)",
    "has_no_syntax": "def (",
    "needs_another": "import a_module_that_nobody_has",
    "raises_when_called": (
        "import sys\n\ndef raises(*args, **kwargs):\n    raise OSError('no licence')\n\n"
        "def exits(*args, **kwargs):\n    sys.exit(2)\n\n"
        "def nothing(*args, **kwargs):\n    pass\n\n"
        "class Unreadable(Exception):\n    def __str__(self):\n        raise ValueError\n\n"
        "def unreadable(*args, **kwargs):\n    raise Unreadable\n"
    ),
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return tmp_path


READERS: dict[str, Callable[[str], Any]] = {
    "load": load,
    "algorithm": lambda path: Config(algorithm=path).row,
    "sharing": parse_sharing,
    "network": network_class,
    "python": lambda path: get_task(f"python:{path}").spec(),
    "pettingzoo": lambda path: get_task(f"pettingzoo:{path}").spec(),
}


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("raises_at_import:x", r"RuntimeError: red \\x1b\[31m text\\nred .*_import.py, line 1"),
        ("exits_at_import:x", r"SystemExit: 3 \(.*exits_at_import.py, line 2\)"),
        ("has_no_syntax:x", r"SyntaxError: .*has_no_syntax.py, line 1"),
        ("needs_another:x", "No module named 'a_module_that_nobody_has'; is it installed"),
        ("nowhere_at_all:x", "No module named 'nowhere_at_all'; is it installed"),
    ],
)  # fmt: skip
def test_modules_that_cannot_be_imported(reader: str, path: str, message: str) -> None:
    """In every place where a module can be named."""
    with pytest.raises(SettingError, match=message) as caught:
        READERS[reader](path)
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", [".:x", "a..b:c", "a.:b", "..:.."])
def test_what_is_no_import_path(reader: str, path: str) -> None:
    with pytest.raises(SettingError, match="is not an import path"):
        READERS[reader](path)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("family", ["python", "pettingzoo"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", r"cannot be made: OSError: no licence \(.*raises_when_called.py, line 4\)"),
        ("exits", "cannot be made: SystemExit: 2"),
        ("nothing", "NoneType"),
        ("unreadable", "Unreadable: a message that cannot be read"),
    ],
)
def test_constructors_that_raise(family: str, name: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        get_task(f"{family}:raises_when_called:{name}").spec()


def test_a_function_that_is_no_constructor() -> None:
    """A function of another purpose: it is called, and its error is quoted."""
    with pytest.raises(SettingError, match="TypeError"):
        get_task("pettingzoo:os:system").spec()


@pytest.mark.usefixtures("modules")
def test_a_sharing_function_that_raises() -> None:
    sharing = parse_sharing("raises_when_called:raises")
    with pytest.raises(SettingError, match="function of the sharing cannot be used: OSError"):
        resolve_groups(sharing, get_task("probe/credit").spec())
