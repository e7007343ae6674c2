"""What the real game needs: SMAC, StarCraft II and its maps. The user brings all three."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from fp3o.errors import MissingExtraError

FOLDERS = {"darwin": "/Applications/StarCraft II", "win32": "C:/Program Files (x86)/StarCraft II"}
"""Where the game is looked for if SC2PATH is not set; elsewhere it is ~/StarCraftII."""


class MissingGameError(MissingExtraError):
    """StarCraft II cannot be played here; the message says what to install."""

    def __init__(self, message: str):
        ImportError.__init__(self, message)


class Part(NamedTuple):
    """Something that is needed."""

    name: str
    found: str
    """What was found, empty if nothing was."""
    fix: str


def require(map_name: str) -> None:
    """Refuse to start what could not run."""
    if absent := [part for part in parts(map_name) if not part.found]:
        steps = "".join(f"\n  {part.name}: {part.fix}" for part in absent)
        raise MissingGameError(
            f"starcraft2/{map_name} plays the real game, which is not all here (smac/{map_name} "
            f"needs nothing). Missing:{steps}\nCheck with `fp3o doctor`"
        )


def parts(map_name: str = "*") -> list[Part]:
    """The package, the game, and its maps (or one of them)."""
    home = folder()
    found = [path for name in ("Maps", "maps") for path in (home / name).glob("SMAC_Maps/*.SC2Map")]
    named = {path.stem for path in found if map_name in ("*", path.stem)}
    return [
        Part(
            "SMAC", _package(),
            "pip install git+https://github.com/oxwhirl/smac.git (pip's `smac` is another one)",
        ),
        Part(
            "StarCraft II", str(home) if (home / "Versions").is_dir() else "",
            f"unpack it to {home}, or set SC2PATH (github.com/Blizzard/s2client-proto, 4.10)",
        ),
        Part(
            "SMAC_Maps", f"{len(named)} maps" if named else "",
            f"copy the folder SMAC_Maps of github.com/oxwhirl/smac to {home / 'Maps'}",
        ),
    ]  # fmt: skip


def folder() -> Path:
    """Where StarCraft II is, or should be."""
    usual = FOLDERS.get(sys.platform, "~/StarCraftII")
    return Path(os.environ.get("SC2PATH") or usual).expanduser()


def _package() -> str:
    """SMAC's version. Another package has the same name; it has no such folder."""
    spec = find_spec("smac")
    places = (spec and spec.submodule_search_locations) or []
    if not any((Path(place) / "env" / "starcraft2").is_dir() for place in places):
        return ""
    try:
        return version("smac")
    except PackageNotFoundError:
        return "of unknown version"
