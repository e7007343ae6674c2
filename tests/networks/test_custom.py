"""A custom network: checked, trained, saved and loaded like the built-in one."""

import dataclasses
from pathlib import Path
from typing import Any

import broken_networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fp3o
from fp3o.cli.main import main
from fp3o.envs.registry import get_task
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.policy import Choices
from fp3o.policy.export import read_actor, write_policy

SPREAD = "mpe/simple_spread"
ATTENTION = "custom_network:Attention"
SMALL: dict[str, Any] = {
    "num_envs": 4, "rollout": 5, "sequence_length": 1, "gru_size": 0, "hidden": (8, 8), "epochs": 2,
    "seeds": 1, "eval_every": 1, "eval_episodes": 4, "final_episodes": 4, "steps": 40,
    "progress": "quiet", "loggers": (),
}  # fmt: skip


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
    """As many parameters as groups; members of a group with equal observations act alike."""
    config = Config(network=ATTENTION, sharing=sharing, agent_id=False)
    setup = Setup(get_task(SPREAD).spec(), config)
    actor = setup.init(0).actor
    assert [len(matrix) for matrix in actor] == rows
    obs = jnp.tile(jax.random.normal(jax.random.key(0), (1, 4, 18)), (3, 1, 1))
    action_mask, nothing = jnp.ones((3, 4, 5), bool), jnp.zeros((3, 4, 0))
    policy, _ = setup.actor(actor)(obs, action_mask, nothing, jnp.zeros((3, 4), bool))
    same = np.asarray(policy.entropy())
    one = lambda i, j: all(groups[i] == groups[j] for groups in setup.actor_sharing)  # noqa: E731
    for i, j in ((0, 1), (1, 2)):
        assert np.array_equal(same[i], same[j]) == one(i, j)


def test_attention_is_invariant_to_the_order_of_entities() -> None:
    """Landmarks and other agents may be permuted."""
    setup = Setup(get_task(SPREAD).spec(), Config(network=ATTENTION, agent_id=False))
    network = setup.actor(setup.init(0).actor).network
    x = jax.random.normal(jax.random.key(1), (3, 2, 18))
    turned = jnp.concatenate([x[..., :4], jnp.roll(x[..., 4:14], 2, -1), x[..., 14:]], -1)
    nothing = jnp.zeros((3, 2, 0)), jnp.zeros((3, 2), bool)
    np.testing.assert_allclose(network(x, *nothing)[0], network(turned, *nothing)[0], atol=1e-5)


def test_a_custom_network_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    """Trained, resumed, evaluated, rendered; the run and the policy need trust."""
    out = tmp_path / "run"
    flags = [f"--{name.replace('_', '-')}" for name in SMALL if name not in ("progress", "loggers")]
    values = ["8" if v == (8, 8) else str(v) for v in SMALL.values()][: len(flags)]
    settings = [word for pair in zip(flags, values, strict=True) for word in pair]
    more = ["--network", ATTENTION, "--sharing", "partial", "--quiet", "--loggers", "none"]
    assert main(["train", SPREAD, "--out", str(out), *settings, *more]) == 0
    with pytest.raises(fp3o.PolicyError, match="the network 'custom_network:Attention'"):
        fp3o.resume(out, steps=60, progress="quiet", loggers=())
    run = fp3o.resume(out, steps=60, progress="quiet", loggers=(), trust=True)
    assert run.finished and np.isfinite(run.evaluate(4)["policies"][0]["return"])

    policy = run.policy("last")
    obs = np.random.default_rng(0).normal(size=(6, 3, 18)).astype(np.float32)
    actions, hidden_state = policy.act(obs)
    assert actions.shape == (6, 3, 1) and hidden_state.shape == (6, 3, 0)
    assert np.array_equal(policy.agent(1).act(obs[:, 1])[0], actions[:, 1, 0])
    assert fp3o.render(policy, tmp_path / "video.gif", episodes=1, seconds=1).exists()

    alone = policy.save(tmp_path / "alone")
    stranger = fp3o.Policy.load(alone)
    assert stranger.card.network_class == ATTENTION
    with pytest.raises(fp3o.PolicyError, match="trust=True"):
        stranger.act(obs)
    with pytest.raises(fp3o.PolicyError, match="custom_network:Attention"):
        fp3o.evaluate(alone, 4)
    assert np.array_equal(fp3o.Policy.load(alone, trust=True).act(obs)[0], actions)
    assert np.isfinite(fp3o.evaluate(alone, 4, trust=True)["policies"][0]["return"])


def test_the_policy_acts_as_it_was_trained(tmp_path: Path) -> None:
    """The distribution of the saved policy equals that of the learner."""
    setup = Setup(
        get_task(SPREAD).spec(), Config(network=ATTENTION, sharing=(0, 1, 0), output_gain=1.0)
    )
    params = setup.init(3).actor
    policy = write_policy(tmp_path / "policy", setup, params, {})
    obs = np.random.default_rng(0).normal(size=(5, 3, 18)).astype(np.float32)
    action_mask, nothing = jnp.ones((3, 5, 5), bool), jnp.zeros((3, 5, 0))
    x = jnp.swapaxes(setup.inputs(jnp.asarray(obs)), 0, 1)
    ours, _ = setup.actor(params)(x, action_mask, nothing, jnp.zeros((3, 5), bool))
    theirs, _ = policy.distribution(obs)
    assert isinstance(theirs, Choices)
    for choice in range(5):
        taken = jnp.full((3, 5, 1), choice)
        chance = np.exp(np.asarray(ours.log_prob(taken))).T
        np.testing.assert_allclose(theirs.probabilities[..., choice], chance, atol=1e-5)
    for a, b in zip(read_actor(policy, setup), params, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_untrusted_policy_imports_nothing(tmp_path: Path) -> None:
    """A policy folder may name any module as its task: it is not imported."""
    (tmp_path / "trap.py").write_text("raise SystemExit('sprung')")
    spec = dataclasses.replace(get_task("probe/credit").spec(), name="python/trap.game")
    setup = Setup(spec, Config(hidden=(4,)))
    write_policy(tmp_path / "policy", setup, setup.init(0).actor, {})
    policy = fp3o.Policy.load(tmp_path / "policy")
    assert policy.act(np.zeros((3, spec.obs_size)))[0].shape == (3, 1)
    for call in (
        lambda: fp3o.evaluate(tmp_path / "policy", 2),
        lambda: fp3o.render(policy, tmp_path / "video.gif"),
    ):
        with pytest.raises(fp3o.PolicyError, match=r"the task 'python/trap\.game'.*trust"):
            call()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("mixes agents", "alone gets other outputs"),
        ("mixes rows", "samples must not mix"),
        ("never forgets", "survives the start"),
        ("too narrow", "the outputs must have the shape"),
    ],
)
def test_networks_are_checked(wrong: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken_networks.Broken, "wrong", wrong)
    config = Config(network="broken_networks:Broken", hidden=(8,), gru_size=4, rollout=10)
    with pytest.raises(ValueError, match=message):
        Setup(get_task("probe/credit").spec(), config)


def test_names_that_are_not_networks() -> None:
    spec = get_task("probe/credit").spec()
    for name, message in (
        ("mlp_gruu", "did you mean 'mlp_gru'"),
        ("broken_networks:jnp", r"derive a class from fp3o\.Network"),
        ("broken_networks:Loose", "is not in a grouped layer"),
        (ATTENTION, "."),  # made for another task
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            Setup(spec, Config(network=name))
