"""Processes that play: one for each seed, or for a part of a single seed's environments.

While one worker decides, the others' physics go on, and Python in one process waits for nothing in
another. Workers keep nothing: every job brings all they need and takes all they did away, so a run
can be stopped and resumed as without them.
"""

import multiprocessing
import os
import pickle
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.config import Config
from fp3o.envs.base import Env
from fp3o.rollout import Carry
from fp3o.tasks import find
from fp3o.types import Trajectory


class Post(NamedTuple):
    """What a worker needs to know once."""

    task: str
    variant: str | None
    config: Config
    threads: int


class Crew:
    """Workers behind the interface of `HostPlayer`; the last bits of the numbers are their own.

    With seeds, each worker plays one. Without, each plays an equal part of the environments.
    """

    def __init__(self, post: Post, count: int, num_seeds: int | None):
        if num_seeds and count != num_seeds:
            raise ValueError(f"workers must be as many as seeds ({num_seeds}) or 0, got {count}")
        if not num_seeds and post.config.num_envs % count:
            raise ValueError(
                f"{count} workers cannot share {post.config.num_envs} environments equally"
            )
        self.num_seeds, self._parts = num_seeds, count
        own = post.config.num_envs // (1 if num_seeds else count)
        config = post.config.replace(num_envs=own, minibatches=1, chunk=None)
        self._spread = jax.jit(_same if num_seeds else partial(_spread, parts=count))
        self._lines = [_employ(post._replace(config=config)) for _ in range(count)]

    def collect(self, env: Env, rows: Any, carry: Carry, keys: Array) -> tuple[Carry, Trajectory]:
        """A rollout of one step a key, `(*s, t)`, with sampled actions."""
        states = _split(carry.env_state, self._parts)
        rest = self._share(tuple(carry[1:]))
        jobs = [
            ("collect", own, Carry(state, *others), key)
            for own, state, others, key in zip(
                self._rows(rows), states, rest, self._keys(keys), strict=True
            )
        ]
        carries, trajectories = zip(*self._work(jobs), strict=True)
        state = jax.tree.map(lambda *x: np.concatenate(x), *(own.env_state for own in carries))
        others = self._join([tuple(own[1:]) for own in carries], axis=0)
        return Carry(state, *others), self._join(trajectories, axis=1)

    def evaluate(
        self, env: Env, rows: Any, keys: Array, num_steps: int, deterministic: bool
    ) -> np.ndarray:
        """One agent's return in the first episode of every environment, as `HostPlayer` does."""
        episodes = env.num_envs if self.num_seeds else env.num_envs // self._parts
        rest = env.num_envs - episodes * (1 if self.num_seeds else self._parts)
        jobs = [
            ("evaluate", own, episodes + (i < rest), key, num_steps, deterministic)
            for i, (own, key) in enumerate(zip(self._rows(rows), self._keys(keys), strict=True))
        ]
        played = self._work([job for job in jobs if job[2]])
        return np.stack(played) if self.num_seeds else np.concatenate(played)

    def _rows(self, rows: Any) -> list[Any]:
        near = jax.device_get(rows)
        if not self.num_seeds:
            return [near] * self._parts
        return [jax.tree.map(lambda x, k=k: x[k], near) for k in range(self._parts)]

    def _keys(self, keys: Array) -> list[np.ndarray]:
        """Every worker's own, as numbers."""
        return list(np.asarray(jax.random.key_data(self._spread(keys))))

    def _share(self, tree: Any) -> list[Any]:
        if not self.num_seeds:
            return _split(tree, self._parts)
        return [jax.tree.map(lambda x, k=k: x[k], tree) for k in range(self._parts)]

    def _join(self, parts: Sequence[Any], axis: int) -> Any:
        put = np.stack if self.num_seeds else np.concatenate
        return jax.tree.map(lambda *x: put(x, axis), *parts)

    def _work(self, jobs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Hand out one job a worker and wait for all; what one of them raised is raised here."""
        lines = self._lines[: len(jobs)]
        try:
            for line, job in zip(lines, jobs, strict=True):
                line.send(job)
            answers = [line.recv() for line in lines]
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise OSError("a worker process has died; look for a lack of memory") from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


def _same(keys: Array) -> Array:
    return keys


def _spread(keys: Array, parts: int) -> Array:
    """Keys for every part, made from the same ones."""
    fold = jax.vmap(jax.random.fold_in, (0, None))
    made = jax.vmap(fold, (None, 0))(keys.reshape(-1), jnp.arange(parts))
    return made.reshape(parts, *keys.shape)


def _split(tree: Any, parts: int) -> list[Any]:
    cut = jax.tree.map(lambda x: np.split(x, parts), tree, is_leaf=lambda x: hasattr(x, "shape"))
    return [
        jax.tree.map(lambda x, k=k: x[k], cut, is_leaf=lambda x: isinstance(x, list))
        for k in range(parts)
    ]


def _employ(post: Post) -> Connection:
    """Start a worker; it ends when this process does, or closes the line."""
    here, there = multiprocessing.Pipe()
    # Not a fork: JAX has threads by now, and they would not survive it.
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(there, post), daemon=True
    )
    before = {name: os.environ.get(name) for name in APART}
    os.environ.update(APART | {"FP3O_THREADS": str(post.threads)})
    try:
        process.start()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
    there.close()
    return here


APART = {"JAX_PLATFORMS": "cpu", "NPROC": "1", "FP3O_THREADS": "1"}
"""A worker's environment: off the accelerator, and with one thread, for XLA's (NPROC) look for
work so eagerly that they would take the cores away from the physics."""


def _serve(line: Connection, post: Post) -> None:
    """A worker's life: answer jobs until nobody asks any more."""
    from fp3o.host import HostPlayer
    from fp3o.setup import Setup

    for number in (signal.SIGINT, signal.SIGTERM):  # these are the first process's to answer
        signal.signal(number, signal.SIG_IGN)
    task = find(post.task)
    player = HostPlayer(Setup(task.spec(post.variant), post.config), None)
    env = task.env(post.variant, post.config.num_envs)
    batches: dict[int, Env] = {}
    with suppress(EOFError, BrokenPipeError):
        while True:
            kind, rows, *job = line.recv()
            rows = jax.tree.map(jnp.asarray, rows)
            try:
                if kind == "collect":
                    carry, key = job
                    answer: Any = player.collect(env, rows, carry, jax.random.wrap_key_data(key))
                else:
                    episodes, key, num_steps, deterministic = job
                    if episodes not in batches:
                        batches[episodes] = task.env(post.variant, episodes)
                    answer = player.evaluate(
                        batches[episodes], rows, jax.random.wrap_key_data(key), num_steps,
                        deterministic,
                    )  # fmt: skip
            except Exception as error:
                answer = error if _travels(error) else RuntimeError(repr(error))
            line.send(answer)


def _travels(error: Exception) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True
