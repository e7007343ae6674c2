"""Every MuJoCo task: names, variants, sizes, initial states, a short rollout."""

import numpy as np
import pytest
from mamujoco_native import KEY, TASKS, make, run

from fp3o.envs.api import VecEnv
from fp3o.envs.mamujoco.catalogue import PAPER_TASKS, team_size
from fp3o.envs.mamujoco.task import body_task
from fp3o.envs.mamujoco.variant import Variant

pytestmark = pytest.mark.usefixtures("temporary_folder")


FARAMA_SIZES = {
    "Reacher-2x1": ([5, 8], [7, 10], [7, 10], 10, 0.02),
    "Ant-2x4": ([61] * 2, [63] * 2, [65] * 2, 105, 0.05),
    "Walker2d-2x3": ([11] * 2, [12] * 2, [14] * 2, 17, 0.008),
    "Hopper-3x1": ([7] * 3, [8, 9, 8], [9] * 3, 11, 0.008),
    "HalfCheetah-6x1": ([7] * 6, [9, 9, 8, 9, 9, 8], [12] * 6, 17, 0.05),
    "ManyagentSwimmer-8x2": (
        [4] * 8, [5, 6, 6, 6, 6, 6, 6, 5], [9, 11, 13, 14, 14, 13, 11, 9], 36, 0.04,
    ),
}  # fmt: skip
"""Observation sizes of every agent with k = 0, 1 and 5; state size; seconds per step."""


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_sizes_of_farama(task: str) -> None:
    """Sizes of every agent, without padding."""
    *rows_at, state, seconds = FARAMA_SIZES[task]
    for reach, sizes in zip((0, 1, 5), rows_at, strict=True):
        env = make(task, f"farama:obsk={reach}")
        _, (now,) = run(env, env.reset(KEY)[0], 1)
        assert [1 + np.flatnonzero(row).max() for row in now.obs[0]] == sizes
        assert (env.spec.obs_size, env.spec.state_size) == (max(sizes), state)
        assert env.task.step_seconds == pytest.approx(seconds)


@pytest.mark.parametrize("profile", ["paper", "farama"])
def test_resets_of_the_reacher(profile: str) -> None:
    """The paper's targets fill a square, some out of reach; farama's a disc."""
    env = make("Reacher-2x1", profile, 250)
    env.reset(KEY)
    qpos, qvel = np.array(env.simulation.fields["qpos"]), np.array(env.simulation.fields["qvel"])
    away = np.linalg.norm(qpos[:, 2:], axis=1)
    assert (away.max() > 0.21) == (profile == "paper") and np.abs(qpos[:, 2:]).max() <= 0.2
    assert (away >= 0.2).mean() == pytest.approx(
        1 - np.pi / 4 if profile == "paper" else 0, abs=0.08
    )
    assert 0.098 < np.abs(qpos[:, :2]).max() <= 0.1 and not qvel[:, 2:].any()
    assert 0.0049 < np.abs(qvel[:, :2]).max() <= 0.005


STARTS = {"Ant-2x4": (0.1, True), "HalfCheetah-6x1": (0.1, True), "Hopper-3x1": (0.005, False),
          "Walker2d-2x3": (0.005, False), "ManyagentSwimmer-8x2": (0.1, False)}  # fmt: skip


@pytest.mark.parametrize("task", STARTS)
@pytest.mark.parametrize("profile", ["paper", "farama"])
def test_resets(task: str, profile: str) -> None:
    """Positions have uniform noise; velocities uniform or, in two tasks, normal noise."""
    scale, normal = STARTS[task]
    env = make(task, profile, 300)
    env.reset(KEY)
    away = np.array(env.simulation.fields["qpos"]) - env.task.model.qpos0
    speed = np.array(env.simulation.fields["qvel"])
    even = scale / np.sqrt(3)
    assert 0.99 * scale < np.abs(away).max() <= scale
    assert away.std() == pytest.approx(even, rel=0.05)
    assert speed.std() == pytest.approx(scale if normal else even, rel=0.05)
    assert (np.abs(speed).max() > 2 * scale) == normal
    assert abs(np.corrcoef(away[:, 0], away[:, 1])[0, 1]) < 0.2


