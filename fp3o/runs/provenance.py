"""Provenance of a result: versions, commit, device, command."""

import contextlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fp3o.algorithms.schedules import stage_facts
from fp3o.algorithms.table import FIELDS, parse_algorithm
from fp3o.options import parse_options, write_options
from fp3o.reports.data.measures import metrics_record
from fp3o.sharing.schemes import SHARINGS
from fp3o.spec import FORMAT

PACKAGES = (
    "fp3o", "jax", "jaxlib", "equinox", "optax", "numpy", "safetensors", "mujoco", "gymnasium",
)  # fmt: skip
"""Packages whose version can change a result."""

OPTIONAL = ("mujoco-mjx",)
"""The same, where they are installed."""


def provenance_record(settings: Mapping[str, Any], agents: int) -> dict[str, Any]:
    """The content of `config.json`: the settings and everything needed to reproduce the run."""
    return {
        "format": FORMAT,
        "settings": dict(settings),
        "algorithm": _algorithm_record(settings, agents),
        "sharing_title": _sharing_title(settings["sharing"]),
        "agents": agents,
        **({"metrics": metrics} if (metrics := metrics_record()) else {}),
        "versions": package_versions(),
        "commit": source_commit(),
        "device": device_name(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _algorithm_record(settings: Mapping[str, Any], agents: int) -> dict[str, Any]:
    """The algorithm as reports need it, also where the module that registers it is missing."""
    text = str(settings["algorithm"])
    row = parse_algorithm(text)
    name, changes = parse_options(text)
    return {
        "name": name,
        "changes": write_options("", changes).lstrip(":"),
        "title": row.title or name.rpartition(":")[2],
        "summary": row.summary,
        "colour": row.colour,
        "gated": stage_facts(row, agents, settings["epochs"]).gated,
        "fields": {name: getattr(row, name) for name in FIELDS},
    }


def _sharing_title(sharing: Any) -> str | None:
    """Title of a named scheme; None for a map."""
    scheme = SHARINGS.get(sharing.rpartition(":")[2]) if isinstance(sharing, str) else None
    return scheme.title if scheme else None


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    for name in OPTIONAL:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def source_commit() -> str | None:
    """The commit of the package's sources, with `+changes` if they differ; None if unknown."""
    try:
        # Inside another project's checkout (site-packages) the commit would be of that project.
        if not _git("ls-files", "__init__.py"):
            return None
        return _git("rev-parse", "HEAD") + "+changes" * bool(_git("status", "--porcelain", "."))
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    """Output of a git command in the package's folder."""
    command = ["git", "-C", str(Path(__file__).parents[1]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def device_name() -> str:
    """The accelerator, or the CPU with its number of cores."""
    import jax  # here, so that `fp3o doctor` can report a broken JAX

    devices = jax.devices()
    kind, number = devices[0].device_kind, len(devices)
    if devices[0].platform == "cpu":
        return f"{platform.machine()} CPU, {_usable_cores()} cores"
    return f"{number} x {kind}" if number > 1 else kind


def _usable_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
