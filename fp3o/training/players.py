"""Rollouts of host environments in blocks, which may be played in this process or in others.

The environments of every seed form `Config.blocks` equal blocks. The rollout of a block is a
function of the policy, the block's state and its random keys alone. Wherever it is played, and
however often, its numbers are the same; so are those of training, which waits for all blocks.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.envs.api import VecEnv
from fp3o.envs.vectorise import SeedBatchedEnv
from fp3o.errors import UserError
from fp3o.learning.collectives import block_keys
from fp3o.learning.setup import Setup
from fp3o.training.host_rollout import HostRollout
from fp3o.training.rollout import RolloutState
from fp3o.types import TimeStep, Trajectory


class BlockState(NamedTuple):
    """State of a block between two rollouts."""

    env_state: Any
    timestep: TimeStep
    actor_hidden: Any


class BlockInput(NamedTuple):
    """What the rollout of a block depends on apart from the policy; keys are their numbers."""

    reset_keys: np.ndarray | None
    """(*s, k): keys with which the block's environments were started; None: unknown."""
    step_keys: np.ndarray | None = None
    """(*s, t, k): keys of the steps; None: the environments are only reset."""
    state: BlockState | None = None


class BlockReport(NamedTuple):
    """Which environments played a block, and their failures."""

    instance: int
    """A random number, another one for environments that were made again."""
    restorable: bool
    """Whether other environments could have continued from the same state."""
    failures: Mapping[str, int]
    """Failures of their workers so far, by metric name."""


class BlockReply(NamedTuple):
    """The rollout of a block."""

    state: BlockState
    trajectory: Trajectory | None
    """None: the environments were only reset."""
    report: BlockReport
    warnings: tuple[tuple[str, type[Warning]], ...] = ()
    """Warnings of another process."""


@runtime_checkable
class BlockPool(Protocol):
    """Plays blocks, somewhere."""

    @property
    def failures(self) -> Mapping[str, int]:
        """Failed players so far, by metric name, if episodes were lost with them."""
        ...

    def play(self, params: Any, inputs: Mapping[int, BlockInput]) -> dict[int, BlockReply]:
        """Play blocks with these parameters of the policies (None for a reset)."""
        ...

    def close(self) -> None:
        """Release processes and environments."""
        ...


class BlockPlayer:
    """Plays blocks in this process, one after another, each in environments of its own."""

    failures: Mapping[str, int] = {}

    def __init__(self, setup: Setup, num_seeds: int | None, make_env: Callable[[], VecEnv]):
        """`make_env` makes the environments of one block of all seeds."""
        self._setup, self._num_seeds, self._make_env = setup, num_seeds, make_env
        self._host = HostRollout(setup, num_seeds)
        self._envs: dict[int, tuple[VecEnv, int]] = {}

    def play(self, params: Any, inputs: Mapping[int, BlockInput]) -> dict[int, BlockReply]:
        """Play blocks with these parameters of the policies (None for a reset)."""
        folded = () if params is None else self._host.policy.fold(params)
        return {block: self._play(block, folded, given) for block, given in inputs.items()}

    def close(self) -> None:
        """Close all environments; a later request makes new ones."""
        envs, self._envs = self._envs, {}
        for env, _ in envs.values():
            env.close()

    def _play(self, block: int, folded: Any, given: BlockInput) -> BlockReply:
        is_new = block not in self._envs
        if is_new:
            env = self._make_env()
            env = SeedBatchedEnv(env, self._num_seeds) if self._num_seeds else env
            self._envs[block] = env, secrets.randbits(62)
        (env, instance), trajectory, state = self._envs[block], None, given.state
        if given.reset_keys is not None and (is_new or state is None):
            # Also before a restored state: what cannot be restored starts from these keys.
            env_state, now = env.reset(_as_keys(given.reset_keys))
            state = state or BlockState(env_state, now, ())
        assert state is not None
        if given.step_keys is not None:
            noise = self._host.policy.sample_noise(_as_keys(given.step_keys), env.num_envs)
            before = RolloutState(*state, (), ())  # pyright: ignore[reportArgumentType]
            after, trajectory = self._host.play(env, folded, before, noise)
            state = BlockState(*after[:3])
        report = BlockReport(instance, env.restorable, dict(env.failure_counts()))
        return BlockReply(state, trajectory, report)


