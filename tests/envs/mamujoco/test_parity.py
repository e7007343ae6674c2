"""The `farama` profile equals gymnasium-robotics in every number."""

# pyright: reportAttributeAccessIssue=false
# MuJoCo has no type stubs.

from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest
from mamujoco_native import close, place

from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.envs.mamujoco.task import body_task
from fp3o.types import TimeStep

gymnasium = pytest.importorskip("gymnasium", reason="the comparison needs the other package")
mamujoco = pytest.importorskip(
    "gymnasium_robotics.envs.multiagent_mujoco.mujoco_multi",
    reason="the comparison needs the other package",
)
STEPS = 102
LIMITS = {"Reacher": 50, "Pusher": 100}
FALLING = ("Hopper", "Walker2d", "Humanoid", "InvertedPendulum", "InvertedDoublePendulum")
ANTS = ("Ant", "ManySegmentAnt")
TEAMS = [
    ("Ant", "2x4"), ("Ant", "2x4d"), ("Ant", "4x2"), ("HalfCheetah", "2x3"), ("HalfCheetah", "6x1"),
    ("Hopper", "3x1"), ("Humanoid", "9|8"), ("HumanoidStandup", "9|8"), ("Reacher", "2x1"),
    ("Swimmer", "2x1"), ("Pusher", "3p"), ("Walker2d", "2x3"), ("ManySegmentSwimmer", "2x2"),
    ("ManySegmentSwimmer", "8x2"), ("ManySegmentAnt", "2x1"), ("ManySegmentAnt", "2x3"),
    ("ManySegmentAnt", "3x2"),
]  # fmt: skip
SINGLE = {
    "Ant": 8, "HalfCheetah": 6, "Hopper": 3, "Humanoid": 17, "HumanoidStandup": 17, "Reacher": 2,
    "Swimmer": 2, "Pusher": 7, "Walker2d": 6, "InvertedPendulum": 1, "InvertedDoublePendulum": 1,
}  # fmt: skip
"""Bodies that one agent can control, and their numbers of actuators."""
CASES = (
    [(body, conf, 1) for body, conf in TEAMS]
    + [(body, None, None) for body in SINGLE]
    + [("Ant", "4x2", 0), ("Ant", "2x4", 2), ("HalfCheetah", "6x1", 5), ("Hopper", "3x1", 2),
       ("Humanoid", "9|8", 0), ("Humanoid", "9|8", 2), ("Reacher", "2x1", 0), ("Swimmer", "2x1", 0),
       ("Pusher", "3p", 2), ("Pusher", "3p", 5), ("Walker2d", "2x3", 5),
       ("ManySegmentSwimmer", "3x3", 2), ("ManySegmentSwimmer", "8x2", 5),
       ("ManySegmentAnt", "3x1", 0), ("ManySegmentAnt", "4x1", 5)]
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("temporary_folder")


class Pair(NamedTuple):
    """An environment of gymnasium-robotics and ours."""

    peer: Any
    env: NativeVecEnv

    def agents(self) -> list[str]:
        return self.peer.possible_agents

    def base(self) -> Any:
        return self.peer.single_agent_env.unwrapped

    def start(self, seed: int, speed_up: float = 0.0) -> NativeState:
        """Start an episode in gymnasium-robotics, and set ours to the same state."""
        self.peer.reset(seed=seed)
        base = self.base()
        qpos, qvel = base.data.qpos.copy(), base.data.qvel.copy()
        if speed_up:
            qvel[2] = speed_up
            mujoco.mj_resetData(base.model, base.data)
            base.set_state(qpos, qvel)
        state = place(self.env, qpos, qvel)
        check(self, *self.env.observe(self.env.simulation.fields), self.peer._get_obs())
        return state

    def step(self, state: NativeState, rng: np.random.Generator) -> Any:
        """The same random actions, some beyond the limits, for both."""
        sizes = self.env.spec.actions.mask.sum(1)
        drawn = [rng.uniform(-1.2, 1.2, size) for size in sizes]
        action = np.zeros((1, len(sizes), sizes.max()))
        for i, row in enumerate(drawn):
            action[0, i, : len(row)] = row
        ours = self.env.step(state, action)
        return ours, self.peer.step(dict(zip(self.agents(), drawn, strict=True)))


def make(body: str, conf: str | None, reach: int | None, folder: Path) -> Pair:
    """A task in both packages."""
    gym_env = segmented(body, conf, folder) if conf and body.startswith("ManySegment") else None
    peer = mamujoco.parallel_env(body, conf, agent_obsk=reach, gym_env=gym_env)
    if conf is not None:
        # Two joints of the pusher have one name; gymnasium-robotics orders them by address.
        order = lambda node: (node.label, node.act_ids)  # noqa: E731
        peer.k_dicts = [
            {k: sorted(nodes, key=order) for k, nodes in found.items()} for found in peer.k_dicts
        ]
    name = f"{body}-{conf or f'1x{SINGLE[body]}'}"
    variant = "farama" if reach is None else f"farama:obsk={reach}"
    return Pair(peer, NativeVecEnv(body_task(name, variant), 1, threads=1, dtype=np.float64))


def segmented(body: str, conf: str, folder: Path) -> Any:
    """A body from the generator of gymnasium-robotics, written to a folder."""
    agents, each = map(int, conf.split("x"))
    name = body.removeprefix("ManySegment")
    generator = getattr(mamujoco, f"many_segment_{name.lower()}")
    path = folder / "body.xml"
    generator.gen_asset(n_segs=agents * each, asset_path=str(path))
    return gymnasium.make(f"{name}-v5", xml_file=str(path))


def check(pair: Pair, obs: np.ndarray, state: np.ndarray, seen: dict[str, np.ndarray]) -> None:
    """Observations, padded with zeros, and states are those of gymnasium-robotics."""
    rows = [seen[name] for name in pair.agents()]
    widest = max(map(len, rows))
    wanted = [[*row, *[0.0] * (widest - len(row))] for row in rows]
    close(obs, [wanted])
    close(state, [[pair.peer.state()] * len(rows)])


def check_step(pair: Pair, ours: TimeStep, theirs: Any) -> tuple[bool, bool]:
    """Rewards and ends are equal; whether the episode was terminated or truncated."""
    seen, reward, terminated, truncated, _ = theirs
    check(pair, np.asarray(ours.final_obs), np.asarray(ours.final_state), seen)
    close(ours.reward[0], [reward[a] for a in pair.agents()])
    first = pair.agents()[0]
    failed, cut = bool(terminated[first]), bool(truncated[first])
    assert bool(ours.terminated[0]) == failed
    assert bool(ours.truncated[0]) == (cut and not failed)
    assert bool(ours.episode_start[0]) == (failed or cut)
    return failed, cut and not failed


@pytest.mark.parametrize(("body", "conf", "reach"), CASES)
def test_equals_gymnasium_robotics(
    body: str, conf: str | None, reach: int | None, tmp_path: Path
) -> None:
    """Observations, states, rewards and ends at every step."""
    pair, rng = make(body, conf, reach, tmp_path), np.random.default_rng(7)
    assert pair.env.task.body.max_episode_steps == pair.peer.single_agent_env.spec.max_episode_steps
    state, terminated, truncated = pair.start(seed=0), 0, 0
    for t in range(STEPS):
        (state, ours), theirs = pair.step(state, rng)
        failed, cut = check_step(pair, ours, theirs)
        terminated, truncated = terminated + failed, truncated + cut
        # Ants do not fail by themselves; they get a vertical velocity.
        thrown = body in ANTS and t % 40 == 39
        if failed or cut or thrown:
            state = pair.start(seed=t, speed_up=4.0 * thrown)
    assert (terminated > 0) == (body in FALLING + ANTS)
    assert truncated == STEPS // LIMITS.get(body, 1000)


def test_velocities_are_clipped_in_the_state_only(tmp_path: Path) -> None:
    """The walker's state clips velocities at 10, its observations do not."""
    pair = make("Walker2d", "2x3", 1, tmp_path)
    pair.start(seed=0)
    fast = np.full(9, 12.5)
    pair.base().set_state(pair.base().data.qpos.copy(), fast)
    place(pair.env, pair.base().data.qpos, fast)
    obs, state = pair.env.observe(pair.env.simulation.fields)
    check(pair, obs, state, pair.peer._get_obs())
    assert (obs == 12.5).any() and state.max() == 10.0
