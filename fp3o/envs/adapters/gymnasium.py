"""Gymnasium environments as tasks of a team of one, for which every algorithm is PPO.

Environments are stepped one after another in this process. The seed of an episode depends only on
the key, the index of the environment and the index of the episode, so runs can be repeated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fp3o.envs.adapters.codecs import MASK, BoxCodec
from fp3o.envs.adapters.variants import (
    DEFAULT_LIMIT,
    VARIANT,
    EnvArguments,
    read_variant,
    write_variant,
)
from fp3o.envs.api import HostEnv
from fp3o.envs.rendering import without_display
from fp3o.envs.workers.in_process import InProcessPool
from fp3o.envs.workers.protocol import StepReply, WorkerEnv, buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import SettingError
from fp3o.imports import foreign_code
from fp3o.spec import Box, Discrete, EnvSpec

FAMILY = "gymnasium"


class GymWorker(WorkerEnv):
    """One Gymnasium environment."""

    def __init__(self, env: Any, spec: EnvSpec):
        from gymnasium.spaces import flatten

        from fp3o.envs.adapters.spaces import action_codec

        self._env, self._spec = env, spec
        self._flatten = partial(flatten, env.observation_space)
        self._codec = action_codec(0, env.action_space)

    def reset(self, seed: tuple[int, ...], episode: int) -> StepReply:
        """Start an episode."""
        number = np.random.SeedSequence([*seed, episode]).generate_state(1)[0] >> 1
        obs, info = self._env.reset(seed=int(number))
        return self._reply(obs, 0.0, False, False, info)

    def step(self, action: np.ndarray) -> StepReply:
        """Apply the action `(1, d)`."""
        obs, reward, terminated, truncated, info = self._env.step(self._codec.decode(action[0]))
        return self._reply(obs, reward, terminated, truncated and not terminated, info)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def render(self) -> Any:
        """The environment's own rendering."""
        return self._env.render() if self._env.render_mode else None

    def _reply(
        self, obs: Any, reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any]
    ) -> StepReply:
        row = np.asarray(self._flatten(obs), np.float32)[None]
        return StepReply(
            row, row, self._action_mask(info), np.ones(1, bool), np.full(1, reward, np.float32),
            np.array(bool(terminated)), np.array(bool(truncated)), np.zeros(0, np.float32),
        )  # fmt: skip

    def _action_mask(self, info: Mapping[str, Any]) -> np.ndarray:
        """The mask of the info, if it has one that fits."""
        mask = self._spec.actions.mask
        available = info.get(MASK) if isinstance(self._spec.actions, Discrete) else None
        if available is None or np.size(available) != mask.size or not np.any(available):
            return mask
        return np.reshape(available, mask.shape).astype(bool)


class GymVecEnv(PooledVecEnv):
    """Gymnasium environments stepped together."""

    def env_seed(self, key: tuple[int, ...], index: int) -> tuple[int, ...]:
        """The numbers from which `GymWorker` computes the seeds of its episodes."""
        return *key, index

    def failure_counts(self) -> Mapping[str, int]:
        """None: an error of one environment ends the run."""
        return {}


@dataclass(frozen=True)
class Gymnasium(HostEnv):
    """An environment by its id, made with `options`."""

    name: str
    renderable = True
    options: EnvArguments = ()
    render_mode: str | None = None
    """`rgb_array`: environments can be rendered."""

    @property
    def variant(self) -> str:
        """The options as text."""
        return write_variant({}, self.options)

    @property
    def max_episode_steps(self) -> int:
        """Upper bound on the length of an episode, as far as it is known."""
        return self._inspection[1] or DEFAULT_LIMIT

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the task; one environment is made to find them."""
        return self._inspection[0]

    def with_rendering(self) -> "Gymnasium":
        """The same task, made so that it can be rendered."""
        return replace(self, render_mode="rgb_array")

    def vectorise(self, num_envs: int) -> GymVecEnv:
        """Make a batch of environments; they are started at the first reset."""
        spec = self.spec
        pool = InProcessPool(lambda _: GymWorker(self.build(), spec), buffer_spec(spec), num_envs)
        return GymVecEnv(spec, pool)

    def build(self) -> Any:
        """Make one of Gymnasium's environments."""
        import gymnasium

        options: dict[str, Any] = dict(self.options)
        if self.render_mode:
            without_display()
            options["render_mode"] = self.render_mode
        with foreign_code(f"{self.name} cannot be made"):
            # The checker would warn at every step about things that are irrelevant to training.
            return gymnasium.make(self.name, disable_env_checker=True, **options)

    @cached_property
    def _inspection(self) -> tuple[EnvSpec, int | None]:
        from gymnasium.spaces import flatdim

        env = self.build()
        try:
            size = flatdim(env.observation_space)
        except (NotImplementedError, ValueError) as error:
            raise SettingError(f"{self.name}: observations have no fixed size: {error}") from error
        spec = EnvSpec(
            f"{FAMILY}/{self.name}:{self.variant}", _actions(env.action_space), size, size, (0,),
            # An environment without a declared limit may truncate its episodes as well.
            truncates=True,
        )  # fmt: skip
        env.close()
        return spec, env.spec.max_episode_steps


def make_env(name: str, variant: str = VARIANT) -> Gymnasium:
    """A task by its id and options, as in `default:env.g=9.81`."""
    _, options = read_variant(variant, ())
    return Gymnasium(name, options)


def _actions(space: Any) -> Discrete | Box:
    from fp3o.envs.adapters.spaces import action_codec

    codec = action_codec(0, space)
    return Box((codec.low.size,)) if isinstance(codec, BoxCodec) else Discrete((codec.sizes,))
