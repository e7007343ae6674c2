"""The simulator: crowds. Limits are those of the measurements, with some margin."""

import math

import pytest
from smac_crowds import (
    ATTACK_MOVE,
    MOVE,
    attackers_around,
    crossing,
    overlaps_in_battles,
    passed_gate,
    ring,
    up_the_ramps,
)


@pytest.mark.parametrize("attacking", [False, True])
@pytest.mark.parametrize(("inner", "outer", "count"), [("zealot", "zergling", 8),
                                                       ("marine", "zealot", 6)])  # fmt: skip
def test_surrounded_units_stay_surrounded(
    inner: str, outer: str, count: int, attacking: bool
) -> None:
    """A unit does not get out of a ring whose gaps are narrower than itself, in three seconds."""
    assert ring(inner, outer, count, attacking, math.pi / count) < 0.5


@pytest.mark.parametrize("kind", [MOVE, ATTACK_MOVE])
def test_a_closed_gate_holds(kind: int) -> None:
    """No zergling passes three zealots that stand in the gate, in a minute."""
    assert passed_gate(closed=True, kind=kind, seconds=60.0)[-1] == 0


def test_an_open_gate_lets_a_team_pass() -> None:
    """24 zerglings walk through the gate of `corridor` within 20 seconds."""
    assert passed_gate(closed=False, kind=MOVE, seconds=20.0)[-1] == 24


def test_a_crowd_gets_up_the_ramps() -> None:
    """64 zerglings reach the high ground within 22 seconds."""
    assert up_the_ramps(22.0)[-1] == 64


def test_teams_pass_each_other() -> None:
    """Two teams of 24 that meet head-on are on the other side within 14 seconds."""
    assert crossing("zergling", 24, 14.0)[-1] == 48


def test_attackers_surround_their_target() -> None:
    """Six zerglings that come from one side all reach a standing zealot, within eight seconds."""
    assert attackers_around(6, 8.0)[-1] == 6


BATTLES = {"3s5z": (60, 0.05), "corridor": (60, 0.05), "bane_vs_bane": (24, 0.1),
           "2c_vs_64zg": (60, 0.1)}  # fmt: skip
"""Steps, and the largest share of touching pairs that overlap by more than a tenth."""


@pytest.mark.parametrize("name", BATTLES)
def test_overlaps_are_shallow(name: str) -> None:
    """Of the units that touch, few overlap by a tenth of their sizes, hardly any by a quarter."""
    steps, most = BATTLES[name]
    own, opponents = overlaps_in_battles(name, 4, steps)
    assert own.touching > 0
    for seen in (own, opponents):
        a_tenth, a_quarter, half = seen.deeper
        assert a_tenth < most
        assert a_quarter < 0.02
        assert half == 0
