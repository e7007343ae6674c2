"""Mixed actions: the distribution by hand, and the laws that choices and vectors keep in it."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tiny_programs import TINY, close, rolled

from fp3o.envs.api import Env
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.networks.distributions import Gaussian, MixedDistribution, action_noise, categorical
from fp3o.spec import Box, Discrete, EnvSpec, Mixed

SPACE = Mixed(Discrete(((3, 2), (1, 1), (2, 1))), Box((2, 1, 0)))
"""An agent with both, one with a vector only, one with choices only."""


def mixed(outputs: np.ndarray, std: float) -> MixedDistribution:
    """The distribution of the team of `SPACE` with these outputs, `(3, 7)`."""
    mask, number = jnp.asarray(SPACE.mask), SPACE.discrete.num_outputs
    out = jnp.asarray(outputs, jnp.float32)
    choices = categorical(out[:, :number], mask[:, :number], SPACE.widths)
    vector = Gaussian(out[:, number:], jnp.full((1, 2), std), mask[:, number:])
    return MixedDistribution(choices, vector)


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum()


def test_by_hand() -> None:
    """Log-probability, entropy and KL of every agent, from the densities of SciPy."""
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 3, 7))
    one, two = mixed(first, 0.5), mixed(second, 0.8)
    action = np.array([[2, 1, 0.3, -0.4], [0, 0, 1.2, 0.0], [1, 0, 0.0, 0.0]], np.float32)
    groups = [[slice(0, 3), slice(3, 5)], [], [slice(0, 2)]]  # the choices with an alternative
    log_prob, entropy, kl = np.zeros((3, 3))
    for i, own in enumerate(groups):
        for d, columns in enumerate(own):
            p, q = softmax(first[i, columns]), softmax(second[i, columns])
            log_prob[i] += math.log(p[int(action[i, d])])
            entropy[i] += stats.entropy(p) / 2  # the mean over the two sub-actions
            kl[i] += stats.entropy(p, q)
        for j in range(SPACE.box.sizes[i]):
            mean, new = first[i, 5 + j], second[i, 5 + j]
            log_prob[i] += stats.norm.logpdf(action[i, 2 + j], mean, 0.5)
            entropy[i] += stats.norm.entropy(mean, 0.5)
            kl[i] += math.log(0.8 / 0.5) + (0.25 + (mean - new) ** 2) / 1.28 - 0.5
    np.testing.assert_allclose(one.log_prob(jnp.asarray(action)), log_prob, rtol=1e-5)
    np.testing.assert_allclose(one.entropy(), entropy, rtol=1e-5)
    np.testing.assert_allclose(one.kl(two), kl, rtol=1e-4)
    assert one.mode().shape == (3, 4) and one.mode().dtype == jnp.float32


def test_padding_counts_for_nothing() -> None:
    """Exactly 0 from sub-actions of size 1 and from dimensions that do not exist."""
    outputs = np.random.default_rng(1).normal(size=(3, 7))
    policy, other = mixed(outputs, 0.5), mixed(outputs + 1.0, 0.7)
    alone = Gaussian(policy.vector.mean, policy.vector.std, policy.vector.action_mask)
    assert policy.choices.entropy()[1] == policy.choices.kl(other.choices)[1] == 0.0
    assert policy.vector.entropy()[2] == policy.vector.kl(other.vector)[2] == 0.0
    action = policy.sample(action_noise(SPACE, jax.random.key(0), (3,)))
    assert (action[1, :2] == 0).all() and (action[2, 2:] == 0).all() and action[1, 3] == 0
    assert policy.log_prob(action)[1] == alone.log_prob(action[:, 2:])[1]
    assert policy.log_prob(action)[2] == policy.choices.log_prob(action[:, :2].astype(int))[2]


def test_draws() -> None:
    """Frequencies of choices and moments of vectors, which are independent of each other."""
    policy, many = mixed(np.random.default_rng(2).normal(size=(3, 7)), 0.5), 20_000
    noise = action_noise(SPACE, jax.random.key(1), (many, 3))
    drawn = np.asarray(jax.vmap(policy.sample)(noise))
    p = np.exp(np.asarray(policy.choices.log_p))[0, :3]
    frequency = (drawn[:, 0, :1] == np.arange(3)).mean(0)
    assert (np.abs(frequency - p) <= 5 * np.sqrt(p * (1 - p) / many)).all()
    np.testing.assert_allclose(drawn[:, 0, 2:].mean(0), policy.vector.mean[0], atol=0.02)
    np.testing.assert_allclose(drawn[:, 0, 2:].std(0), 0.5, atol=0.02)
    assert abs(np.corrcoef(drawn[:, 0].T)[0, 2:]).max() < 0.03


@dataclasses.dataclass(frozen=True)
class AsMixed(Env):
    """The credit probe, whose choices are declared as mixed actions without vectors."""

    max_episode_steps = 3

    @property
    def spec(self) -> EnvSpec:
        spec = PROBES["credit"].spec
        assert isinstance(spec.actions, Discrete)
        return dataclasses.replace(spec, actions=Mixed(spec.actions, Box((0, 0, 0))))

    def reset(self, key: Any) -> Any:
        return PROBES["credit"].reset(key)

    def step(self, state: Any, action: Any, key: Any) -> Any:
        assert action.dtype == jnp.float32
        return PROBES["credit"].step(state, action.astype(int), key)

    def observe(self, state: Any) -> Any:
        return PROBES["credit"].observe(state)


def test_without_vectors_it_is_the_discrete_team() -> None:
    """The same rollout from the same key, and the same learner after an iteration."""
    config = TINY.replace(algorithm="mappo")
    results = []
    for env in (None, VmapEnv(AsMixed(), 4)):
        program, state, trajectory, _ = rolled(config, env)
        after, _ = program.iterate(state)
        results.append((trajectory._replace(action=()), after.learner, trajectory.action))
    assert np.array_equal(results[0][2], results[1][2])
    close(results[0][:2], results[1][:2])


@pytest.mark.parametrize("seed", [0, 1])
def test_without_choices_it_is_the_team_with_vectors(seed: int) -> None:
    """Equal samples, log-probabilities, entropies and divergences, with the same noise."""
    random = np.random.default_rng(seed)
    mean, other = (jnp.asarray(random.normal(size=(3, 2)), jnp.float32) for _ in range(2))
    exists, logits = jnp.asarray(Box((2, 1, 2)).mask), jnp.asarray(random.normal(size=(3, 1)))
    one, two = Gaussian(mean, 0.3 + mean**2, exists), Gaussian(other, 0.3 + other**2, exists)
    none = categorical(logits, jnp.ones((3, 1), bool), (1,))
    both, new = MixedDistribution(none, one), MixedDistribution(none, two)
    noise = jnp.asarray(random.normal(size=(3, 3)), jnp.float32)
    action = both.sample(noise)
    assert np.array_equal(action[:, 1:], one.sample(noise[:, 1:])) and not action[:, 0].any()
    assert np.array_equal(both.log_prob(action), one.log_prob(action[:, 1:]))
    assert np.array_equal(both.entropy(), one.entropy())
    assert np.array_equal(both.kl(new), one.kl(two))
