"""How many episodes an evaluation has where nobody said: as many as the environment's speed allows.

The number is fixed before a run starts and stored in its `config.json`. It is one of a few round
numbers, so that small differences of the speed change nothing.
"""

from collections.abc import Callable

from fp3o.envs.api import Env
from fp3o.envs.random_play import PlaySpeed, measure_speed
from fp3o.envs.task import Task
from fp3o.reports.phrasing import count_text
from fp3o.runs.run_config import RunConfig

EPISODE_SETTINGS = ("eval_episodes", "final_episodes")
"""Settings that may be 0: chosen here."""

FINAL_EPISODES = (32, 50, 100, 200, 500, 1000)
"""Numbers of episodes of a final evaluation, and of `fp3o evaluate`."""

TRAINING_EPISODES = (8, 16, 32)
"""Numbers of episodes of an evaluation during training."""

FINAL_SECONDS, TRAINING_SECONDS = 30.0, 3.0
"""Time that an evaluation should take."""

ENVIRONMENTS, COMPILED_ENVIRONMENTS = 8, 64
"""Environments whose speed is measured, on the host and compiled."""

QUICK_STEPS = 50_000
"""Steps of the largest evaluation that compiled environments do in seconds, without measuring."""


def affordable(numbers: tuple[int, ...], per_second: float, seconds: float) -> int:
    """The largest of some numbers of episodes that fit into a time, at least the smallest."""
    return max((x for x in numbers if x <= per_second * seconds), default=min(numbers))


def is_quick(task: Task, variant: str | None) -> bool:
    """Whether the largest number of episodes takes seconds: short ones, in a compiled program."""
    steps = max(FINAL_EPISODES) * task.max_episode_steps(variant)
    return _is_compiled(task, variant) and steps <= QUICK_STEPS


def _is_compiled(task: Task, variant: str | None) -> bool:
    return isinstance(task.env(variant), Env)


def task_speed(task: Task, variant: str | None) -> PlaySpeed:
    """Speed of the environments of a task, measured for about a second."""
    number = COMPILED_ENVIRONMENTS if _is_compiled(task, variant) else ENVIRONMENTS
    batch = task.vec_env(variant, min(number, task.max_parallel))
    try:
        return measure_speed(batch, task.max_episode_steps(variant))
    finally:
        batch.close()


def choose_episodes(config: RunConfig, say: Callable[[str], None]) -> RunConfig:
    """Replace numbers of episodes of 0 by what the speed of the environment allows."""
    wanted = [name for name in EPISODE_SETTINGS if not getattr(config, name)]
    if not wanted:
        return config
    if is_quick(config.task_info, config.variant):
        return config.with_settings({name: getattr(RunConfig, name) for name in wanted})
    speed = task_speed(config.task_info, config.variant)
    rate = speed.episodes_per_second / config.seeds
    numbers = {
        "eval_episodes": affordable(TRAINING_EPISODES, rate, TRAINING_SECONDS),
        # The last and the best policy.
        "final_episodes": affordable(FINAL_EPISODES, rate / 2, FINAL_SECONDS),
    }
    config = config.with_settings({name: numbers[name] for name in wanted})
    say(
        f"evaluating {config.eval_episodes} episodes per seed during training and "
        f"{config.final_episodes} at the end (about {2 * config.final_episodes / rate:.0f} s at "
        f"the measured {rate_text(speed)})"
    )
    seconds = config.steps * config.seeds / speed.steps_per_second
    say(f"{count_text(config.steps)} steps take at least {seconds / 60:.1g} min of the environment")
    return config


def evaluation_episodes(
    task: Task, variant: str | None, policies: int, say: Callable[[str], None]
) -> int:
    """Episodes per policy of an evaluation: as many as the measured speed allows."""
    if is_quick(task, variant):
        return max(FINAL_EPISODES)
    speed = task_speed(task, variant)
    rate = speed.episodes_per_second / policies
    episodes = affordable(FINAL_EPISODES, rate, FINAL_SECONDS)
    say(
        f"evaluating {episodes} episodes per policy (about {episodes / rate:.0f} s at the measured "
        f"{rate_text(speed)})"
    )
    return episodes


def rate_text(speed: PlaySpeed) -> str:
    """`8.1 episodes/s` with three digits at most."""
    return f"{speed.episodes_per_second:.3g} episodes/s"
