"""Tiny programs on the probe `credit`, their rollouts, and the comparison of their results."""

from functools import partial
from typing import Any

import jax
import numpy as np

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program
from fp3o.training.rollout import collect_rollout
from fp3o.training.state import TrainState, split_keys
from fp3o.types import Trajectory

CUSTOM_ALGORITHM = "custom_algorithm:gentle"
"""The custom algorithm of the examples satisfies the laws, too."""
TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2, sequence_length=1)
TINY = TINY.replace(actor_lr=1e-2, critic_lr=1e-2)


def credit(num_envs: int = 4) -> VmapEnv:
    return VmapEnv(PROBES["credit"], num_envs)


def rolled(
    config: Config, env: VmapEnv | None = None
) -> tuple[Program, TrainState, Trajectory, Any]:
    """A program, its initial state, a rollout of it, and the state after the rollout."""
    program = Program(env or credit(), config)
    state = program.init(0)
    keys = split_keys(program.setup, state.key)[1]
    collect = jax.jit(partial(collect_rollout, program.setup, program.env))
    rollout, trajectory = collect(state.learner.actor, state.rollout, keys)
    return program, state, trajectory, rollout


def close(a: Any, b: Any, atol: float = 1e-5) -> None:
    """Every array of two trees is equal."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=atol, rtol=1e-4)
