"""Spaces of PettingZoo environments: observations, actions and masks by hand, and errors."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")

from gymnasium import spaces
from scripted_zoo import TWO, play, same, scripted, seen, vector

from fp3o.envs.adapters.codecs import MASK
from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.api import HostEnv
from fp3o.envs.workers.protocol import WorkerPoolError
from fp3o.errors import NonFiniteError
from fp3o.spec import Box, Discrete, Mixed


def test_unequal_spaces() -> None:
    """Observations are flattened and padded, choices keep their spaces' numbers."""
    team = {
        "scout_0": (vector(2), spaces.Discrete(3, start=-1)),
        "scout_1": (vector(2), spaces.Discrete(3, start=-1)),
        "scout_2": (vector(2), spaces.Discrete(2)),
        "carrier": (spaces.Box(0, 9, (2, 2), np.int64), spaces.MultiDiscrete([2, 4], start=[0, 5])),
        "guard-1": (spaces.MultiBinary(3), spaces.MultiBinary((2, 1))),
        "clerk": (spaces.MultiDiscrete([2, 3], start=[0, 1]), spaces.Discrete(1)),
        "boss": (spaces.Discrete(2, start=4), spaces.Discrete(4)),
    }
    obs = {
        "scout_0": np.array([1, 2]), "scout_1": [3.0, 4.0], "scout_2": np.array([5, 6], np.float64),
        "carrier": np.array([[1, 2], [3, 4]]), "guard-1": np.array([0, 1, 1]),
        "clerk": np.array([1, 3]), "boss": 5,
    }  # fmt: skip
    task, made = scripted(team, [{"obs": obs}])
    spec = task.spec
    assert isinstance(task, HostEnv) and len({task, PettingZoo(task.make)}) == 1
    assert spec.actions == Discrete(((3, 1), (3, 1), (2, 1), (2, 4), (2, 2), (1, 1), (4, 1)))
    assert (spec.obs_size, spec.state_size) == (5, 2 + 2 + 2 + 4 + 3 + 5 + 2)
    assert (
        spec.agent_types == (0, 0, 1, 2, 3, 4, 5) and spec.truncates and spec.reward_sum_over == 1
    )
    assert made[0].closed and spec.name.startswith("own/")
    rows = [[1, 2], [3, 4], [5, 6], [1, 2, 3, 4], [0, 1, 1], [0, 1, 0, 0, 1], [0, 1]]
    first, second = play(task, [[2, 0], [0, 0], [1, 0], [1, 3], [0, 1], [0, 0], [3, 0]])
    for now in (first, second):
        same(now.obs[0], [row + [0] * (5 - len(row)) for row in rows])
        same(now.state[0], [[x for row in rows for x in row]] * 7)
        same(now.action_mask[0], spec.actions.mask)
        assert now.obs.dtype == now.state.dtype == now.reward.dtype == np.float32
        assert now.alive.all() and not now.reward.any()
    assert first.episode_start.all() and not second.episode_start.any()
    (given,) = made[1].given
    assert (given["scout_0"], given["scout_1"], given["scout_2"]) == (1, -1, 1)
    same(given["carrier"], [1, 8])
    same(given["guard-1"], [[0], [1]])
    assert given["clerk"] == 0 and given["boss"] == 3


def test_vectors_are_clipped() -> None:
    """To bounds that may be infinite; agents may have different lengths and shapes."""
    low, high = np.array([-1, -np.inf], np.float32), np.array([1, 2], np.float32)
    team = {
        "a_0": (vector(1), spaces.Box(low, high)),
        "a_1": (vector(1), spaces.Box(-2, 0, (3, 1), np.float64)),
    }
    task, made = scripted(team, [{"obs": seen(0, 0)}])
    assert task.spec.actions == Box((2, 3)) and task.spec.agent_types == (0, 1)
    chosen = [[3.0, -100.0, 9.0], [0.5, -0.5, -7.0]]
    same(play(task, chosen)[1].action_mask[0], [[True, True, False], [True] * 3])
    (given,) = made[1].given
    same(given["a_0"], [1.0, -100.0])
    same(given["a_1"], [[0.0], [-0.5], [-2.0]])
    with pytest.raises(NonFiniteError, match=r"action of agent 1 in environment 0 is .*nan"):
        play(task, [[0.0] * 3, [0.0, np.nan, 0.0]])


