"""SMAC as tasks: presets, training, evaluation with episode metrics, rendering."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.envs.registry import TASKS, get_task
from fp3o.envs.smac.env import EPISODE_METRICS, smac_env
from fp3o.envs.smac.maps import MAPS
from fp3o.envs.vectorise import VmapEnv
from fp3o.runs.evaluation import evaluate, evaluate_params
from fp3o.runs.programs import make_program
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
"""The paper's clip range, GRU size, and millions of steps per sharing, by map."""


def gradient_steps(config: RunConfig) -> float:
    """Gradient steps of an algorithm with one stage, per environment step."""
    return config.learner.epochs * config.learner.minibatches / config.steps_per_iteration


@pytest.mark.parametrize("name", PUBLISHED)
def test_paper_presets_are_the_published_ones(name: str) -> None:
    """For every map and sharing; the presets `many` differ in the number of environments only."""
    clip, recurrent, millions = PUBLISHED[name]
    presets = zip(("paper", "paper-partial", "paper-none"), millions, strict=True)
    for preset, steps in presets:
        run_config = RunConfig.from_preset(f"smac/{name}", preset)
        hparams, config = run_config.learner.hyperparameters, run_config.learner
        assert (hparams.clip_range, config.gru_size) == (clip, recurrent)
        assert (hparams.actor_lr, hparams.critic_lr, hparams.entropy_coef) == (5e-4, 5e-4, 0.01)
        assert (hparams.gamma, hparams.gae_lambda, hparams.huber_delta) == (0.99, 0.95, 10.0)
        sizes = config.num_envs, config.rollout, config.epochs, config.minibatches
        assert sizes == (8, 400, 5, 1)
        assert (run_config.seeds, run_config.eval_episodes) == (5, 32)
        assert steps is None or run_config.steps == steps * 1_000_000
        assert config.sharing == {"paper": "full"}.get(preset, preset.removeprefix("paper-"))
        many = RunConfig.from_preset(f"smac/{name}", preset.replace("paper", "many"))
        assert many.learner.num_envs > 100
        assert gradient_steps(many) == gradient_steps(run_config)
        assert (many.steps, many.learner.hyperparameters) == (run_config.steps, hparams)


def test_all_maps_are_tasks() -> None:
    """In the simulator and in StarCraft II, with the same variants; errors name the nearest map."""
    for name in MAPS:
        ours, real = TASKS[f"smac/{name}"], get_task(f"starcraft2/{name}")
        assert ours.max_episode_steps() == real.max_episode_steps() == MAPS[name].max_episode_steps
        assert ours.variants == real.variants
        assert "many" not in real.presets
    with pytest.raises(ValueError, match="smac/5m_vs_6m"):
        get_task("smac/5m_vs_7m")


def test_episode_metrics_are_those_of_the_ended_episode() -> None:
    """Metrics are read before the reset; in the next episode all units are alive."""
    env = VmapEnv(smac_env("3m", "paper"), 2)
    (state, keys), _ = env.reset(jax.random.key(0))
    hp = state.units.hp.at[0, 3:].set(jnp.asarray([1e-3, 0.0, 0.0])).at[1, :3].set(0.0)
    units = state.units._replace(hp=hp, x=state.units.x.at[0, 3].set(state.units.x[0, 0] + 3))
    units = units._replace(y=units.y.at[0, 3].set(units.y[0, 0]))
    units = units._replace(
        damage_taken=units.damage_taken.at[0].set(jnp.asarray([7.0, 7, 7, 44, 45, 45])),
        healed=units.healed.at[1].set(jnp.asarray([7.0, 7, 7, 1, 2, 3])),
    )
    action = jnp.zeros((2, 3, 1), int).at[0, 0, 0].set(6)
    state, now = jax.jit(env.step)((state._replace(units=units), keys), action)
    assert EPISODE_METRICS == ("won", "dead_allies", "dead_enemies", "damage_dealt", "healed")
    np.testing.assert_array_equal(now.terminated, [True, True])
    ends = [[1, 0, 3, 134 + 1e-3, 0], [0, 3, 0, 0, 6]]
    np.testing.assert_allclose(now.episode_metrics, ends, rtol=1e-6)
    assert (state[0].units.hp > 0).all()
    assert not state[0].units.damage_taken.any() and not state[0].units.healed.any()


def test_wins_are_counted_in_training_and_evaluation() -> None:
    """Training reports means over the episodes that ended; evaluation reports every episode."""
    run_config = RunConfig.from_preset("smac/3m", "many")
    run_config = run_config.with_settings({**SMALL, "algorithm": "mappo"})
    program = make_program(run_config)
    state, metrics = program.iterate(program.init(0))
    assert (metrics["episodes"] > 0).all()
    assert ((metrics["episode_won"] >= 0) & (metrics["episode_won"] <= 1)).all()
    assert (metrics["episode_dead_allies"] > 0).all()
    episodes = evaluate_params(program, run_config, state.learner.actor, 3, (4,))
    assert episodes.returns.shape == episodes.lengths.shape == (2, 3)
    assert (episodes.lengths > 3).all() and (episodes.lengths < 60).any()
    won, ours, theirs, dealt, healed = np.moveaxis(np.asarray(episodes.episode_metrics), -1, 0)
    np.testing.assert_array_equal(won == 1, (theirs == 3) & (ours < 3))
    # Marines do not heal: the return is their losses, of 3 x (45 + 10) + 200 points for 20.
    assert not healed.any() and (dealt >= 45 * theirs).all() and (dealt <= 3 * 45).all()
    paid = (dealt + 10 * theirs + 200 * won) * 20 / 365
    np.testing.assert_allclose(episodes.returns, paid, rtol=1e-4)


@pytest.mark.slow
def test_a_run_of_battles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Train, evaluate with baselines, render."""
    run = fp3o.train(
        "smac/3s5z", preset="many", out=tmp_path / "run", steps=240, progress="quiet", loggers=(),
        **{**SMALL, "rollout": 10},
    )  # fmt: skip
    results = run.results
    assert set(results["baselines"]) == {"random", "nearest", "focus", "kite"}
    assert results["baselines"]["random"]["episode_metrics"]["won"] == 0
    for row in (*results["last"], *results["best"]):
        assert set(row["episode_metrics"]) == set(EPISODE_METRICS)
    found = evaluate(run.path, 2)
    assert set(found["policies"][0]["episode_metrics"]) == set(EPISODE_METRICS)
    assert main(["evaluate", str(run.path), "--episodes", "2"]) == 0
    assert "won" in capsys.readouterr().out
    video = tmp_path / "video.gif"
    assert main(["render", str(run.path), "--out", str(video), "--episodes", "1"]) == 0
    assert video.stat().st_size > 5_000


@pytest.mark.slow
def test_a_run_of_random_teams(tmp_path: Path) -> None:
    """Train, evaluate with baselines, render."""
    run = fp3o.train(
        "smacv2/terran_3_vs_4", preset="many", out=tmp_path / "run", steps=240, progress="quiet",
        loggers=(), **{**SMALL, "rollout": 10, "gru_size": 8, "sequence_length": 5},
    )  # fmt: skip
    assert set(run.results["baselines"]) == {"random", "nearest", "focus", "kite"}
    assert set(run.results["last"][0]["episode_metrics"]) == set(EPISODE_METRICS)
    video = tmp_path / "video.gif"
    assert main(["render", str(run.path), "--out", str(video), "--episodes", "1"]) == 0
    assert video.stat().st_size > 5_000
