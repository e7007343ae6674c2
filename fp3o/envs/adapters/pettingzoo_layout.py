"""Sizes and layout of a PettingZoo environment, found by inspecting one."""

import contextlib
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from fp3o.envs.adapters.codecs import ActionCodec, ObsCodec, TeamLayout
from fp3o.envs.adapters.pettingzoo_worker import ParallelEnvWorker
from fp3o.envs.adapters.spaces import action_codec, obs_codec
from fp3o.envs.adapters.variants import DEFAULT_LIMIT
from fp3o.envs.workers.protocol import buffer_spec, check_reply
from fp3o.errors import SettingError
from fp3o.spec import ActionSpace, Box, Discrete, EnvSpec, ImageShape, Mixed

LIMIT_ATTRIBUTES = ("max_cycles", "max_episode_steps", "episode_limit", "max_steps")
"""Attributes in which environments declare the maximum length of an episode."""


class Inspection(NamedTuple):
    """Sizes and layout of a task, found by inspecting one of its environments."""

    spec: EnvSpec
    layout: TeamLayout


class TeamActions(NamedTuple):
    """The actions of a team, and where the entries of action masks belong."""

    actions: ActionSpace
    absent_mask: np.ndarray
    mask_indices: tuple[np.ndarray, ...]


def inspect_env(env: Any, name: str, options: Any) -> Inspection:
    """Find the sizes and the layout of a task from one of its environments."""
    agents = _agents(env)
    obs_spaces = [env.observation_space(agent) for agent in agents]
    action_spaces = [env.action_space(agent) for agent in agents]
    obs_codecs = tuple(
        obs_codec(agent, space, options.images)
        for agent, space in zip(agents, obs_spaces, strict=True)
    )
    action_codecs = tuple(map(action_codec, agents, action_spaces))
    actions, absent_mask, mask_indices = team_actions(action_codecs)
    env.reset(seed=0)
    state_size = _state_size(env) if options.state == "env" else 0
    image = _common_image(obs_codecs)
    limit = options.max_episode_steps or declared_limit(env) or DEFAULT_LIMIT
    layout = TeamLayout(
        agents, obs_codecs, action_codecs, len(actions.widths), actions.mask, absent_mask,
        mask_indices, image, state_size, options.reward, limit, options.episode_metrics,
    )  # fmt: skip
    sizes = tuple(codec.size for codec in obs_codecs)
    names = tuple(map(str, agents))
    joined = image and not state_size
    spec = EnvSpec(
        name=name,
        actions=actions,
        obs_size=max(sizes),
        state_size=state_size or sum(sizes),
        agent_types=_agent_types(agents, list(zip(obs_spaces, action_spaces, strict=True))),
        truncates=True,
        reward_sum_over=len(agents) if options.reward == "sum" else 1,
        episode_metrics=options.episode_metrics,
        agents=names if len({*names}) == len(names) else (),
        obs_sizes=sizes,
        image=image,
        state_image=(*image[:2], len(agents) * image[2]) if image and joined else None,
    )
    first = ParallelEnvWorker(env, layout).reset(0, 0)
    check_reply(first, buffer_spec(spec).reply)  # does it match its spaces?
    return Inspection(spec, layout)


def _agents(env: Any) -> tuple[Any, ...]:
    agents = getattr(env, "possible_agents", None)
    if not agents:
        raise SettingError(
            f"{type(env).__name__} names no possible_agents, which a ParallelEnv must do"
        )
    return tuple(agents)


def team_actions(codecs: Sequence[ActionCodec]) -> TeamActions:
    """The actions of a team: all choices, all vectors, or both."""
    most = max(len(codec.sizes) for codec in codecs)
    discrete = Discrete(tuple(codec.sizes + (1,) * (most - len(codec.sizes)) for codec in codecs))
    box = Box(tuple(codec.num_dimensions for codec in codecs))
    if not most:
        return TeamActions(box, box.mask, (np.zeros(0, int),) * len(codecs))
    offsets = [0, *accumulate(discrete.widths[:-1])]
    absent_mask = np.zeros_like(discrete.mask)
    absent_mask[:, offsets] = True
    indices = [
        [offset + np.arange(size) for offset, size in zip(offsets, codec.sizes, strict=False)]
        for codec in codecs
    ]
    actions = Mixed(discrete, box) if box.num_dimensions else discrete
    absent_mask = np.concatenate([absent_mask, box.mask], axis=1)
    none = np.zeros(0, int)
    return TeamActions(actions, absent_mask, tuple(np.concatenate([none, *own]) for own in indices))


def _common_image(codecs: Sequence[ObsCodec]) -> ImageShape | None:
    """Shape of the image that the observations of all agents begin with."""
    shapes = {codec.image for codec in codecs}
    return shapes.pop() if len(shapes) == 1 else None


def _agent_types(agents: Sequence[Any], spaces: Sequence[tuple[Any, Any]]) -> tuple[int, ...]:
    """Agents with equal spaces and equal names, numbers aside, are of one type."""
    known: list[tuple[str, tuple[Any, Any]]] = []
    types = []
    for agent, pair in zip(agents, spaces, strict=True):
        mark = re.sub(r"[_-]?\d+$", "", str(agent)), pair
        if mark not in known:
            known.append(mark)
        types.append(known.index(mark))
    return tuple(types)


def _state_size(env: Any) -> int:
    """Length of `env.state()`; 0 if it returns nothing that a critic can use."""
    with contextlib.suppress(Exception):  # it is missing or fails
        state = np.asarray(env.state())
        if state.dtype.kind in "biuf" and np.isfinite(state).all():
            image = state.dtype == np.uint8 and state.ndim == 3
            return 0 if image else state.size
    return 0


def declared_limit(env: Any) -> int | None:
    """The maximum length of an episode that an environment declares."""
    inner = getattr(env, "unwrapped", env)
    for source in (env, inner, getattr(inner, "env", inner)):
        for name in LIMIT_ATTRIBUTES:
            number = getattr(source, name, None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return number
    return None
