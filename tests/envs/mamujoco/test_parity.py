"""The `farama` profile against the gymnasium-robotics package, number by number."""

from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pytest
from mamujoco_paper import place

from fp3o.envs.mamujoco.native import Native, Simulations
from fp3o.envs.mamujoco.task import world
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
"""Bodies that one agent can drive, and their motors."""
CASES = (
    [(body, conf, 1) for body, conf in TEAMS]
    + [(body, None, None) for body in SINGLE]
    + [("Ant", "4x2", 0), ("Ant", "2x4", 2), ("HalfCheetah", "6x1", 5), ("Hopper", "3x1", 2),
       ("Humanoid", "9|8", 0), ("Humanoid", "9|8", 2), ("Reacher", "2x1", 0), ("Swimmer", "2x1", 0),
       ("Pusher", "3p", 2), ("Pusher", "3p", 5), ("Walker2d", "2x3", 5),
       ("ManySegmentSwimmer", "3x3", 2), ("ManySegmentSwimmer", "8x2", 5),
       ("ManySegmentAnt", "3x1", 0), ("ManySegmentAnt", "4x1", 5)]
)  # fmt: skip

pytestmark = pytest.mark.usefixtures("somewhere_else")


@pytest.fixture
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes its warnings to a file where it runs; the cheetah's file causes one."""
    monkeypatch.chdir(tmp_path)


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


class Pair(NamedTuple):
    """The package's environment and ours."""

    peer: Any
    env: Native

    def agents(self) -> list[str]:
        return self.peer.possible_agents

    def base(self) -> Any:
        return self.peer.single_agent_env.unwrapped

    def begin(self, seed: int, speed_up: float = 0.0) -> Simulations:
        """An episode as the package begins it, ours put into the same position."""
        self.peer.reset(seed=seed)
        base = self.base()
        qpos, qvel = base.data.qpos.copy(), base.data.qvel.copy()
        if speed_up:
            qvel[2] = speed_up
            mujoco.mj_resetData(base.model, base.data)
            base.set_state(qpos, qvel)
        state = place(self.env, qpos, qvel)
        check(self, *self.env._see(self.env._moment), self.peer._get_obs())
        return state

    def step(self, state: Simulations, rng: np.random.Generator) -> Any:
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
        # Two joints of the pusher have one name. The package then orders them by their addresses.
        order = lambda node: (node.label, node.act_ids)  # noqa: E731
        peer.k_dicts = [
            {k: sorted(nodes, key=order) for k, nodes in found.items()} for found in peer.k_dicts
        ]
    name = f"{body}-{conf or f'1x{SINGLE[body]}'}"
    variant = "farama" if reach is None else f"farama:obsk={reach}"
    return Pair(peer, Native(world(name, variant), 1, threads=1, dtype=np.float64))


def segmented(body: str, conf: str, folder: Path) -> Any:
    """A body of the package's own generator; the package would write it into its own folder."""
    agents, each = map(int, conf.split("x"))
    kind = body.removeprefix("ManySegment")
    generator = getattr(mamujoco, f"many_segment_{kind.lower()}")
    path = folder / "body.xml"
    generator.gen_asset(n_segs=agents * each, asset_path=str(path))
    return gymnasium.make(f"{kind}-v5", xml_file=str(path))


def check(pair: Pair, obs: np.ndarray, state: np.ndarray, seen: dict[str, np.ndarray]) -> None:
    """Every agent sees the same, padded with zeros; the state is that of the package."""
    rows = [seen[name] for name in pair.agents()]
    widest = max(map(len, rows))
    wanted = [[*row, *[0.0] * (widest - len(row))] for row in rows]
    close(obs, [wanted])
    close(state, [[pair.peer.state()] * len(rows)])


def check_outcome(pair: Pair, ours: TimeStep, theirs: Any) -> tuple[bool, bool]:
    """Rewards and ends; whether the episode was terminated, or cut."""
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
    """Observations, states, rewards and ends are the package's at every step."""
    pair, rng = make(body, conf, reach, tmp_path), np.random.default_rng(7)
    assert pair.env.world.robot.limit == pair.peer.single_agent_env.spec.max_episode_steps
    state, terminated, truncated = pair.begin(seed=0), 0, 0
    for t in range(STEPS):
        (state, ours), theirs = pair.step(state, rng)
        failed, cut = check_outcome(pair, ours, theirs)
        terminated, truncated = terminated + failed, truncated + cut
        # Ants do not fail by themselves: they are thrown into the air.
        thrown = body in ANTS and t % 40 == 39
        if failed or cut or thrown:
            state = pair.begin(seed=t, speed_up=4.0 * thrown)
    assert (terminated > 0) == (body in FALLING + ANTS)
    assert truncated == STEPS // LIMITS.get(body, 1000)


