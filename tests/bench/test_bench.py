"""`fp3o bench`: rows, files and messages, on tiny cases."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from tiny_jaxmarl import Unequal

from fp3o.bench import (
    battles,
    compiled_jobs,
    jaxmarl_jobs,
    learning,
    mamujoco,
    mamujoco_jobs,
    particles,
    session,
    workers,
)
from fp3o.bench.measurement import ITERATION, BenchSettings, Measurement, SpeedComparison
from fp3o.bench.timing import TimedJob, fastest_rates
from fp3o.bench.topics import TOPICS
from fp3o.cli.main import main

TINY = {
    "num_envs": 2, "rollout": 4, "epochs": 1, "minibatches": 1, "hidden": (4,), "gru_size": 4,
    "sequence_length": 2,
}  # fmt: skip

Bench = Callable[..., dict[str, list[dict[str, Any]]]]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """A function that runs the command on tiny cases and reads its JSON file."""
    real = compiled_jobs.training_job
    small = lambda config: real(config.with_settings(TINY | _chunks(config)))  # noqa: E731
    for module in (particles, battles, mamujoco):
        monkeypatch.setattr(module, "training_job", small)
    sizes = learning.SIZES.items()
    tiny = {name: (spec, config.replace(**TINY)) for name, (spec, config) in sizes}
    monkeypatch.setattr(learning, "SIZES", tiny)
    monkeypatch.setattr(session, "without_compilation_cache", nullcontext)
    monkeypatch.setattr(workers, "POOL_SIZE", 2)
    monkeypatch.setattr(particles, "PLAY_STEPS", 2)
    monkeypatch.setattr(battles, "BATTLE_STEPS", 2)
    monkeypatch.setattr(mamujoco_jobs, "CHUNK_STEPS", 1)

    def run(*words: str) -> dict[str, list[dict[str, Any]]]:
        out = tmp_path / "out"
        assert main(["bench", *words, "--quick", "--seconds", "1e-9", "--out", str(out)]) == 0
        topics = [word for word in words if word in TOPICS]
        assert (out / "bench.html").read_text().count("<h2") == 1 + len(topics)
        content = json.loads((out / "bench.json").read_text())
        assert {"device", "jax", "command"} <= content["machine"].keys()
        return content["topics"]

    return run


def _chunks(config: Any) -> dict[str, Any]:
    return {} if config.learner.gru_size else {"gru_size": 0, "sequence_length": None}


def by_peer(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["peer_name"]: row for row in rows}


def test_learning_is_compared_with_mappo(bench: Bench) -> None:
    rows = bench("learning")["learning"]
    assert [row["case"].split(",")[0] for row in rows] == ["fp3o", "mappo"]
    assert rows[0]["unit"] == ITERATION and rows[0]["ratio"] > 0 and rows[1]["ratio"] is None
    assert rows[0]["ratio"] == pytest.approx(rows[0]["peer"] / rows[0]["ours"])
    assert "compiled in" in rows[0]["note"]


def test_particles_without_jaxmarl(bench: Bench) -> None:
    """Where a peer is missing, its row says how to install it."""
    rows = by_peer(bench("particles")["particles"])
    assert {*rows} == {"JaxMARL", "JaxMARL's training script"}
    for row in rows.values():
        assert row["ours"] > 0 and row["unit"] == "steps/s"
        assert row["peer"] or "not installed: pip install 'fp3o[jaxmarl]'" in row["note"]


def test_mamujoco(bench: Bench) -> None:
    pytest.importorskip("gymnasium_robotics")
    rows = bench("mamujoco")["mamujoco"]
    peers = by_peer(rows)
    assert peers["gymnasium-robotics"]["ratio"] > 0 and peers["gymnasium, one agent"]["ratio"] > 0
    assert peers["raw physics of the same states"]["ratio"] > 0
    assert "rollout" in rows[-1]["note"] and "training" in rows[-1]["case"]


def test_battles(bench: Bench) -> None:
    rows = bench("battles", "--algorithms", "ippo")["battles"]
    assert [row["case"].split(",")[0] for row in rows] == ["random actions", "training"]
    assert all(row["ours"] > 0 for row in rows)


def test_workers_and_gru(bench: Bench) -> None:
    """Processes are compared with PettingZoo itself; the kernel needs a GPU, which is said."""
    pytest.importorskip("mpe2")
    topics = bench("workers", "gru")
    assert len([row for row in topics["workers"] if row["ratio"]]) >= 4
    assert topics["gru"][0]["ours"] is None and "needs a GPU" in topics["gru"][0]["note"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lerning"], "did you mean 'learning'"),
        (["learning", "--algorithms", "fp3"], "did you mean 'fp3o'"),
        (["battles", "--tasks", "smac/3s5"], "unknown task"),
        (["battles", "--tasks", "probe/credit"], "probe/credit is not measured"),
        (["learning", "--seeds", "0"], "must be positive"),
    ],
)
def test_unknown_names(words: list[str], message: str, tmp_path: Path, capsys: Any) -> None:
    assert main(["bench", *words, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_every_topic_has_a_function() -> None:
    """A topic is measured only when the first row is asked for."""
    for topic in TOPICS.values():
        assert iter(topic.measure(BenchSettings()))


def test_jobs_alternate_and_the_fastest_chunk_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second passes per unit of work of a fake clock."""
    now, order, costs = 0.0, [], {"a": iter([9, 4, 2, 3]), "b": iter([9, 1, 1, 8])}

    def run(name: str) -> None:
        nonlocal now
        now += next(costs[name])
        order.append(name)

    monkeypatch.setattr("fp3o.bench.timing.time.perf_counter", lambda: now)
    jobs = {name: TimedJob(6, lambda name=name: run(name)) for name in costs}
    assert fastest_rates(jobs, seconds=5.0) == {"a": 3.0, "b": 6.0}
    assert "".join(order) == "abababab"


def test_reasons_and_ratios() -> None:
    """A job that cannot be run is a reason; times and rates have the same ratio."""
    jobs = {"ours": TimedJob(1, lambda: None), "theirs": "not here"}
    (row,) = SpeedComparison(jobs, [("ours", "theirs")]).measure(BenchSettings(1e-9))
    assert row.ratio is None and row.note == "not here" and row.rate
    fast = Measurement("a case", 100.0, ITERATION, "a peer", 50.0)
    assert fast.values == (10.0, 20.0) and fast.ratio == 2.0


def test_jaxmarl_jobs_run_environments_of_its_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JaxMARL, on an environment in its form."""

    class Tiny(Unequal):
        step = Unequal.step_env

        def get_avail_actions(self, state: Any) -> Any:
            return {agent: jnp.array([0, 1, 1]) for agent in self.agents}

    monkeypatch.setattr(jaxmarl_jobs, "make_jaxmarl", lambda name, options: Tiny())
    job = jaxmarl_jobs.jaxmarl_play_job("tiny", 3, 2)
    job.run()
    assert job.steps == 6
