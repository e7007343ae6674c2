"""Trials side by side in one program are runs of their own."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_sweeps import small_settings, small_sweep

import fp3o
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.experiments.sweep import lanes as lanes_module
from fp3o.experiments.sweep.lanes import Lanes
from fp3o.experiments.sweep.settings import program_key
from fp3o.training import seeds
from fp3o.training.program import Program

POINTS: list[dict[str, Any]] = [
    {"actor_lr": 1e-3, "clip_range": 0.1},
    {"actor_lr": 5e-2, "clip_range": 0.4},
    {"actor_lr": 2e-2, "clip_range": 0.2},
]


def numbers(tree: Any) -> list[np.ndarray]:
    """All arrays; keys as integers."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
    leaves = jax.tree.leaves(tree)
    return [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in leaves]


@pytest.mark.parametrize("threads", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_sweep_of_k_points_equals_k_separate_programs(
    threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States and scores, also of a trial that takes the place of another one later."""
    monkeypatch.setattr(seeds, "MIN_SAMPLES", 24 if threads else 10**6)
    lanes_module._kept_program.cache_clear()
    settings = small_settings()
    configs = [settings.trial_config(point) for point in POINTS]
    lanes = Lanes(configs[0], 2)
    for k in range(2):
        lanes.start(k, k, configs[k])
    lanes.iterate()
    lanes.free(1)
    lanes.start(1, 2, configs[2])
    for _ in range(2):
        assert lanes.iterate() == {}
    evaluated, _ = lanes.evaluate(last=True)
    alone = Program(VmapEnv(PROBES["credit"], 4), configs[0].learner, None)
    for slot, (config, iterations) in enumerate(((configs[0], 3), (configs[2], 2))):
        for number in range(2):
            state = alone.init(number)
            for _ in range(iterations):
                state, _ = alone.iterate(state, config.learner.hyperparameters.as_arrays())
            own = jax.tree.map(lambda x, k=2 * slot + number: x[k], lanes.state)
            for one, other in zip(numbers(own), numbers(state), strict=True):
                if threads:
                    np.testing.assert_array_equal(one, other)
                else:
                    np.testing.assert_allclose(one, other, rtol=2e-6, atol=2e-6)
        assert len(evaluated[slot]) == 2
    lanes_module._kept_program.cache_clear()


@pytest.mark.slow
def test_scores_are_those_of_training_runs(tmp_path: Path) -> None:
    """The score of a trial is the final evaluation of `fp3o train` with its settings.

    A hyperparameter with a schedule follows it in every trial.
    """
    result = small_sweep(tmp_path / "sweep", trials=3, entropy_coef="0.05:0")
    for record in result.trials:
        config = result.settings.trial_config(record.params)
        run = fp3o.train(
            config=config, out=tmp_path / str(record.number), progress="quiet", loggers=()
        )
        returns = [row["return"] for row in run.results["last"]]
        np.testing.assert_allclose(record.scores, returns, rtol=2e-6, atol=2e-6)
        during = run.series("eval_return").value.mean(0)[
            1:-1
        ]  # not before training, not at its end
        np.testing.assert_allclose([*record.evaluations.values()][:-1], during, rtol=2e-6)


@pytest.mark.slow
def test_other_trials_do_not_matter(tmp_path: Path) -> None:
    """The same point alone and beside others."""
    points = {"actor_lr": [1e-3, 5e-2, 2e-2]}
    together = small_sweep(tmp_path / "a", search=points, sampler="grid", parallel=3)
    alone = small_sweep(tmp_path / "b", search=points, sampler="grid", parallel=1)
    for one, other in zip(together.trials, alone.trials, strict=True):
        assert one.params == other.params
        np.testing.assert_allclose(one.scores, other.scores, rtol=2e-6, atol=2e-6)


def test_a_searched_setting_is_a_number() -> None:
    """It replaces a schedule in the settings of training, and cannot be one itself."""
    base = small_settings().base.with_settings({"actor_lr": "1e-2:0", "critic_lr": "1e-2:0"})
    settings = dataclasses.replace(small_settings("actor_lr=1e-3..1e-2"), base=base)
    found = settings.trial_config({"actor_lr": 2e-3}).settings
    assert (found["actor_lr"], found["critic_lr"]) == (2e-3, "1e-2:0")
    assert type(settings).from_record(settings.record).base.settings == base.settings
    with pytest.raises(fp3o.SettingError, match="a search of actor_lr needs numbers"):
        small_settings({"actor_lr": ["1e-2:0", 1e-3]})


def test_hyperparameters_share_a_program_and_other_settings_do_not() -> None:
    settings = small_settings("actor_lr=1e-3..1e-2 epochs=1,2 value_clip=none,0.1,0.2")

    def key(**params: Any) -> str:
        return program_key(settings.trial_config({"actor_lr": 2e-3, **params}))

    first = key(epochs="1", value_clip="0.1")
    assert key(epochs="1", value_clip="0.2", actor_lr=5e-3) == first
    assert key(epochs="2", value_clip="0.1") != first
    assert key(epochs="1", value_clip="none") != first  # the arrays of the program differ
