"""Making PettingZoo environments, by import path or by an id of its registry.

Worker processes import this module; it needs the standard library only.
"""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from fp3o import imports
from fp3o.errors import MissingExtraError, SettingError, nearest, printable

FACTORY, TURN_BASED = "parallel_env", "env"
"""Names of functions that make the environment of a module, by PettingZoo's convention: one in
which all agents act at once, and one (AEC) in which they take turns."""


def make_parallel_env(make: str | Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
    """Make a new environment; an object that was returned before is rejected."""
    env = (load_factory(make) if isinstance(make, str) else make)(**kwargs)
    if hasattr(env, "agent_iter"):
        env = _all_at_once(env)
    with contextlib.suppress(TypeError):  # an object without a __dict__
        if vars(env).get("_fp3o_taken"):
            raise SettingError("it returns the same environment twice; every call must make one")
        vars(env)["_fp3o_taken"] = True
    return env


def load_factory(path: str) -> Callable[..., Any]:
    """The function at `module:name`, or the `parallel_env` of a module, or else its `env`.

    A path with a slash is an id of PettingZoo's registry, `sisl/pursuit-v5`.
    """
    try:
        loaded = _registered(path) if "/" in path else imports.load(path)
    except ValueError as error:
        missing = getattr(error.__cause__, "name", None) or ""
        if missing.partition(".")[0] == "pettingzoo":
            raise MissingExtraError("pettingzoo", "pettingzoo") from error
        raise
    if not isinstance(loaded, ModuleType):
        return loaded
    only_turns = TURN_BASED in vars(loaded) and FACTORY not in vars(loaded)
    return imports.attribute(loaded, TURN_BASED if only_turns else FACTORY)


def _registered(env_id: str) -> Callable[..., Any]:
    """The function that makes an environment of PettingZoo's registry."""
    registries = {kind: imports.load(f"pettingzoo:{kind}_registry") for kind in ("parallel", "aec")}
    for kind, registry in registries.items():
        if env_id in registry:
            return partial(imports.load("pettingzoo:make"), kind, env_id)
    known = {name for registry in registries.values() for name in registry}
    raise SettingError(f"PettingZoo has no environment {env_id!r}: {nearest(env_id, known)}")


def _all_at_once(env: Any) -> Any:
    """An AEC environment, in which agents take turns, converted by PettingZoo."""
    from pettingzoo.utils.conversions import aec_to_parallel

    try:
        return aec_to_parallel(env)
    except AssertionError as error:
        reason = printable(" ".join(str(error).split()))
        raise SettingError(
            "this is an AEC environment, in which agents take turns, and PettingZoo cannot make a "
            f"parallel one of it: {reason}"
        ) from error
