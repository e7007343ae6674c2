"""StarCraft II tasks over a stand-in for SMAC."""

from pathlib import Path

import jax
import numpy as np
import pytest
from fake_smac import StarCraft2Env

from fp3o.cli import diagnosis as doctor
from fp3o.envs.api import HostEnv
from fp3o.envs.smac import host_layout, observations
from fp3o.envs.smac.maps import LAYOUTS
from fp3o.envs.starcraft2 import install
from fp3o.envs.starcraft2.env import StarCraft2
from fp3o.envs.starcraft2.worker import SmacWorker
from fp3o.envs.vectorise import SeedBatchedEnv
from fp3o.envs.workers.protocol import FailureCounts, buffer_spec, reply_problem
from fp3o.types import TimeStep


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
    """The observations that a worker computes from SMAC's units equal the plain model's."""
    made: list[StarCraft2Env] = []
    worker = SmacWorker(lambda: made.append(StarCraft2Env(name, 0, True)) or made[-1], layout)
    random, form_of = np.random.default_rng(0), buffer_spec(StarCraft2(name, layout).spec).reply
    reply = worker.reset(0, 0)
    deaths = 0
    for _ in range(25):
        moment, agents = made[0].moment(), range(len(reply.alive))
        assert reply_problem(reply, form_of) is None
        for seen, look in ((reply.obs, moment.obs), (reply.state, moment.state)):
            expected = np.array([look(layout, agent) for agent in agents])
            np.testing.assert_allclose(seen, expected, atol=1e-6)
        np.testing.assert_array_equal(
            reply.action_mask, [moment.action_mask(agent) for agent in agents]
        )
        np.testing.assert_array_equal(reply.alive, [ally.lives for ally in moment.allies])
        deaths = max(deaths, int(reply.episode_metrics[1:3].sum()))
        if reply.terminated:
            break
        chosen = random.random(reply.action_mask.shape) * reply.action_mask
        reply = worker.step(chosen.argmax(1))
    assert deaths or name == "corridor"
    assert slice(observations.FIRST_MOVE, observations.FIRST_ATTACK) == host_layout.MOVE_ACTIONS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_battles_end_to_end(layout: str, installed: Path) -> None:
    """Two seeds of two games each: won, lost and restarted."""
    task = StarCraft2("3m", layout)
    assert isinstance(task, HostEnv) and task.spec.name == f"starcraft2/3m:{layout}"
    assert task.max_episode_steps == 60
    twin = SmacWorker(lambda: StarCraft2Env("3m", 0, True), layout)
    games = task.vectorise(4)
    env = SeedBatchedEnv(games, 2)
    state, now = env.reset(jax.random.split(jax.random.key(0), 2))
    assert now.obs.shape == (2, 2, 3, task.spec.obs_size) and now.episode_start.all()
    expected, earned, won, damage = twin.reset(0, 0), 0.0, [], []
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
            damage.append(float(expected.episode_metrics[3]))
            expected, earned = twin.reset(0, 0), 0.0
        if len(won) == 2:
            break
    assert won[0] == (True, 20.0) and not won[1][0] and damage == [3 * 45.0, 0.0]
    np.testing.assert_array_equal(now.episode_metrics[..., 1], 3)  # and the numbers of dead units
    games.close()


def test_points_that_enemies_lose_and_get_back() -> None:
    """Between the ends of steps; SMAC keeps the last shield of a dead unit."""
    made: list[StarCraft2Env] = []
    worker = SmacWorker(lambda: made.append(StarCraft2Env("3s5z", 0, True)) or made[-1], "smac")
    worker.reset(0, 0)
    found = []
    for health, shield in ((100.0, 20.0), (90.0, 0.0), (90.0, 14.0), (0.0, 14.0), (0.0, 14.0)):
        zealot, stalker = made[0].enemies[3], made[0].enemies[0]
        zealot.health, zealot.shield = health, shield
        stalker.shield -= 1.0
        found.append(worker.step([1] * 8).episode_metrics[3:].tolist())
    # The zealot loses 30, loses 30, gets back 14, and dies with 104; the stalker loses 1 a step.
    assert found == [[31, 0], [62, 0], [63, 14], [168, 14], [169, 14]]
    worker.reset(0, 0)
    assert not worker.step([1] * 8).episode_metrics.any()


