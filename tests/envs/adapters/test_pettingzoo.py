"""PettingZoo environments as tasks: every number by hand, real packages, and what goes wrong."""

import importlib
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
pytest.importorskip("mpe2", reason="needs the extra mpe2")

from gymnasium import spaces
from particle import MODULES
from tiny_zoo import Counting, Scripted

from fp3o.envs.adapters.pettingzoo import PettingZoo, make_env
from fp3o.envs.adapters.pettingzoo_worker import episode_seed, load_factory
from fp3o.envs.api import HostEnv
from fp3o.envs.mpe.scenarios import SCENARIOS, particle_env
from fp3o.envs.workers.protocol import FailureCounts, Timeouts, WorkerPoolError
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.envs.workers.worker import MAX_OUTPUT
from fp3o.errors import MissingExtraError, NonFiniteError, UserError
from fp3o.learning.config import Config
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.spec import Box, Discrete
from fp3o.training.program import Program
from fp3o.types import TimeStep

KEY = jax.random.key(0)
QUICK = Timeouts(reset=30, step=1.5)
SPREAD = "mpe2.simple_spread_v3:parallel_env"


def vector(size: int, bound: float = np.inf) -> spaces.Box:
    return spaces.Box(-bound, bound, (size,), np.float32)


def scripted(team: Any, frames: Any, **options: Any) -> tuple[PettingZoo, list[Scripted]]:
    """A task of one script, and the environments that were made of it."""
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted(team, frames))
        return made[-1]

    return PettingZoo(make, **options), made


def play(task: PettingZoo, *actions: Any) -> list[TimeStep]:
    """What one environment shows, from its reset on; an action is `(n, d)`."""
    env = task.vectorise(1)
    state, now = env.reset(KEY)
    shown = [now]
    for action in actions:
        state, now = env.step(state, np.array(action)[None])
        shown.append(now)
    return shown


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


TWO = {"a_0": (vector(1), spaces.Discrete(2)), "a_1": (vector(1), spaces.Discrete(2))}
"""A team of two for scripts."""
IDLE = [[0], [0]]


def seen(first: float, second: float) -> dict[str, np.ndarray]:
    return {"a_0": np.array([first]), "a_1": np.array([second])}


def both(value: Any) -> dict[str, Any]:
    return dict.fromkeys(TWO, value)


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


def test_agents_that_leave_and_come() -> None:
    """The absent show zeros and may only do nothing; nobody is asked what they do."""
    team = {**TWO, "a_2": (vector(1), spaces.Discrete(2))}
    late = {"a_2": np.array([30.0])}
    frames = [
        {"agents": ["a_0", "a_1"], "obs": seen(1, 2)},
        {"agents": ["a_0", "a_1", "a_2"], "obs": {**seen(11, 12), **late}, "rewards": both(1.0)},
        {"agents": ["a_0", "a_2"], "obs": {**seen(21, 22), **late}, "ended": {"a_1": True},
         "rewards": {"a_0": 1.0, "a_1": 5.0}},
        # It stays on the list, as some environments have it.
        {"agents": ["a_0", "a_2"], "obs": {"a_0": [31.0], **late}, "cut": {"a_2": True}},
        {"agents": [], "obs": {"a_0": [41.0]}, "ended": {"a_0": True}, "rewards": {"a_0": 3.0}},
    ]  # fmt: skip
    task, made = scripted(team, frames, reward="own")
    every = [[1], [1], [1]]
    shown = play(task, *[every] * 4)
    same([now.alive[0] * 1 for now in shown],
         [[1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 0, 0], [1, 1, 0]])  # fmt: skip
    same([now.obs[0, :, 0] for now in shown],
         [[1, 2, 0], [11, 12, 30], [21, 0, 30], [31, 0, 0], [1, 2, 0]])  # fmt: skip
    same([now.state[0, 1] for now in shown], [now.obs[0, :, 0] for now in shown])
    same(shown[0].action_mask[0], [[True, True], [True, True], [True, False]])
    same(shown[3].action_mask[0], [[True, True], [True, False], [True, False]])
    same([now.reward[0] for now in shown], [[0] * 3, [1, 1, 0], [1, 5, 0], [0] * 3, [3, 0, 0]])
    same([now.terminated[0] for now in shown], [False] * 4 + [True])
    same(shown[4].final_obs[0, :, 0], [41, 0, 0])
    same(shown[4].final_state[0], [[41, 0, 0]] * 3)
    assert not any(now.truncated.any() for now in shown)
    assert [sorted(given) for given in made[1].given] == [
        ["a_0", "a_1"], ["a_0", "a_1", "a_2"], ["a_0", "a_2"], ["a_0"]
    ]  # fmt: skip


