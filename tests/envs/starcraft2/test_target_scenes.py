"""The script that asks the game whom units attack: in the simulator, and with a stand-in."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import fake_controller
import pytest
import starcraft2_targets as script
from doc_pages import ROOT
from simulated_scenes import simulated
from starcraft2_game import Frame, StarCraft2, Unit

from fp3o.envs.smac.rules import Rules
from fp3o.errors import UserError

BEFORE = Rules(leash=0.0, help=0.0, backswing=False)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SMAC, the game's messages and its maps."""
    for name in ("smac", "smac.env", "s2clientprotocol"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    env = fake_controller.StarCraft2Env
    monkeypatch.setattr(sys.modules["smac.env"], "StarCraft2Env", env, False)
    monkeypatch.setattr(env, "closed", 0)
    for name in ("debug_pb2", "raw_pb2", "sc2api_pb2"):
        monkeypatch.setattr(sys.modules["s2clientprotocol"], name, fake_controller, False)
    monkeypatch.setattr("starcraft2_game.require_starcraft2", lambda name: None)


def turns(rules: Rules, gap: float, distance: float) -> tuple[int | None, int | None]:
    """When the standing unit is nearer, and when the zealot turns to it."""
    with simulated(rules)("3s_vs_3z") as game:
        frames = script.lead_past(game, gap, distance, False)
    return script.nearer_loop(frames), script.turn_loop(frames, 0, 1, 0)


@pytest.mark.parametrize("distance", [1, 3])
def test_the_scene_tells_the_rules_apart(distance: float) -> None:
    """With a leash the zealot follows its leader; without, it turns to whoever is nearer."""
    nearer, turned = turns(Rules(), 4.5, distance)
    assert nearer is not None and turned is None
    nearer, turned = turns(BEFORE, 4.5, distance)
    assert nearer is not None and turned == nearer + 1


def test_within_the_reach_of_its_weapon_the_zealot_turns() -> None:
    nearer, turned = turns(Rules(), 7.0, 0.0)
    assert nearer is not None and turned is not None and turned > nearer + 30


def table_rows(rules: Rules) -> list[list[str]]:
    """The cells of all rows that the script prints in the simulator."""
    lines = "\n".join(script.tables(simulated(rules))).splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]


@pytest.mark.parametrize(
    ("rules", "follows", "answers", "waits"),
    [
        (Rules(), lambda gap, distance: distance >= 1, True, [8, 12]),
        (Rules(leash=5.1), lambda gap, distance: distance >= 1 and gap < 5, True, [8, 12]),
        (BEFORE, lambda gap, distance: (gap, distance) == (4.5, 5), False, [2, 5]),
    ],
)
def test_tables_in_the_simulator(
    rules: Rules, follows: Callable[[float, float], bool], answers: bool, waits: list[int]
) -> None:
    """What the page says of results: where the zealot follows, who answers, how long units wait.

    A zealot that is shot at from 5.4 cells away answers with a shorter leash too, while hits last.
    """
    rows = table_rows(rules)
    passes = [row for row in rows if row[2:3] in (["stands"], ["shoots"])]
    assert len(passes) == 24
    for gap, distance, _, _, turned in passes:
        assert (turned == "never") == follows(float(gap), float(distance))
    shot = [row[1] for row in rows if row[0].startswith(("the zealot", "a zealot"))]
    assert [turned != "never" for turned in shot] == [answers, answers]
    assert [int(row[2]) - int(row[1]) for row in rows if row[0] in ("zealot", "marine")] == waits


def trace(
    enemy: Sequence[tuple[float, float]],
    ours: Sequence[tuple[float, float]],
    health: Sequence[float],
) -> list[Frame]:
    """An enemy that moves, and units of ours that stand; the health of the last one by loop."""
    standing = [[Unit(*at, 0.5, 10.0) for at in ours[:-1]] for _ in enemy]
    return [
        Frame([Unit(*at, 0.5, 10.0)], [*others, Unit(*ours[-1], 0.5, left)])
        for at, others, left in zip(enemy, standing, health, strict=True)
    ]


