"""The result of a sweep: its trials and the best of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fp3o.experiments.sweep.settings import SweepSettings
from fp3o.experiments.sweep.study import TrialRecord, best_record
from fp3o.runs.atomic import RunError
from fp3o.runs.run_config import RunConfig


@dataclass(frozen=True)
class SweepResult:
    """A sweep on disk.

    Example:
        result = fp3o.sweep("mpe/simple_spread", search={"actor_lr": (1e-4, 1e-2, "log")})
        run = fp3o.train(config=result.best_config, seeds=5)
    """

    path: Path
    """Folder of the sweep."""
    settings: SweepSettings
    trials: Sequence[TrialRecord]
    """All trials, in the order in which they were proposed."""
    finished: bool
    """Whether all trials have ended."""

    @property
    def best(self) -> TrialRecord | None:
        """The finished trial with the best score; None if there is none."""
        return best_record(self.trials, self.settings.options.minimise)

    @property
    def best_config(self) -> RunConfig:
        """Settings of the best trial, for `fp3o.train(config=...)`."""
        if self.best is None:
            raise RunError(f"no trial of {self.path} is finished")
        return self.settings.trial_config(self.best.params)
