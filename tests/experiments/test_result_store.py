"""The store of results never leaves its folder, whatever names a node sends."""

from pathlib import Path

import pytest

from fp3o.experiments.framework.folder_sync import ResultPathError, ResultStore, list_files

NAMES = (
    "../evil", "..", ".", "", "/etc/evil", "a/../../evil", "a//b", "./a", "a/.", "a\0b", "a\nb",
    "\x1b[2J", "..\\evil", "link/evil", "file-link",
)  # fmt: skip
"""Names of files, and labels of cells, that are refused."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of an experiment, with links out of it, beside a secret."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("secret")
    cell = tmp_path / "out" / "cell"
    cell.mkdir(parents=True)
    for folder in (cell, cell.parent):
        (folder / "link").symlink_to(tmp_path / "secrets")
        (folder / "file-link").symlink_to(tmp_path / "secrets" / "key")
    return tmp_path / "out"


def everything(folder: Path) -> dict[str, str]:
    """The files of a folder and their contents."""
    return {str(x): x.read_text() for x in folder.rglob("*") if x.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_leave_the_folder_are_refused(out: Path, name: str) -> None:
    """Before anything is written or deleted."""
    store, before = ResultStore(str(out)), everything(out.parent)
    for label, file in (("cell", name), (name, "config.json")):
        with pytest.raises(ResultPathError, match="is not the name of a file"):
            store.put(label, {"config.json": b"new", file: b"evil"}, [])
        with pytest.raises(ResultPathError):
            store.put(label, {"config.json": b"new"}, [file])
    with pytest.raises(ResultPathError) as error:
        store.get(name)
    assert str(error.value).isprintable()
    assert everything(out.parent) == before


def test_failures_stay_in_their_folder(out: Path) -> None:
    """Neither a label nor a link leads elsewhere."""
    store = ResultStore(str(out))
    for label in ("../cell", "/etc/evil", "a/../b"):
        with pytest.raises(ResultPathError):
            store.set_failure(label, "evil")
    (out / "failures").symlink_to(out.parent / "secrets")
    with pytest.raises(ResultPathError):
        store.set_failure("cell", "evil")
    assert [x.name for x in (out.parent / "secrets").iterdir()] == ["key"]


def test_links_are_not_read(out: Path) -> None:
    """A link in a cell could point to any file of the machine."""
    (out / "cell" / "config.json").write_text("{}")
    assert ResultStore(str(out)).get("cell") == {"config.json": b"{}"}
    assert [*list_files(out / "cell")] == ["config.json"]
