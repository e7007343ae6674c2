"""Schedules: order of updates, coupling and clip ranges."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.algorithms.fp3o import non_overlapping, random_split
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.table import ALGORITHMS


def test_semi_greedy_order() -> None:
    """Odd positions take the largest remaining score; every agent has exactly one turn."""
    row, score = ALGORITHMS["a2po"], jnp.asarray([0.1, 0.9, 0.5, 0.7, 0.3])
    seconds = set()
    keys = jax.vmap(jax.random.key)(jnp.arange(40))
    stages = jax.jit(jax.vmap(lambda key: SCHEDULES["sequential"](key, score, 2, row).agents))(keys)
    for order in stages[:, :, 0].tolist():
        assert sorted(order) == list(range(5))
        left = list(range(5))
        for place, agent in enumerate(order):
            if place % 2 == 0:
                assert agent == max(left, key=lambda a: float(score[a]))
            left.remove(agent)
        seconds.add(order[1])
    assert seconds == {0, 2, 3, 4}


def test_blocks_and_clips_by_position() -> None:
    """8 agents in 3 blocks: 3, 3, 2, coupled to earlier blocks; early ones are clipped more."""
    row = dataclasses.replace(ALGORITHMS["a2po"], blocks=3)
    stage = SCHEDULES["sequential"](jax.random.key(0), jnp.arange(8.0), 2, row)
    assert stage.member.sum(1).tolist() == [3, 3, 2]
    assert stage.coupling.sum(2)[:, 0].tolist() == [0, 3, 6]
    place = np.arange(1, 9)
    wanted = 0.5 * place / 8 + 0.5
    np.testing.assert_allclose(np.asarray(stage.clip_factor)[np.asarray(stage.member) > 0], wanted)


def test_later_rounds_are_coupled_to_all_others() -> None:
    """With rounds of one epoch each, from the second round on all others have been updated."""
    row = dataclasses.replace(ALGORITHMS["happo"], rounds=2)
    stage = SCHEDULES["sequential"](jax.random.key(0), jnp.arange(3.0), 4, row)
    assert stage.coupling.sum((1, 2)).tolist() == [0, 1, 2, 2, 2, 2]
    assert stage.epochs.tolist() == [2] * 6


def test_selection_pairs_every_agent_with_another() -> None:
    """f⁻¹ is a permutation without fixed points, and it is not always the same one."""
    drawn = {tuple(non_overlapping(jax.random.key(s), 4).tolist()) for s in range(30)}
    assert len(drawn) > 3
    for partner in drawn:
        assert sorted(partner) == [0, 1, 2, 3]
        assert all(partner[i] != i for i in range(4))


def test_random_split_keeps_the_sum() -> None:
    """Σ_i A^i = n A at every step when all agents start from the same advantage."""
    advantage = jnp.tile(jax.random.normal(jax.random.key(0), (1, 50)), (4, 1))
    split = random_split(jax.random.key(1), advantage)
    np.testing.assert_allclose(split.sum(0), 4 * advantage[0], rtol=1e-4, atol=1e-5)
    assert float(jnp.abs(split - advantage).max()) > 0.1
