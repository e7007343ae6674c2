"""What works here, what does not, and how to mend it."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.markup import escape
from rich.table import Table

EXTRAS = {
    "wandb": ("wandb", "logging to Weights & Biases"),
    "mlflow": ("mlflow", "logging to MLflow"),
    "mpe2": ("mpe2", "comparing with the original particle tasks"),
    "mujoco.mjx": ("mjx", "MuJoCo tasks on the accelerator"),
}
"""Module -> the extra that brings it, and what it is for."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    well: bool
    needed: bool
    what: str
    fix: str = ""


def examine() -> list[Finding]:
    """Look at everything."""
    looks = [_python, _versions, _devices, _tasks, _disk, *(_extra(name) for name in EXTRAS)]
    return [finding for look in (*looks, _starcraft) for finding in look()]


def _python() -> list[Finding]:
    words = sys.version.split()[0]
    return [Finding("python", sys.version_info >= (3, 11), True, words, "use Python 3.11 or newer")]


def _versions() -> list[Finding]:
    from fp3o.runs.provenance import versions

    fix = "pip install fp3o"
    return [
        Finding(name, number != "not installed", True, number, fix)
        for name, number in versions().items()
        if name != "python"
    ]


def _devices() -> list[Finding]:
    import jax

    from fp3o.runs.provenance import device

    fix = "unset JAX_PLATFORMS, or install the jax wheel for your accelerator (jax[cuda12])"
    try:
        found = device()
    except RuntimeError as error:
        return [Finding("device", False, True, str(error).splitlines()[0], fix)]
    accelerated = jax.default_backend() != "cpu"
    hint = "" if accelerated or not shutil.which("nvidia-smi") else fix
    return [Finding("device", not hint, False, found, hint)]


def _tasks() -> list[Finding]:
    """Every task is made, and stepped once (pure games: traced, which takes much less time)."""
    from fp3o.envs.registry import TASKS

    findings, well = [], 0
    for task in TASKS.values():
        for variant in task.variants:
            name = f"{task.name}:{variant}" if len(task.variants) > 1 else task.name
            try:
                _play(task.env(variant))
                well += 1
            except Exception as error:
                findings.append(Finding(name, False, True, repr(error), "pip install -U fp3o"))
    return [Finding("tasks", well > 0, True, f"{well} play (fp3o list)"), *findings]


def _play(game: Any) -> None:
    import jax
    import jax.numpy as jnp

    from fp3o.envs.api import HostEnv

    mask, widths = game.spec.actions.mask, getattr(game.spec.actions, "widths", None)
    shape = (len(mask), len(widths) if widths else mask.shape[1])
    action = jnp.zeros(shape, int if widths else float)
    if isinstance(game, HostEnv):
        env = game.vectorise(1)
        env.step(env.reset(jax.random.key(0))[0], action[None])
    else:
        jax.eval_shape(lambda key: game.step(game.reset(key), action, key), jax.random.key(0))


def _disk() -> list[Finding]:
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free / 2**30
    try:
        with tempfile.TemporaryFile(dir=folder):
            writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    fix = "free some space, or give runs another place with --out"
    words = f"{'writable' if writable else 'not writable'}, {free:.1f} GiB free"
    return [Finding("this directory", writable and free > 0.5, True, words, fix)]


def _extra(module: str) -> Callable[[], list[Finding]]:
    extra, purpose = EXTRAS[module]

    def look() -> list[Finding]:
        there = find_spec(module) is not None
        words = purpose if there else f"not installed: {purpose}"
        return [Finding(module, there, False, words, f"pip install 'fp3o[{extra}]'")]

    return look


def _starcraft() -> list[Finding]:
    """The real game, for those who bring it."""
    from fp3o.envs.starcraft2.install import parts

    absent = [part for part in parts() if not part.found]
    there = ", ".join(f"{part.name} {part.found}" for part in parts() if part.found)
    words = f"not found: {', '.join(part.name for part in absent)}" if absent else there
    fix = "; ".join(part.fix for part in absent[:1])
    return [Finding("StarCraft II", not absent, False, words, fix)]


def table(findings: list[Finding]) -> Table:
    """The findings for people."""
    shown = Table(title="fp3o doctor", title_justify="left", title_style="bold", box=box.SIMPLE)
    for name in ("", "what", "found", "fix"):
        shown.add_column(name, no_wrap=name in ("", "what"), overflow="fold")
    for finding in findings:
        mark = "[green]ok[/]" if finding.well else "[red]no[/]" if finding.needed else "[dim]-[/]"
        fix = "" if finding.well else finding.fix
        shown.add_row(mark, *map(escape, (finding.name, finding.what, fix)))
    return shown
