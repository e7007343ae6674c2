"""The trials of one program, side by side: every trial has as many seeds of it as it needs.

A trial starts from the same initial state whenever and wherever it starts, and nothing of another
trial reaches it: its result is that of a run of its own.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.learning.config import Hyperparameters
from fp3o.runs.compilation_cache import enable_compilation_cache
from fp3o.runs.evaluation import (
    DURING_TRAINING,
    LAST,
    evaluate_with_keys,
    evaluation_row,
    summarise_episodes,
)
from fp3o.runs.programs import make_training_envs
from fp3o.runs.run_config import RunConfig
from fp3o.runs.start import SavedStart, read_start
from fp3o.training.divergence import refuse_divergence
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.faults import refuse_fault
from fp3o.training.program import Program, TrainState

KEPT_PROGRAMS = 4
"""Programs that are kept for later trials."""


@dataclass
class Slot:
    """Place of one trial in a program; free if it has none."""

    trial: int | None = None
    iteration: int = 0
    """Iterations done."""
    seconds: float = 0.0


def lane_program(config: RunConfig) -> Program:
    """The program of all lanes, `config.seeds`; the values of hyperparameters do not matter."""
    learner = dataclasses.replace(config.learner, hyperparameters=_default_scalars(config))
    plain = RunConfig(config.task, config.variant, seeds=config.seeds, learner=learner)
    return _kept_program(plain)


def _default_scalars(config: RunConfig) -> Hyperparameters:
    """The default hyperparameters, with a `value_clip` if the trial has one."""
    clip = config.learner.hyperparameters.value_clip
    return Hyperparameters(value_clip=None if clip is None else 0.2)


@lru_cache(KEPT_PROGRAMS)
def _kept_program(config: RunConfig) -> Program:
    enable_compilation_cache()
    return Program(make_training_envs(config, config.seeds), config.learner, config.seeds)


class Lanes:
    """The state of training of `size` trials with `config.seeds` seeds each."""

    def __init__(self, config: RunConfig, size: int):
        self.config, self.slots = config, [Slot() for _ in range(size)]
        self._all = dataclasses.replace(config, seeds=size * config.seeds)
        self.program = lane_program(self._all)
        self.state: TrainState = self._initial_state()
        self._hparams = [self._harmless] * size
        self.iterations = 0
        """Iterations since the first trials started."""

    @property
    def busy(self) -> dict[int, int]:
        """Slots with a trial -> its number."""
        return {k: slot.trial for k, slot in enumerate(self.slots) if slot.trial is not None}

    @property
    def refillable(self) -> bool:
        """Whether a slot can get a trial while others train: not in environments on the host."""
        return not self.program.on_host

    def start(self, index: int, trial: int, config: RunConfig) -> None:
        """Give a free slot a trial, from the initial state."""
        if self.iterations:
            self._reset(index)
        self.place(index, Slot(trial), config)

    def place(self, index: int, slot: Slot, config: RunConfig) -> None:
        """Put a trial with its progress into a slot whose lanes have its state."""
        self.slots[index] = slot
        self._hparams[index] = config.learner.hyperparameters

    def free(self, index: int) -> None:
        """Take the trial out of a slot; its lanes start over, so that they stay harmless."""
        self.slots[index] = Slot()
        self._hparams[index] = self._harmless
        self._reset(index)

    def _reset(self, index: int) -> None:
        """Initial state of the lanes of a slot; environments on the host stay as they are."""
        replace = lambda x, y: jnp.asarray(x).at[self._rows([index])].set(y)  # noqa: E731
        if self.refillable:
            self.state = jax.tree.map(replace, self.state, self._fresh)
        else:
            learner = jax.tree.map(replace, self.state.learner, self._fresh_learner)
            self.state = self.state._replace(learner=learner)

    def iterate(self) -> dict[int, str]:
        """One iteration of all trials; those that diverged, with the reason."""
        hparams = self._current_hparams()
        self.state, metrics = self.program.iterate_unchecked(self.state, self._stacked(hparams))
        self.iterations += 1
        for index in self.busy:
            self.slots[index].iteration += 1
        checks = np.asarray(metrics["fault"]), np.asarray(metrics["magnitudes"])
        failed: dict[int, str] = {}
        for index in self.busy:
            for row, seed in zip(self._rows([index]), self._seeds, strict=True):
                try:
                    refuse_fault(checks[0][row], self.program.setup.spec.name, seed)
                    refuse_divergence(checks[1][row], hparams[index], self.program.setup, seed)
                except NonFiniteError as error:
                    failed.setdefault(index, str(error))
        return failed

    def evaluate(self, last: bool) -> tuple[list[list[dict[str, Any]]], dict[int, str]]:
        """Evaluations of all slots, a row per seed, and why those of some slots failed.

        They are those of a run: during training, or after it with `last`.
        """
        failed: dict[int, str] = {}
        actor = self.state.learner.actor
        episodes = self.config.final_episodes if last else self.config.eval_episodes
        while True:
            try:
                found = evaluate_with_keys(
                    self.program, self._all, actor, episodes,
                    lambda batch: self._keys(last, batch),
                )  # fmt: skip
                break
            except NonFiniteError as error:
                index = (error.index or 0) // self.config.seeds
                if index in failed:  # also with the initial policy: the task is at fault
                    raise
                failed[index] = str(error)
                rows = self._rows([index])
                fresh = self._fresh_learner.actor
                actor = jax.tree.map(lambda x, y, r=rows: jnp.asarray(x).at[r].set(y), actor, fresh)
        names = self.program.setup.spec.episode_metrics
        summary = summarise_episodes if last else evaluation_row
        all_rows = [summary(EvalEpisodes(*one), names) for one in zip(*found, strict=True)]
        size = self.config.seeds
        return [all_rows[k : k + size] for k in range(0, len(all_rows), size)], failed

    def shrunk(self) -> "Lanes":
        """The same trials without the free slots."""
        kept = [*self.busy]
        smaller = Lanes(self.config, len(kept))
        rows = self._rows(kept)
        smaller.state = jax.tree.map(lambda x: jnp.asarray(x)[rows], self.state)
        smaller.slots = [self.slots[index] for index in kept]
        smaller._hparams = [self._hparams[index] for index in kept]
        smaller.iterations = self.iterations
        return smaller

    @property
    def _harmless(self) -> Hyperparameters:
        """Hyperparameters of lanes without a trial."""
        return _default_scalars(self.config)

    @property
    def _seeds(self) -> range:
        return self.config.seed_numbers

    def _rows(self, indices: Iterable[int]) -> np.ndarray:
        """The lanes of slots."""
        size = self.config.seeds
        return np.concatenate([np.arange(size) + index * size for index in indices])

    @cached_property
    def _fresh(self) -> TrainState:
        return self._started(self.program.init(self._seeds))

    @cached_property
    def _fresh_learner(self) -> Any:
        learners = [self.program.setup.init(seed) for seed in self._seeds]
        fresh = jax.tree.map(lambda *x: jnp.stack(x), *learners)
        return self._start.learners(fresh) if self._start else fresh

    @cached_property
    def _start(self) -> SavedStart | None:
        """The saved policies from which every trial starts; None: there are none."""
        return read_start(self.config) if self.config.starts else None

    def _started(self, state: TrainState) -> TrainState:
        if self._start is None:
            return state
        return state._replace(learner=self._start.learners(state.learner))

    def _initial_state(self) -> TrainState:
        size = len(self.slots)
        if self.program.on_host:
            return self._started(self.program.init([*self._seeds] * size))
        return jax.tree.map(lambda x: jnp.concatenate([x] * size), self._fresh)

    def _current_hparams(self) -> list[Hyperparameters]:
        """Hyperparameters of every slot, those of schedules by the progress of its trial."""
        total = self.config.iterations
        pairs = zip(self._hparams, self.slots, strict=True)
        return [hparams.at(slot.iteration / total) for hparams, slot in pairs]

    def _stacked(self, hparams: Sequence[Hyperparameters]) -> Hyperparameters:
        lanes = [scalars for scalars in hparams for _ in self._seeds]
        return jax.tree.map(lambda *x: jnp.asarray(x, float), *lanes)

    @cached_property
    def _seed_keys(self) -> Any:
        return jnp.stack([jax.random.key(seed) for seed in self._seeds] * len(self.slots))

    def _keys(self, last: bool, batch: int) -> Any:
        """The keys of a run's evaluations: by seed, purpose, iteration and batch."""
        fold = jax.vmap(jax.random.fold_in)
        lanes = len(self._seed_keys)
        if last:
            keys = fold(self._seed_keys, np.full(lanes, LAST))
        else:
            done = np.repeat([slot.iteration for slot in self.slots], self.config.seeds)
            keys = fold(fold(self._seed_keys, np.full(lanes, DURING_TRAINING)), done)
        return fold(keys, np.full(lanes, batch))


def measured(rows: Sequence[Mapping[str, Any]], measure: str, last: bool) -> list[float] | None:
    """The measure of every seed in its row of an evaluation; None if one is unknown."""
    if not last:
        values = [row.get(f"eval_{measure}") for row in rows]
    elif measure in ("return", "length"):
        values = [row.get(measure) for row in rows]
    else:
        values = [(row.get("episode_metrics") or {}).get(measure) for row in rows]
    known = [float(x) for x in values if x is not None]
    return known if len(known) == len(rows) else None
