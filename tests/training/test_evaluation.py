"""Evaluations simulate what counts, and nothing after it."""

from typing import Any, ClassVar

import jax
import numpy as np
import pytest

from fp3o.envs.registry import get_task
from fp3o.envs.scripted import run_scripted
from fp3o.envs.smac.scripted import smac_baselines
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program

LENGTH = 3
"""Steps of an episode of the probes."""


class Counting(VmapEnv):
    """A batch of environments that notes every step of the batch."""

    steps: ClassVar[list[int]] = []

    def step(self, state: Any, action: Any) -> Any:
        jax.debug.callback(lambda: self.steps.append(1))
        return super().step(state, action)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_evaluation_stops_with_the_last_episode(num_seeds: int | None) -> None:
    """A limit far beyond the end of all episodes changes nothing, and costs no steps."""
    Counting.steps.clear()
    env, config = Counting(PROBES["credit"], 4), Config(num_envs=4, rollout=6, hidden=(8,))
    program = Program(VmapEnv(PROBES["credit"], 4), config, num_seeds)
    actor, keys = program.init(0).learner.actor, program.keys(0, 1)
    found = [program.evaluate(actor, env, keys, limit) for limit in (LENGTH, 50)]
    jax.effects_barrier()
    assert len(Counting.steps) == 2 * LENGTH
    for short, long in zip(*found, strict=True):
        np.testing.assert_array_equal(short, long)
    assert np.all(np.asarray(found[0].lengths) == LENGTH)


def test_evaluation_says_what_did_not_end() -> None:
    """Episodes longer than the limit are NaN."""
    env, config = VmapEnv(PROBES["credit"], 4), Config(num_envs=4, rollout=6, hidden=(8,))
    program = Program(env, config)
    found = program.evaluate(program.init(0).learner.actor, env, program.keys(0, 1), LENGTH - 1)
    assert np.isnan(found.returns).all() and np.isnan(found.lengths).all()


def test_scripted_episodes_do_not_depend_on_their_number() -> None:
    """The first of 40 episodes, which run 32 at once, are the same as those of 5."""
    env: Any = get_task("smac/3m").env()
    nearest = smac_baselines(env)[1]
    few, many = (run_scripted(env, nearest.act, jax.random.key(0), n) for n in (5, 40))
    for one, other in zip(few, many, strict=True):
        np.testing.assert_allclose(one, other[:5], rtol=1e-5)
