"""Observations, action masks and rewards, against a plain model in loops and by hand."""

from functools import cache, cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import smac_plain as plain

from fp3o.envs.api import Observation
from fp3o.envs.smac.env import SmacEnv, SmacState, smac_env
from fp3o.envs.smac.maps import LAYOUTS, MAPS, Map, UnitGroup
from fp3o.envs.smac.observations import ObservationBuilder
from fp3o.envs.smac.simulator.battle import Battle
from fp3o.envs.smac.terrain import Terrain, terrain
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
STEPS = 12
COMPARED_STEPS = (0, 1, STEPS)
"""Steps at which observations are compared."""
EPSILON = 1 / 4096
"""The smallest distance that the game distinguishes."""
FREE = -1
"""Instead of an action: any available one."""
STOP = 1
every_map = pytest.mark.parametrize("name", COMPARED, scope="module")  # one map after another


class OpenTerrain(Terrain):
    """Terrain on which units walk over walls, so that no routes have to be computed."""

    routes = None  # pyright: ignore
    rectangle = (0.0, 32.0, 0.0, 32.0)  # pyright: ignore


class OpenBattle(Battle):
    """A battle on it. Action masks still follow from the cells of the map."""

    @cached_property
    def terrain(self) -> Terrain:
        """The terrain."""
        return OpenTerrain(terrain(self.map.terrain).level)


class OpenEnv(SmacEnv):
    """A map with walls, without the computation of routes."""

    @cached_property
    def battle(self) -> Battle:
        """The static description of the battle."""
        return open_battle(self.name)


@cache
def open_battle(name: str) -> Battle:
    """An open battle, the same for both layouts."""
    return OpenBattle(name, MAPS[name])


@cache
def compared_env(name: str, layout: str) -> SmacEnv:
    """The environment whose observations are compared."""
    walls = terrain(MAPS[name].terrain).rectangle is None
    return OpenEnv(name, layout) if walls else smac_env(name, layout)


class Opening(NamedTuple):
    """An initial state and the first actions."""

    state: SmacState
    first: Any = FREE


class Record(NamedTuple):
    """Episodes `(b, t, ...)` in NumPy; there is one more state than steps."""

    states: SmacState
    observations: dict[str, Observation]
    reward: np.ndarray
    over: np.ndarray
    late: np.ndarray

    def moment(self, roster: Map, episode: int, time: int) -> plain.PlainBattle:
        """A state for the plain model."""
        units, last, _ = jax.tree.map(lambda x: x[episode, time], self.states)
        return plain.PlainBattle(roster, units, last)


@cache
def initial(env: SmacEnv) -> SmacState:
    """The initial state, in NumPy."""
    return jax.tree.map(np.array, env.reset(jax.random.key(0)))


def put(state: SmacState, time: int = 0, **values: Any) -> SmacState:
    """Change the state of the units; dead units have no shield."""
    new = {name: np.asarray(x, getattr(state.units, name).dtype) for name, x in values.items()}
    units = state.units._replace(**new)
    units = units._replace(shield=np.where(units.hp > 0, units.shield, np.float32(0)))
    return state._replace(units=units, time=np.array(time, np.int32))


def scattered(env: SmacEnv, rng: np.random.Generator, width: float) -> SmacState:
    """Units around one next to a wall, damaged and on cooldown; a quarter of them is dead."""
    fight = env.battle
    count, free = len(fight.units), fight.terrain.walkable
    beside = [np.roll(np.pad(free, 1), way, (0, 1))[1:-1, 1:-1] for way in plain.MOVES]
    inner = np.logical_and.reduce(beside)
    cells, shore = np.argwhere(free), np.argwhere(free & ~inner)
    around = shore[rng.integers(len(shore))]
    cells = cells[(np.abs(cells - around) < width).all(1)]
    place = cells[rng.integers(len(cells), size=count)] + rng.integers(8, size=(count, 2)) / 8
    place[0] = around + 0.5
    share = rng.uniform(0.01, 1.0, count) * (rng.random(count) > 0.25)
    share[0] = 0.35
    last = rng.integers(-1, env.observations.num_actions, fight.num_allies)
    new = put(
        initial(env), x=place[:, 0], y=place[:, 1], hp=fight.stats.hp * share,
        shield=fight.stats.shield * rng.uniform(0.0, 1.0, count),
        cooldown=rng.uniform(0.0, 41.7, count),
    )  # fmt: skip
    return new._replace(last_actions=last.astype(np.int32))


def on_the_edge(env: SmacEnv) -> SmacState:
    """Enemies at distances around 6 and 9 from agent 0, agent 1 at 9, all with full health."""
    fresh, n = initial(env), env.battle.num_allies
    x, y = np.array(fresh.units.x), np.array(fresh.units.y)
    x[0], y[0], x[1], y[1] = 13, 16, 22, 16
    away = [(6, 0), (0, 6), (6 + EPSILON, 0), (-9, 0), (EPSILON - 9, 0), (0, 6 - EPSILON)]
    for number, (right, up) in enumerate(away):
        x[n + number], y[n + number] = 13 + right, 16 + up
    return put(fresh, x=x, y=y)


