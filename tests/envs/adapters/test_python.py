"""One's own algorithm, sharing, network and environment objects, without touching the library."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import Stage, register_schedule
from fp3o.algorithms.table import ALGORITHMS, algorithm_name, parse_algorithm, register_algorithm
from fp3o.cli.main import main
from fp3o.envs.registry import REGISTERED, get_task, register_env
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.networks.network import MLPGRUNetwork, Network
from fp3o.runs import run as runner
from fp3o.runs.run_config import RunConfig
from fp3o.sharing.schemes import resolve_groups

SPREAD = "mpe/simple_spread"
GENTLE, ATTENTION = "custom_algorithm:gentle", "custom_network:Attention"
SMALL: dict[str, Any] = {
    "num_envs": 4, "rollout": 5, "sequence_length": 1, "gru_size": 0, "hidden": (8, 8), "epochs": 2,
    "seeds": 1, "eval_every": 1, "eval_episodes": 4, "final_episodes": 4, "steps": 40,
    "progress": "quiet", "loggers": (),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "report", lambda _, out: out)


# Algorithms ---------------------------------------------------------------------------------------


def test_a_row_of_ones_own_is_named_with_its_module() -> None:
    row = parse_algorithm(GENTLE)
    assert ALGORITHMS["gentle"] == row and algorithm_name(row) == GENTLE
    changed = parse_algorithm(f"{GENTLE}:inner_clip=0.5")
    assert changed.inner_clip == 0.5 and algorithm_name(changed) == f"{GENTLE}:inner_clip=0.5"
    assert len(Path("examples/custom_algorithm.py").read_text().splitlines()) <= 35


@pytest.mark.parametrize(
    "sharing",
    ["none", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("full", "partial"))],
)
def test_it_trains_and_is_found_again(sharing: str, tmp_path: Path) -> None:
    """The run names the module, so another process finds the row."""
    out = tmp_path / "run"
    fp3o.train("probe/credit", algorithm=GENTLE, sharing=sharing, out=out, **SMALL)
    assert json.loads((out / "config.json").read_text())["settings"]["algorithm"] == GENTLE
    assert fp3o.resume(out, steps=60, progress="quiet", loggers=()).finished


def test_rows_and_schedules_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="one of fp3o's own"):
        register_algorithm("mappo", Algorithm(), __name__)
    with pytest.raises(ValueError, match="letters"):
        register_algorithm("my algorithm", Algorithm(), __name__)
    with pytest.raises(ValueError, match="does not register an algorithm 'gentlest'"):
        parse_algorithm("custom_algorithm:gentlest")
    with pytest.raises(ValueError, match="my_module:my_algorithm"):
        parse_algorithm("gentler")

    @register_schedule
    def crooked(key: Any, score: Any, epochs: int, row: Any) -> Stage:
        fine = fp3o.whole_team_stages(np.zeros((1, score.size, score.size)), [epochs])
        return fine._replace(coupling=jnp.zeros((1, 2, 2)))

    with pytest.raises(ValueError, match=r"`coupling` must be \(1, 3, 3\)"):
        Setup(get_task("probe/credit").spec(), Config(algorithm=Algorithm("crooked")))
    with pytest.raises(ValueError, match=r"fp3o\.register"):
        algorithm_name(Algorithm("crooked"))
    assert (
        algorithm_name(Algorithm("croked")) == "fp3o:schedule=croked"
    )  # refused where it is checked
    with pytest.raises(ValueError, match="is taken by"):

        @register_schedule
        def together(key: Any, score: Any, epochs: int, row: Any) -> Stage:
            raise AssertionError


# Sharing ------------------------------------------------------------------------------------------


def halves(spec: fp3o.EnvSpec) -> dict[str, list[int]]:
    """Groups by a function of the task."""
    middle = spec.num_agents // 2
    return {"left": [*range(middle)], "right": [*range(middle, spec.num_agents)]}


@pytest.mark.parametrize(
    ("sharing", "groups"),
    [
        ({"a": [0, 2], "b": [1]}, (0, 1, 0)),
        ({0: "a", 1: "b", 2: "a"}, (0, 1, 0)),
        ('{"a": [0, 2], "b": [1]}', (0, 1, 0)),
        ('{"0": "a", "1": "b", "2": "b"}', (0, 1, 1)),
        (halves, (0, 1, 1)),
        ("test_bring_your_own:halves", (0, 1, 1)),
        (lambda spec: "none", "none"),
        (lambda spec: ((0, 0, 0), (0, 1, 2), (0, 1, 2)), ((0, 0, 0), (0, 1, 2), (0, 1, 2))),
    ],
)
def test_sharing_as_dict_and_function(sharing: Any, groups: Any) -> None:
    plan = RunConfig.from_preset(SPREAD).with_settings(
        {"sharing": sharing, "hidden": (8, 8), "gru_size": 0, "sequence_length": 1}
    )
    assert resolve(plan).learner.sharing == groups


def test_dicts_name_each_agent_once() -> None:
    spec = get_task(SPREAD).spec()
    for wrong in ({"a": [0, 1]}, {"a": [0, 1], "b": [1, 2]}, {0: "a"}, {"a": [0, 1, 2, 3]}):
        with pytest.raises(ValueError, match="each of the agents 0 to 2 once"):
            resolve_groups(wrong, spec)


# Networks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sharing", "rows"),
    [
        ("full", [1]),
        ("partial", [1, 3]),
        ("none", [3]),
        ((0, 0, 1), [2]),
        (((0, 0, 0), (0, 1, 1), (0, 1, 2)), [1, 2, 3]),
    ],
)
def test_attention_respects_groups(sharing: Any, rows: list[int]) -> None:
    """As many parameters as groups; members of a group that see the same do the same."""
    config = Config(network=ATTENTION, sharing=sharing, agent_id=False)
    setup = Setup(get_task(SPREAD).spec(), config)
    actor = setup.init(0).actor
    assert [len(matrix) for matrix in actor] == rows
    seen = jnp.tile(jax.random.normal(jax.random.key(0), (1, 4, 18)), (3, 1, 1))
    action_mask, nothing = jnp.ones((3, 4, 5), bool), jnp.zeros((3, 4, 0))
    policy, _ = setup.actor(actor)(seen, action_mask, nothing, jnp.zeros((3, 4), bool))
    same = np.asarray(policy.entropy())
    one = lambda i, j: all(groups[i] == groups[j] for groups in setup.actor_sharing)  # noqa: E731
    for i, j in ((0, 1), (1, 2)):
        assert np.array_equal(same[i], same[j]) == one(i, j)


def test_attention_does_not_care_for_order() -> None:
    """Landmarks and other agents may change places."""
    setup = Setup(get_task(SPREAD).spec(), Config(network=ATTENTION, agent_id=False))
    network = setup.actor(setup.init(0).actor).network
    x = jax.random.normal(jax.random.key(1), (3, 2, 18))
    turned = jnp.concatenate([x[..., :4], jnp.roll(x[..., 4:14], 2, -1), x[..., 14:]], -1)
    nothing = jnp.zeros((3, 2, 0)), jnp.zeros((3, 2), bool)
    np.testing.assert_allclose(network(x, *nothing)[0], network(turned, *nothing)[0], atol=1e-5)


def test_a_network_of_ones_own_lives_as_others_do(tmp_path: Path) -> None:
    """Trained, resumed, judged, loaded and acted with, filmed; by strangers only if trusted."""
    out = tmp_path / "run"
    words = [f"--{name.replace('_', '-')}" for name in SMALL if name not in ("progress", "loggers")]
    values = ["8" if v == (8, 8) else str(v) for v in SMALL.values()][: len(words)]
    told = [word for pair in zip(words, values, strict=True) for word in pair]
    more = ["--network", ATTENTION, "--sharing", "partial", "--quiet", "--loggers", "none"]
    assert main(["train", SPREAD, "--out", str(out), *told, *more]) == 0
    assert fp3o.resume(out, steps=60, progress="quiet", loggers=()).finished
    assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])

    policy = fp3o.Policy.load(out, which="last")
    seen = np.random.default_rng(0).normal(size=(6, 3, 18)).astype(np.float32)
    actions, hidden_state = policy.act(seen)
    assert actions.shape == (6, 3, 1) and hidden_state.shape == (6, 3, 0)
    assert np.array_equal(policy.agent(1).act(seen[:, 1])[0], actions[:, 1])
    assert fp3o.render(policy, tmp_path / "film.gif", episodes=1, seconds=1).exists()

    alone = policy.save(tmp_path / "alone")
    stranger = fp3o.Policy.load(alone)
    assert stranger.card.network_class == ATTENTION
    with pytest.raises(fp3o.PolicyError, match="trust=True"):
        stranger.act(seen)
    with pytest.raises(fp3o.PolicyError, match="custom_network:Attention"):
        fp3o.evaluate(alone, 4)
    assert np.array_equal(fp3o.Policy.load(alone, trust=True).act(seen)[0], actions)
    assert np.isfinite(fp3o.evaluate(alone, 4, trust=True)["policies"][0]["return"])


def test_the_policy_acts_as_it_was_trained(tmp_path: Path) -> None:
    """The distribution of the folder is that of the engine."""
    from fp3o.policy.export import read_actor, write_policy

    setup = Setup(
        get_task(SPREAD).spec(), Config(network=ATTENTION, sharing=(0, 1, 0), output_gain=1.0)
    )
    rows = setup.init(3).actor
    policy = write_policy(tmp_path / "policy", setup, rows, {})
    seen = np.random.default_rng(0).normal(size=(5, 3, 18)).astype(np.float32)
    action_mask, nothing = jnp.ones((3, 5, 5), bool), jnp.zeros((3, 5, 0))
    x = jnp.swapaxes(setup.inputs(jnp.asarray(seen)), 0, 1)
    ours, _ = setup.actor(rows)(x, action_mask, nothing, jnp.zeros((3, 5), bool))
    theirs, _ = policy.distribution(seen)
    for choice in range(5):
        taken = jnp.full((3, 5, 1), choice)
        chance = np.exp(np.asarray(ours.log_prob(taken))).T
        np.testing.assert_allclose(theirs.probabilities[..., choice], chance, atol=1e-5)  # pyright: ignore
    for a, b in zip(read_actor(policy, setup), rows, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_strangers_policy_imports_nothing(tmp_path: Path) -> None:
    """A policy folder may name any module as its task; without its run it is not imported."""
    from fp3o.policy.export import write_policy

    (tmp_path / "trap.py").write_text("raise SystemExit('sprung')")
    spec = dataclasses.replace(get_task("probe/credit").spec(), name="python/trap.game")
    setup = Setup(spec, Config(hidden=(4,)))
    write_policy(tmp_path / "policy", setup, setup.init(0).actor, {})
    policy = fp3o.Policy.load(tmp_path / "policy")
    assert policy.act(np.zeros((3, spec.obs_size)))[0].shape == (3, 1)
    for play in (
        lambda: fp3o.evaluate(tmp_path / "policy", 2),
        lambda: fp3o.render(policy, tmp_path / "film.gif"),
    ):
        with pytest.raises(fp3o.PolicyError, match=r"the task python/trap\.game.*trust"):
            play()


class Broken(Network):
    """Does one thing wrong, as a class attribute of those who derive from it says."""

    inner: Network
    wrong = ""

    @classmethod
    def num_layers(cls, body: Any, role: str) -> int:
        return MLPGRUNetwork.num_layers(body, role)

    @classmethod
    def make(cls, plan: Any, random: Any) -> Any:
        inner = MLPGRUNetwork.make(plan, random)
        return cls(inner) if plan.role == "actor" else inner

    def __call__(self, x: Any, hidden_state: Any, start: Any, agents: Any = None) -> Any:
        if self.wrong == "mixes agents":
            x = x + x.mean(0)
        if self.wrong == "mixes rows":
            x = x + x.mean(1, keepdims=True)
        if self.wrong == "never forgets":
            start = jnp.zeros_like(start)
        out, after = self.inner(x, hidden_state, start, agents)
        return (out[..., :-1], after) if self.wrong == "too narrow" else (out, after)


class Loose(Broken):
    """Has an array that belongs to nobody."""

    factor: Any

    @classmethod
    def make(cls, plan: Any, random: Any) -> Any:
        inner = MLPGRUNetwork.make(plan, random)
        return cls(inner, jnp.ones(3)) if plan.role == "actor" else inner


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("mixes agents", "alone gets other numbers"),
        ("mixes rows", "rows must not mix"),
        ("never forgets", "survives the start"),
        ("too narrow", "the outputs must have the shape"),
    ],
)
def test_networks_are_tried_on(wrong: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "wrong", wrong)
    config = Config(network="test_bring_your_own:Broken", hidden=(8,), gru_size=4, rollout=10)
    with pytest.raises(ValueError, match=words):
        Setup(get_task("probe/credit").spec(), config)


def test_networks_that_cannot_be() -> None:
    spec = get_task("probe/credit").spec()
    for name, words in (
        ("layerd", "did you mean 'layered'"),
        ("test_bring_your_own:halves", r"derive a class from fp3o\.Network"),
        ("test_bring_your_own:Loose", "lies in no grouped layer"),
        (ATTENTION, "."),  # made for another task
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            Setup(spec, Config(network=name))


# Objects ------------------------------------------------------------------------------------------


def test_an_object_is_trained_as_it_is(tmp_path: Path) -> None:
    """A PettingZoo environment, a function that makes one; pictures where it has some."""
    pytest.importorskip("mpe2", reason="needs the extra mpe2")
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(max_cycles=5, render_mode="rgb_array")

    def make(**kwargs: Any) -> Any:
        return simple_spread_v3.parallel_env(max_cycles=5, **kwargs)

    for number, thing in enumerate((env, make)):
        out = tmp_path / str(number)
        run = fp3o.train(thing, out=out, **SMALL)
        assert run.config.task.startswith("own/")
        assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])
        assert fp3o.resume(out, steps=60, progress="quiet", loggers=()).finished
        film = fp3o.render(fp3o.Policy.load(out), tmp_path / f"{number}.gif", 1, seconds=1)
        assert film.exists()
    # Another process knows nothing of the object until it is given again.
    known = REGISTERED.pop(run.config.task)
    with pytest.raises(ValueError, match=r"fp3o\.adopt"):
        fp3o.evaluate(out, 4)
    assert register_env(make).name == known.name
    assert np.isfinite(fp3o.evaluate(out, 4)["policies"][0]["return"])


def test_objects_that_are_no_tasks() -> None:
    with pytest.raises(ValueError, match="nothing to train on"):
        fp3o.train(3, **SMALL)
