"""Judging policies apart from training: own environments, own random streams, the same for all.

Returns are those of one agent: the mean over the team, summed over the episode.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fp3o.envs.api import Env, HostGame
from fp3o.envs.registry import ADAPTERS, ADOPTED, find, locate
from fp3o.envs.scripted import play
from fp3o.envs.task import Task
from fp3o.envs.vectorise import batch_of
from fp3o.policy import Policy, is_run
from fp3o.policy.export import config_of, read_actor
from fp3o.runs.run_config import Plan
from fp3o.training.episodes import Played
from fp3o.training.program import Program

LAST, BEST, ASKED, SCRIPTED, DURING = range(2, 7)
"""Purposes of random streams: the final evaluations, those on demand, scripted policies, those in
training. 0 and 1 would be the streams of training itself."""


def program_of(plan: Plan) -> Program:
    """The program that trains and judges the plan's seeds."""
    return Program(environments(plan, plan.config.num_envs), plan.config, num_seeds(plan))


def num_seeds(plan: Plan) -> int | None:
    """Seeds of a program; None, no axis of seeds, where there is one."""
    return plan.seeds if plan.seeds > 1 else None


def environments(plan: Plan, num_envs: int) -> Env:
    """A batch for every seed; on the host those of all seeds are one batch."""
    game = plan.description.game(plan.variant)
    copies = plan.seeds if isinstance(game, HostGame) else 1
    return batch_of(game, num_envs * copies)


def judge(
    program: Program,
    plan: Plan,
    rows: Any,
    episodes: int,
    purpose: tuple[int, ...],
    deterministic: bool = True,
) -> Played:
    """Play `episodes` episodes with every seed's actor: arrays `(seeds, episodes, ...)`.

    They are played in equal parts, so evaluations of all lengths share one compiled program.
    """
    part = min(plan.eval_episodes, episodes)
    env, limit = environments(plan, part), plan.description.longest(plan.variant)
    played = [
        program.evaluate(rows, env, program.keys(plan.seed, *purpose, i), limit, deterministic)
        for i in range(math.ceil(episodes / part))
    ]

    def together(*parts: Any) -> np.ndarray:
        by_seed = parts if program.num_seeds else [x[None] for x in parts]
        return np.concatenate(by_seed, axis=1)[:, :episodes]

    return jax.tree.map(together, *played)


def summary(played: Played, names: Sequence[str]) -> dict[str, Any]:
    """Mean of some returns, their spread, the mean's standard error; the means of outcomes."""
    returns = np.asarray(played.returns)
    spread = float(returns.std(ddof=1)) if returns.size > 1 else 0.0
    means = np.asarray(played.outcome, np.float64).reshape(returns.size, len(names)).mean(0)
    return {
        "return": float(returns.mean()),
        "std": spread,
        "stderr": spread / math.sqrt(returns.size),
        "outcomes": dict(zip(names, means.tolist(), strict=True)),
    }


@cache
def references(task: str, variant: str | None, episodes: int) -> dict[str, dict[str, Any]]:
    """What the task's scripted policies earn, to compare a trained team with."""
    description = find(task)
    if description.scripted is None:
        return {}
    game: Any = description.game(variant)
    key = jax.random.fold_in(jax.random.key(0), SCRIPTED)
    names = game.spec.outcomes
    return {
        name: summary(Played(*play(game, rule, key, episodes, description.longest(variant))), names)
        | {"episodes": episodes}
        for name, rule in description.scripted(game).items()
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
        program = _player(replace(plan, seed=0), ADOPTED.get(plan.task))
        actor = read_actor(policy, program.setup)
        played = judge(program, plan, actor, episodes, (ASKED,), deterministic)
        rows.append({"name": name, **summary(played, program.setup.spec.outcomes)})
    assert spec is not None  # `folders` names at least one
    task, variant = locate(spec.name)
    return {
        "task": spec.name,
        "agents": spec.num_agents,
        "episodes": episodes,
        "deterministic": deterministic,
        "policies": rows,
        "references": references(task.name, variant, episodes),
    }


def folders(path: Path, which: str) -> dict[str, Path]:
    """The policy folders a path stands for: those of all seeds of a run, or itself."""
    found = sorted(path.glob(f"policy/seed-*/{which}"), key=lambda p: int(p.parent.name[5:]))
    return {f"{folder.parent.name} {which}": folder for folder in found} or {path.name: path}


def task_of_policy(policy: Policy) -> tuple[Task, str | None]:
    """The task and variant a policy was trained on; those from elsewhere have to be imported."""
    name = policy.card.spec.name
    if name.partition("/")[0] in ADAPTERS:
        policy.vouch(f"the task {name}")
    return locate(name)


def plan_of_policy(policy: Policy, seed: int, episodes: int) -> Plan:
    """A plan whose program can play this policy (it is never trained)."""
    card = policy.card
    task, variant = task_of_policy(policy)
    if card.own is not None:
        policy.vouch(f"the network {card.own}")
    part = min(episodes, task.together)
    return Plan(
        task=task.name, variant=variant, config=config_of(card), seed=seed, eval_episodes=part
    )


def _player(plan: Plan, adopted: Task | None) -> Program:
    return _program(plan, adopted and adopted.build)


@cache
def _program(plan: Plan, build: Any) -> Program:
    # An adopted object may have taken the place of another one of its name: `build` tells.
    return program_of(plan)
