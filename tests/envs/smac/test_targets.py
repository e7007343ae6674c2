"""The simulator: whom units on attack-move attack, calls for help, backswing, heights."""

import jax.numpy as jnp
import numpy as np
import pytest
from smac_arena import MIDDLE, Arena, facing, hits

from fp3o.envs.registry import get_task
from fp3o.envs.smac.maps import Map, UnitGroup
from fp3o.envs.smac.rules import Rules
from fp3o.envs.smac.simulator.battle import battle_on
from fp3o.envs.smac.simulator.state import ATTACK, ATTACK_MOVE, MOVE, NO_TARGET, STOP, Orders, Units
from fp3o.envs.smac.units import UNIT_TYPES
from fp3o.errors import SettingError

BEFORE = Rules(leash=0.0, help=0.0, backswing=False)
"""Targets are kept only while they can be hit, and nobody stands after a hit."""
TOUCH = UNIT_TYPES["zealot"].radius + UNIT_TYPES["hydralisk"].radius


def orders(kinds: list[int], goals: list[tuple[float, float]], targets: list[int]) -> Orders:
    """One order per unit."""
    x, y = jnp.asarray(goals).T
    return Orders(jnp.asarray(kinds), x, y, jnp.asarray(targets))


def led_past(rules: Rules, gap: float) -> list[int]:
    """Targets of a zealot that chases one hydralisk past another, by loop."""
    arena = facing({"hydralisk": 2}, {"zealot": 1}, 6.0, rules)
    lane = 20.0
    arena.put(x=[12.5 + TOUCH, 18.0, 8.0], y=[lane, lane + TOUCH + gap, lane], target=[-1, -1, 0])
    kinds, goals = [MOVE, STOP, ATTACK_MOVE], [(31.0, lane), (0.0, 0.0), (0.0, lane)]
    seen = arena.run(orders(kinds, goals, [NO_TARGET] * 3), 100)
    return [int(units.target[2]) for units in seen]


@pytest.mark.parametrize("gap", [1.0, 2.0, 3.0, 4.0, 5.0])
def test_a_zealot_is_led_past_a_standing_hydralisk(gap: float) -> None:
    """It follows the one it chases; by the rule before, it turned to any that came nearer."""
    assert set(led_past(Rules(), gap)) == {0}
    assert (1 in led_past(BEFORE, gap)) == (gap < 4.5)


def test_a_zealot_turns_to_a_unit_in_its_weapon_range() -> None:
    """It strikes what it touches instead of chasing."""
    targets = led_past(Rules(), 0.05)
    assert targets[1] == 0 and targets[-1] == 1


def test_a_target_beyond_the_leash_is_given_up() -> None:
    """The unit goes on to its destination."""
    arena = facing({"hydralisk": 1}, {"zealot": 1}, 20.0, Rules(leash=10.0))
    arena.put(target=[NO_TARGET, 0])
    goals = [(0.0, MIDDLE), (26.0, 24.0)]
    seen = arena.run(orders([STOP, ATTACK_MOVE], goals, [NO_TARGET] * 2), 16)
    assert int(seen[-1].target[1]) == NO_TARGET
    assert float(seen[-1].y[1]) > MIDDLE + 1.0


def walks(seen: list[Units], unit: int) -> list[int]:
    """Loops in which a unit changes its position."""
    x = np.array([units.x[unit] for units in seen])
    return np.flatnonzero(np.abs(np.diff(x)) > 1e-4).tolist()


@pytest.mark.parametrize(("rules", "wait"), [(Rules(), 12), (Rules(backswing=False), 0)])
def test_a_marine_chases_after_its_backswing(rules: Rules, wait: int) -> None:
    """Twelve loops after the shot, although its target left the range before."""
    arena = facing({"zergling": 1}, {"marine": 1}, 5.25, rules)
    goals = [(0.0, MIDDLE), (0.0, MIDDLE)]
    seen = arena.run(orders([MOVE, ATTACK_MOVE], goals, [NO_TARGET] * 2), 40)
    shot = hits(seen, 0)[0][0]
    apart = np.array([units.x[1] - units.x[0] for units in seen]) - 0.75
    left = int(np.flatnonzero(apart > 5.0)[0])
    assert shot < left < shot + 12
    assert walks(seen, 1)[0] == max(shot + wait, left)


def test_a_zealot_stands_between_its_two_hits() -> None:
    """Both hits land on a marine that runs away, and the zealot follows half a second later."""
    arena = facing({"marine": 1}, {"zealot": 1}, 0.9)
    goals = [(0.0, MIDDLE), (0.0, MIDDLE)]
    seen = arena.run(orders([MOVE, ATTACK_MOVE], goals, [NO_TARGET] * 2), 20)
    assert [loop for loop, _ in hits(seen, 0)] == [0, 4]
    assert walks(seen, 1)[0] == 8