def duel(env: SmacEnv, ours: float, theirs: float, apart: float, time: int = 0) -> SmacState:
    """All units are dead except for the first of each side, with the given health."""
    fresh, n = initial(env), env.battle.num_allies
    hp, x, y = (np.zeros_like(fresh.units.x) for _ in range(3))
    hp[[0, n]], x[:], y[[0, n]] = (ours, theirs), 16, (12, 12 + apart)
    return put(fresh, time, x=x, y=y, hp=hp)


def endings(env: SmacEnv) -> dict[str, tuple[Opening, float, bool, bool]]:
    """By hand: an opening, the reward of its first step, terminated, truncated."""
    limit, n, count = env.battle.map.max_episode_steps, env.battle.num_allies, len(env.battle.units)
    shoot = np.full(n, FREE)
    shoot[0] = 6
    if env.name == "5m_vs_6m":
        win, unit, last = 1.0 + 10.0 + 200.0, 530 / 20, limit - 1
        near, lost = duel(env, 45.0, 1.0, 4.0), duel(env, 1.0, 45.0, 4.0)
        return {
            "victory": (Opening(near, shoot), win / unit, True, False),
            "victory in the last step": (Opening(put(near, last), shoot), win / unit, True, False),
            "defeat": (Opening(lost, STOP), 0.0, True, False),
            "out of time": (Opening(put(initial(env), last), STOP), 0.0, False, True),
            "a step before": (Opening(put(initial(env), last - 1), STOP), 0.0, False, False),
            "a wound": (Opening(duel(env, 45.0, 45.0, 4.0), shoot), 6.0 / unit, False, False),
        }
    if env.name == "bane_vs_bane":
        hp = np.where(np.arange(count) < n, env.battle.stats.hp, 20.0)
        both = duel(env, 30.0, 20.0, 0.9, limit - 1)
        healed = (count - n) * 0.2734 / 2
        return {
            "draw": (Opening(both, shoot), (20.0 + 10.0) / 63, True, False),
            "healing": (Opening(put(initial(env), hp=hp), STOP), healed / 63, False, False),
        }
    if env.name == "3s5z":
        shield, rest = np.full(count, 30.0), np.full(count, 999.0)
        back = Opening(put(initial(env), shield=shield, since_hit=rest), STOP)
        return {"shields": (back, (count - n) * 2.0 / 2 / 75.5, False, False)}
    return {}


@cache
def record(name: str) -> Record:
    """Random available actions, mostly attacks, from initial and constructed states."""
    env, rng = compared_env(name, "paper"), np.random.default_rng(7)
    openings = [opening for opening, *_ in endings(env).values()]
    openings += [Opening(initial(env)), Opening(on_the_edge(env))]
    openings += [Opening(scattered(env, rng, width)) for width in (4.0, 8.0, 32.0)]
    envs = [compared_env(name, layout) for layout in LAYOUTS]
    n = env.battle.num_allies

    def step(state: SmacState, given: tuple[Any, Any]) -> tuple[SmacState, Any]:
        key, forced = given
        logits = jnp.where(jnp.arange(env.observations.num_actions) < plain.FIRST_ATTACK, 0.0, 2.0)
        action_mask = env.observations.action_mask(state.units)
        action = jax.random.categorical(key, jnp.where(action_mask, logits, -jnp.inf))
        action = jnp.where((forced == FREE) | action_mask[:, 0], action, forced)
        new, *ends = env.step(state, action[:, None], key)
        return new, (new, *ends)

    def simulate(state: SmacState, forced: jax.Array, keys: jax.Array) -> Any:
        later, *ends = jax.lax.scan(step, state, (keys, forced))[1]
        states = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), state, later)
        return states, [jax.vmap(each.observe)(states) for each in envs], *ends

    forced = np.full((len(openings), STEPS, n), FREE)
    forced[:, 0] = [np.broadcast_to(opening.first, n) for opening in openings]
    batch = jax.tree.map(lambda *x: np.stack(x), *[opening.state for opening in openings])
    keys = jax.random.split(jax.random.key(3), forced.shape[:2])
    found = jax.jit(jax.vmap(simulate))(batch, jnp.asarray(forced), keys)
    states, observations, *ends = jax.tree.map(np.asarray, found)
    return Record(states, dict(zip(LAYOUTS, observations, strict=True)), *ends)


def opening_at(name: str, number: int) -> int:
    """Index of an opening after the endings: 0 initial, 1 at the edge, 2 to 4 scattered."""
    return len(endings(compared_env(name, "paper"))) + number


@pytest.mark.parametrize("name", TABLE)
def test_sizes_are_the_published_ones(name: str) -> None:
    """Agents, actions, lengths of observations and states, the limit and the largest reward."""
    agents, actions, limit, smac, paper, most = TABLE[name]
    for layout, sizes in (("smac", smac), ("paper", paper)):
        spec = smac_env(name, layout).spec
        assert spec.actions.sizes == ((actions,),) * agents
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


@pytest.mark.parametrize("name", ["5m_vs_6m", "bane_vs_bane", "3s5z"])
def test_endings_by_hand(name: str) -> None:
    """Victory, defeat, draw, time limit; regeneration of enemies counts as damage."""
    found = record(name)
    for episode, (what, case) in enumerate(endings(compared_env(name, "paper")).items()):
        _, reward, over, late = case
        np.testing.assert_allclose(found.reward[episode, 0], reward, rtol=1e-4, err_msg=what)
        assert (found.over[episode, 0], found.late[episode, 0]) == (over, late), what


def test_stalkers_and_zealots_are_exchanged() -> None:
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
