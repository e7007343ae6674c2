"""Environment steps a second on the MuJoCo tasks: physics, environment, collecting, training.

    python benchmarks/mamujoco.py [--task HalfCheetah-6x1] [--only environment peer]
    python benchmarks/mamujoco.py --bodies --parts --json numbers.json

Raw physics is `mujoco.batch.Batch.step` alone: it is put into states that random play has come
through, and given the controls of that play, step by step. The environment is `Native.roll`
(physics, observations, rewards, new episodes) with the actions of that play; collecting adds the
policy's decisions; training adds learning. Episodes are at all ages from the start, so that
some end all the time. "All" threads are those the environment takes by itself. The physics of what
a fresh policy does can cost more than that of random play (some 15 % for the cheetah), so
collecting is compared with both: with random play, which the aim is about, and with its own.

Things that are compared take turns, chunk by chunk, and the fastest chunk of each counts: compare
them as ratios within one run. The peer is gymnasium-robotics, one environment in one process, which
sees as many joints away. It plays today's version of the bodies, we that of the paper where the
paper has the body; the bodies and the substeps of a step are nearly the same.
"""

# MuJoCo has no type stubs, and its functions are replaced by timed ones.
# pyright: reportAttributeAccessIssue=false

import argparse
import contextlib
import io
import json
import math
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from mujoco.batch import Batch

from fp3o.envs.mamujoco import native
from fp3o.envs.mamujoco.catalogue import FAMILY, PAPER_TASKS, canonical, parse, whole
from fp3o.envs.mamujoco.native import Native, Simulations, default_threads
from fp3o.envs.mamujoco.task import World, world
from fp3o.envs.registry import get_task
from fp3o.envs.vectorise import vectorise
from fp3o.runs.evaluation import make_program
from fp3o.runs.run_config import RunConfig
from fp3o.training.program import Program

SIZES = (4, 20, 64, 256)
"""Numbers of environments."""
MOMENTS = 64
"""Steps of random play that are kept, and played again and again."""
CHUNK = 4_000
"""Environment steps of a chunk for each thread, about: long enough to time, and short enough to
find a quiet moment."""
PEER_CHUNK = 500
TWIN_SIZES, TWIN_CHUNK = (1024, 4096, 8192), 20
"""Environments on an accelerator, and steps of a chunk."""
COLLECTING_AIM = {64: "60 %"}
"""Environments -> share of raw physics."""
TEAMS = {
    "4 environments, 1 seed": (4, 1, "4,000 (2 cores)"),
    "4 environments, 5 seeds": (4, 5, "1.5 times; 60,000 (16 cores, GPU)"),
    "64 environments, 1 seed": (64, 1, ""),
}
"""Trainings: environments of a seed, seeds, and what they should reach."""

Row = dict[str, Any]
"""A line of a table: title -> value."""


class Job(NamedTuple):
    """A chunk of something, and the environment steps it has."""

    steps: int
    run: Callable[[], Any]


