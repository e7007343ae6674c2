"""SMACv2-style battles: teams and positions that are drawn, observations, rewards, ends."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_battles import EPISODES, STEPS, record_random_teams

import fp3o
from fp3o.envs.registry import get_task
from fp3o.envs.smac.maps import LAYOUTS, Map, UnitGroup
from fp3o.envs.smac.random_env import random_teams_env
from fp3o.envs.smac.random_teams import PUBLISHED_TEAMS, RandomTeams
from fp3o.envs.smac.simulator.battle import Battle, battle_on
from fp3o.envs.smac.simulator.random_start import draw_types, draw_units, reflected, surrounded
from fp3o.runs.run_config import RunConfig

DRAWS = 4000
RECORDED = ["terran_4_vs_3", "protoss_3_vs_3", "zerg_3_vs_4"]


@cache
def drawn(name: str, what: Any) -> Any:
    """Many draws for the teams of a task."""
    teams = RandomTeams.parse(name)
    keys = jax.random.split(jax.random.key(2), DRAWS)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda key: what(teams, key)))(keys))


@cache
def openings(name: str) -> Any:
    """The units of many new episodes, in NumPy."""
    keys, fight = jax.random.split(jax.random.key(4), DRAWS), battle_on(name)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda key: draw_units(fight, key)))(keys))


@pytest.mark.parametrize("name", PUBLISHED_TEAMS)
def test_tasks(name: str) -> None:
    """Published names, sizes and presets; all agents are of one type."""
    teams, task = RandomTeams.parse(name), get_task(f"smacv2/{name}")
    assert teams is not None and task.summary == teams.summary
    for layout in LAYOUTS:
        env = random_teams_env(name, layout)
        assert env.spec.name == f"smacv2/{name}:{layout}" and env.max_episode_steps == 200
        assert (env.spec.obs_size, env.spec.state_size) == teams.sizes(layout)
        assert env.observations.num_actions == teams.num_actions
        assert env.spec.agent_types == (0,) * teams.num_allies
    for preset in ("paper", "many"):
        config = RunConfig.from_preset(f"smacv2/{name}", preset)
        assert (config.steps, config.learner.gru_size, config.learner.sharing) == (
            10_000_000, 64, "full",
        )  # fmt: skip


def test_types_are_drawn_by_their_weights() -> None:
    """Both sides have the same team; frequencies are within five standard errors."""
    types = drawn("protoss_10_vs_10", draw_types)
    np.testing.assert_array_equal(types[:, :10], types[:, 10:])
    shares = np.bincount(types[:, :10].ravel(), minlength=3) / (10 * DRAWS)
    for share, weight in zip(shares, (0.45, 0.45, 0.1), strict=True):
        assert abs(share - weight) < 5 * np.sqrt(weight * (1 - weight) / (10 * DRAWS))


def test_no_team_consists_of_banelings() -> None:
    """Nor do the enemies that are drawn in addition: a single one is never a baneling."""
    alone = drawn("zerg_1_vs_1", draw_types)[:, 0]
    assert abs((alone == 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(DRAWS) and not (alone == 2).any()
    types = drawn("zerg_2_vs_4", draw_types)
    np.testing.assert_array_equal(types[:, :2], types[:, 2:4])
    for pair in (types[:, :2], types[:, 4:]):
        assert not (pair == 2).all(1).any() and (pair == 2).any()
    protoss = drawn("protoss_1_vs_1", draw_types)[:, 0]
    assert abs((protoss == 2).mean() - 0.1) < 5 * 0.3 / np.sqrt(DRAWS)


def test_reflected_positions() -> None:
    """Allies anywhere up to a cell from the middle, enemies mirrored, further ones on the right."""
    start = drawn("zerg_2_vs_3", reflected)
    np.testing.assert_allclose(start.x[:, 2:4], 32 - start.x[:, :2], rtol=1e-6)
    np.testing.assert_array_equal(start.y[:, 2:4], start.y[:, :2])
    for values, low, high in (
        (start.x[:, :2], 0, 15), (start.x[:, 4], 16, 32), (start.y[:, [0, 1, 4]], 0, 32)
    ):  # fmt: skip
        assert values.min() >= low and values.max() <= high
        middle, error = (low + high) / 2, (high - low) / np.sqrt(12 * DRAWS)
        assert abs(values.mean() - middle) < 5 * error and np.ptp(values) > 0.99 * (high - low)


def test_surrounded_positions() -> None:
    """Allies in the centre; one to four groups of enemies, each on another diagonal."""
    start = drawn("zerg_3_vs_40", surrounded)
    x, y = start.x - 16, start.y - 16
    assert not x[:, :3].any() and not y[:, :3].any()
    x, y = x[:, 3:], y[:, 3:]
    np.testing.assert_allclose(abs(x), abs(y), atol=1e-4)
    assert abs(x).min() >= 2 and abs(x).max() <= 16 and abs(abs(x).mean() - 9) < 0.2
    groups = [len({*zip(*row, strict=True)}) for row in zip(x, y, strict=True)]
    shares = np.bincount(groups, minlength=5)[1:] / DRAWS
    assert abs(shares - 0.25).max() < 0.04
    corners = [len({*zip(*np.sign(row), strict=True)}) for row in zip(x, y, strict=True)]
    assert groups == corners


def test_new_episodes() -> None:
    """Half of them surrounded; everybody inside, healthy, agents by type, x and y."""
    units = openings("terran_5_vs_6")
    ours = np.hypot(units.x[:, :5] - 16, units.y[:, :5] - 16).max(1)
    assert abs((ours < 4).mean() - 0.5) < 5 * 0.5 / np.sqrt(DRAWS)
    radius = np.array([0.375, 0.5, 0.75], np.float32)[units.kind]
    for place in (units.x, units.y):
        assert (place >= radius).all() and (place <= 32 - radius).all()
    np.testing.assert_array_equal(units.hp, np.array([45, 125, 150])[units.kind])
    assert (units.energy == 50).all()
    rank = np.array([1, 0, 2])[units.kind]  # marauder, marine, medivac
    agents = np.stack([rank, units.x, units.y], -1)[:, :5].tolist()
    assert all(team == sorted(team) for team in agents)


def test_units_of_a_group_hardly_overlap() -> None:
    """In the spiral around their point, also in a corner of the map."""
    units = openings("terran_5_vs_6")
    centre = np.hypot(units.x[:, :5] - 16, units.y[:, :5] - 16).max(1) < 4
    x, y, kind = (part[centre, :5] for part in (units.x, units.y, units.kind))
    radius = np.array([0.375, 0.5, 0.75])[kind]
    apart = np.hypot(x[:, :, None] - x[:, None], y[:, :, None] - y[:, None])
    touch = radius[:, :, None] + radius[:, None]
    pairs = ~np.eye(5, dtype=bool)
    shares = (apart / touch)[:, pairs]
    assert shares.min() > 0.7 and (shares > 1).mean() > 0.9, (shares.min(), (shares > 1).mean())


@pytest.mark.parametrize("race", ["terran", "protoss", "zerg"])
def test_drawn_units_have_the_numbers_of_fixed_ones(race: str) -> None:
    """Statistics, damage and who can attack whom: equal to those of a map with these teams."""
    teams = RandomTeams.parse(f"{race}_3_vs_3")
    assert teams is not None
    kinds = np.array([2, 0, 1, 1, 1, 2])
    names = [teams.race.unit_types[kind] for kind in kinds]
    ours, theirs = (
        tuple(UnitGroup(x, 1, (16, 16)) for x in side) for side in (names[:3], names[3:])
    )
    fixed = Battle("fixed", Map(ours, theirs, None, 10, "flat"))
    chosen = battle_on(f"{race}_3_vs_3").with_types(jnp.asarray(kinds))
    for table in ("stats", "damage", "delayed", "attackable", "opponents"):
        jax.tree.map(np.testing.assert_array_equal, getattr(chosen, table), getattr(fixed, table))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", RECORDED)
def test_layouts_equal_the_plain_model(name: str, layout: str) -> None:
    """Observations, states and action masks, in battles with dead, hurt and waiting units."""
    found = record_random_teams(name)
    seen, units = found.observations[layout], found.states.units
    alive = units.hp > 0
    assert (~alive).any() and (alive & (units.cooldown > 0)).any()
    agents = np.asarray(units.kind)[:, 0, : len(found.moment(0, 0).allies)]
    assert {*agents.ravel().tolist()} == {0, 1, 2}
    for episode in range(EPISODES):
        for time in range(0, STEPS + 1, 4):
            moment, at = found.moment(episode, time), (episode, time)
            for agent in range(len(moment.allies)):
                for part, model in (
                    (seen.obs, moment.obs(layout, agent)),
                    (seen.state, moment.state(layout, agent)),
                    (seen.action_mask, moment.action_mask(agent)),
                ):
                    np.testing.assert_allclose(part[at][agent], model, atol=1e-5)


@pytest.mark.parametrize("name", RECORDED)
def test_rewards_and_ends_equal_the_plain_model(name: str) -> None:
    """Damage and kills, never less than nothing; a side of medivacs alone is beaten."""
    found, healed = record_random_teams(name), 0
    for episode in range(EPISODES):
        for time in range(STEPS):
            reward, over = 0.0, False
            was, now = found.moment(episode, time), found.moment(episode, time + 1)
            for before, after in zip(was.enemies, now.enemies, strict=True):
                if before.lives:
                    left = after.hp + after.shield if after.lives else -10.0
                    reward += before.hp + before.shield - left
            ours, theirs = (
                any(body.lives and body.unit != "medivac" for body in side)
                for side in (now.allies, now.enemies)
            )
            healed += reward < 0
            reward, over = max(reward, 0.0) + 200 * (ours and not theirs), not (ours and theirs)
            assert found.over[episode, time] == over
            scaled = found.reward[episode, time, 0] * found.env.reward_scale
            np.testing.assert_allclose(scaled, reward, atol=2e-2)
    assert name == "protoss_3_vs_3" or healed


@pytest.mark.parametrize("name", RECORDED)
def test_scripted_teams_choose_available_actions(name: str) -> None:
    """In all recorded states; healers attend to allies."""
    found = record_random_teams(name)
    available = np.asarray(found.observations["paper"].action_mask)
    assert np.take_along_axis(available, found.scripted, -1).all()


@pytest.mark.parametrize("name", ["terran_3_vs_4", "protoss_3_vs_3", "zerg_4_vs_3"])
def test_the_environment_check_finds_no_problem(name: str) -> None:
    """As `fp3o check` does it."""
    report = fp3o.check_env(f"smacv2/{name}", num_envs=3, steps=40)
    assert not report.problems, str(report)
