"""Worker processes that fail in every way, and the real game's adapter over a stand-in for SMAC."""

import gc
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from fake_smac import Counting, Mischief, StarCraft2Env, misbehave

from fp3o.cli import diagnosis as doctor
from fp3o.envs.api import HostEnv
from fp3o.envs.smac import host_layout, observations
from fp3o.envs.smac.env import EPISODE_METRICS
from fp3o.envs.smac.maps import LAYOUTS
from fp3o.envs.starcraft2 import install as starcraft2_install
from fp3o.envs.starcraft2.env import StarCraft2
from fp3o.envs.starcraft2.worker import Match
from fp3o.envs.vectorise import SeedBatchedEnv
from fp3o.envs.workers import vec_env as batches
from fp3o.envs.workers import worker as workers
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import FailureCounts, Timeouts, WorkerPoolError, reply_problem
from fp3o.envs.workers.shared_memory import ArraySpec, BufferSpec, SharedBuffer
from fp3o.envs.workers.vec_env import PooledVecEnv, StepReply, buffer_spec
from fp3o.spec import Discrete, EnvSpec
from fp3o.types import TimeStep

SPEC = EnvSpec(
    "test/counting", Discrete(((2,), (2,))), 3, 1, (0, 0), truncates=True, episode_metrics=EPISODE_METRICS
)
QUICK = Timeouts(reset=30, step=1.5)
IDLE = np.zeros((2, 1), int)
FAR = 100
"""Between the seeds of two workers."""


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where processes leave their numbers."""
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setenv("FAKE_TRACES", str(folder))
    return folder


def living(traces: Path) -> set[int]:
    """Processes that left a trace and are still there."""
    return {int(path.name) for path in traces.iterdir() if lives(int(path.name))}


def lives(number: int) -> bool:
    """Whether a process runs; one that has ended may wait for someone to take note of it."""
    try:
        os.kill(number, 0)
        return " Z " not in Path(f"/proc/{number}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # a system without this folder


def gone(traces: Path, seconds: float = 10.0) -> bool:
    """Whether no process is left, at once or soon."""
    deadline = time.monotonic() + seconds
    while living(traces) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not living(traces)


def crew(*deeds: tuple[str, str | int], patience: Timeouts = QUICK, length: int = 5) -> WorkerPool:
    """Workers whose first places misbehave; those that follow do not."""
    plan = {FAR * i: deed for i, deed in enumerate(deeds)}
    made = WorkerPool(Mischief(plan, length), buffer_spec(SPEC), len(deeds), patience)
    made.seeds[:] = [FAR * i for i in range(len(deeds))]
    return made


def games(monkeypatch: pytest.MonkeyPatch, *deeds: tuple[str, str | int]) -> PooledVecEnv:
    """The same as a batch of environments."""
    monkeypatch.setattr(batches, "_seed", lambda _, number: FAR * number)
    plan = {FAR * i: deed for i, deed in enumerate(deeds)}
    return PooledVecEnv(SPEC, WorkerPool(Mischief(plan), buffer_spec(SPEC), len(deeds), QUICK))


def idle(number: int) -> np.ndarray:
    """Actions of all agents."""
    return np.zeros((number, 2, 1), int)


def test_failures_of_every_kind_at_once(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost episodes end truncated, unpaid, with what was last seen; the others notice nothing."""
    kinds = ("exit", "raise", "unpicklable", "shape", "nan", "text", "hang with a child")
    env = games(monkeypatch, *((kind, 3) for kind in kinds), ("", ""))
    state, now = env.reset(jax.random.key(0))
    for _ in range(2):
        state, now = env.step(state, idle(8))
    assert not now.truncated.any()
    with pytest.warns(RuntimeWarning) as told:
        state, now = env.step(state, idle(8))
    lost = np.arange(8) < 7
    np.testing.assert_array_equal(now.truncated, lost)
    np.testing.assert_array_equal(now.episode_start, lost)
    assert not now.terminated.any()
    np.testing.assert_array_equal(now.reward[:, 0], ~lost)
    np.testing.assert_array_equal(now.final_obs[:, 0, 0], np.where(lost, 2, 3))
    np.testing.assert_array_equal(now.obs[:, 0, 0], np.where(lost, 0, 3))
    np.testing.assert_array_equal(now.final_state[:, 0, 0], FAR * np.arange(8))
    np.testing.assert_array_equal(now.state[:, 0, 0], FAR * np.arange(8) + lost)
    np.testing.assert_array_equal(now.episode_metrics[:, 2], np.where(lost, 2, 3))
    assert not now.episode_metrics[:, 0].any() and now.action_mask.all() and now.alive.all()
    assert env.losses == FailureCounts(crashed=2, hung=1, garbage=4, restarts=7, steps=14)
    words = [str(warning.message) for warning in told]
    parts = ("exit code 7", "the game has no mood", "no tuple of 8", "(1, 3), expected",
             "not finite", "no tuple of 8", "no answer in time")  # fmt: skip
    for number, (text, part) in enumerate(zip(words, parts, strict=True)):
        assert text.startswith(f"worker {number}: ") and part in text
        assert "after 2 steps" in text
    for _ in range(2):
        state, now = env.step(state, idle(8))
    np.testing.assert_array_equal(now.terminated, ~lost)
    np.testing.assert_array_equal(now.episode_metrics[:, 0], ~lost)
    np.testing.assert_array_equal(state.time, 2 * lost)
    assert len(living(traces)) == 8  # the hanging worker's child is gone as well
    env.close()
    assert gone(traces)


