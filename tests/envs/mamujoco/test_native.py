"""The MuJoCo tasks: the paper's rules against a plain model, and the behaviour of batches."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mamujoco_paper as plain
import mujoco
import numpy as np
import pytest
from mamujoco_paper import place

from fp3o.envs.api import VecEnv
from fp3o.envs.mamujoco.catalogue import PAPER_TASKS, body_entry, listed_names, team_size
from fp3o.envs.mamujoco.native import NativeState, NativeVecEnv
from fp3o.envs.mamujoco.simulation import default_threads
from fp3o.envs.mamujoco.task import body_task
from fp3o.envs.mamujoco.variant import Variant
from fp3o.errors import NonFiniteError
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.spec import Box
from fp3o.types import TimeStep

KEY = jax.random.key(0)
TASKS = [
    (name, profile)
    for name in listed_names()
    if (entry := body_entry(name))
    for profile in entry.profiles
]
WITH_FORCES = ("Ant-2x4", "farama")
"""A task whose observations include forces, which are computed after each step."""

pytestmark = pytest.mark.usefixtures("temporary_folder")


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes warnings to a file in the current folder; some of these tests cause them."""
    monkeypatch.chdir(tmp_path)


def make(name: str, variant: str = "paper", envs: int = 1, **more: Any) -> NativeVecEnv:
    """A batch, by default in double precision."""
    return NativeVecEnv(
        body_task(name, variant), envs, **{"threads": 1, "dtype": np.float64, **more}
    )


def draw(rng: np.random.Generator, env: NativeVecEnv, scale: float = 1.2) -> np.ndarray:
    """Random actions, some beyond the limits."""
    mask = env.spec.actions.mask
    return rng.uniform(-scale, scale, (env.num_envs, *mask.shape)) * mask


def run(
    env: NativeVecEnv, state: NativeState, steps: int, seed: int = 0
) -> tuple[NativeState, list[TimeStep]]:
    """Random actions for some steps, and all time steps."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        state, timestep = env.step(state, draw(rng, env))
        seen.append(timestep)
    return state, seen


def rows(tree: Any, *which: Any) -> Any:
    """Some environments of a tree of arrays, copied."""
    return jax.tree.map(lambda x: np.asarray(x)[list(which)].copy(), tree)


def same(one: Any, other: Any) -> None:
    """Two trees are equal bit for bit."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype) and a.tobytes() == b.tobytes()


def velocities(env: NativeVecEnv) -> slice:
    """Indices of qvel in the integration state, after the time and qpos."""
    model = env.task.model
    return slice(1 + model.nq, 1 + model.nq + model.nv)


# The paper's rules.


@pytest.mark.parametrize("task", plain.LITERAL)
def test_lists_of_the_paper(task: str) -> None:
    """The plain model's rule for observations gives the lists written down."""
    found, written = plain.PlainTask(task).observed, plain.LITERAL[task]
    assert [row.split() for row in found[: len(written)]] == [row.split() for row in written]
    assert len(found) == len(written) or task == "ManyagentSwimmer-8x2"


def concatenated(task: str, actions: np.ndarray) -> list[float]:
    """The paper: concatenated actions go to the actuators in their order."""
    return [float(x) for row, own in zip(actions, plain.OWNED[task], strict=True)
            for x in row[: len(own)]]  # fmt: skip


def to_own_joints(task: str, actions: np.ndarray, model: mujoco.MjModel) -> list[float]:
    """Every agent controls its own joints, whatever the order of their actuators."""
    control = [float("nan")] * model.nu
    for row, own in zip(actions, plain.OWNED[task], strict=True):
        for value, name in zip(row, own, strict=True):
            actuators = [
                i for i in range(model.nu) if model.actuator_trnid[i, 0] == model.joint(name).id
            ]
            control[actuators[0]] = float(value)
    return control


