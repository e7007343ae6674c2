"""Odd numbers, masks, episodes and arrays of a task: trained or refused, as documented.

The same on JAX and on host environments. Faults at random places are thrown at one compiled program
per kind of environment; whole runs are made for a table of cases.
"""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from campaigns import Campaign
from faulty_envs import ENVS, Fault, FaultyBatch, FaultyEnv, table
from hypothesis import given
from hypothesis import strategies as st
from odd_envs import AGENTS, LENGTH, OddEnv, OddHostEnv, Oddity
from small_runs import SMALL, TASK, read_metrics

import fp3o
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import EnvError, NonFiniteError
from fp3o.learning.config import Config
from fp3o.runs.metrics_log import metric_rows
from fp3o.training.program import Program
from fp3o.training.state import TrainState
from fp3o.types import LARGEST_NUMBER

VALUES = (math.nan, math.inf, -math.inf, 3e38, -1e30, 1.1e15, 1e15, -1e14, 1e8, 0.0)
CONFIG = Config(algorithm="mappo", num_envs=ENVS, rollout=LENGTH, hidden=(4,), epochs=1)
WORDS = {"reward": "reward", "obs": "observation", "state": "critic input", "mask": "no action"}

places = st.tuples(st.integers(1, LENGTH - 1), st.integers(0, ENVS - 1), st.integers(0, AGENTS - 1))
numbers = st.builds(
    lambda kind, place, value: Fault(kind, *place, value),  # pyright: ignore[reportCallIssue]
    st.sampled_from(["reward", "obs", "state"]), places, st.sampled_from(VALUES),
)  # fmt: skip
flags = st.builds(
    lambda kind, place: Fault(kind, *place), st.sampled_from(["mask", "dead"]), places
)
faults = st.lists(st.one_of(numbers, flags), max_size=4, unique_by=lambda fault: fault[:4])


@cache
def programs() -> dict[str, tuple[Program, TrainState]]:
    """A program of each kind, and its initial state."""
    made = {
        "jax": Program(VmapEnv(FaultyEnv(), ENVS), CONFIG),
        "host": Program(FaultyBatch(), CONFIG),
    }
    return {kind: (program, program.init(3)) for kind, program in made.items()}


def with_faults(kind: str, cells: np.ndarray) -> TrainState:
    """The initial state of a program, with a table of faults in its environments."""
    program, state = programs()[kind]
    if kind == "host":
        program.env.cells[:] = cells  # pyright: ignore[reportAttributeAccessIssue]
        return state
    (time, _), key = state.rollout.env_state
    return state._replace(rollout=state.rollout._replace(env_state=((time, cells), key)))


def first_refused(found: list[Fault], order: Any) -> Fault | None:
    """The fault that must be named; dead agents need no choice."""
    dead = {fault[1:4] for fault in found if fault.kind == "dead"}
    refused = [
        fault
        for fault in found
        if (fault.kind == "mask" and fault[1:4] not in dead)
        or (fault.kind in ("reward", "obs", "state") and not abs(fault.value) <= LARGEST_NUMBER)
    ]
    return min(refused, key=order, default=None)


def rank(fault: Fault) -> int:
    return [*WORDS].index(fault.kind)


def check_named(error: Exception, fault: Fault, phase: str) -> None:
    _, time, env, agent, _ = fault
    where = f"environment {env}, agent {agent}, step {time} of the {phase}"
    assert WORDS[fault.kind] in str(error), error
    assert where in str(error), error


@pytest.mark.parametrize("kind", ["jax", "host"])
def test_faults_in_training(campaign: Campaign, kind: str) -> None:
    """Refused with their place, or trained to a finite state; the state before stays usable."""
    program, clean = programs()[kind]
    with_faults(kind, table([]))
    reference = jax.device_get(program.iterate(clean)[0].learner)

    @given(faults)
    def attack(found: list[Fault]) -> None:
        named = first_refused(found, lambda fault: (rank(fault), *fault[1:4]))
        try:
            state, metrics = program.iterate(with_faults(kind, table(found)))
        except (NonFiniteError, EnvError) as error:
            if named is None:
                assert "Likely cause: rewards of" in str(error), error
                campaign.count("diverged, the reward is named")
            else:
                check_named(error, named, "rollout")
                campaign.count(f"refused: {WORDS[named.kind]}")
        else:
            assert named is None, named
            assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.learner))
            json.dumps(metric_rows(jax.device_get(metrics), 1), allow_nan=False)
            campaign.count("trained")
        again = program.iterate(with_faults(kind, table([])))[0].learner
        jax.tree.map(np.testing.assert_array_equal, jax.device_get(again), reference)

    campaign.attack(attack, small=30, medium=200, whole=2_000)