def test_turns_in_written_traces() -> None:
    """Four steps towards a unit are a turn, and so is a hit; three steps are not."""
    ours, west = [(0.0, 0.0), (5.0, 9.0)], [(9.0 - 0.2 * i, 0.0) for i in range(4)]
    north = [(8.4, 0.2 * i) for i in range(1, 9)]
    assert script.turn_loop(trace(west, ours, [9] * 4), 0, 1, 0) is None
    assert script.turn_loop(trace(west + north[:3], ours, [9] * 7), 0, 1, 0) is None
    assert script.turn_loop(trace(west + north, ours, [9] * 12), 0, 1, 0) == 4
    assert script.turn_loop(trace(west + west[-1:], ours, [9] * 4 + [3]), 0, 1, 0) == 4
    stands = [(9.0, 0.0)] * 6
    assert script.turn_loop(trace(stands, ours, [9] * 6), 0, 1, 0) is None
    assert script.hit_and_walk_loops(trace(stands, ours[1:], [9] * 6)) == (None, None)
    walks = trace([*stands, (8.8, 0.0)], ours[1:], [9, 9, 4, 4, 4, 4, 4])
    assert script.hit_and_walk_loops(walks) == (2, 6)
    assert script.nearer_loop(trace(west, ours, [9] * 4)) is None
    assert script.nearer_loop(trace(north, ours, [9] * 8)) == 6
    assert script.gap_between(*walks[0].enemies, *walks[0].ours) == pytest.approx(8.849, abs=1e-3)


def test_the_game_is_given_scenes_and_orders(installed: None) -> None:
    """Through a stand-in for its connection: units are placed, led, and removed again."""
    with StarCraft2("3s_vs_3z") as game:
        assert game.version == "StarCraft II 4.10.0"
        for enemies in (1, 2):
            frame = game.start(enemies, [(-5.0, 0.0), (-9.0, 2.0)])
            assert (len(frame.enemies), len(frame.ours)) == (enemies, 2)
            first = frame.enemies[0]
            assert first.y == 18.0 and first.health == 150.0
            assert [unit.y - first.y for unit in frame.ours] == [0.0, 2.0]
            assert frame.ours[0].x - first.x == pytest.approx(-5.0, abs=0.5)
            assert len(game._units()) == enemies + 2
        leader = frame.ours[0]
        for _ in range(4):
            frame = game.step([(2.0, leader.y), 0])
        assert game.step([None, 0]).ours == game.step([None, 0]).ours
        assert frame.ours[0].x == leader.x - 4 * fake_controller.PACE
        assert game._game.sent == [16, 23, 4]  # each order once
    assert fake_controller.StarCraft2Env.closed == 1


def test_the_script_with_the_stand_in(
    installed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints all rows; nobody turns or hits there. A game that does not start is explained."""
    script.main()
    printed = capsys.readouterr().out
    assert printed.startswith("StarCraft II 4.10.0, fp3o ")
    assert printed.count("never |") >= 24 and "| marine | never | never |" in printed
    monkeypatch.setattr(fake_controller.StarCraft2Env, "failure", OSError("no such binary"))
    with pytest.raises(SystemExit, match="did not start: no such binary"):
        script.main()
    monkeypatch.setattr(fake_controller.StarCraft2Env, "failure", None)
    monkeypatch.setattr(fake_controller.Controller, "_spawn", lambda self: None)
    with pytest.raises(UserError, match="created no units"):
        StarCraft2("3m").start(1, [(0.0, 0.0)])


def test_the_script_without_the_game(tmp_path: Path) -> None:
    """It names what is missing and imports nothing of the game."""
    home = {**os.environ, "SC2PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    file = ROOT / "examples" / "starcraft2_targets.py"
    process = subprocess.run([sys.executable, file], env=home, capture_output=True, text=True)
    assert process.returncode == 1 and not process.stdout
    assert "StarCraft II: unpack it to" in process.stderr and "Traceback" not in process.stderr
