"""Gymnasium's environments as tasks of a team of one, for which every algorithm is PPO.

Environments are stepped one by one in this process. An episode begins with a seed that depends
only on the key, the environment's place and the episode's number, so runs can be repeated.

An environment cannot be put back to where it was: a state names the moment it belongs to. From one
that is not the newest, as after a resumption, episodes that had just begun begin again alike;
others end as if cut by a time limit, and the next ones begin.
"""

import math
import secrets
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from fp3o.envs.adapters.variants import EnvArguments, read_variant, write_variant
from fp3o.envs.api import HostEnv, VecEnv
from fp3o.envs.rendering import add_caption, rendered_frame, without_display
from fp3o.spec import Box, Discrete, EnvSpec
from fp3o.types import TimeStep

FAMILY = "gymnasium"

UNKNOWN_LIMIT = 1000
"""Steps after which an evaluation gives up where no limit is known."""

MASK = "action_mask"
"""What an info may tell: choices that make sense now."""


class Standing(NamedTuple):
    """Where all environments stand: numbers only."""

    moment: np.ndarray
    """(2,): which batch this is, and how many moments it has had."""
    time: np.ndarray
    """(e,): steps of the running episode."""
    episode: np.ndarray
    """(e,): number of the running episode."""
    stream: np.ndarray
    """(e, w): with the episode's number it decides how an episode begins."""
    obs: np.ndarray
    """(e, 1, f): what was last seen."""


class Gyms(VecEnv):
    """`num_envs` environments, stepped together; episodes begin again by themselves."""

    def __init__(self, spec: EnvSpec, num_envs: int, build: Callable[[], Any]):
        self.spec, self.num_envs = spec, num_envs
        self._envs = [build() for _ in range(num_envs)]
        self._close = weakref.finalize(self, _close, self._envs)
        self._moment = np.array([secrets.randbits(62), 0], np.int64)
        self._alive = np.ones((num_envs, 1), bool)
        self._nothing = np.zeros((num_envs, 0), np.float32)
        self._read = _reader(self._envs[0].observation_space)
        self._play = _player(self._envs[0].action_space)
        self._shot: np.ndarray | None = None

    def close(self) -> None:
        """Let go of all environments."""
        self._close()

    def reset(self, key: Key[Array, "*s"]) -> tuple[Standing, TimeStep]:
        """Begin an episode in every environment; of several keys each has an equal part of them."""
        numbers = np.asarray(jax.random.key_data(key)).reshape(key.size, -1).astype(np.uint32)
        each = self.num_envs // key.size
        places = np.tile(np.arange(each, dtype=np.uint32), key.size)[:, None]
        stream = np.hstack([np.repeat(numbers, each, axis=0), places])
        episode = np.zeros(self.num_envs, np.int64)
        obs, action_mask = self._blank()
        for i in range(self.num_envs):
            obs[i, 0], action_mask[i, 0] = self._begin(i, stream[i], 0)
        none = np.zeros(self.num_envs, bool)
        reward = np.zeros((self.num_envs, 1), np.float32)
        state = self._standing(episode.copy(), episode, stream, obs)
        return state, self._shown(obs, action_mask, reward, (none, none, ~none), obs)

    def step(self, state: Standing, action: Any) -> tuple[Standing, TimeStep]:
        """Play the actions `(e, 1, d)`; where an episode ends, the next one begins."""
        going = self._take_up(state)
        action, (obs, action_mask) = np.asarray(action), self._blank()
        time, episode = state.time + 1, state.episode.copy()
        final, reward = obs.copy(), np.zeros((self.num_envs, 1), np.float32)
        over, cut = np.zeros((2, self.num_envs), bool)
        for i, env in enumerate(self._envs):
            if going[i]:
                seen, reward[i], over[i], late, info = env.step(self._play(action[i, 0]))
                final[i, 0], action_mask[i, 0] = self._read(seen), self._legal(info)
                cut[i] = late and not over[i]
            else:
                final[i], cut[i] = state.obs[i], True
            obs[i] = final[i]
            if over[i] or cut[i]:
                time[i], episode[i] = 0, episode[i] + 1
                obs[i, 0], action_mask[i, 0] = self._begin(i, state.stream[i], int(episode[i]))
        new = self._standing(time, episode, state.stream, obs)
        return new, self._shown(obs, action_mask, reward, (over, cut, over | cut), final)

    def render(self, state: Standing, caption: str) -> np.ndarray | None:
        """The first environment's picture of itself, if it was made to have one.

        Of a moment that has passed, it is the last picture that was taken.
        """
        if self._envs[0].render_mode and self._newest(state):
            self._shot = rendered_frame(self._envs[0].render)
        return None if self._shot is None else add_caption(self._shot, caption)

    def _newest(self, state: Standing) -> bool:
        return np.array_equal(state.moment, self._moment)

    def _take_up(self, state: Standing) -> np.ndarray:
        """Which episodes can be played on from a state: all, if it is the newest one."""
        if self._newest(state):
            return np.ones(self.num_envs, bool)
        fresh = state.time == 0
        for i in np.flatnonzero(fresh).tolist():
            self._begin(i, state.stream[i], int(state.episode[i]))
        if lost := int(state.time.sum()):
            warnings.warn(
                f"{self.spec.name}: environments cannot be put back to where they were; "
                f"{np.count_nonzero(~fresh)} running episodes of {lost} steps end as if cut by a "
                "time limit",
                RuntimeWarning,
                stacklevel=3,
            )
        return fresh

    def _begin(self, i: int, stream: np.ndarray, episode: int) -> tuple[np.ndarray, np.ndarray]:
        words = [*stream.tolist(), episode]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0] >> 1)
        seen, info = self._envs[i].reset(seed=seed)
        return self._read(seen), self._legal(info)

    def _legal(self, info: dict[str, Any]) -> np.ndarray:
        exists = self.spec.actions.mask[0]
        told = info.get(MASK) if isinstance(self.spec.actions, Discrete) else None
        if told is None or np.size(told) != exists.size or not np.any(told):
            return exists
        return np.ravel(told).astype(bool)

    def _blank(self) -> tuple[np.ndarray, np.ndarray]:
        obs = np.empty((self.num_envs, 1, self.spec.obs_size), np.float32)
        return obs, np.empty((self.num_envs, *self.spec.actions.mask.shape), bool)

    def _standing(self, time: Any, episode: Any, stream: Any, obs: np.ndarray) -> Standing:
        self._moment = self._moment + np.array([0, 1])
        return Standing(self._moment, time, episode, stream, obs)

    def _shown(self, obs: Any, action_mask: Any, reward: Any, ends: Any, final: Any) -> TimeStep:
        return TimeStep._make((
            obs, obs, action_mask, self._alive, reward, *ends, final, final, self._nothing,
        ))  # fmt: skip


