"""The MuJoCo tasks in gymnasium-robotics and gymnasium, as timed jobs."""

import contextlib
import io
import math
import tempfile
import warnings
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from fp3o.bench.mamujoco_jobs import RECORDED_STEPS
from fp3o.bench.timing import TimedJob
from fp3o.envs.mamujoco.catalogue import single_agent_partition, split_name
from fp3o.envs.mamujoco.simulation import silenced_warnings

PEER_CHUNK = 500
"""Steps per chunk."""


def robotics_job(name: str, reach: int) -> TimedJob:
    """The same task in gymnasium-robotics, with random actions."""
    env = robotics_env(name, reach)
    spaces = env.action_spaces
    for seed, space in enumerate(spaces.values()):
        space.seed(seed)
    drawn = [
        {agent: space.sample() for agent, space in spaces.items()} for _ in range(RECORDED_STEPS)
    ]
    env.reset(seed=0)
    first = env.possible_agents[0]

    def run() -> None:
        for actions in islice(cycle(drawn), PEER_CHUNK):
            _, _, terminated, truncated, _ = env.step(actions)
            if terminated[first] or truncated[first]:
                env.reset()

    return TimedJob(PEER_CHUNK, run)


def gymnasium_job(name: str, reach: int) -> TimedJob:
    """The body in gymnasium, controlled by one agent."""
    env = robotics_env(name, reach).single_agent_env
    env.action_space.seed(0)
    drawn = [env.action_space.sample() for _ in range(RECORDED_STEPS)]
    env.reset(seed=0)

    def run() -> None:
        for action in islice(cycle(drawn), PEER_CHUNK):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return TimedJob(PEER_CHUNK, run)


def robotics_env(name: str, reach: int) -> Any:
    """The environment of a task in gymnasium-robotics."""
    body, partition = split_name(name)
    single = partition == single_agent_partition(body)
    body, partition = body.replace("Manyagent", "ManySegment"), partition.replace("9p8", "9|8")
    # The package prints to stderr, and MuJoCo writes warnings to a file in the current folder.
    with (
        warnings.catch_warnings(),
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stderr(io.StringIO()),
        silenced_warnings(),
    ):
        warnings.simplefilter("ignore")
        from gymnasium_robotics.envs.multiagent_mujoco import mujoco_multi

        if single:
            return mujoco_multi.parallel_env(body, None, agent_obsk=None)
        chain = segmented(body, partition, Path(folder)) if body.startswith("ManySegment") else None
        return mujoco_multi.parallel_env(body, partition, agent_obsk=reach, gym_env=chain)


def segmented(body: str, partition: str, folder: Path) -> Any:
    """A body from the generator of gymnasium-robotics, written to a folder."""
    import gymnasium
    from gymnasium_robotics.envs.multiagent_mujoco import mujoco_multi

    kind, path = body.removeprefix("ManySegment"), folder / "body.xml"
    generator = getattr(mujoco_multi, f"many_segment_{kind.lower()}")
    generator.gen_asset(n_segs=math.prod(map(int, partition.split("x"))), asset_path=str(path))
    return gymnasium.make(f"{kind}-v5", xml_file=str(path))
