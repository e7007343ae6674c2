"""Observations, action masks and rewards, against a plain model in loops and by hand."""

import jax
import numpy as np
import pytest
import smac_plain as plain
from smac_openings import EPSILON, compared_env, endings, initial
from smac_record import STEPS, opening_at, record

from fp3o.envs.smac.env import smac_env
from fp3o.envs.smac.maps import LAYOUTS, MAPS, Map, UnitGroup
from fp3o.envs.smac.observations import ObservationBuilder
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.units import UNIT_TYPES

TABLE = {
    "bane_vs_bane": (24, 30, 200, (336, 984), (1084, 1227), 1260),
    "2c_vs_64zg": (2, 70, 400, (332, 342), (478, 675), 3080),
    "3s5z": (8, 14, 150, (128, 216), (252, 299), 1510),
    "5m_vs_6m": (5, 12, 70, (55, 98), (124, 156), 530),
    "corridor": (6, 30, 400, (156, 282), (346, 435), 1280),
    "6h_vs_8z": (6, 14, 150, (78, 140), (172, 213), 1480),
    "10m_vs_11m": (10, 17, 150, (105, 243), (289, 351), 805),
    "3s5z_vs_3s6z": (8, 15, 170, (136, 230), (268, 318), 1670),
}
"""Agents, actions, time limit, sizes of observation and state in SMAC and in the paper, largest
return."""
COMPARED = ("5m_vs_6m", "3s5z", "bane_vs_bane", "corridor", "2c_vs_64zg")
COMPARED_STEPS = (0, 1, STEPS)
"""Steps at which observations are compared."""
every_map = pytest.mark.parametrize("name", COMPARED, scope="module")  # one map after another


