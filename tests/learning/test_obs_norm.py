"""The running normaliser: moments of NumPy, groups, padding, and what must leave it unchanged."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o import Config, Program, VmapEnv
from fp3o.envs.api import Observation
from fp3o.envs.toys.probe import Cue, Probe, probe
from fp3o.learning.collectives import ENV_AXIS
from fp3o.learning.obs_moments import add_observations
from fp3o.learning.optim import StepSize, adam_step, init_adam
from fp3o.learning.setup import Setup
from fp3o.networks.numpy_network import OBS_LIMIT, obs_scale
from fp3o.networks.obs_norm import make_obs_norm
from fp3o.sharing.maps import obs_groups
from fp3o.spec import Discrete, EnvSpec

GROUPS, SIZE = (0, 1, 0), 4


def rollouts(random: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Observations `(t, e, n, f)` of several rollouts, and who is alive."""
    scale, offset = np.array([1.0, 1e3, 1e-3, 0.0]), np.array([0.0, 5e3, 1e-3, 7.0])
    obs = [random.normal(size=(6, 5, 3, SIZE)) * scale + offset + i for i in range(3)]
    alive = [random.random((6, 5, 3)) < 0.7 for _ in range(3)]
    alive[1][..., 1] = False  # the only agent of a group is dead in one of the rollouts
    return [x.astype(np.float32) for x in obs], alive