def test_a_new_order_ends_the_backswing_and_the_second_hit() -> None:
    """A repeated order does not."""
    arena = facing({"zealot": 1}, {"zealot": 1}, 1.0)
    arena.run(arena.orders(ATTACK, 0), 1)
    assert float(arena.units.shield[1]) == 50 - 8
    arena.run(arena.orders(ATTACK, 0), 1)
    assert int(arena.units.backswing[0]) == 6
    seen = arena.run(arena.orders(MOVE, x=0.0, y=MIDDLE), 10)
    assert walks(seen, 0)[0] == 0
    assert float(seen[-1].shield[1]) == 50 - 8


def help_targets(rules: Rules, gap: float) -> list[int]:
    """Targets of two zealots, `gap` apart, of which the first is shot from beyond scan range."""
    arena = facing({"stalker": 1}, {"zealot": 2}, 6.0, rules)
    reach = 5.5 + UNIT_TYPES["stalker"].radius + UNIT_TYPES["zealot"].radius
    arena.put(x=[10.0, 10.0 + reach, 10.0 + reach + 1.0 + gap], y=[MIDDLE] * 3)
    away = (31.0, MIDDLE)
    kinds = [ATTACK, ATTACK_MOVE, ATTACK_MOVE]
    arena.put(cooldown=[0.0, 99.0, 99.0])
    order = orders(kinds, [(0.0, 0.0), away, away], [0, -1, -1])
    for _ in range(3):  # the shot lands in the second step
        arena.run(order, 8)
    return [int(target) for target in arena.units.target[1:]]


def test_calls_for_help() -> None:
    """A unit turns to an attacker beyond its scan range, and so do allies up to 4 cells away."""
    assert help_targets(Rules(), 3.9) == [0, 0]
    assert help_targets(Rules(), 4.5) == [0, NO_TARGET]
    assert help_targets(Rules(help=0.0), 3.9) == [NO_TARGET, NO_TARGET]


def test_lances_burn_at_the_height_of_their_target() -> None:
    """Across the cliff of the plateau: the line reaches both zerglings, one of them is hit."""
    groups = (UnitGroup("colossus", 1, (16, 16)),), (UnitGroup("zergling", 2, (16, 9)),)
    heights = battle_on("2c_vs_64zg").heights
    assert heights is not None
    low, high = heights[16, 9], heights[16, 16]
    assert (low, high) == (1.0, 2.0)
    edge = int(np.flatnonzero(heights[16] == high)[0])
    for terrain, survivors in (("plateau", 1), ("flat", 0)):
        arena = Arena(Map(*groups, None, 10, terrain))
        arena.put(x=[12.0, 16.5, 16.5], y=[edge, edge - 0.4, edge + 0.4])
        units = arena.run(arena.orders(ATTACK, 0), 12)[-1]
        assert (np.asarray(units.hp[1:]) > 0).sum() == survivors
        assert float(units.hp[1]) == 0


def test_routes_lead_to_the_foot_of_a_cliff() -> None:
    """To a cell without a way in, the route is that to the nearest walkable cell."""
    terrain = battle_on("2c_vs_64zg").terrain
    routes, free = terrain.routes, terrain.walkable.ravel()
    assert routes is not None
    cliff = terrain.over_cliffs.ravel() & ~free
    start = 16 * 32 + 9
    assert free[start] and cliff.any()
    cells = np.argwhere(np.ones((32, 32)))
    for cell in np.flatnonzero(cliff):
        away = ((cells - cells[cell]) ** 2).sum(1).astype(float)
        nearest = np.where(free, away, np.inf).argmin()
        assert routes[start, cell] == routes[start, nearest]


def test_options_of_the_rules() -> None:
    """A variant is a layout with options; it is written as short as possible."""
    assert Rules.parse("smac:leash=5.5,help=0") == ("smac", Rules(leash=5.5, help=0.0))
    assert Rules.parse(BEFORE.variant("paper")) == ("paper", BEFORE)
    assert Rules().variant("smac") == "smac"
    task = get_task("smac/3m")
    assert task.spec("paper:leash=0").name == "smac/3m:paper:leash=0"
    for variant, message in {
        "paper:leesh=3": "leash", "paper:leash=-1": "at least 0", "paper:backswing=2": "true or",
        "paper:help=true": "number", "papr": "paper", "paper:paid_healing=1": "true or",
    }.items():  # fmt: skip
        with pytest.raises(SettingError, match=message):
            task.env(variant)
