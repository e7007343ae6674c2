"""Every page of the documentation can be executed.

The blocks of a page run in order, in one namespace and one empty directory, with small numbers:

| block    | what is done                                                                     |
|----------|----------------------------------------------------------------------------------|
| `python` | executed                                                                         |
| `sh`     | `fp3o` commands run; `make`, `pip` and `python` commands must name existing things |
| `toml`   | the first one of a page is written to `settings.toml`                            |
| a title  | the block is written to the file of that name                                    |

Runs that a page uses without creating them (`runs/my-run`) are copies of one small run. By default
commands that train are checked up to the point where training would start, and nothing is
evaluated, rendered or plotted; `make test-slow` (of the longest pages `make test-exhaustive`) does
everything, with the first training of every block and two iterations of every loop that trains. A
block that cannot run is preceded by `<!-- not run: reason -->`, and its commands are still parsed.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from doc_commands import parse_command
from doc_pages import PAGES, ROOT, blocks, commands, page_id
from doc_world import World, train_small_run

WITH_CODE = [page for page in PAGES if any(b.language in ("python", "sh") for b in blocks(page))]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small run and a policy."""
    folder = tmp_path_factory.mktemp("trained")
    train_small_run(folder)
    return folder


@pytest.fixture
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory whose modules are imported anew and forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in _modules_in(ROOT / "examples"):  # a page writes files of the same names
        monkeypatch.delitem(sys.modules, name)
    yield tmp_path
    for name in _modules_in(tmp_path):
        del sys.modules[name]


def _modules_in(folder: Path) -> list[str]:
    files = {name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}
    return [name for name, file in files.items() if file.startswith(f"{folder}/")]


@pytest.mark.usefixtures("empty_directory", "registries")
@pytest.mark.parametrize("page", WITH_CODE, ids=page_id)
def test_page(page: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the page runs; commands that train are checked up to that point."""
    world = World(page, trained, monkeypatch, complete=False)
    for block in blocks(page):
        if block.reason is None:
            world.run(block)


@pytest.mark.slow
@pytest.mark.usefixtures("empty_directory", "registries")
@pytest.mark.parametrize("page", WITH_CODE, ids=page_id)
def test_complete_page(page: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the page runs, including training, with small numbers."""
    world = World(page, trained, monkeypatch, complete=True)
    for block in blocks(page):
        if block.reason is None:
            world.run(block)


@pytest.mark.parametrize("page", WITH_CODE, ids=page_id)
def test_blocks_that_do_not_run(page: Path) -> None:
    """Every block that is not run has a reason, and its commands can be parsed."""
    for block in blocks(page):
        if block.reason is not None:
            assert len(block.reason.split()) > 1, f"{block.place}: state why it is not run"
        for line in commands(block) if block.language == "sh" else ():
            assert is_known(line) or block.reason, (
                f"{block.place}: not run without a reason: {line}"
            )
            if block.reason and line.startswith("fp3o "):
                parse_command(line)


def is_known(line: str) -> bool:
    """Whether a command is run, or names something that exists."""
    program, _, rest = line.partition(" ")
    if program == "make":
        return rest in re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())
    if program == "pip":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = re.findall(r"(?:\.|fp3o)\[(.*?)\]", rest)
        return {*",".join(extras).split(",")} <= {*project["optional-dependencies"], ""}
    if program == "python":
        return (ROOT / rest.split()[0]).exists()
    return program in ("fp3o", "cmp")


def test_invalid_commands_are_found() -> None:
    """The parser of commands that are not run refuses unknown options and names."""
    parse_command("fp3o train smac/3s5z --preset many --algorithm happo --out runs/x")
    parse_command("fp3o evaluate runs/x --episodes 5k")
    for line in ("fp3o train smac/3s5z --presett many", "fp3o evaluate runs/x --episode 5"):
        with pytest.raises(SystemExit):
            parse_command(line)
    for line in ("fp3o train smac/3s5z --algorithm hapo", "fp3o trian smac/3s5z"):
        with pytest.raises(ValueError, match="did you mean"):
            parse_command(line)