def test_faults_in_evaluation(campaign: Campaign) -> None:
    """On the host, the first step at fault is named; otherwise all episodes end."""
    program, state = programs()["host"]
    env: Any = program.env
    keys = program.keys(0, 1)

    @given(faults)
    def attack(found: list[Fault]) -> None:
        env.cells[:] = table(found)
        seen = [fault for fault in found if fault.kind != "state"]
        named = first_refused(seen, lambda fault: (fault.time, rank(fault), *fault[2:4]))
        try:
            episodes = program.evaluate(state.learner.actor, env, keys, LENGTH)
        except (NonFiniteError, EnvError) as error:
            assert named is not None, error
            check_named(error, named, "evaluation")
            campaign.count(f"refused: {WORDS[named.kind]}")
        else:
            assert named is None, named
            assert np.isfinite(episodes.returns).all()
            campaign.count("evaluated")

    campaign.attack(attack, small=30, medium=300, whole=5_000)


BAD = "is not finite, or beyond 1e.15, in environment 0, agent 1, step 1"
CASES: dict[tuple[str, str], tuple[type[Exception], str] | None] = {
    ("", ""): None,
    **{
        (part, what): (NonFiniteError, f"the {word} {BAD}")
        for part, word in (("reward", "reward"), ("obs", "observation"), ("state", "critic input"))
        for what in ("nan", "1e30")
    },
    ("obs", "constant"): None,
    ("action_mask", "empty"): (EnvError, "no action is available in environment 0, agent 1"),
    ("team", "dead"): None,
    ("end", "at once"): None,
    ("end", "never"): None,
    **{(part, "integers"): (EnvError, f"{part} after .* is int32") for part in ("reward", "obs")},
    ("alive", "integers"): (EnvError, "alive after reset is int32. Fix: return booleans"),
    **{(part, "shape"): (EnvError, f"{part} after .* has shape")
       for part in ("reward", "obs", "state", "action_mask")},
    ("metric", "nan"): None,
}  # fmt: skip
"""Part and oddity -> the refusal, or None: it is trained."""

TINY: dict[str, Any] = {
    "algorithm": "mappo", "num_envs": 2, "rollout": 4, "hidden": (4,), "epochs": 1, "steps": 24,
    "eval_episodes": 3, "final_episodes": 3, "progress": "quiet", "loggers": (),
}  # fmt: skip


@pytest.mark.usefixtures("registries")
@pytest.mark.filterwarnings("ignore:an episode of")
@pytest.mark.parametrize("made", [OddEnv, OddHostEnv])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_runs(
    case: tuple[str, str], made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the table says. A refused run keeps its last state and is resumed when the task is cured.

    Files hold no number that is not finite: numbers that do not exist are null.
    """
    path, expected = tmp_path / "run", CASES[case]
    env = made(Oddity(*case))
    if expected is None:
        run = fp3o.train(env, out=path, **TINY)
    else:
        with pytest.raises(expected[0], match=expected[1]):
            fp3o.train(env, out=path, **TINY)
        monkeypatch.setattr(Oddity, "cured", True)
        run = fp3o.resume(path, progress="quiet", loggers=())
    assert run.finished
    for name in ("metrics.jsonl", "results.json", "config.json"):
        assert "NaN" not in (path / name).read_text()
        assert "Infinity" not in (path / name).read_text()
    assert all(np.isfinite(x).all() for x in run.policy().weights.values())
    if case == ("end", "never"):
        assert run.results["last"][0] | {"return": None, "unfinished": 3} == run.results["last"][0]
    if case == ("metric", "nan"):
        assert run.results["last"][0]["episode_metrics"] == {"score": None}


@pytest.mark.parametrize(("setting", "part"), [("actor_lr", "actor"), ("critic_lr", "critic")])
def test_a_diverged_run_keeps_the_last_usable_state(
    setting: str, part: str, tmp_path: Path
) -> None:
    """It is never saved nor logged, and the message names what is extreme."""
    path, words = tmp_path / "run", f"the {part} of seed 0 .*Likely cause: {setting} 1e[+]38"
    with pytest.raises(NonFiniteError, match=words):
        fp3o.train(TASK, out=path, **{**SMALL, "loggers": (), setting: 1e38})
    assert {row["iteration"] for row in read_metrics(path)} == {0}
    assert fp3o.Policy.load(path / "policy/seed-0/last")
    with pytest.raises(NonFiniteError, match=words):
        fp3o.resume(path, progress="quiet", loggers=())
