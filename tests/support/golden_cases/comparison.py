"""Both sides of a case, and the comparison of their results."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import golden.data
import jax
import jax.numpy as jnp
import numpy as np
from golden.data import Draws, Rollout, Settings
from golden.iteration import iterate
from golden.iteration import prepare as prepare_agents

from fp3o.algorithms.fp3o import non_overlapping, random_split
from fp3o.algorithms.schedules import ORDERS, SCHEDULES
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import StageData
from fp3o.learning.steps import shuffle_sequences
from fp3o.training.program import update_learner
from fp3o.types import Batch
from golden_cases.cases import AGENTS, ENVS, STEPS, Case, settings_of, setup_of
from golden_cases.conversion import learner_of
from golden_cases.rollouts import rollout_of, trajectory_of


def warm(learner: Learner, rng: np.random.Generator) -> Learner:
    """A learner in the middle of training: used optimisers and value normaliser."""

    def used(state: Any) -> Any:
        return state._replace(
            count=jnp.asarray(rng.integers(400, 900, state.count.shape), state.count.dtype),
            mu=jnp.asarray(rng.normal(0.0, 0.01, state.mu.shape), state.mu.dtype),
            nu=jnp.asarray(rng.uniform(0.5, 1.5, state.nu.shape) * 1e-4, state.nu.dtype),
        )

    adams = (tuple(map(used, state)) for state in (learner.actor_adam, learner.critic_adam))
    weight = 1e-5 * (2.0 + np.arange(learner.value_norm.mean.size))
    norm = (x.astype(learner.value_norm.mean.dtype) for x in (0.3 * weight, 0.8 * weight, weight))
    actor_adam, critic_adam = adams
    value_norm = ValueNorm(*map(jnp.asarray, norm))
    return learner._replace(actor_adam=actor_adam, critic_adam=critic_adam, value_norm=value_norm)


def draws_of(setup: Setup, key: jax.Array, score: np.ndarray) -> Draws:
    """Random numbers that the library samples from this key."""
    row, config = setup.row, setup.config
    order_key, split_key, pair_key, shuffle_key = jax.random.split(key, 4)
    scores = jnp.asarray(score, float)
    stages = SCHEDULES[row.schedule](order_key, scores, config.epochs, row)
    orders = []
    if row.schedule == "sequential":
        orders = [
            ORDERS[row.order](k, scores).tolist() for k in jax.random.split(order_key, row.rounds)
        ]
    sequences = STEPS * ENVS // config.sequence_steps
    fields: dict[str, Any] = dict.fromkeys(Batch._fields)
    fields["actor_hidden"] = np.zeros((AGENTS, sequences, 0))
    data = StageData(Batch(**fields), others=jnp.ones((AGENTS, sequences)))
    shuffle = lambda k: shuffle_sequences(data, k, config.minibatches).tolist()  # noqa: E731
    epochs = int(stages.epochs.max())
    keys = jax.random.split(shuffle_key, len(stages.gated))
    minibatches = [[shuffle(k) for k in jax.random.split(stage_key, epochs)] for stage_key in keys]
    split = None
    if row.split == "random":
        split = np.asarray(random_split(split_key, jnp.ones((AGENTS, STEPS * ENVS))), np.float64)
    return Draws(orders, minibatches, split, non_overlapping(pair_key, AGENTS).tolist())


@dataclass
class Run:
    """Both sides of a case."""

    setup: Setup
    settings: Settings
    learner: Learner
    reference: golden.data.Learner
    rollout: Rollout
    key: jax.Array

    def draws(self) -> Draws:
        score = prepare_agents(self.settings, self.reference, self.rollout)[2]["mean_abs_advantage"]
        return draws_of(self.setup, self.key, score)

    def expected(self) -> tuple[golden.data.Learner, np.ndarray, dict[str, Any]]:
        """One iteration of the reference."""
        return iterate(self.settings, self.reference, self.rollout, self.draws())

    def found(self) -> tuple[Learner, jax.Array, dict[str, Any]]:
        """One iteration of the library."""
        trajectory, state = trajectory_of(self.setup, self.rollout)
        step = jax.jit(partial(update_learner, self.setup))
        learner, state, metrics = step(
            self.setup.config.hyperparameters.as_arrays(), self.learner, trajectory, state, self.key
        )
        return learner, state.critic_hidden, metrics


def prepare(case: Case) -> Run:
    setup = setup_of(case)
    s = settings_of(case, setup)
    learner = setup.init(case.seed)
    if not case.fresh:
        learner = warm(learner, np.random.default_rng(case.seed))
    reference = learner_of(setup, s, learner)
    rollout = rollout_of(case, setup, s, reference.actor)
    return Run(setup, s, learner, reference, rollout, jax.random.key(case.seed))


def differences(run: Run, found: Learner, expected: golden.data.Learner) -> dict[str, float]:
    """The largest difference of every array: parameters, moments (√ of the second), counts.

    The normaliser's running sums are divided by their weight, of the order of 1e-5.
    """
    now = learner_of(run.setup, run.settings, found)
    result: dict[str, float] = {}
    for which in ("actor", "critic"):
        new, old = getattr(now, which), getattr(expected, which)
        new_adam, old_adam = getattr(now, f"{which}_adam"), getattr(expected, f"{which}_adam")
        for key in old:
            result[f"{which} {key} count"] = abs(new_adam[key].count - old_adam[key].count)
            for name in old[key]:
                pairs = {
                    "": (new[key][name], old[key][name]),
                    "mean": (new_adam[key].mean[name], old_adam[key].mean[name]),
                    "root": [np.sqrt(x.square[name]) for x in (new_adam[key], old_adam[key])],
                }
                for kind, (x, y) in pairs.items():
                    result[f"{which} {key} {name} {kind}"] = float(np.abs(x - y).max())
    for g, (x, y) in enumerate(zip(now.norm, expected.norm, strict=True)):
        pairs = ((x[0] / x[2], y[0] / y[2]), (x[1] / x[2], y[1] / y[2]), (x[2] / y[2], 1.0))
        result[f"norm {g}"] = max(abs(a - b) for a, b in pairs)
    return result


SUMS = ("condition_new", "condition_old", "condition_gap", "constraint_gap")
"""Metrics that are sums over all living samples; compared by the sample."""


def metric_differences(
    run: Run, found: dict[str, Any], expected: dict[str, Any]
) -> dict[str, float]:
    """The largest difference of every metric, relative where it is above 1."""
    result = {"replay_error": float(found["replay_error"])}
    for name in expected:
        samples = run.rollout.alive.sum() if name in SUMS else 1.0
        x, y = (np.asarray(side[name], np.float64) for side in (found, expected))
        assert x.shape == y.shape, name
        result[name] = float((np.abs(x - y) / np.maximum(np.abs(y), samples)).max())
    return result


def close(case: Case) -> golden.data.Learner:
    """Compare one iteration of both sides; returns the learner of the reference."""
    run = prepare(case)
    learner, hidden_state, metrics = run.expected()
    found, carried, log = run.found()
    gaps = differences(run, found, learner) | metric_differences(run, log, metrics)
    gaps["hidden_state"] = float(np.abs(np.asarray(carried) - hidden_state).max(initial=0.0))
    tolerance = 1e-9 if case.x64 else 1e-5
    wrong = {name: gap for name, gap in gaps.items() if not gap <= tolerance}
    assert not wrong, wrong
    assert metrics["clip_fraction"].max() > 0.05, "ratios have to leave the clip range"
    assert case.gate in (None, metrics["gate"].tolist())
    return learner
