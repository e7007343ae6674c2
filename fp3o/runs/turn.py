"""A turn of the training loop: one iteration in the hands of the caller of `fp3o.iterate`."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.errors import SettingError, UserError
from fp3o.options import show
from fp3o.policy import Policy
from fp3o.policy.export import make_policy
from fp3o.runs.changes import RunHyperparameters, plain_value
from fp3o.runs.checkpoint import TrainCheckpoint
from fp3o.runs.evaluation import IN_LOOP, evaluate_params, summarise_episodes
from fp3o.runs.limits import check_episodes
from fp3o.runs.metrics_log import Row, json_value
from fp3o.runs.run_config import SETTING_TYPES, RunConfig
from fp3o.runs.seed_axis import by_seed
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.program import Program

RESERVED = ("iteration", "step", "seed")
RESERVED_PREFIXES = ("eval_", "episode_", "env_")
"""Beginnings of the names of metrics of evaluations, episodes and worker processes."""


class TurnError(UserError, RuntimeError):
    """A call that comes too late in the training loop."""


@runtime_checkable
class TurnOwner(Protocol):
    """What a turn needs of the trainer it belongs to."""

    config: RunConfig
    program: Program
    checkpoint: TrainCheckpoint
    iteration: int
    hyperparameters: RunHyperparameters

    @property
    def step(self) -> int:
        """Environment steps per seed so far."""
        ...

    @property
    def path(self) -> str:
        """The run directory."""
        ...

    def record(self, turn: "TrainingStep") -> list[Row]:
        """Write the metrics of a turn, once; returns its rows."""
        ...

    def save(self) -> None:
        """Write a checkpoint and the current policies."""
        ...


class TrainingStep:
    """One iteration of a run: its metrics, and what can be done before the next one."""

    def __init__(self, trainer: TurnOwner, rows: list[Row], evaluated: list[Row] | None):
        self._trainer, self._rows, self.evaluated = trainer, rows, evaluated
        self._numbers = trainer.hyperparameters.current
        self.own: dict[str, np.ndarray] = {}
        """Metrics of the caller, per seed."""
        self.stopped = False
        """Whether `stop` was called."""
        self.over = False
        """Whether the row of metrics is written: nothing can be added."""
        self.iteration = trainer.iteration
        """Iterations done."""
        self.steps = trainer.step
        """Environment steps per seed so far."""

    @property
    def iterations(self) -> int:
        """Iterations of the whole run."""
        return self._trainer.config.iterations

    @property
    def path(self) -> str:
        """The run directory; empty in a process that writes nothing."""
        return self._trainer.path

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the run: the first axis of all metrics."""
        return self._trainer.config.seed_numbers

    @property
    def rows(self) -> list[Row]:
        """The metrics of the iteration as rows of `metrics.jsonl`, one per seed."""
        own = [{name: json_value(x[k]) for name, x in self.own.items()} for k in range(self._count)]
        evaluated = self.evaluated or [{}] * self._count
        return [a | b | c for a, b, c in zip(self._rows, evaluated, own, strict=True)]

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """Metrics by name, the first axis is that of the seeds; NaN where there is no number.

        Those of an evaluation (`eval_return`, ...) are there after iterations that evaluate.
        """
        rows = self.rows
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: np.array([row.get(name) for row in rows], float) for name in names}

    @property
    def hyperparameters(self) -> dict[str, float | list[float] | None]:
        """The values used in this iteration; with one value per seed, a list."""
        names = (field.name for field in dataclasses.fields(self._numbers))
        return {name: plain_value(getattr(self._numbers, name)) for name in names}

    def log(self, **metrics: Any) -> None:
        """Add metrics: numbers, or arrays whose first axis is that of the seeds."""
        self._require_open("log")
        for name, value in metrics.items():
            known = name in self._rows[0] or name in RESERVED
            if known or name.startswith(RESERVED_PREFIXES) or name in SETTING_TYPES:
                raise SettingError(
                    f"{name} is a metric of fp3o: choose another name, which does not start with "
                    + ", ".join(RESERVED_PREFIXES)
                )
            self.own[name] = self._per_seed(name, value)

    def set(self, **hyperparameters: Any) -> None:
        """Change hyperparameters from the next iteration on.

        A value is a number, the text of a schedule over the whole run, or a list with a number per
        seed. It is part of the checkpoints, and of the metrics from now on.
        """
        self._require_open("set")
        self._trainer.hyperparameters.change(hyperparameters)

    def stop(self) -> None:
        """End training after this turn: the run is evaluated, reported and finished."""
        self._require_open("stop")
        self.stopped = True

    def save(self) -> None:
        """Write the metrics of this turn, a checkpoint and the policies now."""
        self._require_open("save")
        self._trainer.record(self)
        self._trainer.save()

    def evaluate(self, episodes: int = 100, deterministic: bool = True) -> list[dict[str, Any]]:
        """Evaluate the current policies: a row per seed, as those of `results.json`.

        The random streams are separate from those of training, so that nothing else changes.
        """
        if episodes < 1:
            raise SettingError(f"episodes must be at least 1, got {episodes}")
        check_episodes(episodes)
        trainer = self._require_current("evaluate")
        program, actor = trainer.program, trainer.checkpoint.state.learner.actor
        found = evaluate_params(
            program, trainer.config, actor, episodes, (IN_LOOP, self.iteration), deterministic
        )
        names = program.setup.spec.episode_metrics
        rows = (summarise_episodes(EvalEpisodes(*one), names) for one in zip(*found, strict=True))
        return [{"seed": seed, **row} for seed, row in zip(self.seeds, rows, strict=True)]

    def policy(self, seed: int | None = None) -> Policy:
        """The current policy of a seed; by default, of the first one."""
        trainer, seed = self._require_current("policy"), self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise SettingError(f"there is no seed {seed}: the run has {[*self.seeds]}")
        learner = trainer.program.fetch(trainer.checkpoint.state.learner)
        k, settings = self.seeds.index(seed), trainer.config.settings
        actor, norm = jax.tree.map(
            lambda x: jnp.asarray(by_seed(x, self._count)[k]), (learner.actor, learner.value_norm)
        )
        facts = {name: settings[name] for name in ("algorithm", "sharing")}
        facts |= {"seed": seed, "step": self.steps}
        return make_policy(trainer.program.setup, actor, facts, norm)

    @property
    def _count(self) -> int:
        return len(self._rows)

    def _per_seed(self, name: str, value: Any) -> np.ndarray:
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise SettingError(f"{name} must be a number per seed, got {show(value)}") from None
        if array.ndim and len(array) != self._count:
            raise SettingError(
                f"{name} must be a number, or an array with the {self._count} seeds as first axis, "
                f"got the shape {array.shape}"
            )
        return array if array.ndim else np.full(self._count, array)

    def _require_current(self, name: str) -> TurnOwner:
        if self._trainer.iteration != self.iteration:
            raise TurnError(f"step.{name} belongs to its turn: training is further now")
        return self._trainer

    def _require_open(self, name: str) -> None:
        self._require_current(name)
        if self.over:
            raise TurnError(f"step.{name} has to come before step.save, which ends the turn")
