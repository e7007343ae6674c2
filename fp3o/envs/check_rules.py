"""The rules that `check_env` applies to an environment, each with a suggested fix."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from fp3o.envs.adjacency import adjacency_matrix
from fp3o.envs.api import VecEnv
from fp3o.envs.interface import Problem, agent_problems, image_problems
from fp3o.envs.random_play import RandomPlay, play_at_random
from fp3o.errors import EnvError
from fp3o.spec import ActionSpace, Discrete, EnvSpec, Mixed
from fp3o.types import LARGEST_NUMBER, TimeStep


def spec_problems(spec: EnvSpec) -> Iterator[Problem]:
    """Contradictions within the specification."""
    mask, n = spec.actions.mask, spec.num_agents
    if len(mask) != n:
        yield Problem(
            "error", f"{len(mask)} agents have actions and {n} have types",
            "give EnvSpec.actions and EnvSpec.agent_types one entry per agent",
        )  # fmt: skip
    for name, size in (("obs_size", spec.obs_size), ("state_size", spec.state_size)):
        if size < 1:
            yield Problem("error", f"{name} is {size}", "give the networks at least one input")
    yield from agent_problems(spec)
    yield from image_problems(spec)
    choices = spec.actions.discrete if isinstance(spec.actions, Mixed) else spec.actions
    if isinstance(choices, Discrete) and min(map(min, choices.sizes)) < 1:
        yield Problem(
            "error", "an agent has a sub-action without any choice",
            "declare one choice where there is nothing to choose",
        )  # fmt: skip


def rollout_problems(spec: EnvSpec, steps: TimeStep) -> Iterator[Problem]:
    """Violations of the contract of `TimeStep` in a rollout `(t + 1, e, ...)`."""
    yield from _number_problems(steps)
    if spec.actions.widths:
        yield from _mask_problems(spec.actions, steps)
    yield from _end_problems(spec, steps)
    yield from _final_problems(steps)
    if spec.adjacency is not None:
        try:
            adjacency_matrix(spec, steps.obs, steps.state)
        except EnvError as error:
            yield Problem("error", str(error), "EnvSpec.adjacency says what it may be")
    if "won" in spec.episode_metrics:
        won = steps.episode_metrics[..., spec.episode_metrics.index("won")]
        if not np.isin(won, (0, 1)).all():
            yield Problem(
                "error", "the episode metric `won` is neither 0 nor 1", "1 for a win, else 0"
            )


def length_problems(steps: TimeStep, limit: int | None) -> Iterator[Problem]:
    """Episodes that are longer than `max_episode_steps`."""
    length, longest = np.zeros(steps.terminated.shape[1], int), 0
    for ended in (steps.terminated | steps.truncated)[1:]:
        length += 1
        longest = max(longest, int(length.max()))
        length[ended] = 0
    if limit is not None and longest > limit:
        yield Problem(
            "error", f"an episode has {longest} steps or more, but max_episode_steps is {limit}",
            "raise max_episode_steps, or end episodes there: evaluations stop at that length",
        )  # fmt: skip


def state_problems(state: Any) -> Iterator[Problem]:
    """Parts of a state that cannot be saved."""
    arrays = jax.Array | np.ndarray | np.generic
    others = {type(x).__name__ for x in jax.tree.leaves(state) if not isinstance(x, arrays)}
    if others:
        yield Problem(
            "warning", f"the state cannot be saved, it contains: {', '.join(sorted(others))}",
            "keep the state in arrays and random keys; a run cannot be resumed exactly otherwise",
        )  # fmt: skip


def repeat_problems(env: VecEnv, first: RandomPlay, seed: int) -> Iterator[Problem]:
    """The same key and actions must give the same rollout; another key should not."""
    steps = len(first.actions)
    again, other = (play_at_random(env, steps, s, first.actions) for s in (seed, seed + 1))
    if (name := _difference(first.steps, again.steps)) is not None:
        yield Problem(
            "error" if env.jittable else "warning",
            f"{name} differs when the rollout is repeated with the same key",
            "draw all random numbers from the given key; runs cannot be repeated otherwise",
        )
    if _difference(first.steps, other.steps) is None:
        yield Problem(
            "note", "another key changes nothing: every episode is the same under equal actions"
        )


def _number_problems(steps: TimeStep) -> Iterator[Problem]:
    for name in ("obs", "state", "final_obs", "final_state", "reward", "episode_metrics"):
        values = getattr(steps, name)
        if not (usable := np.abs(values) <= LARGEST_NUMBER).all():
            index = tuple(np.argwhere(~usable)[0].tolist())
            yield Problem(
                "error",
                f"{name} is not finite, or beyond {LARGEST_NUMBER:.0e}, first at {index} (step, "
                "environment, ...)",
                "look for a division by zero or an overflow, or scale the numbers",
            )
        elif name in ("obs", "state") and np.abs(values).max(initial=0.0) > 1e3:
            yield Problem(
                "warning", f"{name} reaches {np.abs(values).max():.3g}",
                "scale observations to about -1 to 1; networks learn slowly from large numbers",
            )  # fmt: skip
    if not np.asarray(steps.reward)[1:].any():
        yield Problem(
            "warning", "random actions never received any reward",
            "take more steps (--steps), or add intermediate rewards",
        )  # fmt: skip


def _mask_problems(actions: ActionSpace, steps: TimeStep) -> Iterator[Problem]:
    start = 0
    for d, width in enumerate(actions.widths):
        available = (steps.action_mask & actions.mask)[..., start : start + width]
        missing = np.argwhere(~available.any(-1) & steps.alive)
        start += width
        if len(missing):
            t, e, agent = missing[0].tolist()
            where = f"sub-action {d} at step {t}, environment {e}"
            yield Problem(
                "error", f"agent {agent} has no available choice in {where}",
                "leave one choice available (one without effect), or set alive to False",
            )  # fmt: skip
    if not steps.alive[0].all():
        yield Problem(
            "warning", "some agents are dead when an episode starts",
            "check the meaning of `alive`: True if the agent acts",
        )  # fmt: skip


def _end_problems(spec: EnvSpec, steps: TimeStep) -> Iterator[Problem]:
    ended = steps.terminated | steps.truncated
    if (steps.terminated & steps.truncated).any():
        yield Problem(
            "error", "a step was both terminated and truncated",
            "terminated: nothing follows; truncated: a time limit was reached. Set one of them",
        )  # fmt: skip
    if steps.truncated.any() and not spec.truncates:
        yield Problem(
            "error", "episodes are truncated, but EnvSpec.truncates is False",
            "set truncates=True, or the value after a truncation is taken as 0",
        )  # fmt: skip
    if not steps.episode_start[0].all():
        yield Problem(
            "error", "episode_start is not True after reset", "it marks first observations"
        )
    if (steps.episode_start[1:] != ended[1:]).any():
        yield Problem(
            "error", "episode_start does not follow the ends of episodes",
            "`step` starts the next episode itself and sets episode_start: hidden states depend "
            "on it",
        )  # fmt: skip
    if not ended.any():
        yield Problem(
            "warning", "no episode ended",
            "take more steps (--steps); an episode needs an end or a time limit to be counted",
        )  # fmt: skip


def _final_problems(steps: TimeStep) -> Iterator[Problem]:
    running = ~(steps.terminated | steps.truncated)[..., None, None]
    for name, final in (("obs", steps.final_obs), ("state", steps.final_state)):
        # Compilers may round the two differently.
        if (running & ~np.isclose(getattr(steps, name), final, 1e-4, 1e-5)).any():
            yield Problem(
                "error", f"final_{name} differs from {name} where no episode ended",
                f"final_{name} is the {name} before a reset; without a reset it equals {name}",
            )  # fmt: skip
    same_obs = (steps.final_obs == steps.obs).all((2, 3))
    same = same_obs & (steps.final_state == steps.state).all((2, 3))
    if steps.truncated.any() and same.all(where=steps.truncated):
        yield Problem(
            "warning", "observations before and after a truncation are equal",
            "take final_obs and final_state before the reset: the critic's values use them",
        )  # fmt: skip


def _difference(one: TimeStep, two: TimeStep) -> str | None:
    """The first field in which two rollouts differ."""
    pairs = zip(TimeStep._fields, one, two, strict=True)
    return next((name for name, a, b in pairs if not np.array_equal(a, b, equal_nan=True)), None)
