"""Validation of an environment before training: every problem is reported with a fix.

    print(fp3o.check_env(my_env))

The environment is stepped with random actions, twice with the same keys and actions and once with
another key, and its time steps are compared with its `EnvSpec` and with the contract of `TimeStep`.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from fp3o.envs.adapters.python import env_of
from fp3o.envs.api import VecEnv
from fp3o.envs.check_facts import Facts, fact_lines, play_facts, spec_facts
from fp3o.envs.check_rules import (
    length_problems,
    repeat_problems,
    rollout_problems,
    spec_problems,
    state_problems,
)
from fp3o.envs.interface import Problem, WrongShapeError, require_shapes
from fp3o.envs.random_play import play_at_random
from fp3o.envs.registry import parse_task
from fp3o.envs.vectorise import vectorise
from fp3o.options import check_seeds
from fp3o.spec import EnvSpec
from fp3o.types import TimeStep

MOST_STEPS = 500
"""Episodes are run to their maximum length if that is at most this many steps."""


@dataclass(frozen=True)
class EnvReport:
    """The problems that were found, and measurements."""

    spec: EnvSpec
    problems: list[Problem]
    numbers: dict[str, float] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    """What was seen: agents, sizes, rewards, masks and so on."""

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return all(problem.level != "error" for problem in self.problems)

    def __str__(self) -> str:
        """The whole report as text."""
        verdict = "ready for training" if self.ok else "not ready for training"
        lines = [f"{self.spec.name}: {verdict}", *fact_lines(self.spec, self.facts)]
        for level, what, fix in self.problems:
            lines += [f"  {level}: {what}", *([f"    fix: {fix}"] if fix else [])]
        numbers = (f"{name} {value:,.4g}" for name, value in self.numbers.items())
        return "\n".join([*lines, *(["  " + ", ".join(numbers)] if self.numbers else [])])

    def as_json(self) -> dict[str, Any]:
        """The whole report as JSON values."""
        problems = [problem._asdict() for problem in self.problems]
        name = self.spec.name
        return {"task": name, "ok": self.ok, "problems": problems, **self.facts, **self.numbers}


def check_env(env: Any, *, num_envs: int = 4, steps: int = 200, seed: int = 0) -> EnvReport:
    """Step an environment with random actions and report every problem.

    Args:
        env: whatever can be trained on (the name of a task, an `Env` or `HostEnv`, a PettingZoo
            `ParallelEnv`, a function that makes one), or a `VecEnv`.
        num_envs: environments stepped together; a `VecEnv` has its own number.
        steps: steps per environment; a few more where episodes of maximum length need them.
        seed: of the actions and the environments.
    """
    check_seeds(seed)
    batch, limit, renderable = _batch(env, num_envs)
    problems = [*spec_problems(batch.spec)]
    if any(problem.level == "error" for problem in problems):
        return EnvReport(batch.spec, problems)
    facts = spec_facts(batch.spec, limit, renderable)
    steps = max(steps, limit + 1) if limit is not None and limit < MOST_STEPS else steps

    def inspect(timestep: TimeStep, method: str) -> None:
        require_shapes(batch.spec, batch.num_envs, timestep, method)

    try:
        play = play_at_random(batch, steps, seed, inspect=inspect)
    except WrongShapeError as error:
        return EnvReport(batch.spec, [*problems, *error.problems], facts=facts)
    except Exception as error:
        what = f"stepping it raises {type(error).__name__}: {error}"
        raised = Problem("error", what, "see the message")
        return EnvReport(batch.spec, [*problems, raised], facts=facts)
    problems += [*rollout_problems(batch.spec, play.steps), *length_problems(play.steps, limit)]
    problems += [*state_problems(play.state), *repeat_problems(batch, play, seed)]
    ends = (play.steps.terminated | play.steps.truncated)[1:]
    numbers = {
        "steps/s": steps * batch.num_envs / play.seconds,
        "episodes": int(ends.sum()),
        "bytes per state": _bytes(play.state) / batch.num_envs,
        "mean reward": float(np.mean(play.steps.reward[1:])),
    }
    return EnvReport(batch.spec, problems, numbers, facts | play_facts(batch.spec, play))


def _batch(env: Any, num_envs: int) -> tuple[VecEnv, int | None, bool]:
    """A batch, the maximum length of episodes, if it is known, and whether it can be rendered."""
    if isinstance(env, VecEnv):
        return env, None, False
    if isinstance(env, str):
        task, variant = parse_task(env)
        source = task.env(variant)
    else:
        source = env_of(env)
    return vectorise(source, num_envs), source.max_episode_steps, source.renderable


def _bytes(state: Any) -> int:
    arrays = [x for x in jax.tree.leaves(state) if isinstance(x, jax.Array | np.ndarray)]
    return sum(x.nbytes for x in arrays)
