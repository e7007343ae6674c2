"""Everything that defines a sweep, as it is stored in `sweep.json`."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fp3o.errors import SettingError, nearest
from fp3o.experiments.sweep.space import (
    HYPERPARAMETERS,
    Space,
    check_space,
    grid_points,
    parse_search,
    setting_values,
    space_texts,
)
from fp3o.learning.check_config import check_numbers
from fp3o.runs.run_config import RunConfig

Sampler = Literal["tpe", "random", "grid", "cmaes"]
Pruner = Literal["median", "halving", "hyperband", "none"]

DEFAULT_TRIALS = 32
"""Trials of a sweep that has no grid."""


@dataclass(frozen=True)
class SearchOptions:
    """How the space is searched and what a trial is scored by."""

    trials: int | None = None
    """Number of trials; by default 32, or all points of a grid."""
    sampler: Sampler = "tpe"
    """How values are proposed: tpe learns from the trials so far, random does not, grid tries all
    combinations in order, cmaes needs the package cmaes."""
    pruner: Pruner = "median"
    """When a trial ends early: its evaluation is below the median of the others at that time, it is
    not in the best share (halving, hyperband), or never (none)."""
    parallel: int = 8
    """Trials trained side by side in one program. More are faster on an accelerator; with fewer,
    the sampler knows more results when it proposes the next trial."""
    evaluations: int = 10
    """Evaluations per trial, evenly spaced, at which it can be pruned. Training is rounded up to a
    multiple of their distance."""
    episodes: int = 200
    """Episodes per seed of the final evaluation, which gives the score."""
    measure: str = "return"
    """What is scored: return, length, or an episode metric of the task such as won."""
    minimise: bool = False
    """Search for the smallest score instead of the largest."""
    sampler_seed: int = 0
    """Seed of the proposals."""

    def check(self) -> None:
        """Raise unless all counts are positive."""
        for name in ("trials", "parallel", "evaluations", "episodes"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise SettingError(f"{name} must be at least 1, got {value}")
        if self.sampler_seed < 0:
            raise SettingError(f"sampler_seed must be at least 0, got {self.sampler_seed}")


@dataclass(frozen=True)
class SweepSettings:
    """A sweep: the settings of training, the search space, and how it is searched."""

    base: RunConfig
    """Settings of every trial, apart from the searched ones; `seeds` are those of a trial."""
    space: Space
    options: SearchOptions = field(default_factory=SearchOptions)
    _checked: dict[str, RunConfig] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def check(self) -> "SweepSettings":
        """A copy without open choices; raises where something cannot work."""
        self.options.check()
        episodes = self.options.episodes
        during = self.base.eval_episodes or min(episodes, self.base.task_info.max_parallel)
        base = self.base.with_settings(
            {"final_episodes": episodes, "eval_episodes": during, "eval_every": 1}
        ).resolve()
        check_space(self.space, base)
        spec = base.task_info.spec(base.variant)
        known = ("return", "length", *spec.episode_metrics)
        if self.options.measure not in known:
            near = nearest(self.options.measure, known)
            raise SettingError(f"{base.task} has no measure {self.options.measure!r}: {near}")
        return dataclasses.replace(
            self, base=base, options=dataclasses.replace(self.options, trials=self.trials)
        )

    @property
    def trials(self) -> int:
        """Number of trials."""
        asked = self.options.trials
        if self.options.sampler != "grid":
            return asked or DEFAULT_TRIALS
        size = len(grid_points(self.space))
        return size if asked is None else min(asked, size)

    def trial_config(self, params: Mapping[str, Any]) -> RunConfig:
        """The settings of a trial as `fp3o train` would take them.

        Training is rounded up so that its evaluations are evenly spaced and the last one is at its
        end: trials of one program are then evaluated together, whenever they have started.
        """
        values = setting_values(self.space, params)
        scalars = {name: values.pop(name) for name in HYPERPARAMETERS if name in values}
        # Checking settings builds their networks, which takes a while.
        key = repr(sorted(values.items()))
        if key not in self._checked:
            self._checked[key] = self._rounded(self.base.with_settings(values).resolve())
        config = self._checked[key].with_settings(scalars)
        check_numbers(config.learner.hyperparameters)
        return config

    def _rounded(self, config: RunConfig) -> RunConfig:
        every = math.ceil(config.iterations / self.options.evaluations)
        iterations = every * math.ceil(config.iterations / every)
        length = {"eval_every": every, "steps": iterations * config.steps_per_iteration}
        return config.with_settings(length)

    @property
    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "settings": self.base.settings,
            "search": space_texts(self.space),
            "options": dataclasses.asdict(self.options),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "SweepSettings":
        """Read what `record` has written."""
        return cls(
            RunConfig().with_settings(record["settings"]),
            parse_search(record["search"]),
            SearchOptions(**record["options"]),
        )


def refuse_evaluation_settings(names: Iterable[str]) -> None:
    """Raise if settings of training are given that a sweep determines itself."""
    instead = {"eval_every": "evaluations", "final_episodes": "episodes"}
    for name in names:
        if name in instead:
            raise SettingError(f"{name} is determined by the sweep: set {instead[name]} instead")


def program_key(config: RunConfig) -> str:
    """Equal for trials that can share a program: all that is compiled into it.

    Hyperparameters are inputs of the program, except whether there is a `value_clip` at all.
    """
    compiled = dict(config.settings)
    for name in HYPERPARAMETERS:
        compiled[name] = compiled[name] is None
    return repr(sorted(compiled.items()))