YES, NO = True, False


@pytest.mark.parametrize(
    ("ended", "cut", "late"),
    [
        ((YES, YES), (NO, NO), NO),
        ((NO, NO), (YES, YES), YES),
        ((YES, NO), (NO, YES), YES),  # something would have followed for one of them
        ((YES, YES), (YES, YES), NO),  # it was over anyway
        ((YES, NO), (YES, YES), YES),
        ((NO, NO), (NO, NO), NO),  # they are just gone
    ],
)
def test_ends(ended: tuple[bool, bool], cut: tuple[bool, bool], late: bool) -> None:
    """Whoever leaves last decides whether the end was one, or a time limit."""
    flags = {"ended": dict(zip(TWO, ended, strict=True)), "cut": dict(zip(TWO, cut, strict=True))}
    frames = [{"obs": seen(1, 2)}, {"obs": seen(3, 4), "agents": [], **flags}]
    task, made = scripted(TWO, frames)
    env = task.vectorise(1)
    state, now = env.reset(KEY)
    for _ in range(2):
        state, now = env.step(state, np.array([IDLE]))
        assert (now.terminated[0], now.truncated[0]) == (not late, late) and now.episode_start.all()
        same(now.final_obs[0, :, 0], [3, 4])
        same(now.obs[0, :, 0], [1, 2])
    same(state.time, [0])
    same(state.episode, [3])
    seed = env._pool.seeds[0]
    assert made[1].seeds == [episode_seed(seed, episode) for episode in range(3)]
    assert len({*made[1].seeds}) == 3


def test_limits() -> None:
    """An option, what the environment says of itself, or a thousand steps."""
    frames = [{"obs": seen(1, 2)}, {"obs": seen(3, 4)}]
    task, made = scripted(TWO, frames, max_episode_steps=3)
    shown = play(task, *[IDLE] * 6)
    same([now.truncated[0] for now in shown], [NO, NO, NO, YES, NO, NO, YES])
    assert not any(now.terminated.any() for now in shown)
    same(shown[3].final_obs[0, :, 0], [3, 4])
    same(shown[3].obs[0, :, 0], [1, 2])
    assert shown[3].alive.all() and task.max_episode_steps == 3 and len(made[1].seeds) == 3
    assert PettingZoo(SPREAD).max_episode_steps == 25
    assert PettingZoo(SPREAD, {"max_cycles": 7}).max_episode_steps == 7
    assert scripted(TWO, frames)[0].max_episode_steps == 1000


@pytest.mark.parametrize(
    ("kind", "paid", "shares"), [("mean", [2, 2], 1), ("sum", [4, 4], 2), ("own", [1, 3], 1)]
)
def test_rewards(kind: str, paid: list[float], shares: int) -> None:
    """Returns are one agent's in every case: the sum is shared by all."""
    rewards = {"a_0": 1, "a_1": np.float64(3)}
    task, _ = scripted(TWO, [{"obs": seen(0, 0), "rewards": rewards}], reward=kind)
    assert task.spec.reward_sum_over == shares
    same(play(task, IDLE)[1].reward[0], paid)


def test_states() -> None:
    """The environment's own if it has one of numbers, else what all agents see."""
    own = {"obs": seen(1, 2), "state": np.arange(6.0).reshape(2, 3)}
    task, _ = scripted(TWO, [own])
    assert task.spec.state_size == 6
    same(play(task)[0].state[0], [range(6)] * 2)
    for bad in (None, "a text", np.zeros((4, 4, 3), np.uint8), np.array([np.nan])):
        assert scripted(TWO, [{**own, "state": bad}])[0].spec.state_size == 2
    changing, _ = scripted(TWO, [own, {**own, "state": np.zeros(5)}])
    with pytest.raises(WorkerPoolError, match="a state of 5 numbers, expected 6"):
        play(changing, IDLE)


