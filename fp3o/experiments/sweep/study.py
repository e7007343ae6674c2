"""The optuna study of a sweep: proposals, reports, pruning and results.

All of it is in a journal, to which optuna only appends. The sampler of a trial is seeded by the
trial's number, so that a sweep whose journal was cut back to a checkpoint proposes the same again.
"""

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fp3o.errors import MissingExtraError, SettingError
from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.experiments.sweep.space import ChoiceSet, Dimension, grid_points

JOURNAL = "journal.log"
"""File of the study in the folder of a sweep."""

_NAME = "sweep"

FINISHED, PRUNED, FAILED = "finished", "pruned", "failed"
"""How trials end."""


class TrialRecord(NamedTuple):
    """A trial of a sweep as it is stored and reported."""

    number: int
    state: str
    """waiting (also while it is trained), finished, pruned or failed."""
    params: dict[str, Any]
    """The searched settings, choices by their text."""
    score: float | None
    """Mean over the seeds of the final evaluation; of a pruned trial, of its last evaluation."""
    scores: list[float]
    """Per seed; empty if the trial has failed."""
    evaluations: dict[int, float]
    """Mean over the seeds by the number of the evaluation, from 1 on."""
    steps: int = 0
    """Environment steps per seed."""
    seconds: float = 0.0
    """Seconds in a program, shared with the other trials in it."""
    reason: str = ""
    """Why it has failed."""


def import_optuna() -> Any:
    """The optional package, without its messages about every trial."""
    try:
        optuna = import_module("optuna")
    except ImportError as error:
        raise MissingExtraError("optuna", "sweep") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class SweepStudy:
    """Proposals and results of the trials of a sweep.

    Without a folder the study is in memory.
    """

    def __init__(self, settings: SweepSettings, folder: Path | None):
        self.settings, self.optuna = settings, import_optuna()
        options = settings.options
        self._grid = grid_points(settings.space) if options.sampler == "grid" else []
        self._distributions = {
            name: _distribution(self.optuna, dimension)
            for name, dimension in settings.space.items()
        }
        self._study = self.optuna.create_study(
            study_name=_NAME,
            storage=_journal(self.optuna, folder),
            direction="minimize" if options.minimise else "maximize",
            pruner=_pruner(self.optuna, settings),
            load_if_exists=True,
        )

    def ask(self) -> int:
        """Propose a trial; returns its number."""
        with warnings.catch_warnings():
            # Some samplers are marked as experimental.
            warnings.simplefilter("ignore")
            self._study.sampler = self._sampler(len(self._trials()))
            return self._study.ask(self._distributions).number

    def add(self, record: TrialRecord) -> int:
        """Add a trial with its parameters and evaluations; returns its number here."""
        states = self.optuna.trial.TrialState
        done = {FINISHED: states.COMPLETE, PRUNED: states.PRUNED, FAILED: states.FAIL}
        trial = self.optuna.trial.create_trial(
            state=done.get(record.state, states.RUNNING),
            params=record.params,
            distributions=self._distributions,
            value=record.score if record.state == FINISHED else None,
            intermediate_values=record.evaluations,
        )
        self._study.add_trial(trial)
        return len(self._trials()) - 1

    def params(self, number: int) -> dict[str, Any]:
        """The proposed values of a trial."""
        return dict(self._trials()[number].params)

    def report(self, number: int, evaluation: int, score: float) -> bool:
        """Report an evaluation during training; whether the trial should be pruned."""
        trial = self._trial(number)
        trial.report(score, evaluation)
        return bool(trial.should_prune())

    def tell(self, number: int, state: str, scores: Sequence[float], **facts: Any) -> None:
        """End a trial; `facts` are fields of its record."""
        trial, states = self._trial(number), self.optuna.trial.TrialState
        for name, value in {"scores": [*scores], **facts}.items():
            trial.set_user_attr(name, value)
        if state == FINISHED:
            self._study.tell(trial, float(np.mean(scores)))
        else:
            self._study.tell(trial, state=states.PRUNED if state == PRUNED else states.FAIL)

    def records(self) -> list[TrialRecord]:
        """All trials so far, in the order of their proposal."""
        return [_record(trial) for trial in self._trials()]

    def best(self) -> TrialRecord | None:
        """The finished trial with the best score; None if there is none."""
        return best_record(self.records(), self.settings.options.minimise)

    def importances(self) -> dict[str, float]:
        """Share of each setting in the differences between good and average scores (PED-ANOVA).

        Pruned trials count with their last evaluation: the finished ones are a selection. Empty if
        there are too few trials to say.
        """
        done = [record for record in self.records() if record.score is not None]
        if len(done) < 4 or len({record.score for record in done}) < 2:
            return {}
        scored, importance = SweepStudy(self.settings, None), self.optuna.importance
        for record in done:
            scored.add(record._replace(state=FINISHED))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = importance.PedAnovaImportanceEvaluator()
            found = importance.get_param_importances(scored._study, evaluator=evaluator)
        known = {name: float(value) for name, value in found.items()}
        return known if all(np.isfinite(x) for x in known.values()) and any(known.values()) else {}

    def _trials(self) -> list[Any]:
        return self._study.get_trials(deepcopy=False)

    def _trial(self, number: int) -> Any:
        return self.optuna.trial.Trial(self._study, self._trials()[number]._trial_id)

    def _sampler(self, number: int) -> Any:
        samplers, options = self.optuna.samplers, self.settings.options
        words = np.random.SeedSequence([options.sampler_seed, number]).generate_state(1)
        seed = int(words[0])
        if options.sampler == "grid":
            point = self._grid[number]
            return samplers.PartialFixedSampler(point, samplers.RandomSampler(seed=seed))
        if options.sampler == "random":
            return samplers.RandomSampler(seed=seed)
        if options.sampler == "cmaes":
            return samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
        # Trials that are not finished count as bad ones: proposals made together differ.
        return samplers.TPESampler(seed=seed, constant_liar=True)


