"""Time and memory of one iteration, split into rollout and update."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from fp3o.runs.compilation_cache import without_compilation_cache
from fp3o.runs.provenance import provenance_record
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program, update_learner
from fp3o.training.rollout import collect_rollout
from fp3o.training.state import TrainState, split_keys

REPEATS = 5
"""Iterations that are timed; the median is reported."""


def time_iteration(config: RunConfig) -> dict[str, Any]:
    """Seconds of rollout, update and compilation, and the memory of the program of one seed."""
    env = config.task_info.vec_env(config.variant, config.learner.num_envs)
    program = Program(env, config.learner)
    state = program.init(config.seed)
    measure = _time_host if program.on_host else _time_compiled
    with without_compilation_cache():
        parts = measure(program, state)
    agents = env.spec.num_agents
    return {
        **parts,
        "steps": config.steps_per_iteration,
        "agents": agents,
        "machine": provenance_record(config.settings, agents),
    }


def _time_compiled(program: Program, state: TrainState) -> dict[str, float]:
    """Rollout and update as two separate programs."""
    setup, env, hparams = program.setup, program.env, program.hyperparameters()
    _, rollout_keys, learn_key = split_keys(setup, state.key)
    actor, carry = state.learner.actor, state.rollout
    rollout, compile_rollout = _compile(
        partial(collect_rollout, setup, env), actor, carry, rollout_keys
    )
    after, trajectory = rollout(actor, carry, rollout_keys)
    inputs = state.learner, trajectory, after, learn_key
    update, compile_update = _compile(partial(update_learner, setup, hparams), *inputs)
    return {
        "rollout": _median_seconds(lambda: rollout(actor, carry, rollout_keys)),
        "update": _median_seconds(lambda: update(*inputs)),
        "compile": compile_rollout + compile_update,
        "rollout_mib": _memory(rollout),
        "update_mib": _memory(update),
    }


def _time_host(program: Program, state: TrainState) -> dict[str, float]:
    """The same for environments on the host: their rollout, then the compiled update."""
    start = time.perf_counter()
    state, _ = program.iterate(state)  # compiles
    compiling = time.perf_counter() - start
    setup, hparams = program.setup, program.hyperparameters()
    rollouts = []
    for _ in range(REPEATS):
        _, rollout_keys, learn_key = split_keys(setup, state.key)
        start = time.perf_counter()
        carry, trajectory = program._host.collect(
            program.env, state.learner.actor, state.rollout, rollout_keys
        )
        rollouts.append(time.perf_counter() - start)
        state = state._replace(rollout=carry)
    after = state.rollout._replace(env_state=(), timestep=(), actor_hidden=())
    inputs = state.learner, trajectory, after, learn_key  # pyright: ignore
    update, _ = _compile(partial(update_learner, setup, hparams), *inputs)
    seconds = _median_seconds(lambda: update(*inputs))
    rollout = float(np.median(rollouts))
    return {
        "rollout": rollout,
        "update": seconds,
        "compile": max(compiling - rollout - seconds, 0.0),
        "rollout_mib": 0.0,
        "update_mib": _memory(update),
    }


def _compile(function: Callable[..., Any], *inputs: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    program = jax.jit(function).lower(*inputs).compile()
    return program, time.perf_counter() - start


def _median_seconds(run: Callable[[], Any]) -> float:
    seconds = []
    jax.block_until_ready(run())
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def _memory(program: Any) -> float:
    """Mebibytes of a program: inputs, outputs and temporary buffers."""
    analysis = program.memory_analysis()
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    return sum(getattr(analysis, part, 0) for part in parts) / 2**20
