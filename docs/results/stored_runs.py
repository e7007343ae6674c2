"""The runs that the pages of results are made of: one document each, named by its settings."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fp3o.experiments.framework.grid import Cell
from fp3o.experiments.framework.run_data import pack_run, run_name, unpack_run
from fp3o.runs.baselines import evaluate_baselines
from fp3o.sharing.schemes import AUTO

RUNS = Path(__file__).parent / "runs"

TIMINGS = "cell_timing.json"


def find_run(cell: Cell) -> Path:
    """Where the document of a cell is, if it was run: named by its settings."""
    if cell.job == "time":
        return RUNS / f"time-{cell.label}.json"
    config = cell.config.resolve() if cell.config.learner.sharing == AUTO else cell.config
    return RUNS / f"{run_name(config.settings)}.json"


def unpack_cells(cells: Sequence[Cell], out: Path) -> dict[str, str]:
    """Write the run directories of an experiment; returns the name of each cell's document."""
    names = {}
    for cell in cells:
        if not (path := find_run(cell)).exists():
            continue
        names[cell.label] = path.stem
        if cell.job == "time":
            (out / cell.label).mkdir(parents=True)
            shutil.copy(path, out / cell.label / TIMINGS)
        else:
            unpack_run(json.loads(path.read_text()), out / cell.label)
    return names


def add_runs(folders: Sequence[Path]) -> None:
    """Pack all finished runs and timings below some folders."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(path.parent for folder in folders for path in _finished(folder)):
        if (path / TIMINGS).exists():
            shutil.copy(path / TIMINGS, RUNS / f"time-{path.name}.json")
        else:
            settings = json.loads((path / "config.json").read_text())["settings"]
            groups.setdefault(run_name(settings), []).append(path)
    for name, paths in groups.items():
        path, document = RUNS / f"{name}.json", pack_run(paths)
        if path.exists() and _extent(json.loads(path.read_text())) > _extent(document):
            print(f"{path.name} has more steps or seeds than {paths[0]}: kept")
            continue
        _write(path, document)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")


def add_baselines() -> None:
    """Evaluate the baselines that tasks have and documents lack: those of older runs."""
    for path in sorted(RUNS.glob("*.json")):
        document = json.loads(path.read_text())
        if "config" not in document or document["results"].get("baselines"):
            continue
        settings = document["config"]["settings"]
        found = evaluate_baselines(
            settings["task"], settings["variant"], settings["final_episodes"]
        )
        if found:
            document["results"]["baselines"] = found
            _write(path, document)


def _finished(folder: Path) -> Iterator[Path]:
    yield from folder.rglob("results.json")
    yield from folder.rglob(TIMINGS)


def _extent(document: Mapping[str, Any]) -> tuple[int, int]:
    """Steps and seeds of a run."""
    return int(document["results"]["steps"]), len(document["results"]["last"])
