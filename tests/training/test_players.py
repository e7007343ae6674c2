"""Blocks of host environments: the same numbers wherever, and however often, they are played."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from typing import Any

import jax
import numpy as np
import pytest
from host_probe import HostProbe
from worker_pools import SPEC

from fp3o.envs.toys.probe import PROBES, Probe
from fp3o.envs.workers.in_process import InProcessPool
from fp3o.envs.workers.protocol import buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import NonFiniteError, SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.training import player_pool
from fp3o.training.host_rollout import HostRollout
from fp3o.training.player_pool import (
    PlayerFailureError,
    PlayerLimits,
    PlayerPool,
    PlayerPoolError,
    check_players,
)
from fp3o.training.players import BlockPlayer, PlayedBlocks
from fp3o.training.rollout import RolloutState, empty_hidden_and_stats

ENVS, BLOCKS, STEPS = 8, 4, 7
CONFIG = Config(
    num_envs=ENVS, blocks=BLOCKS, rollout=STEPS, hidden=(8,), gru_size=4, sequence_length=7
)


class Player:
    """A player in this process; each request, and the start, may have a failure."""

    def __init__(self, player: BlockPlayer, failures: list[str]):
        self.player, self.failures, self.ended = player, failures, False
        self.ready: Future[Any] = Future()
        if failures[:1] == ["never starts"]:
            return
        if failures[:1] == ["dies at once"]:
            self.ready.set_exception(PlayerFailureError(failures.pop(0)))
        else:
            self.ready.set_result(None)

    def ask(self, request: Any) -> Future[Any]:
        assert not self.ended
        answer: Future[Any] = Future()
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "hangs":
            return answer
        replies = self.player.play(*request)
        if failure == "raises":
            answer.set_exception(NonFiniteError("a reward is NaN"))
        elif failure:
            answer.set_exception(PlayerFailureError(failure))
        else:
            answer.set_result(replies)
        return answer

    def end(self) -> None:
        self.ended = True


@cache
def compiled(
    make_env: Callable[[int], Any], config: Config, num_seeds: int | None
) -> tuple[Setup, HostRollout]:
    """Functions that all players share, so that they are compiled once."""
    setup = Setup(make_env(1).spec, config)
    return setup, HostRollout(setup, num_seeds)


class Lab:
    """Pools of players whose failures are prepared, and their messages."""

    def __init__(self, make_env: Callable[[int], Any], config: Config, num_seeds: int | None):
        self.setup, self.host = compiled(make_env, config, num_seeds)
        self.num_seeds, self.config = num_seeds, config
        self._make = partial(make_env, config.num_envs // config.blocks * (num_seeds or 1))
        self.lines: list[str] = []
        self.started: list[Player] = []

    def player(self) -> BlockPlayer:
        """One with its own environments, and the compiled functions of all."""
        made = BlockPlayer(self.setup, self.num_seeds, self._make)
        made._host = self.host
        return made

    def here(self) -> PlayedBlocks:
        """All blocks in one player."""
        return PlayedBlocks(self.setup, self.num_seeds, self.player())

    def pool(self, *failures: list[str], **limits: Any) -> PlayerPool:
        """One player per list of failures."""
        self.started = []

        def start() -> Player:
            # They start in the order of their places; later ones replace a failed one.
            number = len(self.started)
            planned = failures[number] if number < len(failures) else limits.get("later", [])
            self.started.append(Player(self.player(), planned))
            return self.started[-1]

        chosen = PlayerLimits(limits.get("seconds"), limits.get("start", 600.0))
        return PlayerPool(start, len(failures), BLOCKS, chosen, self.lines.append)

    def played(self, *failures: list[str], **limits: Any) -> PlayedBlocks:
        return PlayedBlocks(self.setup, self.num_seeds, self.pool(*failures, **limits))

    def rollouts(self, blocks: PlayedBlocks, number: int = 2) -> list[Any]:
        """The first rollouts with the initial policies: trajectories and states after them."""
        found, state = [], self.start(blocks)
        for i in range(number):
            keys = self.keys(i + 1, STEPS)
            state, trajectory = blocks.collect(self.params, state, keys)
            found.append((trajectory, state))
        return found

    def start(self, source: Any) -> RolloutState:
        rest = empty_hidden_and_stats(self.setup, self.config.num_envs)
        if self.num_seeds:
            rest = jax.tree.map(lambda x: np.stack([x] * 2), rest)
        return RolloutState(*source.reset(self.keys(0)), *jax.tree.map(np.asarray, rest))

    def keys(self, number: int, *shape: int) -> Any:
        lead = (self.num_seeds,) if self.num_seeds else ()
        key = jax.random.key(number)
        return jax.random.split(key, (*lead, *shape)) if lead or shape else key

    @property
    def params(self) -> Any:
        actor = self.setup.init(0).actor
        return jax.tree.map(lambda x: np.stack([x, 2 * x]), actor) if self.num_seeds else actor


def credit(number: int) -> HostProbe:
    probe = PROBES["credit"]
    assert isinstance(probe, Probe)
    return HostProbe(probe, number)


def probes(config: Config = CONFIG, num_seeds: int | None = None) -> Lab:
    return Lab(credit, config, num_seeds)


def assert_equal(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_it_does_not_matter_who_plays(num_seeds: int | None) -> None:
    """Two players, and four of which some fail, collect what one process collects."""
    lab = probes(num_seeds=num_seeds)
    wanted = lab.rollouts(lab.here())
    lead = (STEPS, num_seeds, ENVS) if num_seeds else (STEPS, ENVS)
    assert wanted[0][0].obs.shape[:-2] == lead
    assert len(wanted[0][1].env_state) == BLOCKS
    assert_equal(lab.rollouts(lab.played([], [])), wanted)
    failing = lab.played([], ["", "is gone"], ["is ill"], ["dies at once"])
    assert_equal(lab.rollouts(failing), wanted)
    assert len(lab.lines) == 3 and failing.failure_counts() == {}
    assert "player 1 is gone and is replaced: its blocks are played again" in lab.lines[-1]


def test_blocks_have_the_noise_of_compiled_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, it is the noise that programs on devices have for these blocks."""
    lab, parts, play = probes(), [], HostRollout.play

    def watched(self: HostRollout, env: Any, folded: Any, state: Any, noise: Any) -> Any:
        parts.append(noise)
        return play(self, env, folded, state, noise)

    monkeypatch.setattr(HostRollout, "play", watched)
    lab.rollouts(lab.here(), 1)
    whole = lab.host.policy.sample_noise(lab.keys(1, STEPS), ENVS, BLOCKS)
    assert np.array_equal(np.concatenate(parts, 1), whole)
    assert len({noise.tobytes() for noise in parts}) == BLOCKS


