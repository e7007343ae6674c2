"""Codecs for the spaces of Gymnasium, which PettingZoo uses as well."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from fp3o.envs.adapters.codecs import (
    MASK,
    ActionCodec,
    BoxCodec,
    DiscreteCodec,
    NestedCodec,
    ObsCodec,
    ObsEntry,
)
from fp3o.errors import SettingError
from fp3o.spec import ImageShape

MAX_CHANNELS = 4
"""An array whose first axis, and not its last, is at most this long has its channels first."""


def obs_codec(agent: Any, space: Any, images: str = "uint8") -> ObsCodec:
    """The codec of an agent's observation space."""
    has_mask = isinstance(space, spaces.Dict) and MASK in space.spaces
    entries = [*_obs_entries(agent, space, (), images)]
    if not sum(entry.size for entry in entries):
        raise _unsupported(agent, "observations", space, "it has no numbers")
    first = next((entry for entry in entries if entry.image), entries[0])
    others = [entry for entry in entries if entry is not first]
    return ObsCodec((first, *others) if first.image else tuple(entries), has_mask)


def action_codec(agent: Any, space: Any) -> ActionCodec:
    """The codec of an agent's action space."""
    codec = _action_codec(agent, space)
    if not codec.sizes and not codec.num_dimensions:
        raise _unsupported(agent, "actions", space, "the agent has nothing to decide")
    return codec


def image_shape(space: Any, images: str = "uint8") -> ImageShape | None:
    """Height, width and channels of a space of images; None: it is no such space."""
    if not isinstance(space, spaces.Box) or images == "none":
        return None
    axes = len(space.shape)
    numbers = images == "all" and axes == 3 and np.issubdtype(space.dtype, np.floating)
    if not numbers and not (_is_bytes(space) and axes in (2, 3)):
        return None
    first, second, third = (*space.shape, 1)[:3]
    return (second, third, first) if _channels_first(space.shape) else (first, second, third)


def _obs_entries(agent: Any, space: Any, path: tuple[Any, ...], images: str) -> Iterator[ObsEntry]:
    """The arrays of an observation, in the order of the space."""
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            if path or key != MASK:
                yield from _obs_entries(agent, inner, (*path, key), images)
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            yield from _obs_entries(agent, inner, (*path, index), images)
    elif isinstance(space, spaces.Box):
        image, size = image_shape(space, images), int(np.prod(space.shape))
        scale = 1 / 255 if _is_bytes(space) and len(space.shape) > 1 else 1.0
        first = image is not None and _channels_first(space.shape)
        yield ObsEntry(path, size, image=image, scale=scale, channels_first=first)
    elif isinstance(space, spaces.MultiBinary):
        yield ObsEntry(path, int(np.prod(space.shape)))
    elif isinstance(space, spaces.Discrete):
        yield ObsEntry(path, int(space.n), (int(space.n),), (int(space.start),))
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(space.nvec.ravel().tolist())
        yield ObsEntry(path, sum(sizes), sizes, tuple(np.ravel(space.start).tolist()))
    else:
        why = "supported are Box, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these"
        raise _unsupported(agent, "observations", space, why)


def _action_codec(agent: Any, space: Any) -> ActionCodec:
    if isinstance(space, spaces.Discrete):
        return DiscreteCodec((int(space.n),), np.array([space.start], space.dtype), ())
    if isinstance(space, spaces.MultiDiscrete):
        start = np.ravel(space.start).astype(space.dtype)
        return DiscreteCodec(tuple(space.nvec.ravel().tolist()), start, space.nvec.shape)
    if isinstance(space, spaces.MultiBinary):
        number = int(np.prod(space.shape))
        return DiscreteCodec((2,) * number, np.zeros(number, space.dtype), space.shape)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return BoxCodec(space.low.ravel(), space.high.ravel(), space.shape)
    if isinstance(space, spaces.Dict):
        parts = tuple(_action_codec(agent, inner) for inner in space.spaces.values())
        return NestedCodec(tuple(space.spaces), parts)
    if isinstance(space, spaces.Tuple):
        return NestedCodec(None, tuple(_action_codec(agent, inner) for inner in space.spaces))
    raise _unsupported(
        agent, "actions", space,
        "supported are Discrete, MultiDiscrete, MultiBinary, Box of real numbers, and Dict and "
        "Tuple of these",
    )  # fmt: skip


def _is_bytes(space: spaces.Box) -> bool:
    """Whether numbers are bytes from 0 to 255."""
    return space.dtype == np.uint8 and not space.low.any() and bool((space.high == 255).all())


def _channels_first(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[0] <= MAX_CHANNELS < shape[2]


def _unsupported(agent: Any, what: str, space: Any, why: str) -> SettingError:
    return SettingError(f"agent {agent!r} has {what} of {space}, which is not supported: {why}")
