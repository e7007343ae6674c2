"""The program and the environments of a run."""

from functools import partial

from fp3o.envs.api import HostEnv, VecEnv
from fp3o.envs.vectorise import require_interface, vectorise
from fp3o.learning.setup import Setup
from fp3o.runs.compilation_cache import enable_compilation_cache
from fp3o.runs.run_config import RunConfig
from fp3o.training.mesh import Devices
from fp3o.training.players import BlockPlayer, BlockPool, PlayedBlocks
from fp3o.training.program import Program


def make_program(
    config: RunConfig,
    devices: Devices | None = None,
    pool: BlockPool | None = None,
) -> Program:
    """The program that trains and evaluates all seeds of a run; its environment is checked.

    With `devices`, they share the work. The pool plays blocks of host environments; without it,
    this process does.
    """
    enable_compilation_cache()
    seeds = config.seeds if config.seeds > 1 else None
    envs = make_training_envs(config, seeds, pool)
    require_interface(envs)
    return Program(envs, config.learner, seeds, devices)


def make_training_envs(
    config: RunConfig, num_seeds: int | None, pool: BlockPool | None = None
) -> VecEnv:
    """The environments of a program; on the host in blocks, if there are several or a pool."""
    env, learner = config.task_info.env(config.variant), config.learner
    if isinstance(env, HostEnv) and (pool or learner.blocks > 1):
        pool = pool or make_block_player(config, num_seeds)
        return PlayedBlocks(Setup(env.spec, learner), num_seeds, pool)
    return make_envs(config, learner.num_envs)


def make_block_player(config: RunConfig, num_seeds: int | None) -> BlockPlayer:
    """Plays the blocks of a run in this process."""
    learner = config.learner
    setup = Setup(config.task_info.spec(config.variant), learner)
    make_block = partial(make_envs, config, learner.num_envs // learner.blocks)
    return BlockPlayer(setup, num_seeds, make_block)


def make_envs(config: RunConfig, num_envs: int) -> VecEnv:
    """A batch of environments per seed; on the host, one batch for all seeds."""
    env = config.task_info.env(config.variant)
    copies = config.seeds if isinstance(env, HostEnv) else 1
    return vectorise(env, num_envs * copies)
