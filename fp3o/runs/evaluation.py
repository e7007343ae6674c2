"""Evaluation of policies in separate environments, with the same random streams for all.

Returns are per agent: the mean reward of the team, summed over the episode.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

import jax
import numpy as np

from fp3o.envs.registry import REGISTERED, parse_task
from fp3o.options import check_seeds
from fp3o.policy import Policy
from fp3o.policy.export import config_of, read_actor
from fp3o.runs.baselines import evaluate_baselines, summarise_episodes
from fp3o.runs.eval_episodes import evaluation_episodes
from fp3o.runs.limits import check_episodes
from fp3o.runs.metrics_log import finite_json
from fp3o.runs.programs import make_envs, make_program
from fp3o.runs.run_config import RunConfig
from fp3o.runs.source import PolicyChoice, PolicySource, load_policies
from fp3o.runs.trust import trusted_task
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.host_rollout import disable_async_dispatch
from fp3o.training.program import Program

LAST, BEST, ON_DEMAND, _, DURING_TRAINING, IN_LOOP = range(2, 8)
"""Purposes of random streams; 0 and 1 are the streams of training."""


def evaluate_params(
    program: Program,
    config: RunConfig,
    actor: Any,
    episodes: int,
    purpose: tuple[int, ...],
    deterministic: bool = True,
) -> EvalEpisodes:
    """Run `episodes` episodes with every seed's actor: arrays `(seeds, episodes, ...)`.

    They run in equal batches, so evaluations of all lengths share one compiled program. Returns of
    episodes that did not end within the task's `max_episode_steps` are NaN.
    """
    keys = lambda batch: program.keys(config.seed, *purpose, batch)  # noqa: E731
    return evaluate_with_keys(program, config, actor, episodes, keys, deterministic)


def evaluate_with_keys(
    program: Program,
    config: RunConfig,
    actor: Any,
    episodes: int,
    keys: Callable[[int], Any],
    deterministic: bool = True,
) -> EvalEpisodes:
    """The same with the random keys of all seeds per batch."""
    batch = min(config.eval_episodes or config.task_info.max_parallel, episodes)
    env, limit = make_envs(config, batch), config.task_info.max_episode_steps(config.variant)
    batches = [
        program.evaluate(actor, env, keys(i), limit, deterministic)
        for i in range(math.ceil(episodes / batch))
    ]

    def join(*parts: Any) -> np.ndarray:
        per_seed = parts if program.num_seeds else [x[None] for x in parts]
        return np.concatenate(per_seed, axis=1)[:, :episodes]

    joined = jax.tree.map(join, *batches)
    if not np.isfinite(joined.returns).all():
        # The same text each time, so that Python shows it once.
        warnings.warn(
            f"an episode of {config.task} did not end within max_episode_steps={limit}: it is left "
            "out of the evaluation. Raise max_episode_steps of the environment",
            RuntimeWarning,
            stacklevel=2,
        )
    return joined


def evaluation_rows(
    program: Program, config: RunConfig, actor: Any, iteration: int
) -> list[dict[str, Any]]:
    """The evaluation of every seed's actor after an iteration, as rows of metrics."""
    purpose = DURING_TRAINING, iteration
    found = evaluate_params(program, config, actor, config.eval_episodes, purpose)
    names = program.setup.spec.episode_metrics
    return [evaluation_row(EvalEpisodes(*one), names) for one in zip(*found, strict=True)]


def evaluation_row(episodes: EvalEpisodes, names: Sequence[str]) -> dict[str, Any]:
    """One seed's evaluation during training as metrics: means over the episodes that ended."""
    done = np.isfinite(episodes.returns)
    returns = np.asarray(episodes.returns, np.float64)[done]
    if not returns.size:
        return {"eval_return": None, "eval_episodes": 0, "eval_unfinished": done.size}
    means = np.asarray(episodes.episode_metrics, np.float64)[done].mean(0).tolist()
    row = {
        "eval_return": float(returns.mean()),
        "eval_std": float(returns.std()),
        "eval_length": float(np.asarray(episodes.lengths, np.float64)[done].mean()),
        "eval_episodes": returns.size,
    }
    row |= {f"eval_{name}": mean for name, mean in zip(names, means, strict=True)}
    return finite_json(row | ({} if done.all() else {"eval_unfinished": int((~done).sum())}))


def evaluate(
    source: PolicySource,
    episodes: int | None = None,
    *,
    seed: int = 0,
    deterministic: bool = True,
    **choice: Unpack[PolicyChoice],
) -> dict[str, Any]:
    """Evaluate the policies of all seeds of a run, or one policy, on separate random streams.

    Args:
        source: a run, a policy, or the path of a run directory or a policy folder.
        episodes: number of episodes per policy; by default 1000, or fewer if that would take
            long at the measured speed of the environment.
        seed: random seed of the episodes.
        deterministic: take the most likely actions; false: sample them.
        **choice: of a run, `which` of its policies, `last` (default) or `best`, and `policy_seed`,
            the seed of one of them. `trust=True` allows the task and the network to be imported.
    """
    disable_async_dispatch()  # before anything uses the CPU
    check_episodes(1 if episodes is None else episodes)
    check_seeds(seed)
    policies = load_policies(source, **choice)
    episodes = episodes or default_episodes(policies)
    check_seeds(seed, len(policies))
    rows = [
        {"name": name, **_evaluate_policy(policy, seed + number, episodes, deterministic)}
        for number, (name, policy) in enumerate(policies.items())
    ]
    spec = next(iter(policies.values())).card.spec
    task, variant = parse_task(spec.name)
    return {
        "task": spec.name,
        "agents": spec.num_agents,
        "episodes": episodes,
        "deterministic": deterministic,
        "policies": rows,
        "baselines": evaluate_baselines(task.name, variant, episodes),
    }


def default_episodes(
    policies: Mapping[str, Policy], say: Callable[[str], None] = lambda text: None
) -> int:
    """Episodes per policy where none are given; `say` gets the reason if there is one."""
    policy = next(iter(policies.values()))
    return evaluation_episodes(*trusted_task(policy.card, policy.trusted), len(policies), say)


def _evaluate_policy(
    policy: Policy, seed: int, episodes: int, deterministic: bool
) -> dict[str, Any]:
    config = _config_of_policy(policy, seed, episodes)
    program = _cached_program(replace(config, seed=0))
    actor = read_actor(policy, program.setup)
    evaluated = evaluate_params(program, config, actor, episodes, (ON_DEMAND,), deterministic)
    return summarise_episodes(evaluated, program.setup.spec.episode_metrics)


def _config_of_policy(policy: Policy, seed: int, episodes: int) -> RunConfig:
    """A configuration whose program can run this policy; it is never trained."""
    card = policy.card
    task, variant = trusted_task(card, policy.trusted)
    batch = min(episodes, task.max_parallel)
    return RunConfig(
        task=task.name, variant=variant, learner=config_of(card), seed=seed, eval_episodes=batch
    )


def _cached_program(config: RunConfig) -> Program:
    registered = REGISTERED.get(config.task)
    return _build_program(config, registered and registered.build)


@cache
def _build_program(config: RunConfig, build: Any) -> Program:
    # `build` is part of the key: another object may have been registered under the same name.
    return make_program(config)
