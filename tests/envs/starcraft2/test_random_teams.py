"""SMACv2's random teams in StarCraft II, over a stand-in for the package."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from fake_smacv2 import StarCraftCapabilityEnvWrapper

from fp3o.cli import diagnosis as doctor
from fp3o.envs.registry import get_task
from fp3o.envs.smac.maps import LAYOUTS
from fp3o.envs.smac.random_teams import PUBLISHED_TEAMS, RACES, RandomTeams
from fp3o.envs.starcraft2 import install
from fp3o.envs.starcraft2.env import StarCraft2
from fp3o.envs.starcraft2.smacv2 import MakeSmacV2, capability_config
from fp3o.envs.workers.protocol import buffer_spec, reply_problem
from fp3o.errors import SettingError
from fp3o.spec import Discrete


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package named smacv2 whose environment is the stand-in, and a folder of the game."""
    package = tmp_path / "site" / "smacv2" / "env" / "starcraft2"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    (package / "distributions.py").write_text("from numpy.random import default_rng\n")
    (package / "wrapper.py").write_text("from fake_smacv2 import StarCraftCapabilityEnvWrapper\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    maps = tmp_path / "StarCraftII" / "Maps" / "SMAC_Maps"
    maps.mkdir(parents=True)
    (tmp_path / "StarCraftII" / "Versions").mkdir()
    (maps / "32x32_flat.SC2Map").touch()
    monkeypatch.setenv("SC2PATH", str(tmp_path / "StarCraftII"))
    yield maps
    for name in [name for name in sys.modules if name.partition(".")[0] == "smacv2"]:
        del sys.modules[name]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name", ["terran_5_vs_5", "terran_4_vs_3", "protoss_4_vs_5", "zerg_3_vs_3"]
)
def test_layouts(name: str, layout: str, installed: Path) -> None:
    """What a worker computes from SMACv2's units equals the plain model, by both layouts."""
    teams = RandomTeams.parse(name)
    assert teams is not None
    worker = MakeSmacV2(teams, layout)(5)
    random, form = np.random.default_rng(0), buffer_spec(StarCraft2(name, layout).spec).reply
    reply, deaths, healed = worker.reset(0, 0), 0, False
    for _ in range(30):
        assert reply_problem(reply, form) is None
        env: StarCraftCapabilityEnvWrapper = worker._env
        moment, agents = env.moment(), range(len(reply.alive))
        for seen, look in ((reply.obs, moment.obs), (reply.state, moment.state)):
            expected = np.array([look(layout, agent) for agent in agents])
            np.testing.assert_allclose(seen, expected, atol=1e-6)
        np.testing.assert_array_equal(reply.action_mask, [moment.action_mask(i) for i in agents])
        np.testing.assert_array_equal(reply.alive, [ally.lives for ally in moment.allies])
        deaths = max(deaths, int(reply.episode_metrics[1:].sum()))
        if reply.terminated:
            break
        weights = np.r_[np.ones(6), np.full(reply.action_mask.shape[1] - 6, 5.0)]
        chosen = (random.random(reply.action_mask.shape) * reply.action_mask * weights).argmax(1)
        kinds = [ally.unit for ally in moment.allies]
        healed |= any(
            kind == "medivac" and action >= 6 for kind, action in zip(kinds, chosen, strict=True)
        )
        reply = worker.step(chosen)
    assert deaths and healed == name.startswith("terran")


PUBLISHED_SIZES = {
    "terran_5_vs_5": (11, 82, 120),
    "protoss_5_vs_5": (11, 92, 130),
    "zerg_10_vs_11": (17, 170, 306),
    "protoss_20_vs_23": (29, 389, 901),
    "terran_5_vs_3": (11, 66, 108),
}
"""Numbers of actions, sizes of observations and of the state that SMACv2 itself reports."""


