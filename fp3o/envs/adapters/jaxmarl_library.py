"""Construction of JaxMARL environments, and access to and rendering of their states."""

import contextlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

import jax
import numpy as np

from fp3o.envs.adapters.variants import EnvArguments
from fp3o.errors import MissingExtraError, SettingError, nearest
from fp3o.imports import foreign_code

BRAX = ("ant_4x2", "halfcheetah_6x1", "hopper_3x1", "humanoid_9|8", "walker2d_2x3")
"""Environments based on Brax."""


def jaxmarl_names() -> tuple[str, ...]:
    """The environments that JaxMARL registers."""
    return tuple(_library().registered_envs)


@cache
def make_jaxmarl(name: str, options: EnvArguments) -> Any:
    """Make one of JaxMARL's environments."""
    package = _library()
    if name not in package.registered_envs:
        raise SettingError(
            f"unknown JaxMARL environment {name!r}: {nearest(name, package.registered_envs)}"
        )
    # Brax would reset automatically at the end of an episode.
    fixed = {"auto_reset": False} if name in BRAX else {}
    # The environment is kept, so it must not contain tracers.
    with foreign_code(f"{name} cannot be made"), jax.ensure_compile_time_eval():
        return package.make(name, **fixed, **_with_objects(name, dict(options)))


def find_field(state: Any, name: str) -> Any:
    """A field of a state, which may be wrapped in others; None if there is none."""
    while state is not None and not hasattr(state, name):
        state = getattr(state, "state", None)
    return None if state is None else getattr(state, name)


def render_positions(env: Any, inner: Any) -> np.ndarray:
    """Agents and landmarks of an MPE state, or both sides of a SMAX battle, as discs."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    alive = find_field(inner, "unit_alive")
    canvas = FigureCanvasAgg(Figure((4.0, 4.0), dpi=120))
    axes = canvas.figure.add_axes((0.02, 0.02, 0.96, 0.96), xticks=[], yticks=[], aspect="equal")
    if alive is not None:
        axes.set(xlim=(0, env.map_width), ylim=(0, env.map_height))
        sizes = np.asarray(env.unit_type_radiuses)[find_field(inner, "unit_types")]
        colours = np.where(np.arange(len(alive)) < env.num_allies, "tab:blue", "tab:red")
        positions = find_field(inner, "unit_positions")[alive]
        discs = zip(positions, sizes[alive], colours[alive], strict=True)
    else:
        axes.set(xlim=(-2, 2), ylim=(-2, 2))
        discs = zip(find_field(inner, "p_pos"), env.rad, np.asarray(env.colour) / 255, strict=True)
    for position, size, colour in discs:
        axes.add_patch(Circle(position, float(size), color=colour))
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]


def _library() -> Any:
    try:
        # Importing it replaces the output streams.
        with contextlib.redirect_stdout(sys.stdout), contextlib.redirect_stderr(sys.stderr):
            import jaxmarl
    except ImportError as error:
        raise MissingExtraError("jaxmarl", "jaxmarl") from error
    return jaxmarl


def _with_objects(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Replace names of scenarios and layouts by JaxMARL's objects."""
    if "SMAX" in name and isinstance(given := options.get("scenario"), str):
        maps = import_module("jaxmarl.environments.smax.smax_env").MAP_NAME_TO_SCENARIO
        return {**options, "scenario": _look_up("scenario", given, maps)}
    if name == "overcooked" and isinstance(given := options.get("layout"), str):
        layouts = import_module("jaxmarl.environments.overcooked").overcooked_layouts
        return {**options, "layout": _look_up("layout", given, layouts)}
    return options


def _look_up(kind: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise SettingError(f"unknown {kind} {name!r}: {nearest(name, known)}")
    return known[name]