@dataclass(frozen=True)
class Gymnasium(HostEnv):
    """An environment by its name, made with `options`."""

    name: str
    renderable = True
    options: EnvArguments = ()
    render_mode: str | None = None
    """`rgb_array`: environments have pictures."""

    @property
    def variant(self) -> str:
        """The options as text."""
        return write_variant({}, self.options)

    @property
    def max_episode_steps(self) -> int:
        """The longest an episode can be, as far as it is known."""
        return self._facts[1] or UNKNOWN_LIMIT

    @property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        return self._facts[0]

    def with_rendering(self) -> "Gymnasium":
        """The same task with pictures."""
        return replace(self, render_mode="rgb_array")

    def vectorise(self, num_envs: int) -> Gyms:
        """Environments that are stepped together."""
        return Gyms(self.spec, num_envs, self.build)

    def build(self) -> Any:
        """One of Gymnasium's environments."""
        import gymnasium

        options: dict[str, Any] = dict(self.options)
        if self.render_mode:
            without_display()
            options["render_mode"] = self.render_mode
        try:
            # Its checker warns of what is not our business, at every step.
            return gymnasium.make(self.name, disable_env_checker=True, **options)
        except (TypeError, gymnasium.error.Error) as error:
            raise ValueError(f"{self.name} cannot be made: {error}") from error

    @cached_property
    def _facts(self) -> tuple[EnvSpec, int | None]:
        from gymnasium.spaces import flatdim

        env = self.build()
        limit = env.spec.max_episode_steps
        try:
            size = flatdim(env.observation_space)
        except (NotImplementedError, ValueError) as error:
            raise ValueError(f"{self.name}: observations have no fixed size: {error}") from error
        spec = EnvSpec(
            f"{FAMILY}/{self.name}:{self.variant}", _choices(env.action_space), size, size, (0,),
            # An environment without a limit may still cut its episodes by itself.
            truncates=True,
        )  # fmt: skip
        env.close()
        return spec, limit


def make(name: str, variant: str = "default") -> Gymnasium:
    """A task by its name and options, as in `default:env.g=9.81`."""
    _, options = read_variant(variant, ())
    return Gymnasium(name, options)


def _choices(space: Any) -> Discrete | Box:
    from gymnasium import spaces

    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        return Box((math.prod(space.shape),))
    if isinstance(space, spaces.Discrete):
        return Discrete(((int(space.n),),))
    if isinstance(space, spaces.MultiDiscrete):
        return Discrete((tuple(np.ravel(space.nvec).tolist()),))
    if isinstance(space, spaces.MultiBinary):
        return Discrete(((2,) * math.prod(space.shape),))
    raise ValueError(f"actions must be Discrete, MultiDiscrete, MultiBinary or Box, got {space}")


def _reader(space: Any) -> Callable[[Any], np.ndarray]:
    """Observations as one row of numbers; choices become one-hots."""
    from gymnasium.spaces import flatten

    return lambda seen: np.asarray(flatten(space, seen), np.float32)


def _player(space: Any) -> Callable[[np.ndarray], Any]:
    """An action `(d,)` as the environment wants it; numbers are clipped to its bounds."""
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        shape, dtype = space.shape, space.dtype
        return lambda x: np.clip(x.reshape(shape), space.low, space.high).astype(dtype)
    if isinstance(space, spaces.Discrete):
        return lambda x: int(x[0] + space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return lambda x: (x.reshape(space.shape) + space.start).astype(space.dtype)
    return lambda x: x.reshape(space.shape).astype(space.dtype)


def _close(envs: list[Any]) -> None:
    for env in envs:
        env.close()
