"""Looking an environment over before training on it: each problem is named with its cure.

    print(fp3o.check_env(my_game))

An environment is played at random for a while, twice with the same keys and actions and once with
other ones, and what it shows is held against what it promises in its `EnvSpec` and in `TimeStep`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from fp3o.envs.api import Env, HostEnv, VecEnv
from fp3o.envs.random_play import Problem, RandomPlay, _WrongShapeError, play_at_random
from fp3o.envs.vectorise import vectorise
from fp3o.spec import Discrete, EnvSpec
from fp3o.types import TimeStep


@dataclass(frozen=True)
class EnvReport:
    """What was found, and what was measured."""

    spec: EnvSpec
    problems: list[Problem]
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing stands against training."""
        return all(problem.level != "error" for problem in self.problems)

    def __str__(self) -> str:
        """The whole report in plain text."""
        verdict = "fit for training" if self.ok else "not fit for training"
        lines = [f"{self.spec.name}: {verdict}"]
        for level, what, cure in self.problems:
            lines += [f"  {level}: {what}", *([f"    cure: {cure}"] if cure else [])]
        numbers = (f"{name} {value:,.4g}" for name, value in self.numbers.items())
        return "\n".join([*lines, "  " + ", ".join(numbers)])


def check_env(
    env: str | Env | HostEnv | VecEnv, *, num_envs: int = 4, steps: int = 200, seed: int = 0
) -> EnvReport:
    """Play an environment at random and report everything that does not fit.

    Args:
        env: a task's name, a game, or a batch of environments.
        num_envs: environments played together (a batch has its own number).
        steps: steps of each; long enough for some episodes to end.
        seed: of the actions and the environments.
    """
    batch = _batch(env, num_envs)
    promises = [*_promises(batch.spec)]
    if any(problem.level == "error" for problem in promises):
        return EnvReport(batch.spec, promises)
    try:
        first = play_at_random(batch, steps, seed)
    except _WrongShapeError as wrong:
        return EnvReport(batch.spec, [*promises, *wrong.problems])
    except Exception as error:
        what = f"playing it raises {type(error).__name__}: {error}"
        return EnvReport(
            batch.spec, [*promises, Problem("error", what, "see the error's own words")]
        )
    problems = [
        *promises,
        *_numbers(batch.spec, first.steps),
        *_masks(batch.spec, first.steps),
        *_ends(batch.spec, first.steps),
        *_outcomes(batch.spec, first.steps),
        *_kept(first.state),
        *_repeats(batch, first, steps, seed),
    ]
    ends = int((first.steps.terminated | first.steps.truncated)[1:].sum())
    numbers = {
        "steps/s": steps * batch.num_envs / first.seconds,
        "episodes": ends,
        "bytes of a state": _size(first.state) / batch.num_envs,
        "mean reward": float(np.mean(first.steps.reward[1:])),
    }
    return EnvReport(batch.spec, problems, numbers)


def _batch(env: str | Env | HostEnv | VecEnv, num_envs: int) -> VecEnv:
    if isinstance(env, str):
        from fp3o.envs.registry import parse_task

        task, variant = parse_task(env)
        return task.vec_env(variant, num_envs)
    if isinstance(env, VecEnv):
        return env  # pyright: ignore
    return vectorise(env, num_envs)  # pyright: ignore


def _promises(spec: EnvSpec) -> Iterator[Problem]:
    """What the spec says by itself."""
    mask, n = spec.actions.mask, spec.num_agents
    if len(mask) != n:
        yield Problem(
            "error", f"{len(mask)} agents have actions and {n} have kinds",
            "give EnvSpec.actions and EnvSpec.kinds one entry an agent",
        )  # fmt: skip
    for name, size in (("obs_size", spec.obs_size), ("state_size", spec.state_size)):
        if size < 1:
            yield Problem("error", f"{name} is {size}", "agents and critics must see something")
    if isinstance(spec.actions, Discrete) and min(map(min, spec.actions.sizes)) < 1:
        yield Problem(
            "error", "an agent has a sub-action without any choice",
            "declare one choice where there is nothing to choose",
        )  # fmt: skip


def _kept(state: Any) -> Iterator[Problem]:
    """A checkpoint holds arrays only."""
    strange = {type(x).__name__ for x in jax.tree.leaves(state) if not hasattr(x, "nbytes")}
    if strange:
        yield Problem(
            "warning", f"its state holds what a checkpoint cannot: {', '.join(sorted(strange))}",
            "keep the state in arrays and random keys; a run cannot go on exactly otherwise",
        )  # fmt: skip


def _size(state: Any) -> int:
    """Bytes of a state's arrays."""
    return sum(getattr(x, "nbytes", 0) for x in jax.tree.leaves(state))


