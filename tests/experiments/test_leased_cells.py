"""Cells that travel through an object store, simulated: laws over random schedules.

docs/scale.md describes the protocol; `cell_laws.py` lists the laws.
"""

import math
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cell_laws import LAWS
from cell_mutants import MUTANTS, PROBABILITY
from cell_schedules import NO_FAULTS, Faults, Schedule, Setting, draw_setting
from leased_cells import CellRecord, Protocol, Segment, decode, encode
from object_store import ABSENT, Get, List, ObjectStore, Put, Status
from small_runs import SMALL, TASK

import fp3o
from fp3o.runs.checkpoint_files import arrays_digest, read_checkpoint
from fp3o.runs.directory import RunDirectory

HARSH = Setting(
    faults=Faults(stall_every=400.0, lost=0.12, wrong=0.5), cells=2, dishonest=1, broken=1
)
"""Workers that stall every few minutes, on a network that loses every third message."""

LIARS = Setting(faults=replace(NO_FAULTS, wrong=1.0), cells=3, dishonest=2, broken=0)
"""Nothing fails, but two of eight workers return nothing but wrong digests."""


def run_all(protocol: Protocol, seeds: Iterable[int]) -> Iterator[Schedule]:
    """Two schedules per seed: with random and with harsh conditions."""
    for seed in seeds:
        yield Schedule(draw_setting(seed, protocol), seed).run()
        if seed % 9 == 0 or type(protocol) is not Protocol:
            yield Schedule(replace(HARSH, protocol=protocol), seed).run()


def draws_of(schedules: Iterable[Schedule]) -> Counter[bool]:
    """Of the wrong segments that were decided about, how many were drawn for a replay."""
    return Counter(drawn for x in schedules for drawn, _ in x.laws.decided.values())


def is_likely(draws: Counter[bool], probability: float) -> bool:
    """Whether a share is within four standard deviations of a probability."""
    error = draws[True] / draws.total() - probability
    return abs(error) < 4 * math.sqrt(probability * (1 - probability) / draws.total())


def check_laws(seeds: range) -> None:
    """Random schedules keep all laws, and wrong segments are drawn as often as stated."""
    schedules = []
    for schedule in run_all(Protocol(), seeds):
        broken = [LAWS[law] for law in schedule.laws.broken]
        assert not broken, f"{schedule.setting}: {broken}"
        schedules.append(schedule)
    draws = draws_of(schedules)
    assert draws.total() > len(seeds) / 4
    assert is_likely(draws, Protocol().replayed), draws


def test_laws() -> None:
    """200 schedules: random numbers of cells, workers and owners, random faults of all kinds."""
    check_laws(range(180))


@pytest.mark.slow
def test_laws_of_many_schedules() -> None:
    """2,000 others."""
    check_laws(range(900, 2700))


@pytest.mark.parametrize("mutant", [x for x in MUTANTS if MUTANTS[x] != PROBABILITY])
def test_mistakes_break_laws(mutant: type[Protocol]) -> None:
    """Each variant with a mistake breaks its law within a hundred schedules."""
    broken = Counter[str]()
    for schedule in run_all(mutant(), range(50)):
        broken.update(schedule.laws.broken)
        if broken[MUTANTS[mutant]]:
            return
    pytest.fail(f"{mutant.__name__} broke only {dict(broken)}")


@pytest.mark.parametrize("mutant", [x for x in MUTANTS if MUTANTS[x] == PROBABILITY])
def test_mistakes_change_the_probability(mutant: type[Protocol]) -> None:
    """Without replays, or with replays that workers can predict, wrong segments are not found."""
    setting, seeds = replace(LIARS, protocol=mutant()), range(25)
    draws = draws_of(Schedule(setting, seed).run() for seed in seeds)
    assert draws[True] == 0 and not is_likely(draws, Protocol().replayed)
    assert is_likely(draws_of(Schedule(LIARS, seed).run() for seed in seeds), Protocol().replayed)


def test_nothing_is_wasted_if_nothing_fails() -> None:
    """Every iteration is computed once, but for the replays; every cell is leased once."""
    setting = Setting(faults=NO_FAULTS, dishonest=0, broken=0)
    schedule = Schedule(setting, 0).run()
    work, protocol = schedule.work, setting.protocol
    assert not schedule.laws.broken
    assert work.trained == work.useful == setting.cells * protocol.segments * protocol.iterations
    assert work.leases == setting.cells
    accepted = [
        schedule.setting.protocol.selected(cell, index, segment.digest)
        for cell, decisions in schedule.laws.decisions.items()
        for index, segment in enumerate(decisions.accepted)
    ]
    assert 0 < work.replayed == sum(accepted) * protocol.iterations


def test_conditional_writes() -> None:
    """Of two writes with the same condition, one succeeds; a record survives the store."""
    store, key = ObjectStore(), "cells/a"
    record = CellRecord(3, 2, "w.1", 0.5, "cpu", (Segment("digest", "w"),))
    assert store.apply(Get(key)).status is Status.MISSING
    first = store.apply(Put(key, encode(record), ABSENT))
    assert store.apply(Put(key, b"", ABSENT)).status is Status.CONFLICT
    assert store.apply(Put(key, b"{}", first.tag)).status is Status.DONE
    assert store.apply(Put(key, encode(record), first.tag)).status is Status.CONFLICT
    assert store.apply(Get(key)).content == b"{}"
    again = store.apply(Put(key, encode(record), None))
    assert again.tag == first.tag, "equal contents have equal tags, as in S3"
    assert decode(CellRecord, store.apply(Get(key)).content) == record
    assert store.apply(List("cells/")).listing == ((key, first.tag),)


def test_draws_depend_on_the_secret() -> None:
    """The draw is the same at every look, has the stated share, and differs between secrets."""
    one, other = Protocol(), Protocol(secret=b"another")
    draws = [one.selected("cell", index, "digest") for index in range(4000)]
    assert draws == [one.selected("cell", index, "digest") for index in range(4000)]
    assert is_likely(Counter(draws), one.replayed)
    both = sum(a and other.selected("cell", i, "digest") for i, a in enumerate(draws))
    assert is_likely(Counter({True: both, False: 4000 - both}), one.replayed**2)


def test_a_real_segment_can_be_replayed(tmp_path: Path) -> None:
    """From a copy of a checkpoint a run computes the same digests; the assumption of it all."""
    settings = {**SMALL, "save_every": 0.0, "keep_checkpoints": 100}
    run = fp3o.train(TASK, out=tmp_path / "run", **settings)
    shutil.copytree(run.path, tmp_path / "replay")
    replay = RunDirectory(tmp_path / "replay")
    (replay.path / "results.json").unlink()
    for path in replay.checkpoints()[3:]:
        path.unlink()
    fp3o.resume(replay.path, progress="quiet")
    digests = [
        [arrays_digest(read_checkpoint(path).arrays, {}) for path in directory.checkpoints()]
        for directory in (RunDirectory(run.path), replay)
    ]
    assert len({*digests[0]}) == 7 and digests[0] == digests[1]