def test_outcomes() -> None:
    """Read from the infos of whoever tells them, 0 without."""
    frames = [
        {"obs": seen(1, 2)},
        {"obs": seen(1, 2), "agents": [], "infos": {"a_1": {"won": True, "lost": np.int8(3)}}},
    ]
    task, _ = scripted(TWO, frames, episode_metrics=("won", "lost", "other"))
    assert task.spec.episode_metrics == ("won", "lost", "other")
    first, second = play(task, IDLE)
    same(first.episode_metrics, [[0, 0, 0]])
    same(second.episode_metrics, [[1, 3, 0]])


class Odd(Scripted):
    """Answers that are not those of a ParallelEnv."""

    answers: Any = None

    def step(self, actions: Any) -> Any:
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers or super().step(actions)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RuntimeError("no mood"), r"crashed, RuntimeError: no mood \(.*test_pettingzoo.py, line"),
        ((1, 2, 3, 4), "invalid, step returned a tuple of 4, expected 5 dictionaries"),
        ([1], "invalid, step returned list"),
        (({}, {}, {}, {}, {}), "invalid, agent 'a_0' is present and has no observation"),
        ((seen(0, 1), both(np.nan), {}, {}, {}), "invalid, reward is not finite"),
        ((seen(np.inf, 1), {}, {}, {}, {}), "invalid, obs is not finite"),
        (({"a_0": [1, 2], "a_1": [1]}, {}, {}, {}, {}), "'a_0' has an observation of 2 numbers, e"),
    ],
)
def test_failures_in_this_process(answer: Any, words: str) -> None:
    """They are errors that say where; afterwards, everything begins anew."""
    frames, made = [{"obs": seen(1, 2)}], []

    def make() -> Odd:
        made.append(Odd(TWO, frames))
        return made[-1]

    env = PettingZoo(make).vectorise(2)
    state, _ = env.reset(KEY)
    state, _ = env.step(state, np.array([IDLE] * 2))
    made[2].answers = answer
    with pytest.raises(
        WorkerPoolError, match=f"^environment 1, in step 2 of its episode: .*{words}"
    ):
        env.step(state, np.array([IDLE] * 2))
    assert all(one.closed for one in made)
    with pytest.warns(RuntimeWarning, match="2 running episodes of 2 steps"):
        state, now = env.step(state, np.array([IDLE] * 2))
    assert now.truncated.all() and not now.reward.any() and len(made) == 5
    _, now = env.step(state, np.array([IDLE] * 2))
    assert not now.truncated.any()


def test_first_looks_find_faults() -> None:
    """What a reset shows is held against the spaces before anything is trained."""
    for frame, words in (
        ({"obs": {"a_0": [1.0]}}, "'a_1' is present and has no observation"),
        ({"obs": seen(1, 2), "agents": []}, "no agent is present after a reset"),
        ({"obs": seen(1, 2), "agents": ["x"]}, r"not among possible_agents: \['x'\]"),
        ({"obs": seen(np.nan, 2)}, "obs is not finite"),
    ):
        with pytest.raises(ValueError, match=words):
            _ = scripted(TWO, [frame])[0].spec
    team = {**TWO, "a_1": (spaces.Discrete(2), spaces.Discrete(2))}
    with pytest.raises(ValueError, match=r"'a_1' has an observation of \[2.*\], which is not in"):
        _ = scripted(team, [{"obs": {"a_0": [1.0], "a_1": 2}}])[0].spec


IMAGE = spaces.Box(0, 255, (8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ((IMAGE, spaces.Discrete(2)), "'b' has observations of Box.* images"),
        ((spaces.Text(3), spaces.Discrete(2)), "'b' has observations of Text.* supported are Box"),
        ((spaces.Dict({"x": vector(1)}), spaces.Discrete(2)), "Dict must have the keys"),
        ((spaces.Dict({"observation": IMAGE}), spaces.Discrete(2)), "images"),
        ((spaces.Tuple([vector(1)]), spaces.Discrete(2)), "'b' has observations of Tuple"),
        ((vector(1), spaces.Text(3)), "'b' has actions of Text.* supported are Discrete"),
        ((vector(1), spaces.Box(0, 3, (2,), np.int32)), "Box of real numbers"),
        ((vector(1), vector(2, 1.0)), "agent 'b' has .*Box.* agent 'a_0' of Discrete.* all"),
    ],
)
def test_spaces_that_are_refused(own: Any, words: str) -> None:
    """With the agent, its space, and what is supported."""
    task, _ = scripted({**TWO, "b": own}, [{"obs": seen(0, 0)}])
    with pytest.raises(ValueError, match=words) as error:
        _ = task.spec
    assert str(error.value).startswith("scripted.<locals>.make: agent 'b'")