def best_record(records: Sequence[TrialRecord], minimise: bool) -> TrialRecord | None:
    """The finished trial with the best score; None if there is none."""
    done = [record for record in records if record.state == FINISHED]
    sign = 1 if minimise else -1
    return min(done, key=lambda record: sign * (record.score or 0.0), default=None)


def check_packages(sampler: str) -> None:
    """Raise if a package that the sweep needs is not installed."""
    import_optuna()
    if sampler == "cmaes":
        try:
            import_module("cmaes")
        except ImportError as error:
            raise SettingError(
                "the sampler cmaes needs the package cmaes: pip install cmaes, or choose tpe, "
                "random or grid"
            ) from error


def _journal(optuna: Any, folder: Path | None) -> Any:
    if folder is None:
        return None
    path = folder / JOURNAL
    # The folder is locked by this process: a lock of the journal is left from one that was killed.
    path.with_name(f"{JOURNAL}.lock").unlink(missing_ok=True)
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))


def _distribution(optuna: Any, dimension: Dimension) -> Any:
    kinds = optuna.distributions
    if isinstance(dimension, ChoiceSet):
        return kinds.CategoricalDistribution(dimension.points())
    ends = dimension.low, dimension.high
    if dimension.whole:
        return kinds.IntDistribution(*ends, log=dimension.log, step=int(dimension.step or 1))
    return kinds.FloatDistribution(*ends, log=dimension.log, step=dimension.step)


def _pruner(optuna: Any, settings: SweepSettings) -> Any:
    """The pruner; its resource is the number of evaluations."""
    pruners, most = optuna.pruners, settings.options.evaluations
    return {
        # The first evaluations say little about the last.
        "median": lambda: pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=most // 5),
        "halving": lambda: pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
        "hyperband": lambda: pruners.HyperbandPruner(min_resource=1, max_resource=max(most, 1)),
        "none": pruners.NopPruner,
    }[settings.options.pruner]()


def _record(trial: Any) -> TrialRecord:
    states = {"COMPLETE": FINISHED, "PRUNED": PRUNED, "FAIL": FAILED}
    state = states.get(trial.state.name, "waiting")
    facts: Mapping[str, Any] = trial.user_attrs
    evaluations = {int(step): float(x) for step, x in sorted(trial.intermediate_values.items())}
    score = trial.value if state == FINISHED else None
    if state == PRUNED and evaluations:
        score = [*evaluations.values()][-1]
    return TrialRecord(
        trial.number, state, dict(trial.params), score, evaluations=evaluations,
        **{"scores": [], **{name: facts[name] for name in facts if name in TrialRecord._fields}},
    )  # fmt: skip
