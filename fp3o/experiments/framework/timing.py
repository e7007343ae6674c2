"""How long an iteration takes, part by part, and how much memory: measured, not trained."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.experimental.compilation_cache import compilation_cache

from fp3o.runs.provenance import provenance_record
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program, TrainState, split_keys, update_learner
from fp3o.training.rollout import collect_rollout

TURNS = 5
"""Iterations that are timed; the median counts."""


def clock(plan: RunConfig) -> dict[str, Any]:
    """Seconds of a rollout, of an update and of compiling, and the memory of one seed's program."""
    env = plan.task_info.vec_env(plan.variant, plan.learner.num_envs)
    program = Program(env, plan.learner)
    state = program.init(plan.seed)
    take = _take_on_host if program.on_host else _take_traced
    with compiled_anew():
        parts = take(program, state)
    agents = env.spec.num_agents
    return {
        **parts,
        "steps": plan.steps_per_iteration,
        "agents": agents,
        "machine": provenance_record(plan.settings, agents),
    }


@contextmanager
def compiled_anew() -> Iterator[None]:
    """Without programs that another process has compiled: they would take no time."""
    before = bool(getattr(jax.config, "jax_enable_compilation_cache", True))
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def _take_traced(program: Program, state: TrainState) -> dict[str, float]:
    """The two halves of an iteration as programs of their own."""
    setup, env, hparams = program.setup, program.env, program.hyperparameters()
    _, play_keys, learn_key = split_keys(setup, state.key)
    actor, carry = state.learner.actor, state.rollout
    play, compile_play = _compiled(partial(collect_rollout, setup, env), actor, carry, play_keys)
    after, trajectory = play(actor, carry, play_keys)
    told = state.learner, trajectory, after, learn_key
    update, compile_update = _compiled(partial(update_learner, setup, hparams), *told)
    return {
        "rollout": _median(lambda: play(actor, carry, play_keys)),
        "update": _median(lambda: update(*told)),
        "compile": compile_play + compile_update,
        "rollout_mib": _memory(play),
        "update_mib": _memory(update),
    }


def _take_on_host(program: Program, state: TrainState) -> dict[str, float]:
    """The same where the host plays: environments first, then the program that learns."""
    began = time.perf_counter()
    state, _ = program.iterate(state)  # compiles
    compiling = time.perf_counter() - began
    setup, hparams = program.setup, program.hyperparameters()
    played = []
    for _ in range(TURNS):
        _, play_keys, learn_key = split_keys(setup, state.key)
        began = time.perf_counter()
        carry, trajectory = program._host.collect(
            program.env, state.learner.actor, state.rollout, play_keys
        )
        played.append(time.perf_counter() - began)
        state = state._replace(rollout=carry)
    told = state.rollout._replace(env_state=(), timestep=(), actor_hidden=())
    inputs = state.learner, trajectory, told, learn_key  # pyright: ignore
    update, _ = _compiled(partial(update_learner, setup, hparams), *inputs)
    seconds = _median(lambda: update(*inputs))
    rollout = float(np.median(played))
    return {
        "rollout": rollout,
        "update": seconds,
        "compile": max(compiling - rollout - seconds, 0.0),
        "rollout_mib": 0.0,
        "update_mib": _memory(update),
    }


def _compiled(function: Callable[..., Any], *inputs: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    program = jax.jit(function).lower(*inputs).compile()
    return program, time.perf_counter() - began


def _median(run: Callable[[], Any]) -> float:
    took = []
    jax.block_until_ready(run())
    for _ in range(TURNS):
        began = time.perf_counter()
        jax.block_until_ready(run())
        took.append(time.perf_counter() - began)
    return float(np.median(took))


def _memory(program: Any) -> float:
    """Mebibytes that a program needs: its inputs, its results, and what it works with."""
    found = program.memory_analysis()
    parts = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    return sum(getattr(found, part, 0) for part in parts) / 2**20