@pytest.mark.parametrize(
    ("task", "variant"),
    [
        *[(task, "paper") for task in plain.OWNED],
        *[(task, "paper:routing=joint") for task in plain.OWNED],
        ("HalfCheetah-6x1", "paper:obsk=2"),
        ("ManyagentSwimmer-8x2", "paper:obsk=0"),
    ],
)
def test_equals_plain_model_of_the_paper(task: str, variant: str) -> None:
    """Observations, states, rewards and ends at every step, from the raw simulation."""
    env, rng = make(task, variant), np.random.default_rng(4)
    copy = plain.PlainTask(task, env.task.variant.obsk)
    state, timestep = env.reset(KEY)
    ended = 0
    for t in range(110):
        if timestep.episode_start[0]:
            copy.place(env.simulation.fields["qpos"][0], env.simulation.fields["qvel"][0])
        if task.startswith("Ant") and t % 50 == 49:  # ants do not fail by themselves
            qvel = copy.data.qvel.copy()
            qvel[2] = 5.0
            state = place(env, copy.data.qpos, qvel)
            copy.place(copy.data.qpos.copy(), qvel)
        action = draw(rng, env)
        if "joint" in variant:
            control = to_own_joints(task, action[0], copy.model)
        else:
            control = concatenated(task, action[0])
        reward, failed = copy.step(control)
        state, timestep = env.step(state, action)
        seen = copy.observe()
        np.testing.assert_allclose(timestep.final_obs[0], seen[0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(timestep.final_state[0], seen[1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(timestep.reward[0], reward, rtol=1e-9, atol=1e-9)
        assert bool(timestep.terminated[0]) == bool(timestep.episode_start[0]) == failed
        assert not timestep.truncated[0]
        ended += failed
    assert (ended > 0) == (task.split("-")[0] in ("Ant", "Hopper", "Walker2d"))


@pytest.mark.parametrize(("task", "moved"), [("Ant-2x4", True), ("Walker2d-2x3", True),
                                             ("HalfCheetah-6x1", True), ("Reacher-2x1", False),
                                             ("Hopper-3x1", False)])  # fmt: skip
def test_routing(task: str, moved: bool) -> None:
    """The paper's agents control other joints than they observe, where the orders differ."""
    action = np.arange(1.0, 1.0 + body_task(task, "paper").model.nu)
    action = action.reshape(body_task(task, "paper").spec.actions.mask.shape)
    order, joint = (body_task(task, v).controls(action) for v in ("paper", "paper:routing=joint"))
    assert order.tolist() == concatenated(task, action)
    assert joint.tolist() == to_own_joints(task, action, body_task(task, "paper").model)
    assert (order.tolist() != joint.tolist()) == moved


PAPER_SIZES = {
    "Reacher-2x1": ((1,) * 2, 12, 13, 0.02),
    "Ant-2x4": ((4,) * 2, 27, 113, 0.05),
    "Walker2d-2x3": ((3,) * 2, 11, 19, 0.008),
    "Hopper-3x1": ((1,) * 3, 12, 14, 0.008),
    "HalfCheetah-6x1": ((1,) * 6, 18, 23, 0.05),
    "ManyagentSwimmer-8x2": ((2,) * 8, 22, 44, 0.02),
}
"""Sizes of actions, observation and state; seconds per step."""
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
def test_sizes_of_the_paper(task: str) -> None:
    """The sizes of the published tasks."""
    actions, obs, state, seconds = PAPER_SIZES[task]
    found = body_task(task, "paper")
    assert isinstance(found.spec.actions, Box) and found.spec.actions.sizes == actions
    assert (found.spec.obs_size, found.spec.state_size) == (obs, state)
    assert found.step_seconds == pytest.approx(seconds)


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


# Every task.


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


# Ends and starts of episodes.


@pytest.mark.parametrize(("name", "variant"), [("Hopper-3x1", "paper"), ("Humanoid-9p8", "farama"),
                                               ("Pusher-3p", "farama")])  # fmt: skip
def test_episodes_restart(name: str, variant: str) -> None:
    """`obs` starts the new episode, `final_obs` ends the old one; others are unaffected."""
    env, fresh = make(name, variant, 6), make(name, variant, 6)
    rng, ends = np.random.default_rng(5), 0
    state, now = env.reset(KEY)
    for _ in range(110):
        old, (state, now) = state, env.step(state, draw(rng, env))
        ended = np.asarray(now.terminated | now.truncated)
        assert not (now.terminated & now.truncated).any()
        assert (now.episode_start == ended).all() and (
            state.time == np.where(ended, 0, old.time + 1)
        ).all()
        assert (state.episode == old.episode + ended).all()
        same(rows(now.obs, *np.flatnonzero(~ended)), rows(now.final_obs, *np.flatnonzero(~ended)))
        for i in np.flatnonzero(ended):
            ends += 1
            assert (now.obs[i] != now.final_obs[i]).any() and (
                now.state[i] != now.final_state[i]
            ).any()
            first = place(fresh, env.simulation.fields["qpos"][i], env.simulation.fields["qvel"][i])
            same(rows((state.physics, state.progress), i), rows((first.physics, first.progress), 0))
            observation = fresh.observe(fresh.simulation.fields)
            same(rows((now.obs, now.state), i), rows(observation, 0))
    assert ends >= 6


@pytest.mark.parametrize(("name", "variant"), [("Hopper-3x1", "paper"), ("Ant-2x4", "farama"),
                                               ("Pusher-3p", "farama")])  # fmt: skip
def test_a_rollout_equals_its_steps(name: str, variant: str) -> None:
    """In bulk or step by step, across ends and within episodes."""
    env, rng = make(name, variant, 3), np.random.default_rng(7)
    state, now = env.reset(KEY)
    limit = env.task.body.max_episode_steps
    state = state._replace(time=np.array([0, limit - 60, limit - 10]))
    actions = [draw(rng, env) for _ in range(110)]
    half, first = env.rollout(state, now, lambda t, *_: actions[t], 40)
    whole, rest = env.rollout(half, last(first), lambda t, *_: actions[40 + t], 70)
    seen, ends = [now], 0
    for action in actions:
        state, now = env.step(state, action)
        seen.append(now)
        ends += int(now.episode_start.sum())
    assert ends > 0
    same(whole, state)
    rolled = [np.concatenate([x, y[1:]]) for x, y in zip(first, rest, strict=True)]
    for mine, wanted in zip(rolled, map(np.stack, zip(*seen, strict=True)), strict=True):
        # Means of many vectors at once may be rounded differently than those of a few.
        np.testing.assert_allclose(mine, wanted, rtol=1e-12, atol=1e-12)
    same(last(rest), now)


def last(seen: TimeStep) -> TimeStep:
    return TimeStep._make(x[-1] for x in seen)


@pytest.mark.parametrize(("name", "profile"), TASKS)
def test_time_limits(name: str, profile: str) -> None:
    """Steps of an episode: the paper's 1000 for all, farama's fewer for two bodies."""
    env = make(name, profile, 2)
    limit = {"Reacher": 50, "Pusher": 100}.get(name.partition("-")[0], 1000)
    limit = limit if profile == "farama" else 1000
    state, _ = env.reset(KEY)
    state = state._replace(time=np.array([limit - 2, 0]))
    still = np.zeros((2, *env.spec.actions.mask.shape))
    state, before = env.step(state, still)
    state, after = env.step(state, still)
    assert not before.truncated.any() and not before.episode_start.any()
    assert after.truncated.tolist() == after.episode_start.tolist() == [True, False]
    assert not after.terminated.any() and state.time.tolist() == [0, 2]


def test_episodes_of_the_papers_reacher_last_a_thousand_steps() -> None:
    env = make("Reacher-2x1")
    state, _ = env.reset(KEY)
    _, seen = run(env, state, 1001)
    assert [t for t, step in enumerate(seen) if step.truncated[0]] == [999]


def test_failing_in_the_last_step_terminates() -> None:
    """A failure terminates the episode, also at the time limit."""
    env = make("Hopper-3x1")
    tilted = np.array([0, 1.25, 0.3, 0, 0, 0])
    state = place(env, tilted, np.zeros(6))._replace(time=np.array([999]))
    _, timestep = env.step(state, np.zeros((1, 3, 1)))
    assert timestep.terminated[0] and not timestep.truncated[0] and timestep.episode_start[0]


def first_of_second_episode(
    env: NativeVecEnv, state: NativeState, actions: np.ndarray
) -> np.ndarray:
    """The first observation of the second episode of the first environment."""
    for action in actions:
        state, timestep = env.step(state, action)
        if timestep.episode_start[0]:
            return np.asarray(timestep.obs[0])
    raise AssertionError("no episode ended")


def test_the_stream_determines_initial_states() -> None:
    """They do not depend on earlier actions."""
    env, rng = make("Hopper-3x1", envs=2), np.random.default_rng(0)
    state, _ = env.reset(KEY)
    wild = [draw(rng, env) for _ in range(200)]
    calm = [np.zeros((2, 3, 1))] * 400
    same(*(first_of_second_episode(env, state, np.array(a)) for a in (wild, calm)))


@pytest.mark.parametrize(("name", "variant"), [("Hopper-3x1", "paper"), WITH_FORCES])
def test_streams(name: str, variant: str) -> None:
    """The environments of a key do not depend on the other keys of the batch."""
    keys = jax.random.split(jax.random.key(9), 3)
    together, alone, rng = make(name, variant, 6), make(name, variant, 2), np.random.default_rng(1)
    actions = [draw(rng, alone) for _ in range(40)]
    state, first = together.reset(keys)
    seen = [(state, first)]
    for action in actions:
        state, now = together.step(state, np.tile(action, (3, 1, 1)))
        seen.append((state, now))
    for j, key in enumerate(keys):
        own, now = alone.reset(key)
        same(rows(seen[0], 2 * j, 2 * j + 1), (own, now))
        for action, all_of_them in zip(actions, seen[1:], strict=True):
            own, now = alone.step(own, action)
            same(rows(all_of_them, 2 * j, 2 * j + 1), (own, now))


def test_initial_states_differ() -> None:
    """Between environments, episodes and keys; the same key gives the same ones."""
    env = make("Hopper-3x1", envs=8)
    starts = []
    for numbers in ([0, 0], [0, 1], [1, 0]):
        key = jax.random.wrap_key_data(jnp.array(numbers, jnp.uint32))
        state, first = env.reset(key)
        starts += list(np.asarray(first.obs[:, 0]))
        _, seen = run(env, state, 80)
        starts += [now.obs[i, 0] for now in seen for i in np.flatnonzero(now.episode_start)]
    assert len(starts) > 60 and len({row.tobytes() for row in map(np.asarray, starts)}) == len(
        starts
    )
    same(env.reset(KEY), env.reset(KEY))


# Reproducibility.


@pytest.mark.parametrize(("name", "variant"), [("Walker2d-2x3", "paper"), WITH_FORCES])
def test_results_do_not_depend_on_threads(
    name: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, two, or the number of the environment variable: the same bits, resets included."""
    monkeypatch.setenv("FP3O_THREADS", "2")
    envs = [make(name, variant, 9, threads=count) for count in (1, 2, None)]
    assert [env.simulation.batch.nthread for env in envs] == [1, 2, 2]
    states, _ = zip(*(env.reset(KEY) for env in envs), strict=True)
    if name.startswith("Ant"):  # some fail
        physics = states[0].physics.copy()
        physics[:4, velocities(envs[0])][:, 2] = 6.0
        states = tuple(state._replace(physics=physics) for state in states)
    rng, ends = np.random.default_rng(2), 0
    for _ in range(200 if name.startswith("Walker") else 60):
        action = draw(rng, envs[0])
        states, seen = zip(*map(NativeVecEnv.step, envs, states, [action] * 3), strict=True)
        same((states[0], seen[0]), (states[1], seen[1]))
        same((states[0], seen[0]), (states[2], seen[2]))
        ends += int(seen[0].episode_start.sum())
    assert ends > 3


def test_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread has too few simulations; invalid numbers are refused."""
    monkeypatch.setenv("FP3O_THREADS", "3")
    assert [default_threads(envs) for envs in (1, 2, 3, 5, 100)] == [1, 1, 2, 3, 3]
    monkeypatch.delenv("FP3O_THREADS")
    assert default_threads(1) == 1 and default_threads(10_000) >= 1
    for wrong in ("abc", "0", "-1", "1.5"):
        monkeypatch.setenv("FP3O_THREADS", wrong)
        with pytest.raises(ValueError, match=f"FP3O_THREADS must be a positive integer.*'{wrong}'"):
            make("Hopper-3x1", threads=None)


@pytest.mark.parametrize(
    ("name", "variant"),
    [("Hopper-3x1", "paper"), ("Reacher-2x1", "paper"), ("HalfCheetah-6x1", "farama"), WITH_FORCES,
     ("Humanoid-9p8", "farama"), ("CoupledHalfCheetah-1p1", "farama"), ("Pusher-3p", "farama")],
)  # fmt: skip
def test_a_saved_state_continues_exactly(name: str, variant: str) -> None:
    """In another process too: the state consists of its arrays."""
    env = make(name, variant, 3)
    state, _ = run(env, env.reset(KEY)[0], 17, seed=1)
    kept = jax.tree.map(np.copy, state)
    wanted = run(env, state, 40, seed=2)
    same(state, kept)  # a returned state is not modified
    stored = from_arrays(make(name, variant, 3).reset(jax.random.key(5))[0], to_arrays(kept))
    for saved in (kept, stored):
        fresh = make(name, variant, 3)
        same(run(fresh, saved, 40, seed=2), wanted)
    used = make(name, variant, 3)
    run(used, used.reset(jax.random.key(3))[0], 10)
    same(run(used, kept, 40, seed=2), wanted)


def test_results_are_not_overwritten() -> None:
    """Results of earlier steps are not modified."""
    env = make(*WITH_FORCES, 3)
    state, first = env.reset(KEY)
    kept = jax.tree.map(np.copy, (state, first))
    _, seen = run(env, state, 1)
    later = jax.tree.map(np.copy, seen)
    run(env, state, 5, seed=3)
    same((state, first), kept)
    same(seen, later)


# Errors.


@pytest.mark.parametrize(("name", "profile"), TASKS)
def test_huge_actions(name: str, profile: str) -> None:
    """Actuators have limits: all numbers stay finite."""
    env = make(name, profile, 2, dtype=np.float32)
    state, _ = env.reset(KEY)
    rng = np.random.default_rng(6)
    for _ in range(20):
        state, timestep = env.step(state, 1e6 * np.sign(draw(rng, env)))
        assert all(np.isfinite(x).all() for x in timestep)


def test_non_finite_actions() -> None:
    """Refused with the agent's index; padding does not matter."""
    env = make("Pusher-3p", "farama", 2)
    state, _ = env.reset(KEY)
    for wrong in (np.nan, np.inf):
        action = np.zeros((2, 3, 3))
        action[1, 2, 1] = wrong
        with pytest.raises(NonFiniteError, match=rf"agent 2 .*{wrong}.*dimension 1.*environment 1"):
            env.step(state, action)
    action = np.zeros((2, 3, 3))
    wanted = env.step(state, action)
    action[:, 1, 1:] = np.nan
    same(env.step(state, action), wanted)


def spoil(env: NativeVecEnv, state: NativeState, which: int, value: float) -> NativeState:
    """Set the velocities of one environment."""
    physics = state.physics.copy()
    physics[which, velocities(env)] = value
    return state._replace(physics=physics)


@pytest.mark.parametrize("value", [1e12, np.nan])
@pytest.mark.parametrize(
    ("name", "variant"), [("HalfCheetah-6x1", "paper"), ("Hopper-3x1", "paper"), WITH_FORCES]
)
def test_a_simulation_that_diverges(name: str, variant: str, value: float) -> None:
    """Its episode ends with a warning each time; other environments are unaffected."""
    env, calm = make(name, variant, 4), make(name, variant, 4)
    others, rng = (0, 1, 3), np.random.default_rng(8)
    state, _ = env.reset(KEY)
    undisturbed, _ = calm.reset(KEY)
    for t in range(12):
        action = draw(rng, env, 0.1)
        undisturbed, expected = calm.step(undisturbed, action)
        if t in (3, 4, 8):
            state = spoil(env, state, 2, value)
            with pytest.warns(RuntimeWarning, match=rf"{name}:{variant}.*1 of 4.*number 2"):
                state, now = env.step(state, action)
            assert now.terminated[2] and not now.truncated[2] and now.episode_start[2]
            assert state.time[2] == 0 and not now.reward[2].any()
        else:
            state, now = env.step(state, action)  # a warning here would be an error
            assert not now.episode_start[2]
        assert all(np.isfinite(x).all() for x in now)
        same(rows((state, now), *others), rows((undisturbed, expected), *others))
    assert state.episode.tolist() == [1, 1, 4, 1] and state.time.tolist() == [12, 12, 3, 12]


@pytest.mark.parametrize(
    ("name", "variant", "qvel"),
    [
        ("InvertedDoublePendulum-1x1", "farama", [58, 135, 74]),
        ("Walker2d-2x3", "paper", [1535, -1219, -870, 2196, -2603, -2200, 134, 432, 671]),
        ("Hopper-3x1", "farama", [-463, -1244, -3331, 1125, 2280, -592]),
        ("Ant-2x4", "farama",
         [24, -86, 388, 70, 280, 219, -447, -319, 224, 80, -285, 244, 162, -43]),
    ],
)  # fmt: skip
def test_a_simulation_that_diverges_in_the_last_substep(
    name: str, variant: str, qvel: list[float]
) -> None:
    """MuJoCo notices in the next step only; nothing invalid may be returned until then."""
    env = make(name, variant, dtype=np.float32)
    state = place(env, env.task.model.qpos0, np.array(qvel))
    with pytest.warns(RuntimeWarning, match="diverged in 1 of .*number 0"):
        state, now = env.step(state, np.zeros((1, *env.spec.actions.mask.shape)))
    assert now.terminated[0] and not now.reward.any()
    assert all(np.isfinite(x).all() and np.abs(x).max(initial=0) < 1e11 for x in now)
    _, now = env.step(state, np.zeros((1, *env.spec.actions.mask.shape)))
    assert not now.episode_start[0] and np.abs(now.reward).max() < 20


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
def test_unknown_names_are_refused(name: str, variant: str, message: str) -> None:
    """With the nearest match."""
    with pytest.raises(ValueError, match=message):
        body_task(name, variant)