@pytest.mark.parametrize(("name", "profile"), TASKS)
def test_every_task(name: str, profile: str) -> None:
    """A short rollout: shapes, types, finite numbers, a spec that fits."""
    env = make(name, profile, 3, dtype=np.float32)
    spec, mask = env.spec, env.spec.actions.mask
    assert isinstance(env, VecEnv) and spec.truncates
    assert spec.name == f"mamujoco/{name}:{profile}"
    assert team_size(name) == spec.num_agents == len(env.task.owned) == len(mask)
    assert sorted(m for own in env.task.owned for m in own) == list(range(env.task.model.nu))
    state, first = env.reset(KEY)
    _, seen = run(env, state, 25)
    assert first.episode_start.all() and not first.reward.any()
    for timestep in [first, *seen]:
        shapes = {
            "obs": (3, spec.num_agents, spec.obs_size),
            "state": (3, spec.num_agents, spec.state_size),
            "reward": (3, spec.num_agents),
            "action_mask": (3, *mask.shape),
            "alive": (3, spec.num_agents),
            "episode_start": (3,),
            "terminated": (3,),
            "truncated": (3,),
        }
        for field, shape in shapes.items():
            found = getattr(timestep, field)
            assert found.shape == shape
            assert found.dtype == (np.float32 if field in ("obs", "state", "reward") else bool)
        assert timestep.final_obs.shape == timestep.obs.shape
        assert timestep.final_state.shape == timestep.state.shape
        assert all(np.isfinite(x).all() for x in timestep)
        assert (timestep.action_mask == mask).all() and timestep.alive.all()
        assert (timestep.reward == timestep.reward[:, :1]).all()
        if profile == "paper":
            assert np.abs(timestep.obs.mean(-1)).max() < 1e-5
            np.testing.assert_allclose(timestep.state.std(-1), 1, atol=1e-5)


def test_single_agents_and_aliases() -> None:
    """One agent may control everything; aliases of a name mean the same task."""
    for profile in ("paper", "farama"):
        alone = body_task("Hopper-1x3", profile)
        assert alone.spec.num_agents == 1 and alone.owned == ((0, 1, 2),)
        assert alone.spec.obs_size == alone.spec.state_size == (12 if profile == "paper" else 11)
    swimmer = body_task("ManySegmentSwimmer-4x2", "farama")
    assert swimmer.spec.name == "mamujoco/ManyagentSwimmer-4x2:farama"
    assert body_task("Humanoid-9|8", "farama").spec.name == "mamujoco/Humanoid-9p8:farama"


@pytest.mark.parametrize("text", ["paper", "farama", "farama:obsk=5", "paper:obsk=0,routing=joint"])
def test_variants_are_written_as_they_are_parsed(text: str) -> None:
    assert str(Variant.parse(text)) == text
    assert Variant.parse(str(Variant.parse(text))) == Variant.parse(text)


def test_default_options_are_not_written() -> None:
    assert str(Variant.parse("paper:obsk=5,backend=native")) == "paper"
    assert Variant.parse("farama") == Variant("farama", 1, "joint", "native")


@pytest.mark.parametrize(
    ("name", "variant", "message"),
    [
        ("Hoper-3x1", "paper", r"unknown body 'Hoper': did you mean 'Hopper'\?.*Walker2d"),
        ("Hopper-3x2", "paper", r"Hopper has no partition '3x2': did you mean '3x1'\?.*1x3"),
        ("Hopper", "paper", r"Hopper has no partition '': Known: 1x3, 3x1"),
        ("Hopper-3x1", "papr", r"unknown variant 'papr': did you mean 'paper'\?.*farama"),
        ("Humanoid-9p8", "paper", r"Humanoid has no profile 'paper': .*farama"),
        ("Hopper-3x1", "paper:obks=2", r"unknown option 'obks'.*did you mean 'obsk'\?"),
        ("Hopper-3x1", "paper:obsk=x", r"obsk must be an integer.*'x' in 'paper:obsk=x'"),
        ("Hopper-3x1", "paper:obsk=-1", r"obsk must be an integer of at least 0, got -1"),
        ("Hopper-3x1", "paper:obsk", r"unknown variant 'paper:obsk': did you mean 'paper'"),
        ("Hopper-3x1", "paper:routing=joints", r"routing cannot be 'joints'.*did you mean 'joint'"),
        ("Hopper-3x1", "paper:backend=nativ", r"backend cannot be 'nativ'.*did you mean 'native'"),
        ("ManyagentSwimmer-8", "paper", r"AGENTSxSEGMENTS, for example 4x2, got '8'"),
        ("ManyagentSwimmer-0x2", "paper", r"AGENTSxSEGMENTS.*'0x2'"),
        ("ManyagentSwimmer-1x1", "paper", r"at least 2 segments, got 1"),
    ],
)
def test_unknown_names_are_rejected(name: str, variant: str, message: str) -> None:
    """With the nearest match."""
    with pytest.raises(ValueError, match=message):
        body_task(name, variant)
