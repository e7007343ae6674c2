"""Distributions, returns and networks against hand-computed or independent numbers."""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.batch import make_batch
from fp3o.learning.config import Config
from fp3o.learning.returns import ValueNorm, explained_variance, gae, huber, standardise
from fp3o.learning.setup import Setup
from fp3o.learning.statistics import effective_sample_size, quantiles
from fp3o.networks.distributions import Gaussian, categorical
from fp3o.networks.layers import normalise
from fp3o.networks.network import MLPGRUNetwork, NetworkSpec, TrunkSpec
from fp3o.spec import Box, Discrete, EnvSpec
from fp3o.training.program import Program
from fp3o.training.rollout import collect_rollout
from fp3o.training.state import split_keys


def test_categorical_with_masks() -> None:
    """Masked choices have probability 0 and do not touch log-probabilities, entropy or KL."""
    logits = jnp.asarray([[1.0, 2.0, 3.0, 0.5, -1.0]])
    action_mask = jnp.asarray([[True, False, True, True, True]])
    two = categorical(logits, action_mask, (3, 2))
    p = np.array([math.exp(1), math.exp(3)]) / (math.exp(1) + math.exp(3))
    q = np.array([math.exp(0.5), math.exp(-1)]) / (math.exp(0.5) + math.exp(-1))
    np.testing.assert_allclose(
        two.log_prob(jnp.asarray([[2, 1]])), [math.log(p[1]) + math.log(q[1])], rtol=1e-5
    )
    wanted = -0.5 * ((p * np.log(p)).sum() + (q * np.log(q)).sum())
    np.testing.assert_allclose(two.entropy(), [wanted], rtol=1e-5)
    assert two.mode().tolist() == [[2, 0]]
    draws = jax.vmap(two.sample)(two.noise(jax.random.key(0), (2000, 1, 5)))
    assert not (draws[..., 0] == 1).any()
    np.testing.assert_allclose((draws[..., 0] == 2).mean(), p[1], atol=0.03)
    other = categorical(logits * 0.5, action_mask, (3, 2))
    kl = stats.entropy(p, np.exp(np.asarray(other.log_p[0, [0, 2]])))
    kl += stats.entropy(q, np.exp(np.asarray(other.log_p[0, 3:])))
    np.testing.assert_allclose(two.kl(other), [kl], rtol=1e-4)


def test_gaussian_ignores_padding() -> None:
    """Dimensions that do not exist count for nothing."""
    action_mask = jnp.asarray([[True, False]])
    normal = Gaussian(jnp.asarray([[0.3, 9.0]]), jnp.asarray([[0.5, 7.0]]), action_mask)
    action = jnp.asarray([[0.9, 4.0]])
    np.testing.assert_allclose(
        normal.log_prob(action), [stats.norm.logpdf(0.9, 0.3, 0.5)], rtol=1e-5
    )
    np.testing.assert_allclose(normal.entropy(), [stats.norm.entropy(0.3, 0.5)], rtol=1e-5)
    assert normal.sample(jnp.ones_like(normal.mean))[0, 1] == 0.0
    other = Gaussian(jnp.asarray([[0.1, 0.0]]), jnp.asarray([[0.4, 1.0]]), action_mask)
    wanted = math.log(0.4 / 0.5) + (0.25 + 0.04) / (2 * 0.16) - 0.5
    np.testing.assert_allclose(normal.kl(other), [wanted], rtol=1e-4)


def test_gae_by_hand() -> None:
    """δ = (1, 2, 4), decays ½, 0 at an episode's end, ½."""
    out = gae(jnp.asarray([1.0, 2.0, 4.0]), jnp.asarray([0.5, 0.0, 0.5]))
    assert out.tolist() == [2.0, 2.0, 4.0]


def test_standardise_uses_the_living() -> None:
    """Mean 0 and standard deviation 1 per agent, over the steps at which it is alive."""
    x, alive = jnp.asarray([[1.0, 3.0, 100.0]]), jnp.asarray([[1.0, 1.0, 0.0]])
    np.testing.assert_allclose(standardise(x, alive)[0, :2], [-1.0, 1.0], atol=1e-4)


def test_value_normaliser() -> None:
    """No data: σ = 0.1. Two batches: the mean of both, for the critic that received them."""
    norm = ValueNorm.create(2)
    group = jnp.asarray([0, 1, 1])
    np.testing.assert_allclose(norm.denormalise(jnp.ones((3, 1)), group), 0.1, rtol=1e-6)
    x = jnp.asarray([[1.0, 3.0], [5.0, 5.0], [9.0, 9.0]])
    for _ in range(2):
        norm = norm.update(x, group, jnp.asarray([1.0, 0.0, 0.0]))
    mean, std = norm.moments()
    np.testing.assert_allclose((mean[0], std[0]), (2.0, 1.0), rtol=1e-4)
    assert norm.weight[1] == 0.0
    norm = norm.update(x, group, jnp.ones(3))
    np.testing.assert_allclose(norm.moments()[0][1], 7.0, rtol=1e-4)