def test_a_single_block_is_a_rollout_of_all_environments() -> None:
    """With one block, a player collects what a program without blocks does."""
    config = CONFIG.replace(blocks=1)
    lab = probes(config)
    env, host = credit(ENVS), lab.host
    state, trajectory = host.collect(env, lab.params, lab.start(env), lab.keys(1, STEPS))
    assert_equal(lab.rollouts(lab.here(), 1), [(trajectory, state)])


def test_a_late_player_is_replaced() -> None:
    """Its blocks are played again; the limit grows, so that slow machines get there."""
    lab = probes()
    wanted = lab.rollouts(lab.here())
    started = time.monotonic()
    late = lab.played([], ["", "hangs"], seconds=0.2, later=["hangs"])
    assert_equal(lab.rollouts(late), wanted)
    assert 0.5 < time.monotonic() - started < 20  # 0.2 and 0.4 seconds
    assert [line.split(" and is")[0] for line in lab.lines] == ["player 1 gave no reply in 0 s"] * 2
    assert [player.ended for player in lab.started] == [False, True, True, False]


def test_limits_follow_the_rollouts_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times their median and at least a minute; the first one may compile for long."""
    pool = probes().pool([], [])
    assert pool._limit() == player_pool.FIRST_SECONDS
    pool._seconds.extend([1.0, 2.0, 300.0])
    assert pool._limit() == 60.0
    pool._seconds.extend([8.0, 9.0])
    assert pool._limit() == 80.0


def test_others_play_while_a_player_cannot_be_replaced() -> None:
    """A lost node has no successor: its blocks are played by the others, iteration by iteration."""
    lab = probes()
    wanted = lab.rollouts(lab.here(), 3)
    pool = lab.played([], ["", "is gone"], later=["never starts"], start=0.0)
    assert_equal(lab.rollouts(pool, 3), wanted)
    assert len(lab.started) == 3 and len(lab.lines) == 1


def test_players_that_always_fail_are_an_error() -> None:
    """After three replacements in succession, with what happened last; all others are ended."""
    lab = probes()
    pool = lab.pool([], ["is gone"] * 9, later=["dies at once", "is gone", "is gone"])
    with pytest.raises(PlayerPoolError, match=r"player 1 failed 4 times in succession.* is gone"):
        PlayedBlocks(lab.setup, None, pool).reset(lab.keys(0))
    assert all(player.ended for player in lab.started) and len(lab.started) == 5
    never = probes()
    pool = never.pool(["never starts"], later=["never starts"], start=0.1)
    with pytest.raises(PlayerPoolError, match="it did not start in 0 s"):
        PlayedBlocks(never.setup, None, pool).reset(never.keys(0))


def test_errors_of_environments_are_not_repeated() -> None:
    """They are raised as they are, once; all players end, and later ones may start."""
    lab = probes()
    pool = lab.played([], ["", "raises"])
    with pytest.raises(NonFiniteError, match="a reward is NaN"):
        lab.rollouts(pool)
    assert [player.ended for player in lab.started] == [True, True] and not lab.lines
    assert_equal(lab.rollouts(pool), lab.rollouts(lab.here()))


def counting(number: int) -> PooledVecEnv:
    """Environments that cannot be restored; their episodes have five steps."""
    from failing_env import FailingEnvs

    return PooledVecEnv(SPEC, InProcessPool(FailingEnvs({}), buffer_spec(SPEC), number))


def test_episodes_that_cannot_be_restored_are_lost_and_counted() -> None:
    """They end truncated, and only those of the failed player; blocks stay where they are."""
    lab = Lab(counting, CONFIG, None)
    wanted = lab.rollouts(lab.here())
    assert_equal(without_ids(lab.rollouts(lab.played([], []))), without_ids(wanted))
    pool = lab.played([], ["", "", "is gone"], [], [])
    with pytest.warns(RuntimeWarning, match="2 running episodes of 4 steps are truncated"):
        (first, _), (second, _) = lab.rollouts(pool)
    assert_equal(first, wanted[0][0])
    lost = np.zeros((STEPS, ENVS), bool)
    lost[0, 2:4] = True
    assert np.array_equal(second.truncated, lost)
    inside = np.arange(ENVS) // 2 != 1
    assert_equal(second.reward[:, inside], wanted[1][0].reward[:, inside])
    expected = {"env_crashed": 1, "env_hung": 0, "env_invalid": 0, "env_restarts": 1}
    assert pool.failure_counts() == {**expected, "env_lost_steps": 4}
    assert len(lab.started) == 5 and "episodes of its environments are truncated" in lab.lines[0]


def without_ids(rollouts: list[Any]) -> list[Any]:
    """Without the random ids of batches."""
    return [
        (trajectory, [state._replace(moment=state.moment[1:]) for state in after.env_state])
        for trajectory, after in rollouts
    ]


def test_players_have_equal_numbers_of_blocks() -> None:
    """Other numbers are refused, with those that are possible."""
    check_players(3, 6)
    for number in (0, 4, 5, 12):
        with pytest.raises(SettingError, match=r"6 blocks .* possible numbers are 1, 2, 3, 6\."):
            check_players(number, 6)