def test_masks() -> None:
    """From a dictionary or from the infos, of one choice or of several."""
    inner = spaces.Dict({"observation": vector(1), "action_mask": spaces.MultiBinary(3)})
    team = {
        "a": (inner, spaces.Discrete(3)),
        "b": (vector(1), spaces.Discrete(2)),
        "c": (vector(2), spaces.MultiDiscrete([2, 3])),
    }

    def frame(a: Any, infos: Any) -> Any:
        obs = {"a": {"observation": [7.0], "action_mask": np.array(a, np.int8)}}
        return {"obs": {**obs, "b": [1.0], "c": [2.0, 3.0]}, "infos": infos}

    split = (np.array([1, 0], np.int8), np.array([0, 0, 1], np.int8))
    frames = [
        frame([0, 1, 1], {"b": {"action_mask": [0, 1]}, "c": {"action_mask": split}}),
        frame([1, 0, 0], {"a": {"action_mask": [1, 1, 1]}, "c": {"action_mask": [1, 1, 0, 1, 0]}}),
        frame([0, 0, 0], {}),
        frame([1, 1, 1], {"b": {"action_mask": [1]}}),
    ]
    task, _ = scripted(team, frames)
    idle = [[0, 0]] * 3
    first, second = play(task, idle)
    same(first.obs[0], [[7, 0], [1, 0], [2, 3]])
    same(first.action_mask[0] * 1, [[0, 1, 1, 1, 0, 0], [0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1]])
    same(second.action_mask[0] * 1, [[1, 0, 0, 1, 0, 0], [1, 1, 0, 1, 0, 0], [1, 1, 0, 0, 1, 0]])
    with pytest.raises(
        WorkerPoolError, match="step 2 of its episode: invalid, agent 'a' has an act"
    ):
        play(task, idle, idle)
    frames[2] = frames[1]
    with pytest.raises(WorkerPoolError, match="mask of 1 entries, expected 2"):
        play(task, idle, idle, idle)


def test_mixed_teams() -> None:
    """Agents with choices, with vectors and with both; nested actions keep their structure."""
    nested = spaces.Dict(
        {"gear": spaces.Discrete(3, start=1), "arm": spaces.Tuple([vector(2, 1.0), SWITCH])}
    )
    team = {
        "a": (vector(1), spaces.Discrete(2)),
        "b": (vector(1), vector(1, 5.0)),
        "c": (vector(1), nested),
    }
    mask = {"c": {"action_mask": [0, 1, 1, 1, 0]}}
    obs = {"a": [1.0], "b": [2.0], "c": [3.0]}
    task, made = scripted(team, [{"obs": obs}, {"obs": obs, "infos": mask}])
    spec = task.spec
    # The keys of a Dict are in alphabetical order: "arm" before "gear".
    assert spec.actions == Mixed(Discrete(((2, 1), (1, 1), (2, 3))), Box((0, 1, 2)))
    assert spec.agents == ("a", "b", "c") and spec.obs_sizes == (1, 1, 1)
    first, second = play(task, [[1, 0, 9, 9], [0, 0, 7, 9], [1, 2, 0.5, -3]])
    same(first.action_mask[0], spec.actions.mask)
    same(second.action_mask[0, 2] * 1, [0, 1, 1, 1, 0, 1, 1])
    (given,) = made[1].given
    assert given["a"] == 1 and isinstance(given["a"], np.integer)
    same(given["b"], [5.0])
    assert [*given["c"]] == ["arm", "gear"] and given["c"]["gear"] == 3
    same(given["c"]["arm"][0], [0.5, -1.0])
    assert given["c"]["arm"][1] == 1
    with pytest.raises(NonFiniteError, match="actions must be finite"):
        play(task, [[0, 0, 0, 0], [0, 0, 0, 0], [np.nan, 0, 0, 0]])