def test_small_formulas() -> None:
    """Huber on both sides, explained variance, quantiles and effective sample size."""
    np.testing.assert_allclose(huber(jnp.asarray([-3.0, 0.5, 3.0]), 1.0), [2.5, 0.125, 2.5])
    target = jnp.asarray([[0.0, 2.0]])
    assert float(explained_variance(target, target)) == 1.0
    assert float(explained_variance(target, jnp.ones((1, 2)))) == 0.0
    x, alive = jnp.arange(1.0, 12.0), jnp.ones(11).at[10].set(0.0)
    np.testing.assert_allclose(quantiles(x, alive)[jnp.asarray([0, 4])], [1.0, 10.0])
    assert float(effective_sample_size(jnp.zeros(8))) == pytest.approx(1.0)
    assert float(effective_sample_size(jnp.log(jnp.asarray([1.0, 3.0])))) == pytest.approx(0.8)


def test_initial_network() -> None:
    """Orthogonal weights with their gains, zero biases, the paper's initial spread."""
    random = np.random.default_rng(0)
    task = EnvSpec("sizes", Discrete(((2,),) * 3), 5, 5, (0, 0, 1))
    trunk = TrunkSpec((16, 12), 8, "relu")
    spec = NetworkSpec("actor", task, 5, 2, trunk, ((0, 0, 1),) * 4, 0.01)
    net = MLPGRUNetwork.make(spec, random)
    weight = np.asarray(net.hidden[1].weight)
    np.testing.assert_allclose(weight[0].T @ weight[0], 2 * np.eye(12), atol=1e-5)
    assert net.gru is not None
    gates = np.asarray(net.gru.weight[1])
    np.testing.assert_allclose(gates @ gates.T, np.eye(8), atol=1e-5)
    np.testing.assert_allclose(
        net.output.weight[0].T @ net.output.weight[0], 1e-4 * np.eye(2), atol=1e-9
    )
    assert not any(np.any(layer.bias) for layer in net.hidden)
    setup = Setup(EnvSpec("arms", Box((1, 2)), 3, 3, (0, 1)), Config(hidden=(4,)))
    actor = setup.actor(setup.init(0).actor)
    assert float(actor.std()[0, 0, 0]) == pytest.approx(0.3655, abs=1e-4)


def test_partial_sharing_keeps_the_trunk_norm_shared() -> None:
    """Under partial sharing only the output layer (and the spread) is an agent's own."""
    setup = Setup(PROBES["target"].spec, Config(sharing="partial", hidden=(4,)))
    actor = setup.actor(setup.init(0).actor)
    net, log_std = actor.network, actor.log_std
    assert isinstance(net, MLPGRUNetwork) and log_std is not None
    norms = [norm for norm in net.norms if norm is not None]
    assert len(norms) == 2
    assert {norm.scale.shape[0] for norm in norms} | {net.hidden[0].weight.shape[0]} == {1}
    assert net.output.weight.shape[0] == log_std.value.shape[0] == 3
    assert setup.num_critics == 1


def test_time_limits_bootstrap_or_end() -> None:
    """At a time limit δ includes γ V(final input), unless it counts as a termination."""
    probe = dataclasses.replace(PROBES["value"], truncates=True)
    config = Config(num_envs=4, rollout=6, hidden=(8,), agent_id=False, algorithm="mappo")
    deltas, collected = {}, {}
    ends = config.replace(time_limit="terminate")
    for name, chosen in {"bootstrap": config, "end": ends}.items():
        program = Program(VmapEnv(probe, 4), chosen)
        setup, state = program.setup, program.init(0)
        collect = jax.jit(partial(collect_rollout, setup, program.env))
        rollout, steps = collect(
            state.learner.actor, state.rollout, split_keys(setup, state.key)[1]
        )
        prepare = jax.jit(partial(make_batch, setup))
        hparams = setup.config.hyperparameters.as_arrays()
        data, *_ = prepare(hparams, state.learner, steps, rollout.critic_hidden)
        deltas[name] = data.residuals.delta
        collected[name] = setup, state.learner, steps
    setup, learner, steps = collected["bootstrap"]
    last = jnp.moveaxis(normalise(steps.final_critic_input), 2, 0).reshape(3, 24, -1)
    nothing = jnp.zeros((3, 24, 0)), jnp.zeros((3, 24), bool)
    out, _ = setup.critic(learner.critic)(last, *nothing)
    value = learner.value_norm.denormalise(out[..., 0], setup.critic_of_agent)
    value = jnp.swapaxes(value.reshape(3, 6, 4), 1, 2)
    cut = np.asarray(steps.truncated.T)
    gained = np.asarray(deltas["bootstrap"] - deltas["end"])
    assert 0 < cut.sum() < cut.size
    np.testing.assert_allclose(gained[:, cut], 0.99 * np.asarray(value)[:, cut], atol=1e-6)
    np.testing.assert_allclose(gained[:, ~cut], 0.0, atol=1e-6)
    assert np.abs(gained[:, cut]).max() > 1e-3


def test_discrete_spaces_pad() -> None:
    """Sub-actions are padded one by one."""
    space = Discrete(((2, 1), (3, 2)))
    assert space.widths == (3, 2)
    assert space.mask.tolist() == [
        [True, True, False, True, False], [True, True, True, True, True],
    ]  # fmt: skip
