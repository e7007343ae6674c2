"""Shapes and types of the time steps of an environment, compared with its `EnvSpec`."""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from fp3o.errors import EnvError
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

Level = Literal["error", "warning", "note"]

FLAGS = {"action_mask", "alive", "terminated", "truncated", "episode_start"}
"""Fields of a time step that are booleans."""


class Problem(NamedTuple):
    """A problem of an environment, with a suggested fix."""

    level: Level
    """`error`: training would fail or learn something wrong; `warning`: it probably would; `note`:
    for information."""
    what: str
    fix: str = ""


class WrongShapeError(EnvError):
    """Arrays have other shapes or types than specified, so nothing else can be checked."""

    def __init__(self, task: str, problems: list[Problem]):
        first, more = problems[0], len(problems) - 1
        others = f" (and {more} more: see `fp3o.check_env`)" if more else ""
        super().__init__(f"{task}: {first.what}{others}. Fix: {first.fix}")
        self.problems = problems


def image_problems(spec: EnvSpec) -> Iterator[Problem]:
    """Images that do not fit into the observations or states that begin with them."""
    observed, central = (spec.image, spec.obs_size), (spec.state_image, spec.state_size)
    inputs = {"obs_size": observed, "state_size": central}
    for name, (image, size) in inputs.items():
        if image and not (min(image) >= 1 and math.prod(image) <= size):
            shape = " x ".join(map(str, image))
            yield Problem(
                "error", f"{name} is {size}, which cannot begin with an image of {shape}",
                "give height, width and channels of the image that is flattened at the start",
            )  # fmt: skip


def agent_problems(spec: EnvSpec) -> Iterator[Problem]:
    """Names and sizes that do not fit the agents: policies with them could not be loaded."""
    for name in ("agents", "obs_sizes", "action_names"):
        if (given := len(getattr(spec, name))) not in (0, spec.num_agents):
            yield Problem(
                "error", f"{name} is for {given} agents, agent_types for {spec.num_agents}",
                f"give EnvSpec.{name} one entry per agent",
            )  # fmt: skip
    if len({*spec.agents}) < len(spec.agents):
        yield Problem("error", "agents has the same name twice", "give every agent its own name")
    if max(spec.agent_obs_sizes) > spec.obs_size:
        what = f"obs_sizes has {max(spec.agent_obs_sizes)}, and obs_size is {spec.obs_size}"
        yield Problem("error", what, "make obs_size the largest of obs_sizes")


def require_shapes(spec: EnvSpec, num_envs: int, timestep: TimeStep, method: str) -> None:
    """Raise `WrongShapeError` unless all arrays have the specified shapes and types.

    Shapes suffice: an array may be a `jax.ShapeDtypeStruct`.
    """
    e, n = num_envs, spec.num_agents
    obs, state = (e, n, spec.obs_size), (e, n, spec.state_size)
    shapes = {
        "obs": obs, "state": state, "action_mask": (e, n, spec.actions.mask.shape[1]),
        "alive": (e, n), "reward": (e, n), "terminated": (e,), "truncated": (e,),
        "episode_start": (e,), "final_obs": obs, "final_state": state,
        "episode_metrics": (e, len(spec.episode_metrics)),
    }  # fmt: skip
    problems = []
    for name, shape in shapes.items():
        x = getattr(timestep, name)
        kind, dtype = "b" if name in FLAGS else "f", getattr(x, "dtype", None)
        if dtype is None:
            problems.append(Problem("error", f"{name} after {method} is no array", "return one"))
        elif x.shape != shape:
            fix = f"return an array of {shape}: environments, agents, then features"
            problems.append(Problem("error", f"{name} after {method} has shape {x.shape}", fix))
        elif dtype.kind != kind:
            fix = f"return {'booleans' if kind == 'b' else '32-bit floats'}"
            problems.append(Problem("error", f"{name} after {method} is {dtype}", fix))
    if problems:
        raise WrongShapeError(spec.name, problems)
