"""Episodes of PettingZoo environments by hand: presence, ends, rewards, states, metrics."""

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
pytest.importorskip("mpe2", reason="needs the extra mpe2")

from gymnasium import spaces
from scripted_zoo import IDLE, KEY, SPREAD, TWO, both, play, same, scripted, seen, vector

from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.adapters.pettingzoo_worker import episode_seed
from fp3o.envs.workers.protocol import WorkerPoolError


def test_agents_that_leave_and_join() -> None:
    """Absent agents observe zeros and have one available action, which is ignored."""
    team = {**TWO, "a_2": (vector(1), spaces.Discrete(2))}
    late = {"a_2": np.array([30.0])}
    frames = [
        {"agents": ["a_0", "a_1"], "obs": seen(1, 2)},
        {"agents": ["a_0", "a_1", "a_2"], "obs": {**seen(11, 12), **late}, "rewards": both(1.0)},
        {"agents": ["a_0", "a_2"], "obs": {**seen(21, 22), **late}, "ended": {"a_1": True},
         "rewards": {"a_0": 1.0, "a_1": 5.0}},
        # It stays in `agents`, as in some environments.
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
    """The agents that leave last determine whether the episode is terminated or truncated."""
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
    """The time limit is an option, declared by the environment, or 1000 steps."""
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
    """Returns are per agent in every case: a sum is divided by the number of agents."""
    rewards = {"a_0": 1, "a_1": np.float64(3)}
    task, _ = scripted(TWO, [{"obs": seen(0, 0), "rewards": rewards}], reward=kind)
    assert task.spec.reward_sum_over == shares
    same(play(task, IDLE)[1].reward[0], paid)


def test_states() -> None:
    """The environment's own state if it is numeric, else the observations of all agents."""
    own = {"obs": seen(1, 2), "state": np.arange(6.0).reshape(2, 3)}
    task, _ = scripted(TWO, [own])
    assert task.spec.state_size == 6
    same(play(task)[0].state[0], [range(6)] * 2)
    for bad in (None, "a text", np.zeros((4, 4, 3), np.uint8), np.array([np.nan])):
        assert scripted(TWO, [{**own, "state": bad}])[0].spec.state_size == 2
    changing, _ = scripted(TWO, [own, {**own, "state": np.zeros(5)}])
    with pytest.raises(WorkerPoolError, match="a state of 5 numbers, expected 6"):
        play(changing, IDLE)


def test_episode_metrics() -> None:
    """Read from the infos of the agents that have them, else 0."""
    frames = [
        {"obs": seen(1, 2)},
        {"obs": seen(1, 2), "agents": [], "infos": {"a_1": {"won": True, "lost": np.int8(3)}}},
    ]
    task, _ = scripted(TWO, frames, episode_metrics=("won", "lost", "other"))
    assert task.spec.episode_metrics == ("won", "lost", "other")
    first, second = play(task, IDLE)
    same(first.episode_metrics, [[0, 0, 0]])
    same(second.episode_metrics, [[1, 3, 0]])
