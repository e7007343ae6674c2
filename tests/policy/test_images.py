"""Policies with convolutions and running normalisers: NumPy acts like JAX, folders are checked."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.files import with_checksum
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.networks.numpy_network import OBS_LIMIT
from fp3o.policy import Choices, Policy, PolicyError
from fp3o.policy.card import CARD
from fp3o.policy.export import config_of, read_actor, write_policy
from fp3o.spec import Discrete, EnvSpec
from fp3o.training.rollout import ActorInputs, choose_actions

IMAGE, AGENTS, BATCH = (6, 7, 2), 3, 5
SPEC = EnvSpec(
    "test/images", Discrete(((3,), (2,), (4,))), obs_size=84 + 3, state_size=4,
    agent_types=(0, 0, 1), obs_sizes=(87, 87, 85), image=IMAGE,
)  # fmt: skip
SETTINGS: dict[str, dict[str, Any]] = {
    "shared": {"sharing": "full", "conv": ((4, 3, 1), (3, 2, 2))},
    "separate": {"sharing": "none", "conv": ((4, 2, 1),), "layer_norm": False, "agent_id": False},
    "layers": {
        "sharing": ((0, 1, 1), (0, 0, 1), (0, 1, 2), (0, 0, 0)), "gru_size": 4,
        "conv": ((4, 3, 2),), "activation": "tanh", "obs_norm": True,
    },
    "default": {"sharing": "partial", "obs_norm": True},
    "flat": {"conv": (), "obs_norm": True, "layer_norm": False},
}  # fmt: skip


def make(name: str) -> tuple[Setup, Any]:
    """A setup and parameters of which no number is at its initial value."""
    setup = Setup(SPEC, Config(hidden=(8,), sequence_length=1, **SETTINGS[name]))
    random = np.random.default_rng(3)
    change = lambda x: x + 0.5 * random.normal(size=x.shape).astype(np.float32)  # noqa: E731
    return setup, jax.tree.map(change, setup.init(0).actor)


def observations(random: np.random.Generator) -> np.ndarray:
    obs = random.random((BATCH, AGENTS, SPEC.obs_size)).astype(np.float32)
    obs[..., 84:] *= 30.0  # beyond the limit of the running normaliser
    obs[:, 2, 85:] = 0.0
    return obs


@pytest.mark.parametrize("name", SETTINGS)
def test_numpy_acts_like_jax(name: str, tmp_path: Path) -> None:
    """Log-probabilities and hidden states over several steps, and the same after a round trip."""
    setup, params = make(name)
    write_policy(tmp_path / "policy", setup, params, {})
    policy = Policy.load(tmp_path / "policy")
    for own, back in zip(params, read_actor(policy, setup), strict=True):
        np.testing.assert_array_equal(own, back)
    again = Setup(policy.card.spec, config_of(policy.card))
    assert again.network_spec("actor") == setup.network_spec("actor")
    decide = jax.jit(lambda inputs: choose_actions(setup, setup.actor(params), inputs, None))
    random, mask = np.random.default_rng(0), jnp.asarray(SPEC.actions.mask)
    before = policy.initial_hidden_state(BATCH)
    for _ in range(2):
        obs = observations(random)
        everything = jnp.broadcast_to(mask, (BATCH, *mask.shape))
        start = jnp.zeros(BATCH, bool)
        wanted = decide(ActorInputs(jnp.asarray(obs), everything, start, jnp.asarray(before)))
        given, _ = policy.distribution(obs, before)
        action, after = policy.act(obs, before)
        np.testing.assert_array_equal(action, wanted.action)
        assert isinstance(given, Choices)
        taken = np.take_along_axis(given.probabilities, action, axis=-1)[..., 0]
        np.testing.assert_allclose(taken, np.exp(wanted.log_prob), atol=1e-5)
        np.testing.assert_allclose(after, wanted.hidden_state, atol=1e-5)
        alone, _ = policy.agent(2).act(obs[:, 2, :85], before[:, 2])
        np.testing.assert_array_equal(alone, action[:, 2, 0])
        before = after


def test_acting_needs_no_jax(tmp_path: Path) -> None:
    """A process that loads the policy and acts imports NumPy only."""
    write_policy(tmp_path / "policy", *make("layers"), {})
    code = (
        "import sys, numpy as np, fp3o\n"
        f"policy = fp3o.Policy.load({str(tmp_path / 'policy')!r})\n"
        "print(policy.act(np.ones((3, 87)))[0].shape)\n"
        "assert 'jax' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_policies_of_other_images_are_refused(tmp_path: Path) -> None:
    """The same number of pixels in another shape is another network."""
    policy = write_policy(tmp_path / "policy", *make("shared"), {})
    other = dataclasses.replace(SPEC, image=(7, 6, 2))
    with pytest.raises(PolicyError, match=r"image \(6, 7, 2\).*\(7, 6, 2\)"):
        read_actor(policy, Setup(other, make("shared")[0].config))
    without = make("shared")[0].config.replace(obs_norm=True)
    with pytest.raises(PolicyError, match="obs_norm False"):
        read_actor(policy, Setup(SPEC, without))


def changed_card(folder: Path, change: Any) -> None:
    document = json.loads((folder / CARD).read_text())
    document.pop("checksum", None)
    change(document)
    (folder / CARD).write_text(json.dumps(with_checksum(document)))


def _set(document: Any, *keys: str, value: Any) -> None:
    *outer, last = keys
    for key in outer:
        document = document[key]
    document[last] = value


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("network", "conv"), [[4, 9, 1], [3, 2, 2]], "kernel of 9"),
        (("network", "conv"), [[4, 3, 1], [3, 2, 1]], "arrays of policy.json take"),
        (("network", "conv"), [[4, 3]], "3 to 3 entries"),
        (("network", "conv"), [[4, 3, 0], [3, 2, 2]], "integer from 1"),
        (("task", "image"), None, "needs an image"),
        (("task", "image"), [60, 70, 2], "image of shape"),
        (("network", "conv"), [[2**24, 1, 1], [2**24, 1, 1]], "parameters"),
        (("normalisers", "obs"), True, "arrays of policy.json take"),
        (("normalisers", "obs"), 3, "JSON bool"),
    ],
)
def test_damaged_cards_are_refused(
    keys: tuple[str, ...], value: Any, message: str, tmp_path: Path
) -> None:
    """Nothing is computed from kernels and shapes that do not fit the arrays."""
    write_policy(tmp_path / "policy", *make("shared"), {})
    changed_card(tmp_path / "policy", lambda document: _set(document, *keys, value=value))
    with pytest.raises(PolicyError, match=message):
        Policy.load(tmp_path / "policy")


def test_large_patches_are_refused(tmp_path: Path) -> None:
    """A card that describes few parameters and very many patches is not a policy."""
    write_policy(tmp_path / "policy", *make("shared"), {})

    def enlarge(document: Any) -> None:
        document["task"] |= {"image": [4000, 4000, 1], "obs_size": 4000**2, "obs_sizes": []}
        document["network"]["conv"] = [[1, 1000, 1], [1, 3000, 1]]

    changed_card(tmp_path / "policy", enlarge)
    with pytest.raises(PolicyError, match="at most"):
        Policy.load(tmp_path / "policy")


def test_normalised_observations_are_limited(tmp_path: Path) -> None:
    """Infinite observations are still refused; large ones are limited."""
    policy = write_policy(tmp_path / "policy", *make("flat"), {})
    obs = np.full((AGENTS, SPEC.obs_size), 1e9)
    features = policy._inputs.features(obs)
    assert np.abs(features).max() <= OBS_LIMIT
