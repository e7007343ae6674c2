"""Starting a run over: its old files are kept in a folder inside the run directory."""

from pathlib import Path
from typing import Any

from fp3o.runs.directory import LOCK_FILE, RunDirectory
from fp3o.runs.processes import from_leader
from fp3o.runs.progress import Display
from fp3o.runs.trust import require_trust_in_run

ASIDE = "before-restart-"
"""Beginning of the names of folders with the files of a run that was started over."""


def set_aside(directory: RunDirectory, display: Display) -> None:
    """Move everything but `config.json` to a new folder, so that the run starts over."""
    directory.read_settings()  # without settings it could not
    directory.lock()
    with directory.writing():
        kept = ("config.json", LOCK_FILE)
        entries = [path for path in directory.path.iterdir() if path.name not in kept]
        moved = [path for path in entries if not path.name.startswith(ASIDE)]
        number = 1
        while (folder := directory.path / f"{ASIDE}{number}").exists():
            number += 1
        folder.mkdir()
        for path in moved:
            path.rename(folder / path.name)
    display.say(f"the old files are in {folder}")


def prepare_resume(path: str | Path, restart: bool, trust: bool, display: Display) -> None:
    """Refuse to import code that is not trusted; put the old files aside if it starts over."""

    def prepare() -> dict[str, Any]:
        require_trust_in_run(path, trust)
        if restart:
            set_aside(RunDirectory(path), display)
        return {}

    from_leader(prepare)
