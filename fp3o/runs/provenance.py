"""Where a result comes from: versions, commit, device, command."""

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

PACKAGES = (
    "fp3o", "jax", "jaxlib", "equinox", "optax", "numpy", "safetensors", "mujoco", "gymnasium",
)  # fmt: skip
"""Packages whose version can change a result."""

OPTIONAL = ("mujoco-mjx",)
"""Likewise, where they are installed."""


def describe(settings: Mapping[str, Any], agents: int) -> dict[str, Any]:
    """What `config.json` holds: the settings, and everything needed to do it again."""
    return {
        "format": 1,
        "settings": dict(settings),
        "agents": agents,
        "versions": versions(),
        "commit": commit(),
        "device": device(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    for name in OPTIONAL:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def commit() -> str | None:
    """The commit of the package's sources, with `+changes` if they differ; None if unknown."""
    folder = Path(__file__).parent
    ask = lambda *words: subprocess.run(  # noqa: E731
        ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
    ).stdout.strip()
    try:
        # Inside some other project's checkout (site-packages), its commit would say nothing.
        if not ask("ls-files", "__init__.py"):
            return None
        return ask("rev-parse", "HEAD") + "+changes" * bool(ask("status", "--porcelain", "."))
    except (OSError, subprocess.SubprocessError):
        return None


def device() -> str:
    """The accelerator, or the processor with its number of cores."""
    import jax  # here, so that a missing or broken JAX can still be reported

    devices = jax.devices()
    kind, number = devices[0].device_kind, len(devices)
    if devices[0].platform == "cpu":
        return f"{platform.machine()} CPU, {usable_cores()} cores"
    return f"{number} x {kind}" if number > 1 else kind


def usable_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
