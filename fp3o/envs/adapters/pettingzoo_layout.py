"""Sizes and layout of a PettingZoo environment, found by inspecting one."""

import contextlib
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from fp3o.envs.adapters.codecs import ActionCodec, BoxCodec, DiscreteCodec, TeamLayout
from fp3o.envs.adapters.pettingzoo_worker import ParallelEnvWorker
from fp3o.envs.adapters.spaces import action_codec, obs_codec
from fp3o.envs.adapters.variants import DEFAULT_LIMIT
from fp3o.envs.workers.protocol import buffer_spec, check_reply
from fp3o.errors import SettingError
from fp3o.spec import Box, Discrete, EnvSpec

LIMIT_ATTRIBUTES = ("max_cycles", "max_episode_steps", "episode_limit", "max_steps")
"""Attributes in which environments declare the maximum length of an episode."""


class Inspection(NamedTuple):
    """Sizes and layout of a task, found by inspecting one of its environments."""

    spec: EnvSpec
    layout: TeamLayout


class TeamActions(NamedTuple):
    """The actions of a team, and where the entries of action masks belong."""

    actions: Discrete | Box
    absent_mask: np.ndarray
    mask_indices: tuple[np.ndarray, ...]


def inspect_env(env: Any, name: str, options: Any) -> Inspection:
    """Find the sizes and the layout of a task from one of its environments."""
    agents = _agents(env)
    obs_spaces = [env.observation_space(agent) for agent in agents]
    action_spaces = [env.action_space(agent) for agent in agents]
    obs_codecs = tuple(map(obs_codec, agents, obs_spaces))
    action_codecs = tuple(map(action_codec, agents, action_spaces))
    actions, absent_mask, mask_indices = _team_actions(agents, action_codecs, action_spaces)
    env.reset(seed=0)
    state_size = _state_size(env)
    limit = options.max_episode_steps or _declared_limit(env) or DEFAULT_LIMIT
    layout = TeamLayout(
        agents, obs_codecs, action_codecs, actions.mask, absent_mask, mask_indices, state_size,
        options.reward, limit, options.episode_metrics,
    )  # fmt: skip
    spec = EnvSpec(
        name=name,
        actions=actions,
        obs_size=max(codec.size for codec in obs_codecs),
        state_size=state_size or sum(codec.size for codec in obs_codecs),
        agent_types=_agent_types(agents, list(zip(obs_spaces, action_spaces, strict=True))),
        truncates=True,
        reward_sum_over=len(agents) if options.reward == "sum" else 1,
        episode_metrics=options.episode_metrics,
    )
    first = ParallelEnvWorker(env, layout).reset(0, 0)
    check_reply(first, buffer_spec(spec).reply)  # does it match its spaces?
    return Inspection(spec, layout)


def _agents(env: Any) -> tuple[Any, ...]:
    if hasattr(env, "agent_iter"):
        raise SettingError(
            "this is an AEC environment, in which agents take turns; use the parallel one, "
            "`parallel_env`, or wrap it with `pettingzoo.utils.aec_to_parallel`"
        )
    agents = getattr(env, "possible_agents", None)
    if not agents:
        raise SettingError(
            f"{type(env).__name__} names no possible_agents, which a ParallelEnv must do"
        )
    return tuple(agents)


def _team_actions(
    agents: Sequence[Any], codecs: Sequence[ActionCodec], spaces: Sequence[Any]
) -> TeamActions:
    boxes = [codec for codec in codecs if isinstance(codec, BoxCodec)]
    discrete = [codec for codec in codecs if isinstance(codec, DiscreteCodec)]
    if boxes and discrete:
        first, other = codecs.index(boxes[0]), codecs.index(discrete[0])
        raise SettingError(
            f"agent {agents[first]!r} has actions of {spaces[first]}, agent {agents[other]!r} of "
            f"{spaces[other]}: the actions of a team must be all discrete (Discrete, "
            "MultiDiscrete, MultiBinary) or all continuous (Box)"
        )
    if boxes:
        box = Box(tuple(codec.low.size for codec in boxes))
        return TeamActions(box, box.mask, (np.zeros(0, int),) * len(boxes))
    most = max(len(codec.sizes) for codec in discrete)
    actions = Discrete(tuple(codec.sizes + (1,) * (most - len(codec.sizes)) for codec in discrete))
    offsets = [0, *accumulate(actions.widths[:-1])]
    absent_mask = np.zeros_like(actions.mask)
    absent_mask[:, offsets] = True
    indices = [
        [offset + np.arange(size) for offset, size in zip(offsets, codec.sizes, strict=False)]
        for codec in discrete
    ]
    return TeamActions(actions, absent_mask, tuple(map(np.concatenate, indices)))


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


def _declared_limit(env: Any) -> int | None:
    for source in (env, getattr(env, "unwrapped", env)):
        for name in LIMIT_ATTRIBUTES:
            number = getattr(source, name, None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return number
    return None
