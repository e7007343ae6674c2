"""Configurations over all settings on the probe tasks: trained, or refused before a file exists.

The settings are those of `SETTING_TYPES` and the fields of algorithms, so that new ones join by
themselves. A value is a small valid one, a boundary, an absurd one or one of another type. What is
accepted is trained for two iterations: its metrics are finite, and its policy acts as the learner.
Compiling takes seconds: after a number of trained configurations, an iteration of the others is
only traced.
"""

import gc
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from campaigns import Campaign
from hypothesis import given
from hypothesis import strategies as st

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import SCHEDULES
from fp3o.algorithms.surrogates import SURROGATES
from fp3o.algorithms.table import ALGORITHMS, FIELDS
from fp3o.errors import NonFiniteError, SettingError
from fp3o.options import write_options
from fp3o.policy import Policy, PolicyError
from fp3o.runs import train as train_module
from fp3o.runs.programs import make_program
from fp3o.runs.progress import make_display
from fp3o.runs.run_config import SETTING_TYPES, RunConfig
from fp3o.runs.settings import SHARING_TYPES, setting_types
from fp3o.runs.train import start_run
from fp3o.runs.trainer import Trainer
from fp3o.runs.turn import TrainingStep

TASKS = (
    "probe/value", "probe/credit", "probe/roles", "probe/memory", "probe/unequal", "probe/target",
    "matrix/climbing",
)  # fmt: skip
TINY: dict[str, Any] = {
    "algorithm": "mappo", "num_envs": 2, "rollout": 4, "hidden": (4,), "epochs": 1, "steps": 16,
    "seeds": 1, "eval_every": 1, "eval_episodes": 2, "final_episodes": 2, "sequence_length": 2,
}  # fmt: skip

SMALL: dict[str, list[Any]] = {
    "seed": [0, 1, 2**32 - 1], "seeds": [1, 2], "num_envs": [1, 2, 4], "rollout": [2, 4, 8],
    "hidden": [(4,), (1,), (4, 3)], "gru_size": [0, 3], "minibatches": [1, 2, 4],
    "sequence_length": [1, 2, 4, None], "activation": ["relu", "tanh"], "steps": [1, 16, 17],
    "std_param": ["sigmoid", "exp"], "network": ["mlp_gru"], "variant": [None, "default"],
    "schedule": [*SCHEDULES], "surrogate": [*SURROGATES], "blocks": [None, 1, 2, 3],
    "log_every": [1, 7], "eval_every": [0, 1, 2], "rounds": [1, 2], "critic_passes": [1, 2],
    "dependent_epochs": [None, 0, 1, 2], "inner_clip": [None, 0.0, 0.5],
    "conv": [None, ()],
}  # fmt: skip
"""Valid values where the type does not give them."""

ENDLESS = {"steps": [10**12]}
"""Values that are valid and take years."""

NUMBERS = (0.0, 1.0, 0.5, 1e-3, 3e-39, 1e-60, 3e38, 1e39, 1e300, -0.1, float("nan"), float("inf"))
INTEGERS = (-1, 0, 10**12, 2**31, 2**63, 10**400, -(2**63))
SCHEDULE_TEXTS = (
    "0.5:1e-3", "1:-1", "0.1:x", ":", "cosine:start=0.2,end=0.1", "warmup:peak=0.1,fraction=0.5",
    "piecewise:0=1e-3,0.5=3e-39", "linear:start=nan,end=1", "cosine:start=1", "cosin:end=1",
    "9:1e999",
)  # fmt: skip
OTHERS = (
    None, "x", "", "9" * 30, b"1", [], {}, [[1]], 1.5, True, (1, -1), object, np.int64(1),
    *SCHEDULE_TEXTS,
)  # fmt: skip

SHARINGS = st.one_of(
    st.sampled_from(["full", "partial", "none", "by_type", "auto"]),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
    st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from([(0, 1), (0, 0, -1), {"a": [0, 1], "b": [2]}, {0: "a"}, "x:y", "[0,0", 10**30]),
)


def values(name: str, hint: Any, good: bool) -> st.SearchStrategy[Any]:
    """Values of a setting: valid in themselves, or of any kind."""
    if hint in SHARING_TYPES:
        return SHARINGS
    plain = get_args(hint)[0] if get_args(hint) and get_origin(hint) is not Literal else hint
    if name in SMALL:
        valid = SMALL[name]
    elif get_origin(hint) is Literal:
        valid = [*get_args(hint)]
    else:
        valid = {bool: [True, False], int: [1, 2, 3], float: [0.5, 1.0, 1e-3]}.get(plain, ["x"])
    if good:
        return st.sampled_from(valid)
    odd = [*NUMBERS, *INTEGERS, *OTHERS]
    return st.sampled_from([x for x in odd if x not in ENDLESS.get(name, [])])


