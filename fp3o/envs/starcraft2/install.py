"""Requirements of StarCraft II tasks: SMAC, the game and its maps, installed by the user."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from fp3o.errors import MissingExtraError

FOLDERS = {"darwin": "/Applications/StarCraft II", "win32": "C:/Program Files (x86)/StarCraft II"}
"""Default folder of the game per platform, if SC2PATH is not set; elsewhere ~/StarCraftII."""


class MissingStarCraft2Error(MissingExtraError):
    """StarCraft II is not installed completely; the message says what is missing."""

    def __init__(self, message: str):
        ImportError.__init__(self, message)


class Requirement(NamedTuple):
    """A requirement: a package, the game, or its maps."""

    name: str
    found: str
    """Version or path that was found; empty if there is none."""
    fix: str


def require_starcraft2(map_name: str) -> None:
    """Raise an error that lists what is missing."""
    if missing := [item for item in requirements(map_name) if not item.found]:
        steps = "".join(f"\n  {item.name}: {item.fix}" for item in missing)
        raise MissingStarCraft2Error(
            f"starcraft2/{map_name} needs StarCraft II, which is not installed completely "
            f"(smac/{map_name} needs nothing). Missing:{steps}\nCheck with `fp3o doctor`"
        )


def requirements(map_name: str = "*") -> list[Requirement]:
    """The package, the game, and its maps (or one of them)."""
    home = _game_folder()
    maps = [path for name in ("Maps", "maps") for path in (home / name).glob("SMAC_Maps/*.SC2Map")]
    named = {path.stem for path in maps if map_name in ("*", path.stem)}
    return [
        Requirement(
            "SMAC", _smac_version(),
            "pip install git+https://github.com/oxwhirl/smac.git (not PyPI's `smac`)",
        ),
        Requirement(
            "StarCraft II", str(home) if (home / "Versions").is_dir() else "",
            f"unpack it to {home}, or set SC2PATH (github.com/Blizzard/s2client-proto, 4.10)",
        ),
        Requirement(
            "SMAC_Maps", f"{len(named)} maps" if named else "",
            f"copy the folder SMAC_Maps of github.com/oxwhirl/smac to {home / 'Maps'}",
        ),
    ]  # fmt: skip


def _game_folder() -> Path:
    usual = FOLDERS.get(sys.platform, "~/StarCraftII")
    return Path(os.environ.get("SC2PATH") or usual).expanduser()


def _smac_version() -> str:
    """SMAC's version; another package of the same name has no folder `env/starcraft2`."""
    spec = find_spec("smac")
    folders = (spec and spec.submodule_search_locations) or []
    if not any((Path(folder) / "env" / "starcraft2").is_dir() for folder in folders):
        return ""
    try:
        return version("smac")
    except PackageNotFoundError:
        return "unknown version"