def test_failures_in_resets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is replaced until an episode begins; what was finished before is not lost."""
    hasty = QUICK._replace(reset=3)
    made = crew(("raise", "reset"), ("exit", "reset"), ("", ""), patience=hasty)
    made.make.plan[FAR + 1] = ("hang", "reset")
    with pytest.warns(RuntimeWarning, match="after 0 steps"):
        seen = made.reset(range(3))
    assert [int(report[1][0, 0]) for report in seen] == [1, FAR + 2, 2 * FAR]
    assert made.losses == FailureCounts(crashed=2, hung=1, restarts=3)
    made.close()

    env = games(monkeypatch, ("raise", "again"), ("", ""))
    state, now = env.reset(jax.random.key(0))
    for _ in range(4):
        state, now = env.step(state, idle(2))
    with pytest.warns(RuntimeWarning, match="worker 0: crashed"):
        state, now = env.step(state, idle(2))
    assert now.terminated.all() and not now.truncated.any()
    np.testing.assert_array_equal(now.reward, 1.0)
    np.testing.assert_array_equal(now.final_obs[:, 0, 0], 5)
    assert env.losses == FailureCounts(crashed=1, restarts=1)
    env.close()


def test_one_that_always_fails(traces: Path) -> None:
    """Three restarts in succession, then an error that says what happened and what to do."""
    made = crew(("", ""), ("exit", 1))
    made.make.plan.update({FAR + i: ("exit", 1) for i in range(10)})
    made.reset(range(2))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(WorkerPoolError, match="worker 1 failed 4 times") as error:
            for _ in range(10):
                made.reset([*{0, 1} - {*made.step({0: IDLE, 1: IDLE})}])
    for part in ("crashed, exit code 7", "the game says goodbye", "fp3o doctor"):
        assert part in str(error.value)
    assert len(told) == 3
    assert made.losses == FailureCounts(crashed=4, restarts=3)
    assert gone(traces)


def test_a_finished_step_forgives(traces: Path) -> None:
    """Only failures in succession count; a worker killed from outside is replaced like others."""
    made = crew(("exit", 2), patience=QUICK._replace(restarts=1))
    made.make.plan.update(dict.fromkeys(range(3), ("exit", 2)))
    made.reset([0])
    for _ in range(3):
        assert 0 in made.step({0: IDLE})
        with pytest.warns(RuntimeWarning, match="after 1 steps"):
            assert not made.step({0: IDLE})
        made.reset([0])
    made.step({0: IDLE})
    (number,) = living(traces)
    os.kill(number, signal.SIGKILL)
    with pytest.warns(RuntimeWarning, match="ended by signal 9"):
        assert not made.step({0: IDLE})
    assert made.losses == FailureCounts(crashed=4, restarts=4, steps=4)


def test_nobody_is_left_behind(traces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers end with their crew, also one that does not close, and when we are killed."""
    monkeypatch.setattr(workers, "GOODBYE", 0.5)
    made = crew(("stay", ""), ("", ""))
    made.reset(range(2))
    assert len(living(traces)) == 2
    del made
    gc.collect()
    assert gone(traces)
    program = (
        "from fp3o.envs.workers.pool import Crew\nfrom fp3o.envs.workers.shared_memory import Field, Form\nfrom fake_smac import Mischief\n"
        "deeds = {0: ('hang with a child', 'reset'), 1: ('hang', 'reset')}\n"
        "crew = Crew(Mischief(deeds), Form(Field('action', (), int), ()), 2)\n"
        "crew.reset([0, 1])"
    )
    path = os.pathsep.join(sys.path)
    mother = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}
    )
    deadline = time.monotonic() + 20
    while len(living(traces)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(living(traces)) == 3  # two workers and a child
    mother.kill()
    mother.wait()
    assert gone(traces)


@pytest.mark.parametrize("deed", ["shape", "dtype", "nan", "list", "short", "text"])
def test_nonsense_is_found(deed: str) -> None:
    """Anything but finite arrays of the right shapes and types."""
    good = Counting(Mischief({}), 0, "", "").reset()
    assert reply_problem(good, buffer_spec(SPEC).answer) is None
    assert reply_problem(misbehave(deed, good), buffer_spec(SPEC).answer)


def test_workers_start_without_jax() -> None:
    """They would take seconds and gigabytes otherwise."""
    program = (
        "import sys, fp3o.envs.workers.pool, fp3o.envs.starcraft2.worker as _; print(*sys.modules)"
    )
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert "numpy" in asked.stdout.decode().split() and b"jax" not in asked.stdout


def test_states_that_are_not_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Games cannot go back: running episodes end where the state had seen them."""
    env = games(monkeypatch, ("", ""), ("", ""))
    first, begun = env.reset(jax.random.key(0))
    state, now = env.step(first, idle(2))
    env.step(state, idle(2))
    with pytest.warns(RuntimeWarning, match="2 running episodes of 2 steps"):
        again, now = env.step(state, idle(2))
    assert now.truncated.all() and now.episode_start.all() and not now.reward.any()
    np.testing.assert_array_equal(now.final_obs[:, 0, 0], 1)
    np.testing.assert_array_equal(now.obs, begun.obs)
    assert env.losses == FailureCounts(steps=2)
    _, now = env.step(again, idle(2))
    np.testing.assert_array_equal(now.obs[:, 0, 0], 1)
    _, now = env.step(first, idle(2))  # it begins alike, so it goes on
    np.testing.assert_array_equal(now.obs[:, 0, 0], 1)
    assert not now.truncated.any() and env.losses == FailureCounts(steps=2)
    env.reset(jax.random.key(0))
    env._crew.seeds[0] = 7
    env.close()
    _, now = env.step(first, idle(2))  # one of them begins otherwise
    np.testing.assert_array_equal(now.truncated, [True, False])
    np.testing.assert_array_equal(now.final_state[:, 0, 0], [0, FAR])
    np.testing.assert_array_equal(now.state[:, 0, 0], [7, FAR])
    env.close()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package named smac whose environment is the stand-in, and a folder of the game."""
    package = tmp_path / "site" / "smac" / "env" / "starcraft2"
    package.mkdir(parents=True)
    (package.parent.parent / "__init__.py").touch()
    (package.parent / "__init__.py").write_text("from fake_smac import StarCraft2Env\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    home = tmp_path / "StarCraftII"
    (home / "Versions").mkdir(parents=True)
    (home / "Maps" / "SMAC_Maps").mkdir(parents=True)
    (home / "Maps" / "SMAC_Maps" / "3m.SC2Map").touch()
    monkeypatch.setenv("SC2PATH", str(home))
    return home


def aggressive(now: TimeStep) -> np.ndarray:
    """Attack the first one in range, else go east, else stop."""
    action_mask = np.asarray(now.action_mask)
    shots = action_mask[..., 6:]
    rest = np.where(action_mask[..., 4], 4, np.where(action_mask[..., 1], 1, 0))
    return np.where(shots.any(-1), 6 + shots.argmax(-1), rest)[..., None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["5m_vs_6m", "1c3s5z", "3s5z_vs_3s6z", "bane_vs_bane", "corridor"])
def test_layouts(name: str, layout: str) -> None:
    """What a worker makes of SMAC's units is what the plain model sees."""
    made: list[StarCraft2Env] = []
    match = Match(lambda: made.append(StarCraft2Env(name, 0, True)) or made[-1], layout)
    random, form_of = np.random.default_rng(0), buffer_spec(StarCraft2(name, layout).spec).answer
    report = match.reset()
    deaths = 0
    for _ in range(25):
        moment, agents = made[0].moment(), range(len(report.alive))
        assert reply_problem(report, form_of) is None
        for seen, look in ((report.obs, moment.obs), (report.state, moment.state)):
            expected = np.array([look(layout, agent) for agent in agents])
            np.testing.assert_allclose(seen, expected, atol=1e-6)
        np.testing.assert_array_equal(
            report.action_mask, [moment.action_mask(agent) for agent in agents]
        )
        np.testing.assert_array_equal(report.alive, [ally.lives for ally in moment.allies])
        deaths = max(deaths, int(report.episode_metrics[1:].sum()))
        if report.terminated:
            break
        chosen = random.random(report.action_mask.shape) * report.action_mask
        report = match.step(chosen.argmax(1))
    assert deaths or name == "corridor"
    assert host_layout.MOVE_ACTIONS == slice(observations.FIRST_MOVE, observations.FIRST_ATTACK)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_battles_end_to_end(layout: str, installed: Path) -> None:
    """Two seeds of two games each, won, lost and begun again."""
    game = StarCraft2("3m", layout)
    assert isinstance(game, HostEnv) and game.spec.name == f"starcraft2/3m:{layout}"
    assert game.limit == 60
    twin = Match(lambda: StarCraft2Env("3m", 0, True), layout)
    env = SeedBatchedEnv(game.batch(4), 2)
    state, now = env.reset(jax.random.split(jax.random.key(0), 2))
    assert now.obs.shape == (2, 2, 3, game.spec.obs_size) and now.episode_start.all()
    expected, earned, won = twin.reset(), 0.0, []
    for _ in range(50):
        np.testing.assert_array_equal(now.obs[1, 1], expected.obs)
        np.testing.assert_array_equal(now.state[0, 1], expected.state)
        np.testing.assert_array_equal(now.action_mask[1, 0], expected.action_mask)
        np.testing.assert_array_equal(now.alive[0, 0], expected.alive)
        action = aggressive(now)
        if won:
            action = np.where(now.action_mask[..., :1], 0, 1)  # stand still: lost
        state, now = env.step(state, action)
        expected = twin.step(action[0, 0, :, 0])
        np.testing.assert_array_equal(now.reward[1, 0], expected.reward)
        np.testing.assert_array_equal(now.final_obs[0, 0], expected.obs)
        np.testing.assert_array_equal(now.episode_metrics[1, 1], expected.episode_metrics)
        earned += float(now.reward[0, 0, 0])
        if expected.terminated:
            assert now.terminated.all() and now.episode_start.all() and not now.truncated.any()
            won.append((bool(expected.episode_metrics[0]), round(earned, 4)))
            expected, earned = twin.reset(), 0.0
        if len(won) == 2:
            break
    assert won[0] == (True, 20.0) and not won[1][0]
    np.testing.assert_array_equal(now.episode_metrics[..., 1], 3)  # and how many have fallen
    env.env.close()  # pyright: ignore


def test_limits_and_a_game_that_dies(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit is a truncation; what SMAC calls an end when its game has died is none."""
    monkeypatch.setenv("FAKE_SMAC_LIMIT", "4")
    env = StarCraft2("3m", "smac").batch(1)
    state, now = env.reset(jax.random.key(0))
    lengths, stop = [], np.ones((1, 3, 1), int)
    for step in range(8):
        state, now = env.step(state, stop)
        assert not now.terminated.any()
        lengths += [step + 1] * int(now.truncated[0])
    assert lengths == [4, 8] and env.losses == FailureCounts()
    state, now = env.step(state, stop)
    state, now = env.reset(jax.random.key(1))  # in an episode
    env.close()

    monkeypatch.setenv("FAKE_SMAC_BREAKS", "3")
    state, now = env.reset(jax.random.key(0))
    state, _ = env.step(state, stop)
    state, before = env.step(state, stop)
    with pytest.warns(RuntimeWarning, match="ended by itself"):
        state, now = env.step(state, stop)
    assert now.truncated.all() and not now.terminated.any() and not now.reward.any()
    np.testing.assert_array_equal(now.final_obs, before.obs)
    assert env.losses == FailureCounts(crashed=1, restarts=1, steps=2)
    env.close()


def test_resets_before_the_first_end() -> None:
    """SMAC would start a second game beside the first: the first one is closed."""
    made: list[StarCraft2Env] = []
    match = Match(lambda: made.append(StarCraft2Env("3m", 0, True)) or made[-1], "smac")
    first = match.reset()
    match.step([1, 1, 1])
    again = match.reset()
    assert [env.launched for env in made] == [0, 1]
    for old, new in zip(first, again, strict=True):
        np.testing.assert_array_equal(old, new)


def test_seeds_differ(installed: Path) -> None:
    """Every game of every seed has its own, and the same again for the same key."""
    keys = jax.random.split(jax.random.key(3), 2)
    numbers = [np.asarray(jax.random.key_data(key)) for key in keys]
    seeds = [batches._seed(own, i) for own in numbers for i in range(3)]
    assert len({*seeds}) == 6 and all(0 <= seed < 2**31 for seed in seeds)
    assert batches._seed(numbers[1], 2) == seeds[-1]


def test_what_is_missing(installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Errors and the doctor say what to install; names are checked first."""
    (found,) = doctor._starcraft()
    assert found.well and not found.needed and "1 maps" in found.what
    with pytest.raises(starcraft2_install.MissingGameError, match="SMAC_Maps: copy"):
        StarCraft2("8m").batch(1)
    monkeypatch.setenv("SC2PATH", str(tmp_path / "nowhere"))
    with pytest.raises(ImportError, match=r"StarCraft II: unpack it to .*nowhere"):
        StarCraft2("3m").batch(1)
    monkeypatch.delenv("SC2PATH")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert starcraft2_install.parts()[1].found == str(tmp_path / "StarCraftII")
    (tmp_path / "site" / "smac" / "env" / "starcraft2").rmdir()  # the optimiser of this name
    with pytest.raises(ImportError, match=r"SMAC: pip install git\+https"):
        StarCraft2("3m").batch(1)
    (found,) = doctor._starcraft()
    assert not found.well and not found.needed and "git+https" in found.fix
    with pytest.raises(ValueError, match="did you mean '5m_vs_6m'"):
        StarCraft2("5m_v_6m").batch(1)
    with pytest.raises(ValueError, match="layout"):
        StarCraft2("3m", "papper").batch(1)


def test_report_has_the_form() -> None:
    """Their names are one list."""
    assert tuple(field.name for field in buffer_spec(SPEC).answer) == StepReply._fields


def test_a_slate_keeps_what_is_written() -> None:
    """Every array lies apart from the others, and what was read does not change any more."""
    fields = (
        ArraySpec("flag", (), np.bool_),
        ArraySpec("empty", (0,), np.float32),
        ArraySpec("odd", (3,), "i1"),
    )
    shared = BufferSpec(ArraySpec("action", (2, 1), np.int32), fields)
    mine = SharedBuffer(shared)
    theirs = SharedBuffer(shared, os.dup(mine.file))
    mine.ask([[3], [-1]])
    given = np.array(True), np.zeros(0, np.float32), np.array([1, -2, 3], "i1")
    theirs.answer(given)
    np.testing.assert_array_equal(theirs.asked(), [[3], [-1]])
    read = mine.answered()
    theirs.answer((np.array(False), given[1], np.zeros(3, "i1")))
    for one, other in zip(read, given, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    with pytest.raises(TypeError, match="same_kind"):
        mine.ask(np.full((2, 1), 0.5))
    for slate in (mine, theirs):
        os.close(slate.file)
        slate.close()