@pytest.mark.parametrize(("name", "sizes"), PUBLISHED_SIZES.items())
def test_sizes_are_those_of_the_package(name: str, sizes: tuple[int, int, int]) -> None:
    task = get_task(f"starcraft2/{name}")
    spec = task.spec("smac")
    actions = Discrete(((sizes[0],),) * int(name.split("_")[1]))
    assert (spec.actions, spec.obs_size, spec.state_size) == (actions, *sizes[1:])
    assert task.spec("paper").actions == actions
    assert task.max_episode_steps() == 200 and spec.truncates
    assert {*spec.agent_types} == {0}


def test_the_published_settings() -> None:
    """Types, weights and positions as in SMACv2's own configurations."""
    teams = RandomTeams("zerg", 10, 11)
    assert RandomTeams.parse("zerg_10_vs_11") == teams and teams.map_name == "10gen_zerg"
    config = capability_config(teams)
    assert (config["n_units"], config["n_enemies"]) == (10, 11)
    drawn = config["team_gen"]
    assert drawn["unit_types"] == ["zergling", "hydralisk", "baneling"]
    assert drawn["weights"] == [0.45, 0.45, 0.1]
    assert drawn["exception_unit_types"] == ["baneling"]
    assert config["start_positions"]["p"] == 0.5
    assert [name for name, race in RACES.items() if race.shields] == ["protoss"]
    assert len(PUBLISHED_TEAMS) == 15


def test_games_follow_from_their_seed(installed: Path) -> None:
    """Teams and positions are drawn by the seed of a worker, though SMACv2 seeds nothing."""
    teams = RandomTeams.parse("protoss_5_vs_5")
    assert teams is not None
    first = [MakeSmacV2(teams, "smac")(seed).reset(seed, 0).state for seed in (1, 1, 2)]
    np.testing.assert_array_equal(first[0], first[1])
    assert (first[0] != first[2]).any()


def test_games_run_in_workers(installed: Path) -> None:
    """Several episodes by random actions, with other teams in each."""
    env = StarCraft2("terran_3_vs_3", "paper").vectorise(2)
    state, now = env.reset(jax.random.key(0))
    random, ends, starts = np.random.default_rng(0), 0, [now.obs[0]]
    for _ in range(60):
        chosen = (random.random(now.action_mask.shape) * now.action_mask).argmax(-1)
        state, now = env.step(state, chosen[..., None])
        ends += int(now.terminated.sum())
        starts += [now.obs[0]] if now.episode_start[0] else []
    assert ends > 1 and (starts[0] != starts[1]).any()
    assert not any(env.failure_counts().values())
    env.close()


def test_tasks_and_errors(installed: Path) -> None:
    """Names are checked first, then what is installed; messages say what to do."""
    task = get_task("starcraft2/terran_5_vs_5")
    assert task.variants == LAYOUTS and "5 against 5: marines" in task.summary
    assert task.preset("paper-partial")["head_lr_factor"] == 5.0
    assert {*task.presets} == {"quick", "paper", "paper-partial", "paper-none"}
    for name, match in {
        "teran_5_vs_5": "did you mean 'starcraft2/terran_5_vs_5'",
        "zerg_10_v_10": "did you mean 'starcraft2/zerg_10_vs_10'",
        "zerg_0_vs_10": "unknown task", "zerg_5_vs_100": "unknown task",
    }.items():  # fmt: skip
        with pytest.raises(SettingError, match=match):
            get_task(f"starcraft2/{name}")
    with pytest.raises(SettingError, match=r"unknown map 'terran_5'.* 'terran_5_vs_5'"):
        _ = StarCraft2("terran_5").spec

    _, found = doctor._starcraft()
    assert found.ok and found.name == "SMACv2"
    (installed / "32x32_flat.SC2Map").unlink()
    with pytest.raises(install.MissingStarCraft2Error, match=r"SMAC_Maps: copy .*oxwhirl/smacv2"):
        StarCraft2("zerg_5_vs_5").vectorise(1)
    shutil.rmtree(installed.parents[2] / "site" / "smacv2" / "env")
    with pytest.raises(ImportError, match=r"SMACv2: pip install git\+https.*/smacv2.git"):
        StarCraft2("zerg_5_vs_5").vectorise(1)
    _, found = doctor._starcraft()
    assert not found.ok and "smacv2.git" in found.fix
