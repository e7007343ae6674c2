"""A training run as one value, `Plan`, and its flat form: names and plain values.

The flat form is what the command line offers, what `config.json` keeps, what a settings file holds
and what `fp3o.train` takes as keywords. It is derived from the fields of `Plan`, `Config` and
`Rates`, so a setting is written down, explained and given its default in one place.
"""

import math
from dataclasses import dataclass, field

from fp3o.envs.registry import DEFAULT_TASK, get_task
from fp3o.envs.task import Task
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup


@dataclass(frozen=True)
class RunConfig:
    """What to train on, for how long, how it is judged and kept."""

    task: str = DEFAULT_TASK
    """The task's name."""
    variant: str | None = None
    """The rules to play by; none: the task's first variant."""
    learner: Config = field(default_factory=Config)
    """The learner's settings."""
    steps: int = 1_000_000
    """Environment steps of each seed; rounded up to whole iterations."""
    seeds: int = 1
    """How many seeds train together in one program."""
    seed: int = 0
    """The first seed; the others follow it."""
    eval_every: int = 25
    """Iterations between evaluations; 0: none during training."""
    eval_episodes: int = 100
    """Episodes of an evaluation during training."""
    final_episodes: int = 1000
    """Episodes of the final evaluation of the last and the best policy of every seed."""
    log_every: int = 1
    """Iterations between lines in metrics.jsonl."""
    save_every: float = 60.0
    """Seconds between checkpoints; 0: after every iteration."""
    keep_checkpoints: int = 3
    """Checkpoints kept."""

    @property
    def task_info(self) -> Task:
        """The task's entry in the table."""
        return get_task(self.task)

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of one seed in an iteration."""
        return self.learner.num_envs * self.learner.rollout

    @property
    def iterations(self) -> int:
        """Iterations that make up the steps."""
        return -(-self.steps // self.steps_per_iteration)

    @property
    def seed_numbers(self) -> range:
        """The seeds."""
        return range(self.seed, self.seed + self.seeds)

    def check(self) -> "RunConfig":
        """Refuse what cannot work, before anything is compiled or written."""
        for name, least in LEAST.items():
            if not least <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        Setup(self.task_info.spec(self.variant), self.learner)
        return self


LEAST = {
    "steps": 1, "seeds": 1, "seed": 0, "eval_every": 0, "eval_episodes": 1, "final_episodes": 1,
    "log_every": 1, "save_every": 0, "keep": 1,
}  # fmt: skip
"""The smallest value of each count."""
