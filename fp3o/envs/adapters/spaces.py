"""Codecs for the spaces of Gymnasium, which PettingZoo uses as well."""

from typing import Any

import numpy as np
from gymnasium import spaces

from fp3o.envs.adapters.codecs import MASK, ActionCodec, BoxCodec, DiscreteCodec, ObsCodec
from fp3o.errors import SettingError


def obs_codec(agent: Any, space: Any) -> ObsCodec:
    """The codec of an agent's observation space."""
    if isinstance(space, spaces.Dict):
        if "observation" not in space.spaces or space.spaces.keys() - {"observation", MASK}:
            why = f"a Dict must have the keys 'observation' and {MASK!r} only"
            raise _unsupported(agent, "observations", space, why)
        inner = _plain_obs_codec(agent, space["observation"])
        return ObsCodec(inner.size, inner.categories, inner.start, in_dict=True)
    return _plain_obs_codec(agent, space)


def action_codec(agent: Any, space: Any) -> ActionCodec:
    """The codec of an agent's action space."""
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
    raise _unsupported(
        agent, "actions", space,
        "supported are Discrete, MultiDiscrete, MultiBinary, and Box of real numbers",
    )  # fmt: skip


def is_image(space: Any) -> bool:
    """Whether a space is declared as colour images."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def _plain_obs_codec(agent: Any, space: Any) -> ObsCodec:
    if is_image(space):
        raise _unsupported(agent, "observations", space, "images need convolutional networks")
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return ObsCodec(int(np.prod(space.shape)))
    if isinstance(space, spaces.Discrete):
        return ObsCodec(int(space.n), (int(space.n),), (int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(space.nvec.ravel().tolist())
        return ObsCodec(sum(sizes), sizes, tuple(np.ravel(space.start).tolist()))
    raise _unsupported(
        agent, "observations", space,
        "supported are Box, Discrete, MultiDiscrete, MultiBinary, and a Dict of 'observation' and "
        f"{MASK!r}",
    )  # fmt: skip


def _unsupported(agent: Any, what: str, space: Any, why: str) -> SettingError:
    return SettingError(f"agent {agent!r} has {what} of {space}, which is not supported: {why}")
