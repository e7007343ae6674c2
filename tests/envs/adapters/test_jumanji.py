"""Jumanji environments equal those stepped by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.adapters import jumanji, jumanji_library
from fp3o.envs.vectorise import VmapEnv

# Not among the development tools: JaxMARL holds Gymnasium back, which the MuJoCo tests need new.
# `make test-adapters` has a virtual environment of its own.
pytest.importorskip("jaxmarl", reason="needs the extras jaxmarl and jumanji")
pytest.importorskip("jumanji", reason="needs the extras jaxmarl and jumanji")

from jax_by_hand import BY_HAND, actions, close, fits, numbers, streams


@pytest.mark.parametrize("name", BY_HAND)
def test_equals_jumanji_by_hand(name: str) -> None:
    """Observations, masks, rewards and ends; only foraging truncates at its limit."""
    task = jumanji.make_env(name, BY_HAND[name])
    assert task.spec.name == f"jumanji/{name}:{BY_HAND[name]}"
    env, batch, key, n = task.env, VmapEnv(task, 1), jax.random.key(1), task.num_agents
    forages = name[0] == "L"
    assert task.spec.truncates == forages and task.max_episode_steps == 8
    (state, now), (keys, resets) = jax.jit(batch.reset)(key), streams(key, 1)
    reset, step, ours = jax.jit(env.reset), jax.jit(env.step), jax.jit(batch.step)
    inner, by_hand = reset(numbers(resets[0]))
    random, ends = np.random.default_rng(0), []

    def sees(seen: Any, obs: Any) -> None:
        clock = np.full((n, 1), obs.step_count / 8)
        if forages:
            close(seen[0], np.hstack([obs.agents_view, clock]))
        else:
            common = np.tile(np.r_[np.ravel(obs.agents_locations), np.ravel(obs.grid)], (n, 1))
            close(seen[0], np.hstack([obs.agents_locations, common, clock]))

    for _ in range(18):
        sees(now.obs, by_hand.observation)
        assert (now.action_mask[0] == by_hand.observation.action_mask).all() and now.alive.all()
        action = actions(random, now.action_mask)
        inner, by_hand = step(inner, jnp.asarray(action[0, :, 0], jnp.int32))
        keys, _, resets = jax.random.split(keys[0], 3)[:, None]
        state, now = ours(state, jnp.asarray(action))
        sees(now.final_obs, by_hand.observation)
        close(now.reward[0], np.full(n, np.sum(by_hand.reward)))
        if forages:
            close(now.episode_metrics[0, 0], by_hand.extras["percent_eaten"])
        left = bool((by_hand.discount > 0).any())
        assert (now.terminated[0], now.truncated[0]) == (
            by_hand.last() and not left, by_hand.last() and left,
        )  # fmt: skip
        ends.append((bool(now.terminated[0]), bool(now.truncated[0])))
        if by_hand.last():
            inner, by_hand = reset(numbers(resets[0]))
    assert ends[7] == (not forages, forages)


def test_connected_agents_count_as_dead_until_the_end() -> None:
    """Connector: connected or blocked agents have discount 0; with all of them the episode ends."""
    task = jumanji.make_env(
        "Connector-v3",
        "default:episode_metrics=ratio_connections,env.generator.grid_size=5,env.generator.num_agents=3",
    )
    assert task.spec.obs_size == 26  # the grid is common to all agents
    step, random, dead, over = jax.jit(task.step), np.random.default_rng(0), 0, False
    state, t = jax.jit(task.reset)(jax.random.key(0)), 0
    look = jax.jit(task.observe)
    while not over:
        seen = look(state)
        dead += int((~seen.alive).sum())
        assert seen.action_mask.any(-1).all()
        action = jnp.asarray(actions(random, seen.action_mask))
        state, _, over, cut = step(state, action, jax.random.key(t))
        t += 1
        assert not cut and t < 50
    assert dead and not state.alive.any()
    assert 0 <= task.episode_metrics(state)[0] <= 1


def test_fields_of_agents_are_declared_not_guessed() -> None:
    """Ten agents on a grid of ten rows: a row of the grid does not belong to an agent."""
    assert jumanji.make_env("Connector-v3").spec.obs_size == 101
    assert [name.partition("-")[0] for name in jumanji_library.jumanji_names()] == sorted(
        jumanji_library.VIEWS
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["MMST-v0", "MultiCVRP-v0", "RobotWarehouse-v0", "SearchAndRescue-v0"]
)
def test_other_jumanji_environments_fit(name: str) -> None:
    fits(jumanji.make_env(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LevelBasedForaging-v0", "MultiCVRP-v0", "SearchAndRescue-v0"])
def test_images_of_other_jumanji_environments(name: str) -> None:
    batch = VmapEnv(jumanji.make_env(name), 1)
    state, _ = batch.reset(jax.random.key(0))
    drawn = batch.render(state, "now")
    assert drawn.shape == (506, 480, 3) and drawn[:480].std() > 1