class Clock:
    """Runs something and keeps the seconds of the fastest run, and of the watched parts in it."""

    def __init__(self, run: Callable[[], Any]):
        self.run, self.first = run, math.nan
        self.best = {"total": math.inf}
        self._spent: dict[str, float] = {}

    def watch(self, owner: Any, name: str, part: str) -> None:
        """Count the time in a method of one object as this part."""
        inner = getattr(owner, name)

        def timed(*args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            result = inner(*args, **named)
            self._spent[part] += time.perf_counter() - began
            return result

        self._spent[part] = 0.0
        setattr(owner, name, timed)

    def __call__(self) -> None:
        self._spent = dict.fromkeys(self._spent, 0.0)
        began = time.perf_counter()
        self.run()
        total = time.perf_counter() - began
        self.first = total if math.isnan(self.first) else self.first
        if total < self.best["total"]:
            self.best = {**self._spent, "total": total}


def hparams(jobs: list[Job], seconds: float, least: int = 3) -> list[float]:
    """Steps a second of the fastest chunk of every job; they take turns, warmed up before."""
    times: list[list[float]] = [[] for _ in jobs]
    few = lambda known: sum(known) < seconds or len(known) < least  # noqa: E731
    for job in jobs:
        job.run()
    while any(map(few, times)):
        for job, known in zip(jobs, times, strict=True):
            if few(known):
                began = time.perf_counter()
                job.run()
                known.append(time.perf_counter() - began)
    return [job.steps / min(known) for job, known in zip(jobs, times, strict=True)]


class Play(NamedTuple):
    """Some steps of random play."""

    world: World
    state: Simulations
    """Where it ends."""
    physics: np.ndarray
    """(m, e, ...): the simulations before each step."""
    controls: np.ndarray
    """(m, e, nu)."""
    actions: np.ndarray
    """(m, e, n, d)."""

    @property
    def num_envs(self) -> int:
        return self.physics.shape[1]


def play(body: World, num_envs: int) -> Play:
    """Play at random for a while, then keep what happens."""
    env, mask = Native(body, num_envs), body.spec.actions.mask
    draw = np.random.default_rng(0).uniform
    actions = draw(-1, 1, (MOMENTS, num_envs, *mask.shape)).astype(np.float32)
    state, physics = ages(env.reset(jax.random.key(0))[0], body), []
    for action in (*actions, *actions):
        physics.append(state.physics)
        state, _ = env.step(state, action)
    controls = body.controls(actions.astype(np.float64))
    return Play(body, state, np.stack(physics[-MOMENTS:]), controls, actions)


def ages(state: Simulations, body: World) -> Simulations:
    """The same simulations with episodes of all ages."""
    random = np.random.default_rng(1)
    return state._replace(time=random.integers(body.robot.limit, size=len(state.time)))


def length(num_envs: int, threads: int) -> int:
    """Steps of a chunk."""
    return min(1000, max(40, CHUNK * threads // num_envs))


def physics_job(played: Play, threads: int) -> Job:
    """Raw physics."""
    num_envs, skip = played.num_envs, played.world.robot.skip
    steps = length(num_envs, threads)
    batch = Batch(played.world.model, num_envs, nthread=threads)
    control = batch.bind("ctrl")

    def run() -> None:
        moments = cycle(zip(played.physics, played.controls, strict=True))
        for physics, controls in islice(moments, steps):
            batch.state[...] = physics
            control[...] = controls
            batch.step(nstep=skip)

    return Job(num_envs * steps, run)


def environment_job(played: Play, threads: int) -> Job:
    """The environment."""
    steps, state = length(played.num_envs, threads), played.state
    env = Native(played.world, played.num_envs, threads)
    now = env.reset(jax.random.key(0))[1]

    def run() -> None:
        nonlocal state
        state, _ = env.roll(state, now, lambda t, *_: played.actions[t % MOMENTS], steps)

    return Job(played.num_envs * steps, run)


def collecting_job(program: Program, body: World) -> Job:
    """A part of a rollout; all of it would be a chunk too long."""
    state = program.init(0)
    num_envs = program.env.num_envs * (program.num_seeds or 1)
    steps = length(num_envs, default_threads(num_envs))
    carry, actor = state.rollout, state.learner.actor
    carry = carry._replace(env_state=ages(carry.env_state, body))
    keys = program._keys(state.key)[1][..., :steps]

    def run() -> None:
        nonlocal carry
        carry, _ = program._host.collect(program.env, actor, carry, keys)

    return Job(num_envs * keys.shape[-1], run)


def own_play(job: Job, program: Program, played: Play) -> Play:
    """What collecting goes through at the end of a chunk, in the place of random play."""
    env, kept = getattr(program.env, "env", program.env), []  # beneath an axis of seeds
    inner = env._drive

    def drive(control: np.ndarray, action: Any) -> None:
        inner(control, action)
        kept.append((env._batch.state.copy(), control.copy()))

    env._drive = drive
    job.run()
    del env._drive
    physics, controls = map(np.stack, zip(*kept[-MOMENTS:], strict=True))
    return played._replace(physics=physics, controls=controls)


def training_job(plan: RunConfig) -> tuple[Job, Clock]:
    """An iteration, and a clock that knows how long it collects."""
    program = make_program(plan.check())
    state = program.init(plan.seed)

    def run() -> None:
        nonlocal state
        state, _ = program.iterate(state)
        jax.block_until_ready(state.learner)

    clock = Clock(run)
    clock.watch(program._host, "collect", "collecting")
    return Job(plan.steps_per_iteration * plan.seeds, clock), clock


def peer_job(name: str, reach: int) -> Job:
    """The same task in gymnasium-robotics, with random actions."""
    env = peer(name, reach)
    spaces = env.action_spaces
    for seed, space in enumerate(spaces.values()):
        space.seed(seed)
    drawn = [{agent: space.sample() for agent, space in spaces.items()} for _ in range(MOMENTS)]
    env.reset(seed=0)
    first = env.possible_agents[0]

    def run() -> None:
        for actions in islice(cycle(drawn), PEER_CHUNK):
            _, _, terminated, truncated, _ = env.step(actions)
            if terminated[first] or truncated[first]:
                env.reset()

    return Job(PEER_CHUNK, run)


def gymnasium_job(name: str, reach: int) -> Job:
    """The body in gymnasium alone: one agent that sees and drives it all."""
    env = peer(name, reach).single_agent_env
    env.action_space.seed(0)
    drawn = [env.action_space.sample() for _ in range(MOMENTS)]
    env.reset(seed=0)

    def run() -> None:
        for action in islice(cycle(drawn), PEER_CHUNK):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return Job(PEER_CHUNK, run)


def peer(name: str, reach: int) -> Any:
    """The package's environment of a task."""
    body, partition = parse(name)
    alone = partition == whole(body)
    body, partition = body.replace("Manyagent", "ManySegment"), partition.replace("9p8", "9|8")
    # The package has news on stderr, and MuJoCo writes warnings to a file in the folder it is in.
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        from gymnasium_robotics.envs.multiagent_mujoco import mujoco_multi

        if alone:
            return mujoco_multi.parallel_env(body, None, agent_obsk=None)
        chain = segmented(body, partition, Path(folder)) if body.startswith("ManySegment") else None
        return mujoco_multi.parallel_env(body, partition, agent_obsk=reach, gym_env=chain)


def segmented(body: str, partition: str, folder: Path) -> Any:
    """A body of the package's own generator; the package would write it into its own folder."""
    import gymnasium
    from gymnasium_robotics.envs.multiagent_mujoco import mujoco_multi

    kind, path = body.removeprefix("ManySegment"), folder / "body.xml"
    generator = getattr(mujoco_multi, f"many_segment_{kind.lower()}")
    generator.gen_asset(n_segs=math.prod(map(int, partition.split("x"))), asset_path=str(path))
    return gymnasium.make(f"{kind}-v5", xml_file=str(path))


def has_peer() -> bool:
    found = find_spec("gymnasium_robotics") is not None
    if not found:
        print("gymnasium-robotics is not installed, so there is nothing to compare with")
    return found


def plan_of(name: str, sharing: str, num_envs: int, seeds: int) -> RunConfig:
    """FP3O with the paper's settings, or with those of today where the paper lacks the body."""
    settings = {"algorithm": "fp3o", "sharing": sharing, "num_envs": num_envs, "seeds": seeds}
    return RunConfig.from_preset(f"{FAMILY}/{name}", rules(name)).with_settings(settings)


def task_world(name: str) -> World:
    return world(name, rules(name))


def rules(name: str) -> str:
    """A task's first variant, which has a preset of the same name: `paper` where there is one."""
    return get_task(f"{FAMILY}/{name}").variants[0]


def case(num_envs: int, threads: int) -> str:
    return f"{num_envs} environments, {threads} thread{'s' * (threads > 1)}"


def environment(asked: argparse.Namespace) -> Iterator[Row]:
    """Raw physics and the environment, with one thread and with all."""
    for num_envs in SIZES:
        played = play(task_world(asked.task), num_envs)
        for threads in sorted({1, default_threads(num_envs)}):
            jobs = [physics_job(played, threads), environment_job(played, threads)]
            raw, whole_step = hparams(jobs, asked.seconds)
            yield {
                "case": case(num_envs, threads),
                "raw steps/s": raw,
                "env steps/s": whole_step,
                "share": whole_step / raw,
            }


def collection(asked: argparse.Namespace) -> Iterator[Row]:
    """Collecting with FP3O's policy, beside raw physics with as many environments and threads."""
    body = task_world(asked.task)
    for num_envs in SIZES:
        seeds = 5 if num_envs == 20 else 1
        program = make_program(plan_of(asked.task, asked.sharing, num_envs // seeds, seeds))
        threads = default_threads(num_envs)
        played, job = play(body, num_envs), collecting_job(program, body)
        own = own_play(job, program, played)
        jobs = [physics_job(played, threads), physics_job(own, threads), job]
        raw, raw_own, collected = hparams(jobs, asked.seconds)
        yield {
            "case": case(num_envs, threads) + ", 5 seeds" * (seeds > 1),
            "raw steps/s": raw,
            "raw, own play": raw_own,
            "steps/s": collected,
            "share": collected / raw,
            "share of own": collected / raw_own,
            "aim": COLLECTING_AIM.get(num_envs, ""),
        }


def training(asked: argparse.Namespace) -> Iterator[Row]:
    """Whole training with FP3O; seconds of an iteration (the first one compiles)."""
    plans = [plan_of(asked.task, asked.sharing, *team[:2]) for team in TEAMS.values()]
    jobs, clocks = zip(*map(training_job, plans), strict=True)
    found = hparams(list(jobs), asked.seconds, least=2)
    for (name, (*_, aim)), clock, rate in zip(TEAMS.items(), clocks, found, strict=True):
        collecting = clock.best["collecting"]
        yield {
            "case": name,
            "steps/s": rate,
            "times 1st row": rate / found[0],
            "collecting s": collecting,
            "learning s": clock.best["total"] - collecting,
            "first s": clock.first,
            "aim": aim,
        }


def other(asked: argparse.Namespace) -> Iterator[Row]:
    """Random actions: gymnasium-robotics and gymnasium, one environment each, and ours."""
    if not has_peer():
        return
    body = task_world(asked.task)
    few, many, threads = play(body, 4), play(body, 64), default_threads(64)
    jobs = {
        "gymnasium-robotics": peer_job(asked.task, body.variant.obsk),
        "gymnasium, the body alone": gymnasium_job(asked.task, body.variant.obsk),
        f"ours, {case(4, 1)}": environment_job(few, 1),
        f"ours, {case(64, threads)}": environment_job(many, threads),
    }
    found = hparams(list(jobs.values()), asked.seconds)
    for name, rate in zip(jobs, found, strict=True):
        yield {
            "case": name,
            "steps/s": rate,
            "times robotics": rate / found[0],
            "times gymn.": rate / found[1],
        }


def bodies(asked: argparse.Namespace) -> Iterator[Row]:
    """The paper's tasks with 64 environments and all threads, beside gymnasium-robotics."""
    threads, compared = default_threads(64), has_peer()
    for name in PAPER_TASKS:
        played = play(task_world(name), 64)
        jobs = [physics_job(played, threads), environment_job(played, threads)]
        if compared:
            jobs.append(peer_job(name, played.world.variant.obsk))
        raw, whole_step, *theirs = hparams(jobs, asked.seconds)
        yield {
            "case": name,
            "raw steps/s": raw,
            "env steps/s": whole_step,
            "share": whole_step / raw,
            "peer steps/s": theirs[0] if theirs else None,
            "times peer": whole_step / theirs[0] if theirs else None,
        }


def parts(asked: argparse.Namespace) -> Iterator[Row]:
    """Microseconds of a step of collecting, all environments together."""
    for num_envs in (4, 64):
        program: Any = make_program(plan_of(asked.task, asked.sharing, num_envs, 1))
        job = collecting_job(program, task_world(asked.task))
        clock = Clock(job.run)
        clock.watch(program._host, "_choose", "deciding")
        clock.watch(program.env._batch, "step", "physics")
        clock.watch(program.env, "_drive", "driving")
        clock.watch(program.env, "_note", "noting")
        clock.watch(native, "see", "seeing")
        hparams([job._replace(run=clock)], asked.seconds)
        micro = {name: spent * 1e6 * num_envs / job.steps for name, spent in clock.best.items()}
        total = micro.pop("total")
        threads = case(num_envs, default_threads(num_envs))
        yield {"case": threads, **micro, "rest": total - sum(micro.values()), "all": total}


def twin(asked: argparse.Namespace) -> Iterator[Row]:
    """MJX, the twin on the accelerator: random actions drawn there, chunks in one program."""
    game = native.make(asked.task, f"{rules(asked.task)}:backend=mjx")
    for num_envs in SIZES[2:3] if jax.default_backend() == "cpu" else TWIN_SIZES:
        began = time.perf_counter()
        job = twin_job(game, num_envs)
        job.run()
        first = time.perf_counter() - began
        (found,) = hparams([job], asked.seconds)
        yield {"case": f"{num_envs} environments", "steps/s": found, "first chunk s": first}


def twin_job(game: Any, num_envs: int) -> Job:
    """A chunk on MJX."""
    env, mask = vectorise(game, num_envs), game.spec.actions.mask

    def move(state: Any, key: Any) -> tuple[Any, Any]:
        action = jax.random.uniform(key, (num_envs, *mask.shape), minval=-1.0) * mask
        state, step = env.step(state, action)
        return state, step.reward.mean()

    chunk = jax.jit(lambda state, keys: jax.lax.scan(move, state, keys))
    keys = jax.random.split(jax.random.key(1), TWIN_CHUNK)
    state = jax.jit(env.reset)(jax.random.key(0))[0]

    def run() -> None:
        nonlocal state
        state, _ = jax.block_until_ready(chunk(state, keys))

    return Job(num_envs * TWIN_CHUNK, run)


SECTIONS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "environment": environment, "collection": collection, "training": training, "peer": other,
    "bodies": bodies, "parts": parts, "mjx": twin,
}  # fmt: skip
USUAL = ("environment", "collection", "training", "peer")


def word(title: str, value: Any) -> str:
    """A value as a table shows it."""
    if value is None or isinstance(value, str):
        return value or "-" * (value is None)
    if title.startswith("share"):
        return f"{value:.0%}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def show(words: list[str]) -> None:
    """A line of a table."""
    print((f"{words[0]:34}" + "".join(f" {x:>13}" for x in words[1:])).rstrip(), flush=True)


def table(rows: Iterator[Row]) -> list[Row]:
    """Print rows as they come."""
    kept: list[Row] = []
    for row in rows:
        if not kept:
            show(list(row))
        show([word(title, value) for title, value in row.items()])
        kept.append(row)
    return kept


def machine() -> Row:
    cores = len(os.sched_getaffinity(0))
    packages = {name: version(name) for name in ("mujoco", "jax", "numpy")}
    device = f"{len(jax.devices())} x {jax.devices()[0].device_kind}"
    return {"cores": cores, "python": platform.python_version(), **packages, "device": device}


def asked_for() -> argparse.Namespace:
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--task", default="HalfCheetah-6x1", help="a body and its partition")
    parser.add_argument("--sharing", default="full", help="full, partial or none")
    parser.add_argument("--seconds", type=float, default=3.0, help="of measuring, for each number")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="these tables and no others")
    parser.add_argument("--bodies", action="store_true", help="the paper's six tasks, too")
    parser.add_argument("--parts", action="store_true", help="where a step's time goes, too")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    asked = parser.parse_args()
    asked.task = canonical(asked.task.removeprefix(f"{FAMILY}/"))
    more = [name for name in ("bodies", "parts") if getattr(asked, name)]
    asked.sections = [name for name in SECTIONS if name in [*(asked.only or USUAL), *more]]
    return asked


def main() -> None:
    asked = asked_for()
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(f"{task_world(asked.task).spec.name}, {asked.sharing} sharing")
    numbers: Row = {"machine": facts, "task": asked.task, "sharing": asked.sharing, "tables": {}}
    for name in asked.sections:
        print(f"\n{name}: {SECTIONS[name].__doc__}")
        numbers["tables"][name] = table(SECTIONS[name](asked))
        if asked.json:
            asked.json.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