class PlayedBlocks(VecEnv):
    """The host environments of a program, in blocks that a pool plays.

    Arrays of all environments are joined along their axis; the state of the environments is a tuple
    of the blocks' states (for a single block, the state itself).
    """

    def __init__(self, setup: Setup, num_seeds: int | None, pool: BlockPool):
        self._blocks, self._axis, self._pool = setup.config.blocks, 1 if num_seeds else 0, pool
        self.spec, self.num_envs = setup.spec, setup.config.num_envs * (num_seeds or 1)
        self._size = setup.config.num_envs // self._blocks
        self._divide = jax.jit(partial(_divided_keys, blocks=self._blocks))
        self._reset_keys: list[Any] = [None] * self._blocks
        self._reports: dict[int, BlockReport] = {}
        self._earlier: Counter[str] = Counter()

    def reset(self, key: Any) -> tuple[Any, TimeStep]:
        """Start an episode in every environment, with keys `(*s)`."""
        self._reset_keys = [*np.asarray(self._divide(key))]
        replies = self._ask(None, map(BlockInput, self._reset_keys))
        return self._joined_state(replies), self._joined_steps(replies)

    def step(self, state: Any, action: Any) -> tuple[Any, TimeStep]:
        """Refused: a message to another process at every step would take too long."""
        raise UserError("blocks of environments are played rollout by rollout, not step by step")

    def collect(
        self, params: Any, state: RolloutState, keys: Any
    ) -> tuple[RolloutState, Trajectory]:
        """Collect a rollout of one step per key, `(*s, t)`, with sampled actions."""
        parts = zip(self._reset_keys, np.asarray(self._divide(keys)), strict=True)
        inputs = (BlockInput(*both, self._part(state, i)) for i, both in enumerate(parts))
        replies = self._ask(jax.device_get(params), inputs)
        trajectory = self._join([x.trajectory for x in replies], self._axis + 1)
        hidden = self._join([x.state.actor_hidden for x in replies], self._axis)
        env_state, now = self._joined_state(replies), self._joined_steps(replies)
        return state._replace(env_state=env_state, timestep=now, actor_hidden=hidden), trajectory

    def failure_counts(self) -> Mapping[str, int]:
        """Failures of the environments' workers and of players so far, by metric name."""
        now = [report.failures for report in self._reports.values()]
        sources = [self._earlier, self._pool.failures, *now]
        names = {name: None for counts in now for name in counts}
        return {name: sum(counts.get(name, 0) for counts in sources) for name in names}

    def close(self) -> None:
        """Release processes and environments; a later request makes new ones."""
        self._pool.close()

    def _ask(self, params: Any, inputs: Iterable[BlockInput]) -> list[BlockReply]:
        replies = self._pool.play(params, dict(enumerate(inputs)))
        for block, reply in replies.items():
            before = self._reports.get(block, reply.report)
            if before.instance != reply.report.instance:
                self._earlier.update(before.failures)
            self._reports[block] = reply.report
        return [replies[block] for block in range(self._blocks)]

    def _part(self, state: RolloutState, block: int) -> BlockState:
        """The state of one block."""
        inside = (slice(None),) * self._axis + (
            slice(block * self._size, (block + 1) * self._size),
        )
        part = partial(jax.tree.map, lambda x: x[inside])
        env_state = state.env_state if self._blocks == 1 else state.env_state[block]
        return BlockState(env_state, part(state.timestep), part(state.actor_hidden))

    def _joined_state(self, replies: list[BlockReply]) -> Any:
        states = tuple(reply.state.env_state for reply in replies)
        return states[0] if self._blocks == 1 else states

    def _joined_steps(self, replies: list[BlockReply]) -> TimeStep:
        return self._join([reply.state.timestep for reply in replies], self._axis)

    def _join(self, parts: list[Any], axis: int) -> Any:
        if self._blocks == 1:
            return parts[0]
        return jax.tree.map(lambda *arrays: np.concatenate(arrays, axis), *parts)


def _divided_keys(keys: Any, blocks: int) -> Any:
    """Numbers `(b, *i, k)` of the keys of every block, from keys `(*i)` of all blocks."""
    flat = jax.vmap(partial(block_keys, blocks=blocks), out_axes=1)(keys.reshape(-1))
    return jax.random.key_data(flat.reshape(blocks, *keys.shape))


def _as_keys(numbers: np.ndarray) -> Any:
    return jax.random.wrap_key_data(jnp.asarray(numbers))