@pytest.mark.parametrize("name", TABLE)
def test_sizes_are_the_published_ones(name: str) -> None:
    """Agents, actions, lengths of observations and states, the limit and the largest reward."""
    agents, actions, limit, smac, paper, most = TABLE[name]
    for layout, sizes in (("smac", smac), ("paper", paper)):
        spec = smac_env(name, layout).spec
        assert spec.actions.sizes == ((actions,),) * agents  # pyright: ignore
        assert (spec.obs_size, spec.state_size) == sizes
        assert spec.truncates
    assert MAPS[name].max_episode_steps == limit
    assert plain.largest_return(MAPS[name]) == most
    np.testing.assert_allclose(smac_env(name, "smac").reward_scale * 20, most, rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
@every_map
def test_observations_equal_the_plain_model(name: str, layout: str) -> None:
    """Every feature and every available action of every agent, in all kinds of states."""
    found = record(name)
    observations = found.observations[layout]
    for episode in range(len(found.reward)):
        for time in COMPARED_STEPS:
            moment = found.moment(MAPS[name], episode, time)
            obs, state, action_mask, alive = (x[episode, time] for x in observations)
            for agent, ally in enumerate(moment.allies):
                where = f"episode {episode}, step {time}, agent {agent}"
                rows = (
                    (action_mask, moment.action_mask(agent)),
                    (obs, moment.obs(layout, agent)),
                    (state, moment.state(layout, agent)),
                )
                for seen, row in rows:
                    np.testing.assert_allclose(seen[agent], row, rtol=0, atol=1e-5, err_msg=where)
                assert alive[agent] == ally.lives


@every_map
def test_the_compared_states_are_diverse(name: str) -> None:
    """Dead and living units, visible or not, in range or not, walls, cooldowns."""
    found, n = record(name), TABLE[name][0]
    units = jax.tree.map(lambda x: x[:, COMPARED_STEPS], found.states.units)
    alive, action_mask = units.hp > 0, found.observations["smac"].action_mask[:, COMPARED_STEPS]
    ours, theirs = alive[..., :n], alive[..., n:]
    mixed = ours.any(-1) & ~ours.all(-1) & theirs.any(-1) & ~theirs.all(-1)
    assert mixed.sum() >= 3
    far = np.hypot(*(p[..., :n, None] - p[..., None, :] for p in (units.x, units.y)))
    pairs = ours[..., None] & alive[..., None, :] & (far > 0)
    for edge in (plain.SHOOT_RANGE, plain.SIGHT_RANGE):
        assert all((pairs & side).any() for side in (far < edge, far == edge, far > edge))
    choices = action_mask[ours]
    for part in (
        choices[:, plain.FIRST_MOVE : plain.FIRST_ATTACK],
        choices[:, plain.FIRST_ATTACK :],
    ):
        assert part.any() and not part.all()
    assert (units.cooldown[..., :n][ours] % 1 > 0).any()


@every_map
def test_rewards_and_ends_equal_the_plain_model(name: str) -> None:
    """Step by step, until the episode ends; all agents get the same reward."""
    found, roster, rewards = record(name), MAPS[name], []
    for episode in range(len(found.reward)):
        before = found.moment(roster, episode, 0)
        for step in range(STEPS):
            after = found.moment(roster, episode, step + 1)
            steps = int(found.states.time[episode, step + 1])
            assert steps == int(found.states.time[episode, 0]) + step + 1
            reward, over, late = plain.reward_and_ends(before, after, steps)
            np.testing.assert_allclose(found.reward[episode, step], reward, rtol=1e-5, atol=1e-5)
            assert (found.over[episode, step], found.late[episode, step]) == (over, late)
            rewards.append(reward)
            if over or late:
                break
            before = after
    assert max(rewards) > 0


@every_map
def test_damage_and_healing_add_up_to_the_change_of_health(name: str) -> None:
    """For every unit and step; neither is ever negative."""
    units = record(name).states.units
    points = units.hp.astype(float) + units.shield
    dealt, healed = np.diff(units.damage_taken, axis=1), np.diff(units.healed, axis=1)
    assert dealt.min() == healed.min() == 0 and dealt.max() > 0
    np.testing.assert_allclose(healed - dealt, np.diff(points, axis=1), atol=2e-3)


@pytest.mark.parametrize("name", ["5m_vs_6m", "bane_vs_bane", "3s5z"])
def test_endings_by_hand(name: str) -> None:
    """Victory, defeat, draw, time limit; regeneration of enemies counts as damage."""
    found = record(name)
    for episode, (what, case) in enumerate(endings(compared_env(name, "paper")).items()):
        _, reward, over, late = case
        np.testing.assert_allclose(found.reward[episode, 0], reward, rtol=1e-4, err_msg=what)
        assert (found.over[episode, 0], found.late[episode, 0]) == (over, late), what


def test_healing_is_paid_only_by_the_option() -> None:
    """Eight shields that recover for half a second, at two points per second: eight points."""
    rewards = []
    for variant in ("paper", "paper:paid_healing=false"):
        env = smac_env("3s5z", variant)
        state = env.reset(jax.random.key(0))
        state = state._replace(units=state.units._replace(shield=0.5 * state.units.shield))
        _, reward, *_ = jax.jit(env.step)(state, np.ones((8, 1), np.int32), jax.random.key(0))
        rewards.append(float(reward[0] * env.reward_scale))
    np.testing.assert_allclose(rewards, [8.0, 0.0], atol=1e-3)


def test_stalkers_and_zealots_are_swapped() -> None:
    """A stalker is the first type among allies and the second among enemies."""
    state = record("3s5z").observations["smac"].state[opening_at("3s5z", 0), 0, 0]
    allies, enemies = state[: 8 * 7].reshape(8, 7), state[8 * 7 :][: 8 * 6].reshape(8, 6)
    first, second = [1.0, 0.0], [0.0, 1.0]
    assert allies[:, -2:].tolist() == [first] * 3 + [second] * 5
    assert enemies[:, -2:].tolist() == [second] * 3 + [first] * 5


def test_banelings_are_the_first_type_on_both_sides() -> None:
    """In every enemy's row of the state, and in every agent's own features."""
    observation = jax.tree.map(lambda x: x[opening_at("bane_vs_bane", 0), 0],
                         record("bane_vs_bane").observations["smac"])  # fmt: skip
    first, second = [1.0, 0.0], [0.0, 1.0]
    assert observation.obs[:, -2:].tolist() == [first] * 4 + [second] * 20
    enemies = observation.state[0, 24 * 6 :][: 24 * 5].reshape(24, 5)
    assert enemies[:, -2:].tolist() == [second] * 20 + [first] * 4


@every_map
def test_only_the_dead_do_nothing(name: str) -> None:
    """Dead agents have no other action; living ones can always stop and never do nothing."""
    found, n = record(name), TABLE[name][0]
    action_mask, alive = found.observations["paper"].action_mask, found.states.units.hp[..., :n] > 0
    assert (action_mask[~alive] == np.eye(1, action_mask.shape[-1], dtype=bool)).all()
    assert action_mask[alive][:, 1].all() and not action_mask[alive][:, 0].any()


@every_map
def test_dead_agents_observe_nothing(name: str) -> None:
    """Zeros; in the paper's layout the one-hot index remains."""
    found, n = record(name), TABLE[name][0]
    dead = found.states.units.hp[..., :n] <= 0
    assert dead.any() and not found.observations["smac"].obs[dead].any()
    number = np.broadcast_to(np.eye(n), (*dead.shape, n))[dead]
    for seen in (found.observations["paper"].obs[dead], found.observations["paper"].state[dead]):
        assert not seen[:, :-n].any()
        np.testing.assert_array_equal(seen[:, -n:], number)


def test_all_unit_types_may_attack_up_to_a_distance_of_six() -> None:
    """Exactly, from centre to centre, whatever the weapon."""
    away = np.array([(6, 0), (0, -6), (6 + EPSILON, 0), (0, -6 - EPSILON), (6 - EPSILON, 0)])
    team = tuple(UnitGroup(unit, 1, (16, 16)) for unit in UNIT_TYPES)
    foes = (UnitGroup("marine", len(away), (16, 16)),)
    fight = Battle("all types", Map(team, foes, None, 10, "flat"))
    place = np.concatenate([np.full((len(team), 2), 16.0), 16.0 + away]).astype(np.float32)
    units = fight.initial_units()._replace(x=place[:, 0], y=place[:, 1])
    action_mask = jax.jit(ObservationBuilder(fight, "smac").action_mask)(units)
    shots = np.asarray(action_mask)[:, plain.FIRST_ATTACK :]
    assert (shots == [True, True, False, False, True]).all()


def test_no_moves_into_walls() -> None:
    """Coordinates are truncated to cells, so that cells -1 and 0 are the same."""
    env = smac_env("5m_vs_6m", "smac")
    free = env.battle.terrain.walkable
    top, bottom = np.flatnonzero(free[16])[[-1, 0]]
    assert free[[0, 31], 16].all() and bottom > 0 and top < 31
    places = {
        (16.5, top + 0.25): [False, True, True, True],
        (16.5, top - EPSILON): [True, True, True, True],
        (16.5, bottom + 0.5): [True, False, True, True],
        (31.0, 16.5): [True, True, False, True],
        (0.5, 16.5): [True, True, True, True],
    }
    units = initial(env).units
    x, y = np.array(units.x), np.array(units.y)
    x[:5], y[:5] = np.array([*places]).T
    action_mask = jax.jit(env.observations.action_mask)(units._replace(x=x, y=y))
    assert np.asarray(action_mask)[:, 2:6].tolist() == [*places.values()]


@pytest.mark.parametrize("name", ["5m_vs_6m", "3s5z"])
def test_last_actions(name: str) -> None:
    """Zeros before the first step, then the last action of every agent."""
    found, (n, actions, *_) = record(name), TABLE[name]
    episode = opening_at(name, 0)
    common = found.observations["smac"].state[episode, :, :, -n * actions :]
    observation = found.observations["paper"]
    own = [x[episode, ..., -n - actions : -n] for x in (observation.obs, observation.state)]
    assert not common[0].any() and not any(part[0].any() for part in own)
    did = np.eye(actions)[found.states.last_actions[episode, 1]]
    np.testing.assert_array_equal(common[1], [did.ravel()] * n)
    alive = found.states.units.hp[episode, 1, :n, None] > 0
    for part in own:
        np.testing.assert_array_equal(part[1], did * alive)
