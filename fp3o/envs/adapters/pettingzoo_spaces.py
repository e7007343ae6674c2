"""TODO."""

import contextlib
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fp3o.envs.adapters.codecs import MASK, BoxCodec, DiscreteCodec, ObsCodec, TeamLayout
from fp3o.envs.adapters.pettingzoo_worker import Table
from fp3o.envs.workers.protocol import check_reply
from fp3o.envs.workers.vec_env import buffer_spec
from fp3o.spec import Box, Discrete, EnvSpec

SAYS = ("max_cycles", "max_episode_steps", "episode_limit", "max_steps")
"""Where environments say how long an episode can be."""

FALLBACK = 1000
"""The longest an episode can be where nobody says it."""


class Facts(NamedTuple):
    """What is known of a task when one of its environments has been looked at."""

    spec: EnvSpec
    layout: TeamLayout


class _Gently:
    """Closes an environment; it may not be able to before anything has happened."""

    def __init__(self, env: Any):
        self._env = env

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._env.close()


def look(env: Any, task: Any) -> Facts:
    """Find out the facts of a task by one of its environments."""
    agents = team(env)
    seen = [env.observation_space(agent) for agent in agents]
    done = [env.action_space(agent) for agent in agents]
    senses = tuple(obs_codec(agent, space) for agent, space in zip(agents, seen, strict=True))
    hands: Any = tuple(
        action_codec(agent, space) for agent, space in zip(agents, done, strict=True)
    )
    actions, idle, places = together(agents, hands, done)
    env.reset(seed=0)
    central = state_size(env)
    limit = task.limit or said(env) or FALLBACK
    layout = TeamLayout(
        agents, senses, hands, actions.mask, idle, places, central, task.reward, limit,
        tuple(task.outcomes),
    )  # fmt: skip
    spec = EnvSpec(
        name=task.name,
        actions=actions,
        obs_size=max(one.size for one in senses),
        state_size=central or sum(one.size for one in senses),
        agent_types=kinds(agents, list(zip(seen, done, strict=True))),
        truncates=True,
        reward_sum_over=len(agents) if task.reward == "sum" else 1,
        episode_metrics=tuple(task.outcomes),
    )
    check_reply(Table(env, layout).reset(0, 0), buffer_spec(spec).answer)  # does it keep its word?
    return Facts(spec, layout)


def team(env: Any) -> tuple[Any, ...]:
    """All agents that may ever be there."""
    if hasattr(env, "agent_iter"):
        raise ValueError(
            "this is an AEC environment, in which agents take turns; give the parallel one, as "
            "`parallel_env`, or wrap it with `pettingzoo.utils.aec_to_parallel`"
        )
    agents = getattr(env, "possible_agents", None)
    if not agents:
        raise ValueError(
            f"{type(env).__name__} names no possible_agents; a ParallelEnv that does is needed"
        )
    return tuple(agents)


def obs_codec(agent: Any, space: Any) -> ObsCodec:
    """How an agent's observations become numbers."""
    if isinstance(space, spaces.Dict):
        if "observation" not in space.spaces or space.spaces.keys() - {"observation", MASK}:
            why = f"a Dict must have 'observation' and {MASK!r} only"
            raise unsupported(agent, "observations", space, why)
        inner = plain_sense(agent, space["observation"])
        return ObsCodec(inner.size, inner.choices, inner.start, boxed=True)
    return plain_sense(agent, space)


def plain_sense(agent: Any, space: Any) -> ObsCodec:
    """How observations that are no dictionaries become numbers."""
    if is_image(space):
        raise unsupported(agent, "observations", space, "images need other networks than fp3o has")
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return ObsCodec(int(np.prod(space.shape)))
    if isinstance(space, spaces.Discrete):
        return ObsCodec(int(space.n), (int(space.n),), (int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(space.nvec.ravel().tolist())
        return ObsCodec(sum(sizes), sizes, tuple(np.ravel(space.start).tolist()))
    raise unsupported(
        agent, "observations", space,
        "supported are Box, Discrete, MultiDiscrete, MultiBinary, and a Dict of 'observation' and "
        f"{MASK!r}",
    )  # fmt: skip


def is_image(space: Any) -> bool:
    """A picture in colours, by what environments declare."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def action_codec(agent: Any, space: Any) -> DiscreteCodec | BoxCodec:
    """How an agent's choices or numbers become actions."""
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
    raise unsupported(
        agent, "actions", space,
        "supported are Discrete, MultiDiscrete, MultiBinary, and Box of real numbers",
    )  # fmt: skip


def unsupported(agent: Any, what: str, space: Any, why: str) -> ValueError:
    """An error that says which agent's space cannot be used."""
    return ValueError(f"agent {agent!r} has {what} of {space}, which is not supported: {why}")


def together(
    agents: Sequence[Any], hands: Sequence[DiscreteCodec | BoxCodec], done: Sequence[Any]
) -> tuple[Discrete | Box, np.ndarray, tuple[np.ndarray, ...]]:
    """The team's actions, what is left to the absent, and where entries of action masks go."""
    dials = [one for one in hands if isinstance(one, BoxCodec)]
    picks = [one for one in hands if isinstance(one, DiscreteCodec)]
    if dials and picks:
        first, other = hands.index(dials[0]), hands.index(picks[0])
        raise ValueError(
            f"agent {agents[first]!r} has actions of {done[first]}, agent {agents[other]!r} of "
            f"{done[other]}: a team must either choose (Discrete, MultiDiscrete, MultiBinary) or "
            "have vectors of real numbers (Box)"
        )
    if dials:
        box = Box(tuple(one.low.size for one in dials))
        return box, box.mask, (np.zeros(0, int),) * len(dials)
    longest = max(len(one.sizes) for one in picks)
    actions = Discrete(tuple(one.sizes + (1,) * (longest - len(one.sizes)) for one in picks))
    offsets = [0, *accumulate(actions.widths[:-1])]
    idle = np.zeros_like(actions.mask)
    idle[:, offsets] = True
    places = tuple(
        np.concatenate([
            offset + np.arange(size) for offset, size in zip(offsets, one.sizes, strict=False)
        ])
        for one in picks
    )  # fmt: skip
    return actions, idle, places


def kinds(agents: Sequence[Any], own: Sequence[tuple[Any, Any]]) -> tuple[int, ...]:
    """Agents of one name but for the number, and of the same spaces, are of one kind."""
    known: list[tuple[str, tuple[Any, Any]]] = []
    found = []
    for agent, pair in zip(agents, own, strict=True):
        mark = re.sub(r"[_-]?\d+$", "", str(agent)), pair
        if mark not in known:
            known.append(mark)
        found.append(known.index(mark))
    return tuple(found)


def state_size(env: Any) -> int:
    """Length of what `env.state()` gives; 0 if it gives nothing a critic could use."""
    with contextlib.suppress(Exception):  # there is none, or it is broken
        state = np.asarray(env.state())
        if state.dtype.kind in "biuf" and np.isfinite(state).all():
            picture = state.dtype == np.uint8 and state.ndim == 3
            return 0 if picture else state.size
    return 0


def said(env: Any) -> int | None:
    """How long an episode can be, by the environment's own words."""
    for source in (env, getattr(env, "unwrapped", env)):
        for name in SAYS:
            number = getattr(source, name, None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return number
    return None
