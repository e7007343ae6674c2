"""Rewards of matrix games; the best pair is learned from decided initial policies."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.envs.toys.matrix import MATRIX_GAMES, matrix_game
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.training.program import Program

SETTINGS = {
    "sharing": "none", "num_envs": 64, "rollout": 1, "hidden": (16,), "epochs": 4,
    "actor_lr": 1e-2, "critic_lr": 1e-2,
}  # fmt: skip
"""Settings of the preset `decided`, except for the initial policies."""


def test_matrix_games_have_the_stated_rewards() -> None:
    for game in MATRIX_GAMES.values():
        state = game.reset(jax.random.key(0))
        for a, row in enumerate(game.payoff):
            for b, paid in enumerate(row):
                _, reward, over, _ = game.step(state, jnp.array([[a], [b]]), jax.random.key(0))
                assert over and reward.tolist() == [paid, paid]
    assert (matrix_game("climbing").best, matrix_game("penalty").best) == (11, 10)
    with pytest.raises(ValueError, match="climbing"):
        matrix_game("climb")


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("climbing", "fp3o"),
        ("penalty", "fp3o"),
        pytest.param("climbing", "mappo", marks=pytest.mark.slow),
        pytest.param("penalty", "mappo", marks=pytest.mark.slow),
    ],
)
def test_the_best_of_eight_seeds_is_the_best_pair(
    name: str, algorithm: str, tmp_path: Path
) -> None:
    """Solved as a user would: strong preferences at the start, and the best seed is taken.

    Seed by seed it is a matter of luck, in about half of them (see `fp3o/envs/matrix.py`).
    """
    run = fp3o.train(
        f"matrix/{name}", algorithm=algorithm, out=tmp_path / "run", progress="quiet", loggers=()
    )
    paid = np.array([seed["return"] for seed in run.results["last"]])
    assert paid.max() == matrix_game(name).best
    chosen = fp3o.Policy.load(run.path, which="last").act(np.ones((2, 1)))[0][:, 0]
    assert matrix_game(name).payoff[chosen[0]][chosen[1]] == matrix_game(name).best
    assert (paid >= {"climbing": 5, "penalty": 2}[name]).all()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["fp3o", "mappo"])
@pytest.mark.parametrize(("name", "most"), [("climbing", 7), ("penalty", 2)])
def test_uniform_policies_learn_only_the_safe_pair(name: str, most: int, algorithm: str) -> None:
    """These games are known for this: small steps do not reach the best pair."""
    config = Config(algorithm=algorithm).replace(**SETTINGS)
    program = Program(VmapEnv(matrix_game(name), config.num_envs), config, num_seeds=8)
    state = program.init(0)
    for _ in range(60):
        state, _ = program.iterate(state)
    batch, keys = VmapEnv(matrix_game(name), 1), program.keys(0, 1)
    played = program.evaluate(state.learner.actor, batch, keys, num_steps=1)
    assert np.asarray(played.returns).max() == most