def test_fast_legs_are_seen_as_they_are(tmp_path: Path) -> None:
    """The walker's state shows speeds within 10, its agents the whole speed."""
    pair = make("Walker2d", "2x3", 1, tmp_path)
    pair.begin(seed=0)
    fast = np.full(9, 12.5)
    pair.base().set_state(pair.base().data.qpos.copy(), fast)
    place(pair.env, pair.base().data.qpos, fast)
    obs, state = pair.env._see(pair.env._moment)
    check(pair, obs, state, pair.peer._get_obs())
    assert (obs == 12.5).any() and state.max() == 10.0


class Twins:
    """Two cheetahs tied together, on the package's file, in a plain loop.

    The package itself cannot: it reads the band's Jacobian as a full matrix, which it is no more.
    """

    def __init__(self) -> None:
        path = Path(mamujoco.__file__).parent / "assets" / "coupled_half_cheetah.xml"
        self.model = mujoco.MjModel.from_xml_path(str(path))
        self.data, self.scratch = mujoco.MjData(self.model), mujoco.MjData(self.model)
        self.lagging = (np.zeros(18), np.zeros(18))

    def place(self, qpos: np.ndarray, qvel: np.ndarray) -> None:
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel
        mujoco.mj_forward(self.model, self.data)
        self.lagging = (qpos.copy(), qvel.copy())

    def step(self, control: np.ndarray) -> float:
        before = self.data.qpos[[0, 9]].copy()
        self.data.ctrl[:] = control
        for _ in range(5):
            # What MuJoCo derives is that of the start of the last of these.
            self.lagging = (self.data.qpos.copy(), self.data.qvel.copy())
            mujoco.mj_step(self.model, self.data)
        speed = (self.data.qpos[[0, 9]] - before) / 0.05
        cost = [0.1 * np.square(one).sum() for one in (control[:6], control[6:])]
        return float(speed.mean() - np.mean(cost))

    def length(self, qpos: np.ndarray) -> float:
        """The band reaches from one root to the other."""
        self.scratch.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self.scratch)
        return float(
            np.linalg.norm(np.subtract(*(self.scratch.site(t).xpos for t in ("t0", "t1"))))
        )

    def rope(self) -> np.ndarray:
        """Slopes by x and z of both, by differences; the length and its speed."""
        qpos, qvel = self.lagging
        nudge = 1e-6 * np.eye(18)
        slope = [(self.length(qpos + d) - self.length(qpos - d)) / 2e-6 for d in nudge]
        return np.array([*np.take(slope, [0, 1, 9, 10]), self.length(qpos), slope @ qvel])

    def see(self) -> tuple[list[Any], list[Any]]:
        q, v, rope = self.data.qpos, self.data.qvel, self.rope()
        joint = lambda i: [q[i], v[i]]  # noqa: E731
        # Feet, shins and thighs by name; the band is seen behind the first thigh.
        near = [*joint(14), *joint(13), *joint(12), *rope, *joint(17), *joint(16), *joint(15)]
        root = [q[2], q[1], q[11], q[10], v[0], v[2], v[1], v[9], v[11], v[10]]
        return near + root, [*q[1:9], *q[10:18], *v, *rope]


@pytest.mark.parametrize("conf", ["1p1", "1x12"])
def test_tied_cheetahs(conf: str) -> None:
    """Physics, rewards and what is seen, the band included."""
    env = Native(world(f"CoupledHalfCheetah-{conf}", "farama"), 1, threads=1, dtype=np.float64)
    twins, rng, longest = Twins(), np.random.default_rng(3), 0.0
    qpos, qvel = rng.uniform(-0.1, 0.1, 18), 0.1 * rng.standard_normal(18)
    qpos[9], qvel[[0, 9]] = 2.8, (-1.0, 1.0)  # drawn apart, until the band is tight
    twins.place(qpos, qvel)
    state = place(env, twins.data.qpos, twins.data.qvel)
    for t in range(STEPS):
        control = rng.uniform(-1.2, 1.2, 12)
        wanted = twins.step(control)
        longest = max(longest, float(twins.data.ten_length[0]))
        state, ours = env.step(state, control.reshape(1, env.spec.num_agents, -1))
        close(env._moment["qpos"][0], twins.data.qpos)
        close(env._moment["qvel"][0], twins.data.qvel)
        close(ours.reward[0], wanted)
        if t % 10 == 0:
            seen, whole = twins.see()
            for row in np.asarray(ours.obs[0]):
                close(row, whole if conf == "1x12" else seen, 1e-8)
            close(ours.state[0, 0], whole, 1e-8)
    assert longest > 3.5
