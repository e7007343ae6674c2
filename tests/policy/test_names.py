"""Policies by the names of agents: observations, masks and actions in dictionaries."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_policies import NAMES, OBS_SIZES, SPACES, observe, saved_policy

from fp3o.errors import SettingError
from fp3o.policy import Policy
from fp3o.policy.actions import mask_indices, own_action
from fp3o.policy.describe import policy_facts
from fp3o.policy.inputs import TeamInputs
from fp3o.spec import Box, Discrete, EnvSpec, Mixed


def by_name(policy: Policy, step: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Observations and masks by name, without padding."""
    own = [mask_indices(policy.card.spec.actions, i) for i in range(len(NAMES))]
    obs = {name: step["obs"][:, i, : OBS_SIZES[i]] for i, name in enumerate(NAMES)}
    masks = {name: step["action_mask"][:, i][:, own[i]] for i, name in enumerate(NAMES)}
    return obs, masks


def same(one: Any, other: Any) -> bool:
    """Whether two actions are equal, also pairs of choices and a vector."""
    pairs = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
    return isinstance(one, type(other)) and all((a == b).all() for a, b in pairs)


@pytest.mark.parametrize("space", SPACES)
def test_dictionaries_are_the_same_as_arrays(space: str, tmp_path: Path) -> None:
    """Actions by name are the rows of the array without padding, over recurrent steps."""
    policy = saved_policy("partial", 4, space, tmp_path / "policy")
    random, player = np.random.default_rng(5), policy.player()
    hidden_state = None
    for _ in range(3):
        step = observe(random, policy.card.num_outputs)
        step["action_mask"][..., sum(policy.card.spec.actions.widths) or 3 :] = True
        obs, masks = by_name(policy, step)  # masks of agents are of choices
        wanted, after = policy.act(step["obs"], hidden_state, step["action_mask"])
        given, named_after = policy.act(obs, hidden_state, masks)
        assert [*given] == [*NAMES] and (named_after == after).all()
        played = player.act(obs, masks)
        for i, name in enumerate(NAMES):
            own = own_action(policy.card.spec.actions, i, wanted[:, i])
            assert same(given[name], own) and same(played[name], own)
        hidden_state = after
    assert player.hidden_state is not None and np.abs(player.hidden_state).max() > 0
    player.reset()
    assert player.hidden_state is None


def test_forms_of_actions(tmp_path: Path) -> None:
    """An action has the form of the agent's space, with or without batch axes."""
    discrete = saved_policy("full", 0, "discrete", tmp_path / "discrete")
    obs = {name: np.ones(size) for name, size in zip(NAMES, OBS_SIZES, strict=True)}
    actions, _ = discrete.act(obs)
    assert actions["scout_0"].shape == (2,) and actions["scout_0"].dtype == np.int64
    assert isinstance(actions["tank_0"], np.integer)  # its second sub-action has one choice
    assert isinstance(discrete.agent("tank_0").act(np.ones(4))[0], np.integer)
    box = saved_policy("full", 0, "box", tmp_path / "box")
    assert [action.shape for action in box.act(obs)[0].values()] == [(2,), (1,), (3,), (2,)]
    batch = {name: np.ones((2, 6, x.size)) for name, x in obs.items()}
    assert discrete.act(batch)[0]["tank_0"].shape == (2, 6)
    assert box.act(batch)[0]["tank_0"].shape == (2, 6, 3)


def test_forms_of_mixed_actions() -> None:
    """Agents with choices, with a vector, and with both."""
    space = Mixed(Discrete(((3, 1), (1, 1), (2, 4))), Box((0, 2, 1)))
    row = np.array([1.0, 3.0, 0.5, -0.5], np.float32)
    assert own_action(space, 0, row) == 1
    assert own_action(space, 1, row).tolist() == [0.5, -0.5]
    choices, vector = own_action(space, 2, row)
    assert choices.tolist() == [1, 3] and vector.tolist() == [0.5]
    # A sub-action with one choice that all agents have is not padding.
    assert own_action(Discrete(((3, 1), (3, 1))), 0, np.array([2, 0])).tolist() == [2, 0]


def test_absent_agents(tmp_path: Path) -> None:
    """Agents that are missing observe zeros, as in training, and have no action."""
    policy = saved_policy("custom", 4, "discrete", tmp_path / "policy")
    step = observe(np.random.default_rng(6), policy.card.num_outputs)
    obs, masks = by_name(policy, step)
    _, before = policy.act(obs)
    del obs["scout_1"], masks["scout_1"]
    actions, after = policy.act(obs, before, masks)
    padded = step["obs"] * (np.array(NAMES) != "scout_1")[:, None]
    wanted, wanted_after = policy.act(padded, before, step["action_mask"])
    assert [*actions] == ["scout_0", "tank_0", "tank_1"] and (after == wanted_after).all()
    for i in (0, 2, 3):
        own = own_action(policy.card.spec.actions, i, wanted[:, i])
        assert (actions[NAMES[i]] == own).all()
    random = np.random.default_rng(0)
    sampled, _ = policy.act({"tank_1": obs["tank_1"]}, deterministic=False, random=random)
    assert [*sampled] == ["tank_1"]


