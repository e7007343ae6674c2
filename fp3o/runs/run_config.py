"""`RunConfig`: everything that defines a training run, as dataclasses and as a flat dict.

The flat dict is what `config.json` and settings files hold and what `fp3o.train` takes as keywords;
the command line has one flag per name. All of them are derived from the fields of `RunConfig`,
`Config` and `Hyperparameters`.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fp3o.algorithms.table import algorithm_name
from fp3o.envs.registry import DEFAULT_PRESET, DEFAULT_TASK, get_task
from fp3o.envs.task import Task
from fp3o.errors import SettingError, nearest
from fp3o.learning.check_config import check_config, check_numbers
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.value_schedules import ValueSchedule
from fp3o.options import check_seeds, show, to_type
from fp3o.runs.limits import RunCounts, check_limits
from fp3o.runs.settings import coerce, read_settings, setting_types
from fp3o.runs.trust import require_trust_in_settings
from fp3o.sharing.auto import NUM_ENVS, auto_sharing
from fp3o.sharing.schemes import AUTO, resolve_groups


@dataclass(frozen=True)
class RunConfig:
    """The task, the length of training, evaluation, logging, and the learner's settings."""

    task: str = DEFAULT_TASK
    """Name of the task (see `fp3o list`)."""
    variant: str | None = None
    """Variant of the task's rules; by default, its first one."""
    steps: int = 1_000_000
    """Environment steps per seed, rounded up to whole iterations."""
    seeds: int = 1
    """Number of seeds, trained together in one program."""
    seed: int = 0
    """First seed; the others are the integers that follow."""
    eval_every: int = 25
    """Iterations between evaluations; 0: none during training."""
    eval_episodes: int = 100
    """Episodes per evaluation during training; 0: as many as the measured speed allows."""
    final_episodes: int = 1000
    """Episodes of the final evaluation, for the last and the best policy of every seed; 0: as many
    as the measured speed allows."""
    log_every: int = 1
    """Iterations between rows of metrics.jsonl."""
    video_every: int = 0
    """Steps between videos of the first seed's policy, for the loggers; 0: none."""
    save_every: float = 60.0
    """Seconds between checkpoints; 0: after every iteration."""
    keep_checkpoints: int = 3
    """Number of checkpoints to keep."""
    start_from: str | None = None
    """Policy folder or run directory whose policy the agents start from; of a run, the best one of
    all seeds. None: random weights."""
    start_agents: str | None = None
    """Agent of that policy from which each agent starts, by index or name, as in 0,0,1; by default,
    the one of the same name or index."""
    start_critic: bool = False
    """Also start from the critic and the value normaliser in the run's newest checkpoint, with the
    last policy in place of the best one."""
    frozen: tuple[str, ...] = ()
    """Agents that play with the policy of another folder or run and are never updated, as in
    1,2=runs/partner; 1=runs/partner:agents=0 names the agent of that policy."""
    learner: Config = field(default_factory=Config)
    """Settings of the learner: a new value compiles a new program."""

    @classmethod
    def from_preset(cls, task: Any = None, preset: Any = None) -> "RunConfig":
        """The settings of a task's preset; by default its first one, without a task the demo."""
        if task is None:
            task, preset = DEFAULT_TASK, preset or DEFAULT_PRESET
        preset = to_type("preset", str | None, preset)
        entry = get_task(to_type("task", str, task))
        return cls(task=entry.name).with_settings(entry.preset(preset))

    def with_settings(self, settings: Mapping[str, Any]) -> "RunConfig":
        """A copy with some settings of the flat form replaced; names and types are checked."""
        for name in settings:
            if name not in SETTING_TYPES:
                near = nearest(str(name), SETTING_TYPES)
                raise SettingError(f"unknown setting {show(name)}: {near}")
        values = {name: coerce(name, SETTING_TYPES[name], x) for name, x in settings.items()}
        own = {name: values.pop(name) for name in setting_types(RunConfig) if name in values}
        return dataclasses.replace(self, learner=self.learner.replace(**values), **own)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings as a flat dict of JSON values."""
        parts = self, self.learner, self.learner.hyperparameters
        values = {
            item.name: getattr(part, item.name)
            for part in parts
            for item in dataclasses.fields(part)
            if item.name in SETTING_TYPES
        }
        values |= {k: x.text for k, x in values.items() if isinstance(x, ValueSchedule)}
        values["algorithm"] = algorithm_name(self.learner.row)
        values["variant"] = self.variant or self.task_info.variants[0]
        return json.loads(json.dumps(values, default=float))

    def resolve(self) -> "RunConfig":
        """A validated copy, with explicit groups in place of `auto`, functions and dicts."""
        config, task = self, self.task_info
        for name in ("sharing", "critic_sharing"):
            given = getattr(config.learner, name)
            if given == AUTO:
                check_seeds(self.seed)
                env = task.vec_env(self.variant, min(NUM_ENVS, task.max_parallel))
                config = config.with_settings({name: auto_sharing(env, seed=self.seed)})
            elif given is not None:
                groups = resolve_groups(given, task.spec(self.variant))
                config = config.with_settings({name: groups})
        if not config.starts:
            return config.check()
        from fp3o.runs.start import check_start
        from fp3o.runs.start_settings import resolve_start

        return check_start(resolve_start(config).check())

    def check(self) -> "RunConfig":
        """Reject settings that cannot work, before anything is compiled or written."""
        for name, least in MINIMUM.items():
            if getattr(self, name) < least:
                raise SettingError(f"{name} must be at least {least}, got {getattr(self, name)}")
        from fp3o.learning.setup import Setup  # with the optimiser, which listings do without

        check_numbers(self)
        spec = self.task_info.spec(self.variant)
        check_config(self.learner, spec)
        episodes = max(self.eval_episodes, self.final_episodes)
        counts = RunCounts(self.seeds, min(self.eval_episodes, episodes), episodes)
        check_limits(spec, self.learner, self.seed, counts)
        Setup(spec, self.learner)
        return self

    @property
    def task_info(self) -> Task:
        """The registered task."""
        return get_task(self.task)

    @property
    def starts(self) -> bool:
        """Whether some agents start from a saved policy."""
        return bool(self.start_from or self.start_agents or self.start_critic or self.frozen)

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps per seed in one iteration."""
        return self.learner.num_envs * self.learner.rollout

    @property
    def iterations(self) -> int:
        """Number of iterations of the whole run."""
        return -(-self.steps // self.steps_per_iteration)

    @property
    def title(self) -> str:
        """Task, algorithm and sharing in one line."""
        return f"{self.task} · {self.settings['algorithm']} · {self.learner.sharing}"

    @property
    def total_steps(self) -> int:
        """Environment steps per seed of the whole run: `steps`, rounded up to whole iterations."""
        return self.iterations * self.steps_per_iteration

    @property
    def seed_numbers(self) -> range:
        """All seeds of the run."""
        return range(self.seed, self.seed + self.seeds)


SETTING_TYPES: Mapping[str, Any] = setting_types(RunConfig, Config, Hyperparameters)
"""Type of every setting, by its name in the flat form."""

MINIMUM: Mapping[str, int] = {
    "steps": 1,
    "seeds": 1,
    "seed": 0,
    "eval_every": 0,
    "eval_episodes": 0,
    "final_episodes": 0,
    "log_every": 1,
    "video_every": 0,
    "save_every": 0,
    "keep_checkpoints": 1,
}
"""Smallest allowed value of each count."""


def make_config(
    task: str | None = None,
    config: RunConfig | str | Path | None = None,
    preset: str | None = None,
    trust: bool = False,
) -> RunConfig:
    """The settings of a preset, changed by a file of settings; or a `RunConfig` as it is.

    A file that names code to import needs `trust`.
    """
    if isinstance(config, RunConfig):
        if preset is not None:
            raise SettingError("give either a RunConfig or a preset, not both")
        return config if task is None else config.with_settings({"task": task})
    filed = read_settings(config) if config is not None else {}
    if task is not None:
        filed["task"] = task
    require_trust_in_settings(filed, trust, str(config), named={"task": task})
    base = RunConfig.from_preset(filed.get("task"), preset)
    return base.with_settings({**filed, "task": base.task})
