"""Battles as tasks: named, with presets, trained and judged by their outcomes, watched."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.envs.registry import TASKS, get_task
from fp3o.envs.smac.env import OUTCOMES, smac_env
from fp3o.envs.smac.maps import MAPS
from fp3o.envs.vectorise import VmapEnv
from fp3o.runs import run as runner
from fp3o.runs.evaluation import evaluate, evaluate_params, make_program
from fp3o.runs.run_config import RunConfig

SMALL: dict[str, Any] = {
    "seeds": 2, "num_envs": 2, "rollout": 60, "minibatches": 1, "hidden": (8,), "epochs": 1,
    "gru_size": 0, "sequence_length": 1, "eval_every": 0, "eval_episodes": 2, "final_episodes": 3,
}  # fmt: skip

PUBLISHED = {
    "bane_vs_bane": (0.2, 64, (2, 2, 2)),
    "2c_vs_64zg": (0.2, 64, (5, 5, 5)),
    "3s5z": (0.2, 64, (5, 5, 5)),
    "5m_vs_6m": (0.05, 64, (8, 10, 10)),
    "corridor": (0.2, 0, (8, 10, 10)),
    "6h_vs_8z": (0.2, 0, (10, 15, 20)),
    "10m_vs_11m": (0.2, 64, (8, None, None)),
    "3s5z_vs_3s6z": (0.05, 64, (12, None, None)),
}
"""The paper's clip, size of the GRU, and millions of steps by sharing, map by map."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_paper_presets_are_the_published_ones(name: str) -> None:
    """Every map and sharing; what all maps share; many environments change nothing else."""
    clip, recurrent, millions = PUBLISHED[name]
    kinds = zip(("paper", "paper-partial", "paper-none"), millions, strict=True)
    for kind, steps in kinds:
        plan = RunConfig.from_preset(f"smac/{name}", kind)
        hparams, config = plan.learner.hyperparameters, plan.learner
        assert (hparams.clip_range, config.gru_size) == (clip, recurrent)
        assert (hparams.actor_lr, hparams.critic_lr, hparams.entropy_coef) == (5e-4, 5e-4, 0.01)
        assert (hparams.gamma, hparams.gae_lambda, hparams.huber_delta) == (0.99, 0.95, 10.0)
        assert (config.num_envs, config.rollout, config.epochs, config.minibatches) == (
            8,
            400,
            5,
            1,
        )
        assert (plan.seeds, plan.eval_episodes) == (5, 32)
        assert steps is None or plan.steps == steps * 1_000_000
        assert config.sharing == {"paper": "full"}.get(kind, kind.removeprefix("paper-"))
        many = RunConfig.from_preset(f"smac/{name}", kind.replace("paper", "many"))
        assert many.learner.num_envs > 100
        assert (many.steps, many.learner.hyperparameters) == (plan.steps, hparams)


def test_all_maps_are_tasks() -> None:
    """In the simulator and in the game, with the same spaces; a wrong name says the nearest."""
    for name in MAPS:
        ours, real = TASKS[f"smac/{name}"], get_task(f"starcraft2/{name}")
        assert ours.max_episode_steps() == real.max_episode_steps() == MAPS[name].limit
        assert ours.variants == real.variants
        assert "many" not in real.presets
    with pytest.raises(ValueError, match="smac/5m_vs_6m"):
        get_task("smac/5m_vs_7m")


def test_an_outcome_is_that_of_the_ended_episode() -> None:
    """A battle that ends is told as it ended; the next one begins with nobody fallen."""
    game = smac_env("3m", "paper")
    env = VmapEnv(game, 2)
    (state, keys), _ = env.reset(jax.random.key(0))
    hp = state.units.hp.at[0, 3:].set(jnp.asarray([1e-3, 0.0, 0.0])).at[1, :3].set(0.0)
    units = state.units._replace(hp=hp, x=state.units.x.at[0, 3].set(state.units.x[0, 0] + 3))
    units = units._replace(y=units.y.at[0, 3].set(units.y[0, 0]))
    action = jnp.zeros((2, 3, 1), int).at[0, 0, 0].set(6)
    state, now = jax.jit(env.step)((state._replace(units=units), keys), action)
    assert OUTCOMES == ("won", "dead_allies", "dead_enemies")
    np.testing.assert_array_equal(now.terminated, [True, True])
    np.testing.assert_array_equal(now.episode_metrics, [[1, 0, 3], [0, 3, 0]])
    assert (state[0].units.hp > 0).all()


def test_wins_are_counted_in_training_and_judging() -> None:
    """The means of an iteration are of battles that ended in it; those judged are all counted."""
    plan = RunConfig.from_preset("smac/3m", "many").with_settings({**SMALL, "algorithm": "mappo"})
    program = make_program(plan)
    state, metrics = program.iterate(program.init(0))
    assert (metrics["episodes"] > 0).all()
    assert ((metrics["episode_won"] >= 0) & (metrics["episode_won"] <= 1)).all()
    assert (metrics["episode_dead_allies"] > 0).all()
    played = evaluate_params(program, plan, state.learner.actor, 3, (4,))
    assert played.returns.shape == (2, 3)
    won, ours, theirs = np.moveaxis(np.asarray(played.episode_metrics), -1, 0)
    np.testing.assert_array_equal(won == 1, (theirs == 3) & (ours < 3))


@pytest.mark.slow
def test_a_run_of_battles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained, judged beside scripted teams, filmed."""
    monkeypatch.setattr(runner, "report", lambda *_: None)
    run = fp3o.train(
        "smac/3s5z", preset="many", out=tmp_path / "run", steps=240, progress="quiet", loggers=(),
        **{**SMALL, "rollout": 10},
    )  # fmt: skip
    results = run.results
    assert set(results["references"]) == {"random", "nearest", "focus", "kite"}
    assert results["references"]["random"]["outcomes"]["won"] == 0
    for row in (*results["last"], *results["best"]):
        assert set(row["outcomes"]) == set(OUTCOMES)
    found = evaluate(run.path, 2)
    assert set(found["policies"][0]["outcomes"]) == set(OUTCOMES)
    assert main(["evaluate", str(run.path), "--episodes", "2"]) == 0
    assert "won" in capsys.readouterr().out
    film = tmp_path / "film.gif"
    assert main(["render", str(run.path), "--out", str(film), "--episodes", "1"]) == 0
    assert film.stat().st_size > 5_000