def _numbers(spec: EnvSpec, seen: TimeStep) -> Iterator[Problem]:
    """Finite, and of a size networks can live with."""
    for name in ("obs", "state", "final_obs", "final_state", "reward", "episode_metrics"):
        values = getattr(seen, name)
        if not np.isfinite(values).all():
            place = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
            yield Problem(
                "error", f"{name} is not finite, first at {place} (step, environment, ...)",
                "look for a division by zero or an overflow in the task",
            )  # fmt: skip
        elif name in ("obs", "state") and np.abs(values).max(initial=0.0) > 1e3:
            yield Problem(
                "warning", f"{name} reaches {np.abs(values).max():.3g}",
                "scale what agents see to about -1 to 1; networks learn slowly from large numbers",
            )  # fmt: skip
    if not np.asarray(seen.reward)[1:].any():
        yield Problem(
            "warning", "random play never earned any reward",
            "play longer (--steps), or pay something on the way: nothing can be learned from 0",
        )  # fmt: skip


def _masks(spec: EnvSpec, seen: TimeStep) -> Iterator[Problem]:
    """Somebody who acts must have something to do."""
    if not isinstance(spec.actions, Discrete):
        return
    begin = 0
    for d, width in enumerate(spec.actions.widths):
        own = (seen.action_mask & spec.actions.mask)[..., begin : begin + width]
        stuck = np.argwhere(~own.any(-1))
        begin += width
        if len(stuck):
            t, e, agent = stuck[0].tolist()
            yield Problem(
                "error",
                f"agent {agent} has no legal choice in sub-action {d} at step {t}, environment {e}",
                "leave one choice legal, also for the dead (a choice that does nothing)",
            )
    if not seen.alive[0].all():
        yield Problem(
            "warning", "some agents are dead when an episode begins",
            "is `alive` the right way round? True: the agent acts",
        )  # fmt: skip


def _ends(spec: EnvSpec, seen: TimeStep) -> Iterator[Problem]:
    """Ends, cuts and beginnings agree with each other."""
    ended = seen.terminated | seen.truncated
    if (seen.terminated & seen.truncated).any():
        yield Problem(
            "error", "a step was both terminated and truncated",
            "terminated: nothing follows; truncated: only the clock ran out. It is one of them",
        )  # fmt: skip
    if seen.truncated.any() and not spec.truncates:
        yield Problem(
            "error", "episodes are truncated, but EnvSpec.truncates is False",
            "set truncates=True, or the value after the cut is taken for 0",
        )  # fmt: skip
    if not seen.episode_start[0].all():
        yield Problem("error", "start is not True after reset", "start marks first observations")
    if (seen.episode_start[1:] != ended[1:]).any():
        yield Problem(
            "error", "start does not follow the ends of episodes",
            "step begins the next episode by itself and says start=True: memories depend on it",
        )  # fmt: skip
    if not ended.any():
        yield Problem(
            "warning", "no episode ended",
            "play longer (--steps); an episode needs an end or a time limit to be counted",
        )  # fmt: skip
    going = ~ended[..., None, None]
    for name, final in (("obs", seen.final_obs), ("state", seen.final_state)):
        # Rounding may differ: a compiler may compute one number in two places.
        if (going & ~np.isclose(getattr(seen, name), final, 1e-4, 1e-5)).any():
            yield Problem(
                "error", f"final_{name} differs from {name} where no episode ended",
                f"final_{name} is what was there before a reset, else {name} itself",
            )  # fmt: skip
    if seen.truncated.any():
        same = (seen.final_obs == seen.obs).all((2, 3)) & (seen.final_state == seen.state).all(
            (2, 3)
        )
        if (same & seen.truncated).all(where=seen.truncated):
            yield Problem(
                "warning", "what is seen before and after a cut is the same",
                "final_obs and final_state must be taken before the reset: values follow from them",
            )  # fmt: skip


def _outcomes(spec: EnvSpec, seen: TimeStep) -> Iterator[Problem]:
    if "won" in spec.episode_metrics:
        won = seen.episode_metrics[..., spec.episode_metrics.index("won")]
        if not np.isin(won, (0, 1)).all():
            yield Problem(
                "error", "the outcome `won` is neither 0 nor 1", "1 for a victory, else 0"
            )


def _repeats(env: VecEnv, first: RandomPlay, steps: int, seed: int) -> Iterator[Problem]:
    """The same keys and actions give the same path, other keys another one."""
    again, other = (play_at_random(env, steps, s, first.actions) for s in (seed, seed + 1))
    if (name := _difference(first.steps, again.steps)) is not None:
        yield Problem(
            "error" if env.jittable else "warning",
            f"{name} differs when the same is played again with the same key",
            "draw all randomness from the key that is given; runs cannot be repeated otherwise",
        )
    if _difference(first.steps, other.steps) is None:
        yield Problem(
            "note", "another key changes nothing: every episode is the same under equal actions"
        )


def _difference(one: TimeStep, two: TimeStep) -> str | None:
    """The first field in which two paths differ."""
    pairs = zip(TimeStep._fields, one, two, strict=True)
    return next((name for name, a, b in pairs if not np.array_equal(a, b, equal_nan=True)), None)
