"""Policies of format 1 still load and act as they did when they were written."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fp3o.policy import Policy, PolicyError
from fp3o.policy.card import CARD

FIXTURES = Path(__file__).parent / "fixtures" / "format-1"
NAMES = ("continuous", "discrete", "recurrent")


@pytest.mark.parametrize("name", NAMES)
def test_acts_as_written(name: str, tmp_path: Path) -> None:
    """The recorded actions, samples, distributions and hidden states; also once saved again."""
    old = Policy.load(FIXTURES / name)
    new = Policy.load(old.save(tmp_path / "format-2"))
    assert json.loads((tmp_path / "format-2" / CARD).read_text())["format"] == 2
    expected = json.loads((FIXTURES / name / "expected.json").read_text())
    for policy in (old, new):
        hidden_state, random = None, np.random.default_rng(11)
        for obs, step in zip(expected["obs"], expected["steps"], strict=True):
            obs = np.array(obs, np.float32)
            actions, after = policy.act(obs, hidden_state)
            sampled, _ = policy.act(obs, hidden_state, deterministic=False, random=random)
            distribution, _ = policy.distribution(obs, hidden_state)
            assert str(actions.dtype) == step["act_dtype"]
            np.testing.assert_allclose(actions, step["act"], atol=1e-6)
            np.testing.assert_allclose(sampled, step["sampled"], atol=1e-6)
            np.testing.assert_allclose(
                after, np.array(step["memory"]).reshape(after.shape), atol=1e-6
            )
            for field, values in step["distribution"].items():
                np.testing.assert_allclose(getattr(distribution, field), values, atol=1e-6)
            hidden_state = after


def test_names_are_translated() -> None:
    """Fields and arrays have the names of format 2; facts that format 1 lacks have defaults."""
    policy = Policy.load(FIXTURES / "recurrent")
    assert policy.card.gru_size == 8 and policy.card.spec.agent_types == (0, 0, 0)
    assert {"network.gru.weight", "network.gru.input.bias"} <= {*policy.weights}
    assert not any("recurrent" in name for name in policy.weights)
    assert policy.card.spec.reward_sum_over == 1 and policy.card.spec.episode_metrics == ()


@pytest.mark.parametrize("number", [0, 3])
def test_other_formats_are_rejected(number: int, tmp_path: Path) -> None:
    """A newer format, or none that ever was, is named with the formats that can be read."""
    folder = Path(shutil.copytree(FIXTURES / "discrete", tmp_path / "policy"))
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps({**card, "format": number}))
    hint = "update fp3o" if number > 2 else "reads 1 and 2"
    with pytest.raises(PolicyError, match=rf"format {number}.*{hint}"):
        Policy.load(folder)


def test_mixed_names_are_rejected(tmp_path: Path) -> None:
    """A card of format 1 with a key of format 2 is damaged."""
    folder = Path(shutil.copytree(FIXTURES / "discrete", tmp_path / "policy"))
    card = json.loads((folder / CARD).read_text())
    card["network"]["gru_size"] = 4
    (folder / CARD).write_text(json.dumps(card))
    with pytest.raises(PolicyError, match="unknown key"):
        Policy.load(folder)
