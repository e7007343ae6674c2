"""Requirements of StarCraft II tasks: a package, the game and its maps, installed by the user."""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from fp3o.envs.smac.random_teams import MAP_FILE, RandomTeams
from fp3o.errors import MissingExtraError

FOLDERS = {"darwin": "/Applications/StarCraft II", "win32": "C:/Program Files (x86)/StarCraft II"}
"""Default folder of the game per platform, if SC2PATH is not set; elsewhere ~/StarCraftII."""


class MissingStarCraft2Error(MissingExtraError):
    """StarCraft II is not installed completely; the message says what is missing."""

    def __init__(self, message: str):
        ImportError.__init__(self, message)


class Package(NamedTuple):
    """A package that runs the game."""

    name: str
    module: str
    install: str
    maps: str
    """Where its map files are."""


_SMAC = Package(
    "SMAC", "smac", "pip install git+https://github.com/oxwhirl/smac.git (not PyPI's `smac`)",
    "the folder SMAC_Maps of github.com/oxwhirl/smac",
)  # fmt: skip
_SMACV2 = Package(
    "SMACv2", "smacv2", "pip install git+https://github.com/oxwhirl/smacv2.git",
    "the folder SMAC_Maps of github.com/oxwhirl/smacv2, which has SMAC's maps too,",
)  # fmt: skip


class Requirement(NamedTuple):
    """A requirement: a package, the game, or its maps."""

    name: str
    found: str
    """Version or path that was found; empty if there is none."""
    fix: str


def require_starcraft2(task: str) -> None:
    """Raise an error that lists what is missing for a map of SMAC or for random teams."""
    if missing := [item for item in requirements(task) if not item.found]:
        steps = "".join(f"\n  {item.name}: {item.fix}" for item in missing)
        simulated = "" if RandomTeams.parse(task) else f" (smac/{task} needs nothing)"
        raise MissingStarCraft2Error(
            f"starcraft2/{task} needs StarCraft II, which is not installed completely"
            f"{simulated}. Missing:{steps}\nCheck with `fp3o doctor`"
        )


def requirements(task: str = "*") -> list[Requirement]:
    """The package, the game, and the map of a task; by default SMAC and any of its maps."""
    home = _game_folder()
    maps = [path for name in ("Maps", "maps") for path in (home / name).glob("SMAC_Maps/*.SC2Map")]
    package, map_file = (_SMACV2, MAP_FILE) if RandomTeams.parse(task) else (_SMAC, task)
    named = {path.stem for path in maps if map_file in ("*", path.stem)}
    return [
        Requirement(package.name, _version(package), package.install),
        Requirement(
            "StarCraft II", str(home) if (home / "Versions").is_dir() else "",
            f"unpack it to {home}, or set SC2PATH (github.com/Blizzard/s2client-proto, 4.10)",
        ),
        Requirement(
            "SMAC_Maps", f"{len(named)} maps" if named else "",
            f"copy {package.maps} to {home / 'Maps'}",
        ),
    ]  # fmt: skip


def _game_folder() -> Path:
    usual = FOLDERS.get(sys.platform, "~/StarCraftII")
    return Path(os.environ.get("SC2PATH") or usual).expanduser()


def _version(package: Package) -> str:
    """The version; an optimiser with SMAC's name has no folder `env/starcraft2`."""
    spec = find_spec(package.module)
    folders = (spec and spec.submodule_search_locations) or []
    if not any((Path(folder) / "env" / "starcraft2").is_dir() for folder in folders):
        return ""
    try:
        return version(package.module)
    except PackageNotFoundError:
        return "unknown version"
