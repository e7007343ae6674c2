"""Action selection on the host: NumPy and the compiled call decide alike."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.networks import gru, mlp
from fp3o.spec import Box, Discrete, EnvSpec, Mixed
from fp3o.training import host_policy
from fp3o.training.host_policy import HostPolicy
from fp3o.training.rollout import ActorInputs, choose_actions, sample_noise

ACTIONS = {
    "box": Box((2, 1, 2)),
    "discrete": Discrete(((3,), (4,), (4,))),
    "two choices": Discrete(((3, 2), (4, 2), (4, 2))),
    "mixed": Mixed(Discrete(((3, 2), (1, 1), (4, 2))), Box((2, 1, 0))),
}
AGENTS, ENVS, STEPS = 3, 4, 5


def make_setup(actions: str, **settings: Any) -> Setup:
    spec = EnvSpec("any", ACTIONS[actions], 6, 6, (0, 0, 1))
    return Setup(spec, Config(num_envs=ENVS, hidden=(8, 8), **settings))


def random_inputs(setup: Setup, random: np.random.Generator, *lead: int) -> ActorInputs:
    """Inputs in which some choices are unavailable, for one agent all of them."""
    normal = lambda *size: random.normal(size=(*lead, AGENTS, *size)).astype(np.float32)  # noqa: E731
    mask = random.random((*lead, *setup.spec.actions.mask.shape)) < 0.7
    mask[..., 0] = True
    mask[..., 0, 1, :] = False
    number = sum(setup.spec.actions.widths)  # vectors have padding only
    mask[..., number:] = setup.spec.actions.mask[:, number:]
    arrays: Any = normal(6), mask, random.random(lead) < 0.5, normal(setup.config.gru_size)
    return ActorInputs(*arrays)


def perturbed(params: Any, random: np.random.Generator) -> Any:
    """Parameters with other norms and biases than the initial ones."""
    add = lambda x: x + 0.3 * random.normal(size=x.shape).astype(np.float32)  # noqa: E731
    return jax.tree.map(add, params)


@pytest.mark.parametrize("num_seeds", [None, 2])
@pytest.mark.parametrize(
    ("actions", "settings"),
    [
        ("box", {"sharing": "full", "agent_id": False}),
        ("box", {"sharing": "partial", "activation": "tanh"}),
        ("box", {"sharing": "none", "gru_size": 4, "sequence_length": 4, "std_param": "exp"}),
        ("discrete", {"sharing": "full", "gru_size": 4, "sequence_length": 4}),
        ("discrete", {"sharing": (0, 0, 1), "gru_size": 4, "sequence_length": 4}),
        ("two choices", {"sharing": "none", "layer_norm": False, "obs_norm": True}),
        ("mixed", {"sharing": "partial", "std_param": "exp"}),
    ],
)
def test_numpy_decides_like_the_compiled_policy(
    actions: str, settings: dict[str, Any], num_seeds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal actions, outputs, hidden states and log-probabilities, sampled or most likely."""
    setup, random = make_setup(actions, **settings), np.random.default_rng(0)
    policy, lead = HostPolicy(setup, num_seeds), (num_seeds, ENVS) if num_seeds else (ENVS,)
    params = perturbed(setup.init(0).actor, random)
    if num_seeds:
        params = jax.tree.map(lambda x: jnp.stack([x, 1.1 * x]), params)
    keys = jax.random.split(jax.random.key(0), (*lead[:-1], STEPS))
    folded, noise = policy.fold(params), policy.sample_noise(keys, ENVS)
    in_numpy = policy.decide(folded, ENVS)
    monkeypatch.setattr(host_policy, "NUMPY_PRODUCTS", 0)
    compiled = policy.decide(folded, ENVS)
    assert type(in_numpy) is not type(compiled)
    inputs = random_inputs(setup, random, *lead)
    for sampled in (None, *noise):
        one, two = in_numpy(inputs, sampled), compiled(inputs, sampled)
        for x, y in zip(one, two, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(x, y, atol=2e-6)
    last = compiled(inputs, noise[-1])
    mask: Any = inputs.action_mask
    log_prob = policy.log_prob(folded, last.output[None], last.action[None], mask[None])
    for seed in range(num_seeds or 1):
        own = (lambda x, i=seed: x[i]) if num_seeds else (lambda x: x)
        actor = setup.actor(jax.tree.map(own, params))
        raw = sample_noise(setup, keys[seed, -1] if num_seeds else keys[-1], ENVS)
        decision = choose_actions(
            setup, actor, ActorInputs(*(jnp.asarray(own(x)) for x in inputs)), raw
        )
        np.testing.assert_allclose(own(last.action), decision.action, atol=2e-6)
        np.testing.assert_allclose(own(log_prob[0]), decision.log_prob, atol=1e-5)


def test_many_rows_are_left_to_the_compiled_call() -> None:
    """NumPy is used up to a number of multiplications in the largest layer."""
    policy = HostPolicy(make_setup("box", agent_id=False), None)
    most = host_policy.NUMPY_PRODUCTS // (AGENTS * 8 * 8)
    assert policy._uses_numpy(most) and not policy._uses_numpy(most + 1)


def test_compiled_decisions_use_no_kernels_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run on the CPU, for which kernels for GPUs do not compile."""
    setup = Setup(
        EnvSpec("any", ACTIONS["discrete"], 6, 6, (0, 0, 1)),
        Config(num_envs=16, hidden=(16, 16), gru_size=16, sequence_length=4),
    )
    folded = HostPolicy(setup, None).fold(setup.init(0).actor)
    inputs = random_inputs(setup, np.random.default_rng(0), 16)
    decisions = []
    monkeypatch.setattr(host_policy, "NUMPY_PRODUCTS", 0)
    monkeypatch.setattr(gru, "kernel_works", lambda *_: True)
    monkeypatch.setattr(mlp, "mlp_kernel_works", lambda *_: True)
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        policy = HostPolicy(setup, None)
        policy.fold(setup.init(0).actor)
        decisions.append(policy.decide(folded, 16)(inputs, None))
    for one, other in zip(*decisions, strict=True):
        np.testing.assert_array_equal(one, other)
