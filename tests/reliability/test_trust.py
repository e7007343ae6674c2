"""Code that a file names is imported only if the caller says so: every spelling, every use."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from trust_attempts import HELPER

import fp3o
from fp3o.algorithms.row import Algorithm
from fp3o.cli.main import main
from fp3o.cli.runs import _evaluation_table
from fp3o.envs.toys.probe import PROBES
from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.run_grid import check_cell_folder, train_cell
from fp3o.policy import TrustError
from fp3o.runs.progress import make_display
from fp3o.runs.run_config import RunConfig
from fp3o.runs.trust import require_trust_in_settings

CANNOT_IMPORT = (f"policy python/{HELPER}:game", "gymnasium", "jaxmarl", "jumanji")
"""Spellings that import nothing even with trust: a variant, and libraries that look names up."""


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_is_imported_without_trust(every: int, tmp_path: Path) -> None:
    """Every spelling of code x every command and function, under an audit hook."""
    program = Path("tests/support/trust_attempts.py")
    command = [sys.executable, str(program), str(tmp_path), str(every)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) > 400 // every
    for row in rows:
        if not row["trust"]:
            assert not row["reached"], row
            assert ("--trust" in row["result"]) == row["imports"], row
        elif not any(words in row["name"] for words in CANNOT_IMPORT):
            assert row["reached"] and "--trust" not in row["result"], row


@pytest.mark.parametrize("trust", [False, True])
def test_the_current_directory_is_searched_for_trusted_code_only(
    trust: bool, tmp_path: Path
) -> None:
    """Modules that libraries look for, such as plugins of JAX, are not found in it."""
    plugin = tmp_path / "jax_plugins" / "hostile"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("print('plugin imported')")
    (tmp_path / "own.py").write_text("print('own imported')")
    code = "import sys; from fp3o.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["check", "python:own:env" if trust else "probe/credit", "--steps", "2"]
    command = [sys.executable, "-P", "-c", code, *words]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ("own imported" in done.stdout) == trust
    assert "plugin imported" not in done.stdout
    assert done.returncode == (2 if trust else 0), done.stderr


def groups(agent_types: Any, num_layers: int) -> Any:
    """A sharing scheme of this process."""
    return ((0,) * len(agent_types),) * num_layers


@pytest.mark.usefixtures("registries")
def test_what_the_caller_registered_needs_no_trust() -> None:
    """Objects registered in this process; the same name in another module is another thing."""
    task = fp3o.register_env(PROBES["credit"]).name
    fp3o.register_algorithm("careful", Algorithm(), __name__)
    fp3o.register_sharing(groups)
    ours = {"task": task, "algorithm": f"{__name__}:careful:rounds=2", "network": "mlp_gru"}
    sharing = {"sharing": f"{__name__}:groups", "critic_sharing": "[[0, 0, 1]]"}
    require_trust_in_settings({**ours, **sharing}, False, "run")
    for name, text in (("algorithm", "other:careful"), ("sharing", "other:groups")):
        with pytest.raises(TrustError, match=f"the {name} '{text}': code.*--trust.*trust=True"):
            require_trust_in_settings({**ours, name: text}, False, "run")
        require_trust_in_settings({**ours, name: text}, True, "run")
        require_trust_in_settings({**ours, name: text}, False, "run", named={name: text})


def test_settings_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A task named by the caller replaces that of the file; what else is code needs trust."""
    file = tmp_path / "settings.toml"
    file.write_text(f'task = "python:{HELPER}:game"\nsteps = 0\n')
    words = ["--config", str(file), "--quiet"]
    assert main(["train", *words]) == 2
    assert f"names the task 'python:{HELPER}:game'" in capsys.readouterr().err
    assert main(["train", "probe/credit", *words]) == 2
    assert "steps must be at least 1" in capsys.readouterr().err
    assert main(["train", "--trust", *words]) == 2
    assert "cannot be imported" in capsys.readouterr().err


def test_the_refusal_is_short_and_escaped() -> None:
    """Names from a file cannot control the terminal."""
    name = "python:x\x1b]0;owned\x07\x1b[31m" + "y" * 10_000
    with pytest.raises(TrustError) as caught:
        require_trust_in_settings({"task": name}, False, "run\x1b[2J")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


def test_tables_show_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither markup nor control characters of a task, a folder or a metric are interpreted."""
    row = {"return": 1.0, "stderr": 0.0, "std": 0.0, "length": 3.0,
           "episode_metrics": {"[red]m\x1b[2J": 1.0}}  # fmt: skip
    result = {
        "task": "[/]x\x1b]0;t\x07", "episodes": 2, "deterministic": True,
        "policies": [{"name": "[bold]folder[/bold]\x1b[31m", **row}], "baselines": {"[/]b": row},
    }  # fmt: skip
    Console(width=200).print(_evaluation_table(result))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\x07" not in shown
    for words in ("[/]x\\x1b", "[bold]folder[/bold]\\x1b", "[red]m\\x1b", "[/]b"):
        assert words in shown
    assert main(["evaluate", "no\x1b[31mwhere[/]"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said and "no\\x1b[31mwhere[/]" in said


def test_runs_are_shown_escaped(tmp_path: Path) -> None:
    """The settings of a run are foreign text as well."""
    settings = {"task": "x\x1b[2J" + "y" * 999, "algorithm": "\x07", "steps": 10}
    record = {"format": 2, "settings": settings, "algorithm": {"title": "a\x1b"}}
    (tmp_path / "config.json").write_text(json.dumps(record))
    shown = repr(fp3o.Run.load(tmp_path))
    assert shown.isprintable() and "x\\x1b[2J" in shown and len(shown) < 800 + len(str(tmp_path))


def test_a_grid_imports_only_what_it_names(tmp_path: Path) -> None:
    """The folder of a cell may name the code of the grid, no other."""
    config = RunConfig().with_settings({"task": "probe/credit"})
    cell = Cell("probe/credit", "full", "mappo", config)
    folder = tmp_path / cell.label
    folder.mkdir(parents=True)
    for setting in ("sharing", "network", "task"):
        settings = {**config.settings, setting: f"python:{HELPER}:game"}
        record = {"format": 2, "settings": settings}
        (folder / "config.json").write_text(json.dumps(record))
        with pytest.raises(TrustError, match=HELPER):
            check_cell_folder(cell, tmp_path)
        with pytest.raises(TrustError, match=HELPER):
            train_cell(config, folder, make_display("quiet"))
        require_trust_in_settings(settings, False, folder, named=settings)
