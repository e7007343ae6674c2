"""Construction and rendering of Jumanji environments; the fields that their agents observe."""

import inspect
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import numpy as np

from fp3o.envs.adapters.variants import EnvArguments
from fp3o.errors import MissingExtraError, SettingError, nearest
from fp3o.imports import foreign_code

GENERATOR = "generator."
"""Prefix of the options of an environment's generator."""


class View(NamedTuple):
    """Fields of the observation that an agent observes: its own row, or the whole field."""

    own: tuple[str, ...]
    whole: tuple[str, ...]


VIEWS: Mapping[str, View] = {
    "RobotWarehouse": View(("agents_view",), ("step_count",)),
    "LevelBasedForaging": View(("agents_view",), ("step_count",)),
    # The grid contains the indices of the agents; an agent knows its own one from `agent_id`.
    "Connector": View((), ("grid", "step_count")),
    "Cleaner": View(("agents_locations",), ("agents_locations", "grid", "step_count")),
    "SearchAndRescue": View(("searcher_views",), ("targets_remaining", "step")),
    "MMST": View(("positions",), ("positions", "node_types", "adj_matrix", "step_count")),
    "MultiCVRP": View(("vehicles",), ("vehicles", "nodes", "windows", "coeffs")),
}
"""What an agent observes, by the class of the environment."""

TRUNCATED = ("LevelBasedForaging", "Connector")
"""Environments whose time limit truncates episodes; in the others it terminates them."""


def jumanji_names() -> tuple[str, ...]:
    """The multi-agent environments that Jumanji registers."""
    registered = _library().registered_environments()
    return tuple(sorted(name for name in registered if name.partition("-v")[0] in VIEWS))


@cache
def make_jumanji(name: str, options: EnvArguments) -> Any:
    """Make one of Jumanji's environments."""
    package, names = _library(), jumanji_names()
    if name not in names:
        raise SettingError(
            f"unknown multi-agent Jumanji environment {name!r}: {nearest(name, names)}"
        )
    changes = {k.removeprefix(GENERATOR): v for k, v in options if k.startswith(GENERATOR)}
    arguments: dict[str, Any] = {k: v for k, v in options if not k.startswith(GENERATOR)}
    # The environment is kept, so it must not contain tracers.
    with foreign_code(f"{name} cannot be made"), jax.ensure_compile_time_eval():
        if changes:
            arguments["generator"] = _generator(package.make(name), changes)
        return package.make(name, **arguments)


def render_state(env: Any, inner: Any) -> np.ndarray:
    """Jumanji's rendering of a state: all environments make animations, only some make images."""
    from PIL import Image

    with TemporaryDirectory() as folder:
        path = Path(folder) / "frame.gif"
        # Some draw only from the second state on.
        env.animate([inner, inner]).save(path, writer="pillow", dpi=48)
        with Image.open(path) as animation:
            animation.seek(animation.n_frames - 1)  # pyright: ignore
            return np.array(animation.convert("RGB"))


def field_names(observation: Any) -> tuple[str, ...]:
    """The fields of a named tuple or dataclass."""
    return getattr(observation, "_fields", None) or tuple(observation.__dataclass_fields__)


def _library() -> Any:
    try:
        import jumanji
    except ImportError as error:
        raise MissingExtraError("jumanji", "jumanji") from error
    return jumanji


def _generator(env: Any, changes: dict[str, Any]) -> Any:
    """The environment's generator with some of its parameters changed."""
    old = env.generator if hasattr(env, "generator") else env._generator
    allowed = [*inspect.signature(type(old)).parameters]
    for name in changes:
        if name not in allowed:
            raise SettingError(
                f"unknown parameter {name!r} of the generator: {nearest(name, allowed)}"
            )
    current = {
        name: getattr(old, attribute)
        for name in allowed
        for attribute in (name, f"_{name}")
        if attribute in vars(old)
    }
    return type(old)(**{**current, **changes})