def test_limits_and_a_game_that_dies(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit truncates; the end that SMAC reports after a crash is a failure."""
    monkeypatch.setenv("FAKE_SMAC_LIMIT", "4")
    env = StarCraft2("3m", "smac").vectorise(1)
    state, now = env.reset(jax.random.key(0))
    lengths, stop = [], np.ones((1, 3, 1), int)
    for step in range(8):
        state, now = env.step(state, stop)
        assert not now.terminated.any()
        lengths += [step + 1] * int(now.truncated[0])
    assert lengths == [4, 8] and env.failure_counts() == FailureCounts().metrics()
    state, now = env.step(state, stop)
    state, now = env.reset(jax.random.key(1))  # in an episode
    env.close()

    monkeypatch.setenv("FAKE_SMAC_BREAKS", "3")
    state, now = env.reset(jax.random.key(0))
    state, _ = env.step(state, stop)
    state, before = env.step(state, stop)
    with pytest.warns(RuntimeWarning, match="has exited"):
        state, now = env.step(state, stop)
    assert now.truncated.all() and not now.terminated.any() and not now.reward.any()
    np.testing.assert_array_equal(now.final_obs, before.obs)
    counts = FailureCounts(crashed=1, restarts=1, lost_steps=2)
    assert env.failure_counts() == counts.metrics()
    env.close()


def test_resets_before_the_first_end() -> None:
    """SMAC would start a second game beside the first: the first one is closed."""
    made: list[StarCraft2Env] = []
    worker = SmacWorker(lambda: made.append(StarCraft2Env("3m", 0, True)) or made[-1], "smac")
    first = worker.reset(0, 0)
    worker.step([1, 1, 1])
    again = worker.reset(0, 0)
    assert [env.launched for env in made] == [0, 1]
    for old, new in zip(first, again, strict=True):
        np.testing.assert_array_equal(old, new)


def test_seeds_differ(installed: Path) -> None:
    """Every game of every seed has its own, and the same again for the same key."""
    keys = jax.random.split(jax.random.key(3), 2)
    words = [tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in keys]
    env = StarCraft2("3m").vectorise(6)
    seeds = [env.env_seed(own, i) for own in words for i in range(3)]
    assert len({*seeds}) == 6 and all(0 <= seed < 2**31 for seed in seeds)
    assert env.env_seed(words[1], 2) == seeds[-1]


def test_missing_requirements(
    installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Errors and the doctor say what to install; names are checked first."""
    found, other = doctor._starcraft()
    assert found.ok and not found.required and "1 maps" in found.detail
    assert other.name == "SMACv2" and not other.ok and not other.required
    with pytest.raises(install.MissingStarCraft2Error, match="SMAC_Maps: copy"):
        StarCraft2("8m").vectorise(1)
    monkeypatch.setenv("SC2PATH", str(tmp_path / "nowhere"))
    with pytest.raises(ImportError, match=r"StarCraft II: unpack it to .*nowhere"):
        StarCraft2("3m").vectorise(1)
    monkeypatch.delenv("SC2PATH")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert install.requirements()[1].found == str(tmp_path / "StarCraftII")
    (tmp_path / "site" / "smac" / "env" / "starcraft2").rmdir()  # the optimiser of this name
    with pytest.raises(ImportError, match=r"SMAC: pip install git\+https"):
        StarCraft2("3m").vectorise(1)
    found, _ = doctor._starcraft()
    assert not found.ok and not found.required and "git+https" in found.fix
    with pytest.raises(ValueError, match="did you mean '5m_vs_6m'"):
        StarCraft2("5m_v_6m").vectorise(1)
    with pytest.raises(ValueError, match="layout"):
        StarCraft2("3m", "papper").vectorise(1)