def test_things_that_are_no_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong paths, arguments, options and objects say what to do."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needy_zoo.py").write_text("import pettingzoo\nparallel_env = None\n")
    (tmp_path / "poor_zoo.py").write_text("import not_to_be_found\n")
    for path, words in {
        "nowhere.env:make": "No module named 'nowhere'", "nowhere": "is it installed",
        "mpe2.simple_spread_v3:paralel_env": "did you mean 'parallel_env'",
        "mpe2.simple_spread_v3.wrong": "'mpe2.simple_spread_v3' has no 'wrong'",
        "tiny_zoo": "'tiny_zoo' has no 'parallel_env'", "poor_zoo": "not_to_be_found",
        "mpe2.simple_spread_v3:env": "AEC environment.*aec_to_parallel",
        "builtins:dict": "dict names no possible_agents",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=words):
            _ = PettingZoo(path).spec
    with pytest.raises(ValueError, match="unexpected keyword argument 'M'"):
        _ = PettingZoo(SPREAD, {"M": 3}).spec
    one = Scripted(TWO, [{"obs": seen(0, 0)}])
    with pytest.raises(WorkerPoolError, match="the same environment twice"):
        play(PettingZoo(lambda: one))
    with pytest.raises(ValueError, match="workers=0"):
        scripted(TWO, [{"obs": seen(0, 0)}], workers=1)[0].vectorise(1)
    for wrong, words in (
        ({"reward": "man"}, "did you mean 'mean'"), ({"workers": -1}, "at least 0"),
        ({"max_episode_steps": 0}, "at least 1"), ({"on_failure": "halt"}, "Known: replace, stop"),
        ({"timeouts": Timeouts(-1)}, "timeouts"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            PettingZoo("x", **wrong)
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtraError, match=r"fp3o\[pettingzoo\]"):
        _ = PettingZoo("needy_zoo").spec


def test_names() -> None:
    """A name is the path and all options, and leads back to the same task."""
    spellings = SPREAD, SPREAD.replace(":", "."), SPREAD.partition(":")[0]
    assert len({*map(load_factory, spellings)}) == 1
    plain = PettingZoo(SPREAD)
    assert plain.spec.name == "pettingzoo/mpe2.simple_spread_v3.parallel_env:default"
    task = PettingZoo(SPREAD, {"N": 2}, reward="sum", workers=2)
    wanted = "default:reward=sum,workers=2,env.N=2"
    assert task.variant == wanted and task.spec.name.endswith(f".parallel_env:{wanted}")
    path, _, variant = task.spec.name.removeprefix("pettingzoo/").partition(":")
    assert make_env(path, variant).spec == task.spec
    assert make_env(path, variant) is make_env(path, variant)
    odd = {
        "a": "3x1", "b": "1e3", "c": (1, 2), "d": None, "e": {"x": [True]}, "f": "x, y=2", "g": "",
    }  # fmt: skip
    more = PettingZoo(
        "a.b:c", odd, max_episode_steps=9, episode_metrics=("won", "lost"), on_failure="stop",
        timeouts=Timeouts(step=5),
    )  # fmt: skip
    assert make_env("a.b:c", more.variant) == more
    assert "env.a=3x1" in more.variant and "timeouts.step=5" in more.variant
    assert PettingZoo("a.b:c", {"x": object()}).name == "own/a.b:c"
    for text, words in (
        ("defalt", "did you mean 'default'"), ("default:rewrd=sum", "did you mean 'reward'"),
        ("default:reward", "unknown variant"), ("default:timeouts.x=1", "timeouts.step"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            make_env("a", text)


def by_hand(env: Any, task: PooledVecEnv, state: Any, now: TimeStep, steps: int, i: int) -> int:
    """Play an environment beside one of a batch, step by step; how many episodes have ended."""
    agents, spec = env.possible_agents, task.spec
    rng, episode = np.random.default_rng(3), 0
    obs, _ = env.reset(seed=episode_seed(task._pool.seeds[i], 0))
    for _ in range(steps):
        for row, agent in zip(now.obs[i], agents, strict=True):
            same(row, np.pad(obs[agent].astype(np.float32), (0, spec.obs_size - len(obs[agent]))))
        same(now.state[i], [env.state().astype(np.float32)] * len(agents))
        if isinstance(spec.actions, Discrete):
            action = rng.integers(0, spec.actions.sizes, (task.num_envs, len(agents), 1))
            given = {agent: action[i, k, 0] for k, agent in enumerate(agents)}
        else:
            action = rng.normal(size=(task.num_envs, len(agents), 1)).astype(np.float32)
            given = {agent: np.clip(action[i, k], -1, 1) for k, agent in enumerate(agents)}
        state, now = task.step(state, action)
        obs, rewards, ended, cut, _ = env.step(given)
        team = np.float32(np.mean([rewards[agent] for agent in agents]))
        same(now.reward[i], [team] * len(agents))
        over, late = any(ended.values()), any(cut.values())
        assert (now.terminated[i], now.truncated[i]) == (over, late and not over)
        same(now.final_state[i, 0], env.state().astype(np.float32))
        if over or late:
            episode += 1
            obs, _ = env.reset(seed=episode_seed(task._pool.seeds[i], episode))
    return episode


@pytest.mark.parametrize("name", SCENARIOS)
def test_equals_mpe2(name: str) -> None:
    """Stepping the package's environments by hand; the facts are those of our own tasks."""
    task = PettingZoo(f"mpe2.{MODULES[name]}:parallel_env")
    ours = particle_env(name, "mpe2").spec
    for fact in ("actions", "obs_size", "state_size", "agent_types", "truncates"):
        assert getattr(task.spec, fact) == getattr(ours, fact)
    env = task.vectorise(2)
    raw = importlib.import_module(f"mpe2.{MODULES[name]}").parallel_env()
    assert by_hand(raw, env, *env.reset(KEY), 55, 1) == 2


def test_registry() -> None:
    """PettingZoo's own way to name environments: rock, paper, scissors, seen as one of four."""
    pytest.importorskip("pygame")
    if not hasattr(pytest.importorskip("pettingzoo"), "make"):
        pytest.skip("this version has no registry")
    kwargs = {"env_type": "parallel", "id": "classic/rps-v2", "max_cycles": 3}
    task = PettingZoo("pettingzoo:make", kwargs, reward="own")
    assert task.spec.actions == Discrete(((3,), (3,))) and task.max_episode_steps == 3
    first, second, _, last = play(task, [[0], [1]], [[2], [2]], [[1], [0]])
    same(first.obs[0], [[0, 0, 0, 1]] * 2)
    same(second.obs[0], [[0, 1, 0, 0], [1, 0, 0, 0]])
    same(second.reward[0], [-1, 1])
    assert last.truncated.all() and not last.terminated.any()


@pytest.fixture
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes its warnings to a file where it runs."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("somewhere_else")
def test_equals_mamujoco() -> None:
    """Continuous actions: gymnasium-robotics' hopper falls a few times."""
    pytest.importorskip("gymnasium_robotics")
    kwargs = {"scenario": "Hopper", "agent_conf": "3x1"}
    task = PettingZoo("gymnasium_robotics.mamujoco_v1:parallel_env", kwargs)
    assert task.spec.actions == Box((1, 1, 1)) and task.spec.agent_types == (0, 1, 0)
    assert task.spec.name.endswith(":default:env.agent_conf=3x1,env.scenario=Hopper")
    env = task.vectorise(2)
    raw = load_factory("gymnasium_robotics.mamujoco_v1")(**kwargs)
    assert by_hand(raw, env, *env.reset(KEY), 120, 0) > 2


def test_workers_play_the_same() -> None:
    """As in this process, bit by bit, and again for the same key."""
    here, there = (PettingZoo(SPREAD, {"N": 2}, workers=number).vectorise(2) for number in (0, 1))
    keys = jax.random.split(KEY, 2)
    for _ in range(2):
        (one, a), (two, b) = here.reset(keys), there.reset(keys)
        for _ in range(27):
            for left, right in zip(a, b, strict=True):
                same(left, right)
            action = np.random.default_rng(0).integers(0, 5, (2, 2, 1))
            (one, a), (two, b) = here.step(one, action), there.step(two, action)
    assert not np.array_equal(a.obs[0], a.obs[1])
    assert here.failure_counts() == there.failure_counts() == FailureCounts().metrics()
    there.close()


def small(num_seeds: int | None = None, **options: Any) -> Program:
    """Training on a particle task of the package."""
    config = Config(algorithm="fp3o", num_envs=2, rollout=10, minibatches=2, hidden=(8,), epochs=1)
    env = PettingZoo("mpe2.simple_speaker_listener_v4", {"max_cycles": 8}, **options)
    return Program(env.vectorise(2 * (num_seeds or 1)), config, num_seeds)


def test_training() -> None:
    """An iteration that nobody keeps, such as that of compiling, leaves no trace."""
    programs = small(2), small(2, reward="sum")
    states = [program.init(0) for program in programs]
    programs[1].compile(states[1])
    found: list[Any] = [program.iterate(state) for program, state in zip(programs, states)]  # noqa: B905
    (one, metrics), (two, summed) = found
    same(one.rollout.timestep.obs, two.rollout.timestep.obs)
    same(metrics["episodes"], [2, 2])
    np.testing.assert_allclose(metrics["episode_return"], summed["episode_return"], rtol=1e-5)
    copy = from_arrays(programs[1].init(5), to_arrays(one))
    with pytest.warns(RuntimeWarning, match="4 running episodes of 8 steps"):
        state, metrics = programs[1].iterate(copy)
    assert np.isfinite(metrics["episode_return"]).all()
    state, _ = programs[1].iterate(state)


def counting(folder: Path, *deeds: str, **options: Any) -> PettingZoo:
    kwargs = {"folder": str(folder), "deeds": deeds, "always": options.pop("always", "")}
    return PettingZoo("tiny_zoo:Counting", kwargs, workers=1, timeouts=QUICK, **options)


def test_workers_that_fail(tmp_path: Path) -> None:
    """Their episodes end where they were last seen; the others notice nothing."""
    env = counting(
        tmp_path, "kill", "hang", "nan", "shape", "raise", episode_metrics=("won",)
    ).vectorise(6)
    state, now = env.reset(KEY)
    stay = np.zeros((6, 2, 1), int)
    for _ in range(2):
        state, now = env.step(state, stay)
    assert not now.truncated.any()
    with pytest.warns(RuntimeWarning) as told:
        state, now = env.step(state, stay)
    lost = now.truncated
    assert lost.sum() == 5 and not now.terminated.any()  # who claimed which deed is luck
    same(now.reward, np.repeat(~lost[:, None], 2, 1))
    same(now.final_obs[:, 0, 0], np.where(lost, 2, 3))
    same(now.obs[:, 0, 0], np.where(lost, 0, 3))
    counts = FailureCounts(crashed=2, hung=1, invalid=2, restarts=5, lost_steps=10)
    assert env.failure_counts() == counts.metrics()
    words = " ".join(str(one.message) for one in told)
    for part in ("ended by signal 9", "no reply in time", "reward is not finite",
                 "agent 'a_0' has an observation of 1 numbers, expected 2",
                 "RuntimeError: the zoo is closed"):  # fmt: skip
        assert words.count(part) == 1
    for _ in range(2):
        state, now = env.step(state, stay)
    same(now.terminated, ~lost)
    same(now.episode_metrics[:, 0], ~lost)
    env.close()


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("kill", "crashed, ended by signal 9"), ("hang", "hung, no reply in time"),
        ("nan", "invalid, reward is not finite"), ("shape", "invalid, agent 'a_0' has an obs"),
        ("exit", "crashed, exit code 5\nThe end of its output: last words"),
    ],
)  # fmt: skip
def test_a_failure_can_be_an_error(tmp_path: Path, deed: str, words: str) -> None:
    """The first one, if that is asked for; no process is left."""
    env = counting(tmp_path, deed, on_failure="stop").vectorise(2)
    state, _ = env.reset(KEY)
    stay = np.zeros((2, 2, 1), int)
    for _ in range(2):
        state, _ = env.step(state, stay)
    with pytest.raises(WorkerPoolError, match=f"failed after 2 steps of its episode.*: {words}"):
        env.step(state, stay)
    assert env._pool._workers == [None, None] and env.failure_counts()["env_restarts"] == 0  # pyright: ignore


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def restart(folder: Path, times: int) -> PooledVecEnv:
    """A batch whose every worker fails in the third step, again and again."""
    env = counting(folder, always="exit").vectorise(4)
    state, _ = env.reset(KEY)
    stay = np.zeros((4, 2, 1), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        while env.failure_counts()["env_restarts"] < times:
            state, _ = env.step(state, stay)
    counts = env.failure_counts()
    assert counts["env_crashed"] == counts["env_restarts"] == times
    return env


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files")


@needs_proc
def test_restarts_leave_nothing_open(tmp_path: Path) -> None:
    """Pipes and files of the workers that failed are closed."""
    before = open_files()
    env = restart(tmp_path, 8)
    assert open_files() == before + 4 * 3  # of those that live: a pipe, memory, and what they print
    env.close()
    assert open_files() == before


@needs_proc
@pytest.mark.slow
def test_two_hundred_restarts(tmp_path: Path) -> None:
    """Neither open files nor memory grow."""
    restart(tmp_path, 20).close()
    files, memory = open_files(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    restart(tmp_path, 200).close()
    assert open_files() == files
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 3_000, f"{grown} KiB more"


def test_printing_is_bounded(tmp_path: Path) -> None:
    """A worker may print as much as it likes; only the end of it is kept."""
    env = counting(tmp_path, always="print").vectorise(1)
    state, _ = env.reset(KEY)
    sizes = []
    for _ in range(12):
        state, _ = env.step(state, np.zeros((1, 2, 1), int))
        (worker,) = env._pool._workers  # pyright: ignore
        sizes.append(os.fstat(worker._output.fileno()).st_size)
    assert max(sizes) <= MAX_OUTPUT and sizes[-1] > 0  # it has printed three times as much, twice
    assert worker._output_tail().endswith(b"noise noise \n")
    env.close()


def test_pictures() -> None:
    """Of a single environment in this process that draws one; the last one of what has passed."""
    pytest.importorskip("pygame")
    env = PettingZoo(SPREAD, render_mode="rgb_array").vectorise(1)
    state, _ = env.reset(KEY)
    shot = env.render(state, "step 0")
    assert shot is not None and shot.dtype == np.uint8 and shot.shape[2] == 3
    later, _ = env.step(state, np.ones((1, 3, 1), int))
    same(env.render(state, "step 0"), shot)
    later, _ = env.step(later, np.ones((1, 3, 1), int))  # the first one only makes them move
    assert not np.array_equal(env.render(later, "step 0"), shot)
    env.close()
    many = PettingZoo(SPREAD, render_mode="rgb_array").vectorise(2)
    with pytest.raises(UserError, match="returned no image"):
        many.render(many.reset(KEY)[0], "")
    assert "render_mode" not in PettingZoo(SPREAD, render_mode="rgb_array").name
    plain, _ = scripted(TWO, [{"obs": seen(0, 0)}])
    assert isinstance(plain.vectorise(1), PooledVecEnv)


def test_what_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing, or an error that says what drawing needs; without a screen, that is set."""

    class Blind(Scripted):
        def __init__(self, render_mode: str | None = None):
            super().__init__(TWO, [{"obs": seen(0, 0)}])

        def render(self) -> Any:
            return 1 / 0

    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SDL_VIDEODRIVER", "offscreen")
    env = PettingZoo(Blind).with_rendering().vectorise(1)
    if sys.platform == "linux":
        assert (os.environ["SDL_VIDEODRIVER"], os.environ["MUJOCO_GL"]) == ("offscreen", "egl")
    state, _ = env.reset(KEY)
    with pytest.raises(UserError, match=r"cannot be rendered: ZeroDivisionError.*MUJOCO_GL=egl"):
        env.render(state, "")
    monkeypatch.setattr(Blind, "render", lambda _: "a text")
    with pytest.raises(UserError, match="returned no image"):
        env.render(state, "")


def test_places_need_no_jax() -> None:
    """Workers start in a moment."""
    program = "import sys, fp3o.envs.adapters.pettingzoo_worker as _; print(*sys.modules)"
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert "numpy" in asked.stdout.decode().split()
    assert b"jax" not in asked.stdout and b"pettingzoo.utils" not in asked.stdout


def test_the_stand_in_is_a_parallel_env(tmp_path: Path) -> None:
    """By PettingZoo's own test."""
    with warnings.catch_warnings():
        # The package's tests import its own environments in a way that it has given up.
        warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
        from pettingzoo.test import parallel_api_test
    parallel_api_test(Counting(str(tmp_path)), num_cycles=20)