@st.composite
def algorithms(draw: st.DrawFn) -> str:
    """An algorithm, usually with changed fields."""
    hints, changes = setting_types(Algorithm), {}
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=3, unique=True)):
        value = draw(values(name, hints[name], good=draw(st.integers(0, 9)) > 0))
        if isinstance(value, str | int | float | None) and value not in INTEGERS:
            changes[name] = value
    return write_options(draw(st.sampled_from([*ALGORITHMS])), changes)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """Some settings; in most configurations one of them has a value of any kind."""
    names = [name for name in SETTING_TYPES if name not in ("task", "algorithm")]
    chosen = draw(st.lists(st.sampled_from(names), max_size=5, unique=True))
    found = {name: draw(values(name, SETTING_TYPES[name], good=True)) for name in chosen}
    found["algorithm"] = draw(algorithms())
    found["task"] = draw(st.sampled_from(TASKS))
    if draw(st.integers(0, 9)) > 2:
        name = draw(st.sampled_from([*SETTING_TYPES]))
        found[name] = draw(values(name, SETTING_TYPES[name], good=False))
    return found


class Watched(Trainer):
    """A trainer that can be asked for its learner afterwards."""

    last: "Watched"

    def turns(self) -> Iterator[TrainingStep]:
        Watched.last = self
        return super().turns()


def check_run(path: Path, config: RunConfig) -> None:
    """The metrics have no NaN, and the saved policy acts as the learner does."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} in the metrics")

    lines = (path / "metrics.jsonl").read_text().splitlines()
    assert lines
    for line in lines:
        json.loads(line, parse_constant=refuse)
    assert (path / "results.json").exists()
    setup, params = Watched.last.program.setup, Watched.last.checkpoint.state.learner.actor
    params = jax.tree.map(lambda x: x[0], params) if config.seeds > 1 else params
    spec, team = setup.spec, setup.spec.num_agents
    obs = np.random.default_rng(0).normal(size=(1, team, spec.obs_size)).astype(np.float32)
    mask = spec.actions.mask[None]
    action, _ = Policy.load(path, which="last", policy_seed=config.seed).act(obs, None, mask)
    hidden = np.zeros((team, 1, config.learner.gru_size), np.float32)
    swap = lambda x: jnp.swapaxes(jnp.asarray(x), 0, 1)  # noqa: E731

    @jax.jit
    def log_probs(params: Any) -> tuple[Any, Any]:
        """Of the most likely action, and of the one that the saved policy takes."""
        actor, starts = setup.actor(params), jnp.ones((team, 1), bool)
        features = swap(setup.inputs(jnp.asarray(obs), "actor", actor.obs_norm))
        policy, _ = actor(features, swap(mask), jnp.asarray(hidden), starts)
        return policy.log_prob(policy.mode()), policy.log_prob(swap(action))

    np.testing.assert_allclose(*log_probs(params), atol=1e-3)


def trace(config: RunConfig) -> None:
    """Trace the initial state and an iteration, without compiling or running them."""
    program = make_program(config)

    def iterate() -> Any:
        return program._iterate(program.init(config.seed), program.hyperparameters())

    for x in jax.tree.leaves(jax.eval_shape(iterate)):
        assert x.size >= 0


def test_configurations(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every configuration is trained, diverges by name, or is refused before a file exists."""
    monkeypatch.setattr(train_module, "Trainer", Watched)
    numbers, trained, most_trained = count(), Counter[str](), campaign.tries(0, 5, 250)
    most_traced = campaign.tries(2, 30, 2_000)

    @given(configurations())
    def attack(settings: dict[str, Any]) -> None:
        number, started = next(numbers), time.process_time()
        path = tmp_path / str(number)
        if number % 50 == 49:
            jax.clear_caches()
            gc.collect()
        try:
            config = RunConfig.from_preset(settings["task"]).with_settings({**TINY, **settings})
            config = config.resolve()
            limit = 120
        except (SettingError, PolicyError) as error:
            assert len(str(error)) < 2000
            result, limit = "refused", 20
        else:
            if trained["trained"] >= most_trained:
                result = "traced" if trained["traced"] < most_traced else "accepted"
                if result == "traced":
                    trace(config)
                trained[result] += 1
                campaign.count(result)
                return
            try:
                start_run(config, path, make_display("quiet"), ("none",), with_report=False)
                check_run(path, config)
                result = "trained"
            except NonFiniteError:
                result = "diverged"
        assert time.process_time() - started < limit
        assert path.exists() == (result != "refused")
        shutil.rmtree(path, ignore_errors=True)
        campaign.count(result)
        trained[result] += result == "trained"

    campaign.attack(attack, small=20, medium=80, whole=2_000, shrink=False)
