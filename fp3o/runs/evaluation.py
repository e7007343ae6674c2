"""Judging policies apart from training: own environments, own random streams, the same for all.

Returns are those of one agent: the mean over the team, summed over the episode.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fp3o.envs.api import HostEnv, VecEnv
from fp3o.envs.registry import REGISTERED, families, get_task, parse_task
from fp3o.envs.scripted import run_scripted
from fp3o.envs.task import Task
from fp3o.envs.vectorise import vectorise
from fp3o.policy import Policy, is_run
from fp3o.policy.export import config_of, read_actor
from fp3o.runs.run_config import RunConfig
from fp3o.training.episodes import EvalEpisodes
from fp3o.training.program import Program

LAST, BEST, ASKED, SCRIPTED, DURING = range(2, 7)
"""Purposes of random streams: the final evaluations, those on demand, scripted policies, those in
training. 0 and 1 would be the streams of training itself."""


def program_of(plan: RunConfig) -> Program:
    """The program that trains and judges the plan's seeds."""
    return Program(environments(plan, plan.learner.num_envs), plan.learner, num_seeds(plan))


def num_seeds(plan: RunConfig) -> int | None:
    """Seeds of a program; None, no axis of seeds, where there is one."""
    return plan.seeds if plan.seeds > 1 else None


def environments(plan: RunConfig, num_envs: int) -> VecEnv:
    """A batch for every seed; on the host those of all seeds are one batch."""
    game = plan.task_info.env(plan.variant)
    copies = plan.seeds if isinstance(game, HostEnv) else 1
    return vectorise(game, num_envs * copies)


def evaluate_params(
    program: Program,
    plan: RunConfig,
    rows: Any,
    episodes: int,
    purpose: tuple[int, ...],
    deterministic: bool = True,
) -> EvalEpisodes:
    """Play `episodes` episodes with every seed's actor: arrays `(seeds, episodes, ...)`.

    They are played in equal parts, so evaluations of all lengths share one compiled program.
    """
    part = min(plan.eval_episodes, episodes)
    env, limit = environments(plan, part), plan.task_info.max_episode_steps(plan.variant)
    played = [
        program.evaluate(rows, env, program.keys(plan.seed, *purpose, i), limit, deterministic)
        for i in range(math.ceil(episodes / part))
    ]

    def together(*parts: Any) -> np.ndarray:
        by_seed = parts if program.num_seeds else [x[None] for x in parts]
        return np.concatenate(by_seed, axis=1)[:, :episodes]

    return jax.tree.map(together, *played)


def summary(played: EvalEpisodes, names: Sequence[str]) -> dict[str, Any]:
    """Mean of some returns, their spread, the mean's standard error; the means of outcomes."""
    returns = np.asarray(played.returns)
    spread = float(returns.std(ddof=1)) if returns.size > 1 else 0.0
    means = np.asarray(played.episode_metrics, np.float64).reshape(returns.size, len(names)).mean(0)
    return {
        "return": float(returns.mean()),
        "std": spread,
        "stderr": spread / math.sqrt(returns.size),
        "outcomes": dict(zip(names, means.tolist(), strict=True)),
    }


@cache
def baselines(task: str, variant: str | None, episodes: int) -> dict[str, dict[str, Any]]:
    """What the task's scripted policies earn, to compare a trained team with."""
    description = get_task(task)
    env: Any = description.env(variant)
    key = jax.random.fold_in(jax.random.key(0), SCRIPTED)
    names = env.spec.episode_metrics
    return {
        baseline.name: {
            **summary(EvalEpisodes(*run_scripted(env, baseline.act, key, episodes)), names),
            "episodes": episodes,
            "title": baseline.title,
            "summary": baseline.summary,
        }
        for baseline in description.baselines(env)
    }


def evaluate(
    path: str | Path,
    episodes: int = 1000,
    *,
    which: str = "last",
    seed: int = 0,
    deterministic: bool = True,
    trust: bool = False,
) -> dict[str, Any]:
    """Play `episodes` episodes with every seed's policy of a run, or with one policy folder.

    The random streams are those of neither training nor its evaluations. What a policy folder
    without its run wants imported (its task, its network) is refused unless you `trust` it.
    """
    if episodes < 1:
        raise ValueError(f"episodes must be at least 1, got {episodes}")
    rows, spec = [], None
    for number, (name, folder) in enumerate(folders(Path(path), which).items()):
        policy = Policy.load(folder, trust=trust or is_run(Path(path)))
        spec, plan = policy.card.spec, plan_of_policy(policy, seed + number, episodes)
        program = _player(replace(plan, seed=0), REGISTERED.get(plan.task))
        actor = read_actor(policy, program.setup)
        played = evaluate_params(program, plan, actor, episodes, (ASKED,), deterministic)
        rows.append({"name": name, **summary(played, program.setup.spec.episode_metrics)})
    assert spec is not None  # `folders` names at least one
    task, variant = parse_task(spec.name)
    return {
        "task": spec.name,
        "agents": spec.num_agents,
        "episodes": episodes,
        "deterministic": deterministic,
        "policies": rows,
        "references": baselines(task.name, variant, episodes),
    }


def folders(path: Path, which: str) -> dict[str, Path]:
    """The policy folders a path stands for: those of all seeds of a run, or itself."""
    found = sorted(path.glob(f"policy/seed-*/{which}"), key=lambda p: int(p.parent.name[5:]))
    return {f"{folder.parent.name} {which}": folder for folder in found} or {path.name: path}


def task_of_policy(policy: Policy) -> tuple[Task, str | None]:
    """The task and variant a policy was trained on; those from elsewhere have to be imported."""
    name = policy.card.spec.name
    family = families().get(re.split("[:/]", name, maxsplit=1)[0])
    if family is not None and family.imports_code:
        policy.require_trust(f"the task {name}")
    return parse_task(name)


def plan_of_policy(policy: Policy, seed: int, episodes: int) -> RunConfig:
    """A plan whose program can play this policy (it is never trained)."""
    card = policy.card
    task, variant = task_of_policy(policy)
    if card.network_class is not None:
        policy.require_trust(f"the network {card.network_class}")
    part = min(episodes, task.max_parallel)
    return RunConfig(
        task=task.name, variant=variant, learner=config_of(card), seed=seed, eval_episodes=part
    )


def _player(plan: RunConfig, adopted: Task | None) -> Program:
    return _program(plan, adopted and adopted.build)


@cache
def _program(plan: RunConfig, build: Any) -> Program:
    # An adopted object may have taken the place of another one of its name: `build` tells.
    return program_of(plan)