def test_dictionaries_tuples_and_images() -> None:
    """In the order of the space, the image first; the state joins images by channels."""
    space = spaces.Dict(
        {
            "a": spaces.Tuple([spaces.Discrete(2), vector(1)]),
            "action_mask": spaces.MultiBinary(2),
            "picture": IMAGE,
            "wind": spaces.MultiDiscrete([2, 2]),
        }
    )
    team = {name: (space, spaces.Discrete(2)) for name in ("x", "y")}
    pictures = np.arange(24, dtype=np.uint8).reshape(2, 2, 3, 2) * 10

    def one(i: int) -> dict[str, Any]:
        rest = {"wind": np.array([1, 0]), "action_mask": np.array([1, i], np.int8)}
        return {"a": (i, [7.0 + i]), "picture": pictures[i], **rest}

    task, _ = scripted(team, [{"obs": {"x": one(0), "y": one(1)}}])
    (now,) = play(task)
    spec, rest = task.spec, [[1, 0, 7, 0, 1, 1, 0], [0, 1, 8, 0, 1, 1, 0]]
    assert spec.image == (2, 3, 2) and spec.state_image == (2, 3, 4)
    assert (spec.obs_size, spec.state_size) == (12 + 7, 24 + 14)
    for i in range(2):
        np.testing.assert_allclose(now.obs[0, i, :12], pictures[i].ravel() / 255, rtol=1e-6)
        same(now.obs[0, i, 12:], rest[i])
    joined = np.concatenate([*pictures], axis=-1)
    np.testing.assert_allclose(now.state[0, 1, :24], joined.ravel() / 255, rtol=1e-6)
    same(now.state[0, 0, 24:], rest[0] + rest[1])
    same(now.action_mask[0] * 1, [[1, 0], [1, 1]])


@pytest.mark.parametrize(
    ("space", "images", "shape"),
    [
        (spaces.Box(0, 255, (4, 5), np.uint8), "uint8", (4, 5, 1)),
        (spaces.Box(0, 255, (3, 8, 9), np.uint8), "uint8", (8, 9, 3)),
        (spaces.Box(0, 255, (3, 8, 9), np.uint8), "none", None),
        (spaces.Box(0, 9, (3, 8, 9), np.uint8), "uint8", None),
        (spaces.Box(0, 255, (7,), np.uint8), "uint8", None),
        (spaces.Box(0, 1, (7, 7, 3), np.float32), "uint8", None),
        (spaces.Box(0, 1, (7, 7, 3), np.float32), "all", (7, 7, 3)),
    ],
)
def test_which_arrays_are_images(space: Any, images: str, shape: Any) -> None:
    """Bytes with two or three axes; channels are moved to the end."""
    value = np.random.default_rng(0).integers(0, 9, space.shape).astype(space.dtype)
    obs = dict.fromkeys(("a", "b"), value)
    team = dict.fromkeys(obs, (space, spaces.Discrete(2)))
    task, _ = scripted(team, [{"obs": obs}], images=images)
    assert task.spec.image == shape
    row = np.moveaxis(value, 0, -1) if shape == (8, 9, 3) else value
    bytes_ = space.dtype == np.uint8 and space.high.max() == 255 and value.ndim > 1
    wanted = row.ravel() / (255 if bytes_ else 1)
    np.testing.assert_allclose(play(task)[0].obs[0, 1], wanted, rtol=1e-6)


IMAGE, SWITCH = spaces.Box(0, 255, (2, 3, 2), np.uint8), spaces.Discrete(2)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ((spaces.Text(3), spaces.Discrete(2)), "'b' has observations of Text.* supported are Box"),
        ((spaces.Dict({"x": spaces.Text(3)}), spaces.Discrete(2)), "'b' has .*Text.* supported"),
        ((spaces.Tuple([]), spaces.Discrete(2)), "'b' has observations of Tuple.* no numbers"),
        ((spaces.Dict({MASK: spaces.MultiBinary(2)}), spaces.Discrete(2)), "no numbers"),
        ((vector(1), spaces.Tuple([])), "'b' has actions of Tuple.* nothing to decide"),
        ((vector(1), spaces.Tuple([spaces.Text(3)])), "'b' has actions of Text.* Tuple of these"),
        ((vector(1), spaces.Text(3)), "'b' has actions of Text.* supported are Discrete"),
        ((vector(1), spaces.Box(0, 3, (2,), np.int32)), "Box of real numbers"),
    ],
)
def test_unsupported_spaces_are_rejected(own: Any, words: str) -> None:
    """With the agent, its space, and what is supported."""
    task, _ = scripted({**TWO, "b": own}, [{"obs": seen(0, 0)}])
    with pytest.raises(ValueError, match=words) as error:
        _ = task.spec
    assert str(error.value).startswith("scripted.make: agent 'b'")
