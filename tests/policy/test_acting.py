"""A policy in NumPy acts like the learner's policy in JAX."""

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_policies import (
    BATCH,
    OBS_SIZES,
    SPACES,
    decide_with_engine,
    make_actor,
    observe,
    saved_policy,
)

from fp3o.errors import NonFiniteError
from fp3o.networks.actor import STD_PARAM_INIT
from fp3o.networks.distributions import MASKED_LOGIT
from fp3o.networks.mlp import ACTIVATIONS
from fp3o.policy import Choices, ChoicesAndVector, Normal, Policy, network, team
from fp3o.policy.actions import mask_indices, own_action
from fp3o.policy.export import read_actor
from fp3o.policy.read_card import ACTIVATION_NAMES, STD_PARAM_NAMES

KINDS = {"discrete": Choices, "box": Normal, "mixed": ChoicesAndVector}


def arrays(given: Choices | Normal | ChoicesAndVector) -> list[np.ndarray]:
    """The arrays of a distribution."""
    return jax.tree.leaves(given)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("gru_size", [0, 4])
@pytest.mark.parametrize("sharing", ["full", "partial", "none", "custom"])
def test_acts_like_the_jax_policy(
    sharing: str, gru_size: int, space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same actions, distributions and hidden states over steps with masks and new episodes."""
    setup, rows = make_actor(sharing, gru_size, space)
    loaded = saved_policy(sharing, gru_size, space, tmp_path / "policy")
    for own, back in zip(rows, read_actor(loaded, setup), strict=True):
        assert back.dtype == jnp.float32 and (np.asarray(own) == np.asarray(back)).all()
    monkeypatch.setattr(network, "SMALL", 0)  # the code path of large layers
    large = Policy(loaded.card, loaded.weights)
    reference = jax.jit(partial(decide_with_engine, setup))
    random = np.random.default_rng(3)
    hidden_state = past = loaded.initial_hidden_state(BATCH)
    for _ in range(4):
        step = observe(random, setup.spec.actions.mask.shape[1])
        choice, wanted = reference(rows, step, jnp.asarray(past))
        given, after = loaded.distribution(hidden_state=hidden_state, **step)
        unmasked, _ = loaded.distribution(step["obs"])
        assert [part.shape for part in arrays(unmasked)] == [part.shape for part in arrays(given)]
        actions, hidden_state = loaded.act(hidden_state=hidden_state, **step)
        assert isinstance(given, KINDS[space])
        for one, other in zip(arrays(given), wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        np.testing.assert_allclose(actions, choice.action, atol=1e-5)
        np.testing.assert_allclose(hidden_state, choice.hidden_state, atol=1e-5)
        assert (hidden_state == after).all()
        np.testing.assert_allclose(large.act(hidden_state=past, **step)[0], actions, atol=1e-5)
        past = hidden_state
    assert not gru_size or np.abs(hidden_state).max() > 0.1


@pytest.mark.parametrize(
    ("sharing", "space"), [("custom", "discrete"), ("partial", "box"), ("custom", "mixed")]
)
def test_one_agent_alone(sharing: str, space: str, tmp_path: Path) -> None:
    """Single agents, observations without padding and all batch shapes give the same actions."""
    loaded = saved_policy(sharing, 4, space, tmp_path / "policy")
    actions_space = loaded.card.spec.actions
    step = observe(np.random.default_rng(4), actions_space.mask.shape[1])
    obs, action_mask = step["obs"], step["action_mask"]
    action_mask[..., sum(actions_space.widths) or 3 :] = True  # masks of agents are of choices
    _, hidden_state = loaded.act(obs)
    wanted, after = loaded.act(obs, hidden_state, action_mask, episode_start=step["episode_start"])
    own_obs = [obs[:, i, :size] for i, size in enumerate(OBS_SIZES)]
    own_masks = [action_mask[:, i][:, mask_indices(actions_space, i)] for i in range(4)]
    for form in (list, tuple):
        apart, _ = loaded.act(
            form(own_obs), hidden_state, form(own_masks), episode_start=step["episode_start"]
        )
        np.testing.assert_allclose(apart, wanted, atol=1e-6)
    cut = lambda x: x.reshape(2, 3, *x.shape[1:])  # noqa: E731
    deep, deep_after = loaded.act(
        *map(cut, (obs, hidden_state, action_mask)), episode_start=cut(step["episode_start"])
    )
    np.testing.assert_allclose(deep, cut(wanted), atol=1e-6)
    np.testing.assert_allclose(deep_after, cut(after), atol=1e-6)
    for i in range(4):
        agent = loaded.agent(i)
        alone, own_after = agent.act(
            own_obs[i], hidden_state[:, i], own_masks[i], episode_start=step["episode_start"]
        )
        for one, other in zip(
            arrays(alone), arrays(own_action(actions_space, i, wanted[:, i])), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-6)
        np.testing.assert_allclose(own_after, after[:, i], atol=1e-6)
        assert agent.act(own_obs[i][0])[1].shape == agent.initial_hidden_state().shape == (4,)
        # Only what the agent uses: one group of every layer.
        own_network: Any = agent._team._network
        assert all(len(layer.weight) == 1 for _, layer in own_network._hidden)


def test_constants_equal_those_of_the_jax_policy() -> None:
    """The NumPy code cannot import the tables of the JAX code, so they are compared here."""
    assert {*ACTIVATIONS} == ACTIVATION_NAMES and {*STD_PARAM_INIT} == STD_PARAM_NAMES
    assert team._MASKED_LOGIT == MASKED_LOGIT


def test_draws_follow_the_probabilities(tmp_path: Path) -> None:
    """Frequencies of discrete choices, moments of normal ones; nothing masked is drawn."""
    many, random = 20_000, np.random.default_rng(0)
    for space in SPACES:
        loaded = saved_policy("partial", 0, space, tmp_path / space)
        step = observe(random, loaded.card.num_outputs)
        obs, action_mask = (
            np.broadcast_to(step[x][0], (many, *step[x][0].shape)) for x in ("obs", "action_mask")
        )
        given, _ = loaded.distribution(obs[0], action_mask=action_mask[0])
        actions, _ = loaded.act(obs, action_mask=action_mask, deterministic=False, random=random)
        if isinstance(given, ChoicesAndVector):
            (given, vector), actions, taken = given, *np.split(actions, [2], axis=-1)
        else:
            vector, taken = given, actions
        if isinstance(vector, Normal):
            np.testing.assert_allclose(taken.mean(0), vector.mean, atol=5 * 0.5 / many**0.5)
            np.testing.assert_allclose(taken.std(0), vector.std, atol=0.01)
        for d in range(2) if isinstance(given, Choices) else ():
            p = given.probabilities[:, 4 * d : 4 * d + 4]  # pyright: ignore
            frequency = (actions[:, :, d, None] == np.arange(4)).mean(0)
            assert (np.abs(frequency - p) <= 5 * np.sqrt(p * (1 - p) / many)).all()
            np.testing.assert_allclose(p.sum(-1), 1.0, atol=1e-6)
    loaded = Policy.load(tmp_path / "box")
    obs = observe(random, loaded.card.num_outputs)["obs"][0]
    again = [loaded.act(obs, None, None, False, np.random.default_rng(1))[0] for _ in range(2)]
    assert (again[0] == again[1]).all()
    fresh = [loaded.act(obs, deterministic=False)[0] for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()


def test_loads_and_acts_without_jax(folder: Path) -> None:
    """A program that runs a policy imports neither JAX nor any library based on it."""
    code = """if True:
        import sys
        for name in ("jax", "jaxlib", "equinox", "jaxtyping", "optax"):
            sys.modules[name] = None  # importing it fails
        import numpy as np
        from fp3o.policy import Policy
        policy = Policy.load(sys.argv[1])
        actions, hidden_state = policy.act(np.ones((2, 4, 5)))
        actions, hidden_state = policy.act(np.ones((2, 4, 5)), hidden_state, deterministic=False)
        print(actions.shape, hidden_state.shape, policy.agent(3).act([1.0, 2.0])[0].shape)
    """
    command = [sys.executable, "-W", "error", "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 4, 2) (2, 4, 4) (2,)\n", done.stderr


def test_wrong_input(folder: Path) -> None:
    """A shape that does not fit is named with the one that does; so are NaN and infinity."""
    loaded = Policy.load(folder)
    obs = np.ones((2, 4, 5))
    for arguments, message in [
        ({"obs": np.ones((2, 5, 4))}, r"\(2, 5, 4\): give \(\*batch, 4, 5\)"),
        ({"obs": [np.ones(5)] * 3}, "each of the 4 agents, got 3"),
        ({"obs": [np.ones(5)] * 4}, "'scout_1' has size 5 .*: expected size 3"),
        ({"obs": obs, "hidden_state": np.zeros((4, 4))}, r"hidden_state has shape \(4, 4\)"),
        ({"obs": obs, "action_mask": np.ones((2, 4, 3))}, r"expected \(2, 4, 8\)"),
        ({"obs": obs, "episode_start": True}, "episode_start has shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            loaded.act(**arguments)
    with pytest.raises(ValueError, match="no agent 4: 0 to 3"):
        loaded.agent(4)
    for number in (math.nan, math.inf):
        obs[1, 2, 3] = number
        with pytest.raises(NonFiniteError, match="observation"):
            loaded.act(obs)
