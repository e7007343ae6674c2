"""The checks of `fp3o doctor`: what works on this machine, and how to fix what does not."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.markup import escape
from rich.table import Table

from fp3o.errors import printable

OPTIONAL_PACKAGES = {
    "wandb": ("wandb", "logging to Weights & Biases"),
    "mlflow": ("mlflow", "logging to MLflow"),
    "mpe2": ("mpe2", "comparing with the original particle environments"),
    "mujoco.mjx": ("mjx", "MuJoCo tasks on the accelerator"),
    "pettingzoo": ("pettingzoo", "tasks from PettingZoo"),
    "jaxmarl": ("jaxmarl", "tasks from JaxMARL"),
    "jumanji": ("jumanji", "tasks from Jumanji"),
    "ray": ("ray", "experiments on a Ray cluster"),
    "jax2onnx": ("onnx", "policies as ONNX files"),
    "minari": ("minari", "datasets of episodes"),
}
"""Module -> the extra of pyproject.toml that installs it, and its purpose."""


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    ok: bool
    required: bool
    detail: str
    fix: str = ""


Check = Callable[[], list[Finding]]


def diagnose() -> list[Finding]:
    """Run all checks; one that raises becomes a finding and does not stop the others."""
    packages = {name: partial(_optional_package, name) for name in OPTIONAL_PACKAGES}
    checks: dict[str, Check] = {
        "python": _python,
        "packages": _required_packages,
        "device": _device,
        "tasks": _tasks,
        "directory": _directory,
        "compilation cache": _compilation_cache,
        "several devices": _several_devices,
        **packages,
        "StarCraft II": _starcraft,
    }
    required = {"python", "packages", "device", "tasks", "directory"}
    return [
        finding
        for name, check in checks.items()
        for finding in _isolated(name, check, name in required)
    ]


def _isolated(name: str, check: Check, required: bool) -> list[Finding]:
    try:
        return check()
    except Exception as error:
        fix = "pip install -U fp3o, or report this with its full text"
        return [Finding(name, False, required, _one_line(error), fix)]


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return printable(f"{type(error).__name__}: {lines[0] if lines else 'no message'}", 300)


def _python() -> list[Finding]:
    text, ok = sys.version.split()[0], sys.version_info >= (3, 11)
    return [Finding("python", ok, True, text, "use Python 3.11 or newer")]


def _required_packages() -> list[Finding]:
    from fp3o.runs.provenance import package_versions

    return [
        Finding(name, number != "not installed", True, number, "pip install fp3o")
        for name, number in package_versions().items()
        if name != "python"
    ]


def _device() -> list[Finding]:
    wanted = os.environ.get("JAX_PLATFORMS")
    unset = (
        f"unset JAX_PLATFORMS (it is {printable(wanted, 40)})" if wanted else "set no JAX_PLATFORMS"
    )
    fix = f"{unset}, or install the jax wheel for your accelerator (jax[cuda12])"
    try:
        import jax

        from fp3o.runs.provenance import device_name

        name, on_cpu = device_name(), jax.default_backend() == "cpu"
    except Exception as error:
        return [Finding("device", False, True, _one_line(error), fix)]
    unused = on_cpu and shutil.which("nvidia-smi") is not None
    return [Finding("device", not unused, False, name, fix if unused else "")]


def _has_device() -> bool:
    import jax

    try:
        return bool(jax.devices())
    except RuntimeError:
        return False


def _tasks() -> list[Finding]:
    """Use the first task of every family once."""
    from fp3o.envs.registry import families, get_task

    if not _has_device():
        return [Finding("tasks", False, True, "not tested, because JAX has no device")]
    findings, working = [], []
    for family in families().values():
        for name in family.listed[:1]:
            try:
                _use_once(get_task(f"{family.name}/{name}").env())
                working.append(family.name)
            except Exception as error:
                fix = "pip install -U fp3o; MuJoCo tasks also need the package mujoco"
                findings.append(Finding(family.name, False, True, _one_line(error), fix))
    return [Finding("tasks", bool(working), True, ", ".join(working)), *findings]


def _use_once(env: Any) -> None:
    """Take a step; in pure JAX trace the start of an episode, a step would take half a second."""
    import jax
    import numpy as np

    from fp3o.envs.api import HostEnv

    if not isinstance(env, HostEnv):
        jax.eval_shape(env.reset, jax.random.key(0))
        return
    space = env.spec.actions
    action = np.zeros((1, env.spec.num_agents, space.action_size), space.dtype)
    batch = env.vectorise(1)
    batch.step(batch.reset(jax.random.key(0))[0], action)


def _directory() -> list[Finding]:
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free / 2**30
    try:
        with tempfile.TemporaryFile(dir=folder):
            writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    detail = f"{'writable' if writable else 'not writable'}, {free:.1f} GiB free"
    fix = "free some disk space, or choose another directory with --out"
    return [Finding("this directory", writable and free > 0.5, True, detail, fix)]


def _compilation_cache() -> list[Finding]:
    from fp3o.runs.compilation_cache import VARIABLE, cache_state

    used, detail = cache_state()
    fix = f"unset {VARIABLE}, or let it name a directory that you can write to"
    return [Finding("compilation cache", used, False, detail, fix)]


def _several_devices() -> list[Finding]:
    if not _has_device():
        return []
    import jax

    from fp3o.runs.split_estimate import doctor_estimate

    detail = f"{len(jax.local_devices())} here; {doctor_estimate()}"
    return [Finding("several devices", True, False, detail)]


def _optional_package(module: str) -> list[Finding]:
    extra, purpose = OPTIONAL_PACKAGES[module]
    try:
        installed = find_spec(module) is not None
    except ModuleNotFoundError:  # the package that would contain it is missing
        installed = False
    detail = purpose if installed else f"not installed: {purpose}"
    return [Finding(module, installed, False, detail, f"pip install 'fp3o[{extra}]'")]


def _starcraft() -> list[Finding]:
    """Check for the original StarCraft II and the packages that run it, installed manually."""
    from fp3o.envs.smac.random_teams import PUBLISHED_TEAMS
    from fp3o.envs.starcraft2.install import requirements

    found = []
    for name, parts in {
        "StarCraft II": requirements(), "SMACv2": requirements(PUBLISHED_TEAMS[0])
    }.items():  # fmt: skip
        missing = [part for part in parts if not part.found]
        installed = ", ".join(f"{part.name} {part.found}" for part in parts if part.found)
        names = ", ".join(part.name for part in missing)
        detail = f"not found: {names}" if missing else installed
        found.append(Finding(name, not missing, False, detail, missing[0].fix if missing else ""))
    return found


def findings_table(findings: list[Finding]) -> Table:
    """The findings for the terminal."""
    table = Table(title="fp3o doctor", title_justify="left", title_style="bold", box=box.SIMPLE)
    for name in ("", "check", "result", "fix"):
        table.add_column(name, no_wrap=name in ("", "check"), overflow="fold")
    for finding in findings:
        mark = "[green]ok[/]" if finding.ok else "[red]no[/]" if finding.required else "[dim]-[/]"
        fix = "" if finding.ok else finding.fix
        table.add_row(mark, *map(escape, (finding.name, finding.detail, fix)))
    return table