def test_masks_inside_observations(tmp_path: Path) -> None:
    """A player accepts PettingZoo's dict of observation and mask, for some agents or all."""
    policy = saved_policy("full", 0, "discrete", tmp_path / "policy")
    obs, masks = by_name(policy, observe(np.random.default_rng(8), policy.card.num_outputs))
    del masks["tank_1"]
    wanted, _ = policy.act(obs, action_mask=masks)
    inside: dict[str, Any] = {
        name: {"observation": x, "action_mask": masks[name]} if name in masks else x
        for name, x in obs.items()
    }
    given = policy.player().act(inside)
    assert all((given[name] == wanted[name]).all() for name in NAMES)
    with pytest.raises(SettingError, match="masks by agent name"):
        policy.player().act(inside, np.ones((4, 8), bool))
    inside["tank_0"] = {"camera": np.ones(4)}
    with pytest.raises(SettingError, match="'tank_0' is a dict without 'observation'"):
        policy.player().act(inside)


def test_images_by_name(tmp_path: Path) -> None:
    """An image of the right shape is flattened; another shape is an error with both sizes."""
    spec = EnvSpec("test/images", Box((1, 1)), 12, 24, (0, 0), image=(2, 2, 3))
    card = saved_policy("none", 0, "box", tmp_path / "policy").card
    inputs = TeamInputs(replace(card, spec=spec), {}, (0, 1))
    image = np.arange(24.0).reshape(2, 2, 2, 3)
    features = inputs.features({"agent_0": image, "agent_1": image})
    assert features.shape == (2, 2, 12) and (features[1, 0] == np.arange(12) + 12).all()
    with pytest.raises(SettingError, match=r"'agent_0' has size 2 .*expected size 12"):
        inputs.features({"agent_0": np.ones((3, 2, 2))})


def test_wrong_names_and_sizes(tmp_path: Path) -> None:
    """The error names the agent, what was given and what is expected."""
    policy = saved_policy("full", 0, "discrete", tmp_path / "policy")
    obs = {name: np.ones(size) for name, size in zip(NAMES, OBS_SIZES, strict=True)}
    for arguments, message in [
        ({"obs": {**obs, "scout1": np.ones(3)}}, "unknown agent 'scout1': did you mean 'scout_1'"),
        ({"obs": {0: np.ones(5)}}, "unknown agent 0: .*Known: scout_0, scout_1"),
        ({"obs": {"tank_0": np.ones(5)}}, r"'tank_0' has size 5 \(shape \(5,\)\): expected size 4"),
        ({"obs": {"tank_0": 1.0}}, r"'tank_0' has size 1 \(shape \(\)\)"),
        ({"obs": {}}, "obs has no agent"),
        ({"obs": {"tank_0": ["a"] * 4}}, "obs of agent 'tank_0' must be an array of numbers"),
        ({"obs": {"tank_0": [1, [2], 3, 4]}}, "'tank_0' must be an array of numbers of one shape"),
        ({"obs": np.full((4, 5), "a")}, "obs must be an array of numbers"),
        ({"obs": obs, "action_mask": {"tank_0": None}}, "action_mask of agent 'tank_0' must be"),
        ({"obs": obs, "hidden_state": np.array("x")}, "hidden_state must be an array of numbers"),
        ({"obs": {**obs, "tank_0": np.ones((2, 4))}}, "batch axes .* differ"),
        ({"obs": obs, "action_mask": {"tank_0": [True]}}, r"'tank_0' has shape \(1,\): .*\(4,\)"),
        ({"obs": obs, "action_mask": {"tonk_0": [True]}}, "action_mask .*did you mean 'tank_0'"),
    ]:
        with pytest.raises(SettingError, match=message):
            policy.act(**arguments)
    with pytest.raises(SettingError, match="no agent 'tank': did you mean 'tank_"):
        policy.agent("tank")
    assert policy.agent("tank_1").index == 3 and policy.agent(1).name == "scout_1"


def test_description(tmp_path: Path) -> None:
    """Printing a policy shows its agents, sizes and the meanings of actions."""
    policy = saved_policy("full", 4, "discrete", tmp_path / "policy")
    text = str(policy)
    assert "policy for test/team, step 5" in text and "GRU of 4" in text
    assert "tank_0   observation of 4, choice of 4\n" in text
    assert "scout_1  observation of 3, choice of 2 x 4\n" in text
    assert repr(policy) == "Policy('test/team', 4 agents, step 5)"
    facts = policy_facts(policy.card)
    assert facts["agents"][1] == {
        "name": "scout_1", "obs_size": 3, "choices": [2, 4], "dimensions": 0, "action_names": [],
    }  # fmt: skip