def test_moments_are_those_of_numpy() -> None:
    """Of all living agents of a group in all rollouts, whatever their order."""
    norm = make_obs_norm(SIZE, GROUPS)
    obs, alive = rollouts(np.random.default_rng(0))
    for x, living in zip(obs, alive, strict=True):
        norm = add_observations(norm, jnp.asarray(x), jnp.asarray(living))
    for group in (0, 1):
        member = np.array(GROUPS) == group
        rows = [x[living & member] for x, living in zip(obs, alive, strict=True)]
        data = np.concatenate(rows).astype(np.float64)
        assert norm.count[group, 0] == len(data)
        np.testing.assert_allclose(norm.mean[group], data.mean(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(norm.std[group], data.std(0), rtol=1e-4, atol=1e-4)


def test_divided_observations_have_the_same_moments() -> None:
    """Two devices with half of the environments each agree with one device."""
    obs, alive = rollouts(np.random.default_rng(1))
    x, living = jnp.asarray(obs[0][:, :4]), jnp.asarray(alive[0][:, :4])
    norm = make_obs_norm(SIZE, GROUPS)
    whole = add_observations(norm, x, living)
    halves = x.reshape(6, 2, 2, 3, SIZE), living.reshape(6, 2, 2, 3)
    divided = jax.vmap(add_observations, (None, 1, 1), axis_name=ENV_AXIS)(norm, *halves)
    for one, both in zip(jax.tree.leaves(whole), jax.tree.leaves(divided), strict=True):
        np.testing.assert_allclose(both[0], one, rtol=1e-5)
        np.testing.assert_array_equal(both[0], both[1])


def test_constant_features_are_not_scaled() -> None:
    """Padding stays 0; a constant is centred; NumPy has the same factors."""
    norm = make_obs_norm(3, (0, 0))
    x = np.random.default_rng(2).normal(size=(50, 4, 2, 3)).astype(np.float32)
    x[..., 1], x[..., 2] = 0.0, 1234.567
    norm = add_observations(norm, jnp.asarray(x), jnp.ones((50, 4, 2), bool))
    np.testing.assert_array_equal(norm.scale[0, 1:], 1.0)
    np.testing.assert_allclose(obs_scale(*map(np.asarray, (norm.mean, norm.std))), norm.scale)
    y = np.asarray(norm(jnp.asarray(x)))
    assert not y[..., 1].any() and np.abs(y[..., 2]).max() < 1e-2
    assert np.abs(y[..., 0].mean()) < 1e-5 and abs(y[..., 0].std() - 1) < 1e-4
    assert norm(jnp.full((2, 3), 1e9)).max() == OBS_LIMIT


def test_agents_of_one_type_and_length_have_common_moments() -> None:
    spec = EnvSpec("any", Discrete(((2,),) * 5), 4, 4, (0, 1, 0, 1, 0), obs_sizes=(4, 4, 4, 3, 4))
    assert obs_groups(spec) == (0, 1, 0, 2, 0)
    assert obs_groups(replace(spec, obs_sizes=())) == (0, 1, 0, 1, 0)


@pytest.mark.parametrize("sharing", ["full", "partial", "none", (0, 1, 1)])
def test_steps_of_the_optimiser_leave_moments_unchanged(sharing: Any) -> None:
    """Also in the same row as parameters; and components are those without a normaliser."""
    spec = EnvSpec("any", Discrete(((2,),) * 3), 4, 6, (0, 1, 1))
    config = Config(sharing=sharing, hidden=(4,), obs_norm=True)
    setup, plain = Setup(spec, config), Setup(spec, config.replace(obs_norm=False))
    layout = setup.actor_layout
    assert layout.component == plain.actor_layout.component
    params = setup.init(0).actor
    actor: Any = setup.actor(params)
    assert actor.obs_norm is not None and actor.obs_norm.mean.shape == (2, 4)
    moments = replace(actor.obs_norm, mean=jnp.full((2, 4), 0.1), std=jnp.full((2, 4), 0.3))
    params = layout.pack(replace(actor, obs_norm=moments))
    grads = jax.tree.map(jnp.ones_like, params)
    after, _, _ = adam_step(layout, params, init_adam(params), grads, None, StepSize(0.1, 1.0))
    changed: Any = setup.actor(after)
    for one, other in zip(*map(jax.tree.leaves, (changed.obs_norm, moments)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (changed.network.output.weight != actor.network.output.weight).all()


def tiny(**changes: Any) -> Config:
    settings: dict[str, Any] = {
        "algorithm": "fp3o", "sharing": "none", "num_envs": 4, "rollout": 6, "hidden": (8,),
        "epochs": 2, "obs_norm": True,
    }  # fmt: skip
    return Config(**settings | changes)


def test_probabilities_of_a_rollout_are_exact() -> None:
    """Moments change between iterations, never between a rollout and its update."""
    program = Program(VmapEnv(probe("unequal"), 4), tiny())
    state = program.init(0)
    for iteration in range(1, 4):
        before: Any = program.setup.actor(state.learner.actor).obs_norm
        state, metrics = program.iterate(state)
        norm: Any = program.setup.actor(state.learner.actor).obs_norm
        assert metrics["replay_error"] < 1e-5
        assert (norm.count[:, 0] == 24 * iteration).all()
        assert (norm.mean != before.mean).any()
    critic_norm: Any = program.setup.critic(state.learner.critic).obs_norm
    assert critic_norm.mean.shape[1] == program.setup.spec.state_size


@dataclass(frozen=True)
class Scaled(Probe):
    """The cue of a probe in other units: thousands, far from 0."""

    def observe(self, state: Cue) -> Observation:
        """Numbers of about 5000, whose deviations matter."""
        seen = super().observe(state)
        return seen._replace(obs=5e3 + 1e3 * seen.obs, state=5e3 + 1e3 * seen.state)


def test_it_helps_where_observations_are_badly_scaled() -> None:
    """Without LayerNorm, a cue in thousands is learned with the normaliser and not without it."""
    env = Scaled("scaled", (1, 1, 1), (2, 2, 2))
    returns = {}
    for obs_norm in (False, True):
        config = tiny(
            algorithm="mappo", sharing="full", num_envs=32, rollout=8, epochs=5, layer_norm=False,
            obs_norm=obs_norm,
        )  # fmt: skip
        config = config.replace(actor_lr=3e-3, critic_lr=3e-3)
        program = Program(VmapEnv(env, 32), config, num_seeds=3)
        state, metrics = program.init(0), {}
        for _ in range(30):
            state, metrics = program.iterate(state)
        returns[obs_norm] = np.asarray(metrics["episode_return"])
    assert returns[True].min() > 0.8, returns
    assert returns[False].mean() < 0.75, returns
