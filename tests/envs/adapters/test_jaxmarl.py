"""JaxMARL environments equal those stepped by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.adapters import jaxmarl
from fp3o.envs.registry import get_task
from fp3o.envs.vectorise import VmapEnv
from fp3o.spec import Box, Discrete

# Not among the development tools: JaxMARL holds Gymnasium back, which the MuJoCo tests need new.
# `make test-adapters` has a virtual environment of its own.
pytest.importorskip("jaxmarl", reason="needs the extras jaxmarl and jumanji")
pytest.importorskip("jumanji", reason="needs the extras jaxmarl and jumanji")

from jax_by_hand import actions, close, fits, numbers, streams
from tiny_jaxmarl import Unequal


def test_particles_equal_jaxmarl_by_hand() -> None:
    """Observations, rewards, ends and resets over two episodes, truncated by the time limit."""
    task = jaxmarl.make_env("MPE_simple_spread_v3", "default:env.num_agents=3,reward=sum")
    assert task.spec.name == "jaxmarl/MPE_simple_spread_v3:default:reward=sum,env.num_agents=3"
    assert hash(task) == hash(jaxmarl.make_env("MPE_simple_spread_v3", task.variant))
    assert task.spec.truncates and task.max_episode_steps == 26
    env, batch, key = task.env, VmapEnv(task, 2), jax.random.key(1)
    state, now = jax.jit(batch.reset)(key)
    keys, resets = streams(key, 2)
    reset = jax.jit(jax.vmap(lambda k: env.reset(numbers(k))))
    step = jax.jit(jax.vmap(lambda k, s, a: env.step_env(numbers(k), s, a)))
    ours, random = jax.jit(batch.step), np.random.default_rng(0)
    split = jax.jit(jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1))
    obs, inner = reset(resets)
    together = lambda x: np.stack([x[a] for a in env.agents], 1)  # noqa: E731
    close(now.obs, together(obs))
    cuts = []
    for _ in range(60):
        action = actions(random, now.action_mask)
        keys, steps, resets = split(keys)
        obs, inner, reward, done, _ = step(
            steps, inner, {a: jnp.asarray(action[:, i, 0]) for i, a in enumerate(env.agents)}
        )
        state, now = ours(state, jnp.asarray(action))
        close(now.final_obs, together(obs))
        close(now.final_state[:, 1], together(obs).reshape(2, -1))
        close(now.reward, np.repeat(together(reward).sum(1, keepdims=True), 3, 1))
        assert not now.terminated.any() and (now.truncated == done["__all__"]).all()
        cuts.append(bool(now.truncated[0]))
        if cuts[-1]:
            obs, inner = reset(resets)
        close(now.obs, together(obs))
    assert [i for i, cut in enumerate(cuts) if cut] == [25, 51]


def test_battles_have_masks_and_dead_agents() -> None:
    """SMAX: available choices, dead agents, the world state, the bonus for a win."""
    task = jaxmarl.make_env("HeuristicEnemySMAX", "default:env.num_allies=2,env.num_enemies=1")
    spec, env, batch = task.spec, task.env, VmapEnv(task, 4)
    assert spec.actions == Discrete(((6,), (6,))) and spec.episode_metrics == ("won",)
    assert (spec.obs_size, spec.state_size) == (env.obs_size, env.state_size)

    def by_hand(inner: Any) -> tuple[Any, ...]:
        masks, alive = env.get_avail_actions(inner), inner.state.unit_alive
        return jnp.stack([masks[a] for a in env.agents]), alive[:2], env.get_world_state(inner)

    def step(carry: Any, key: Any) -> Any:
        state, now = carry
        worth = (
            jax.random.uniform(key, now.action_mask.shape) + jnp.arange(6) // 5
        ) * now.action_mask
        state, now = batch.step(state, worth.argmax(-1)[..., None])
        return (state, now), (now, jax.vmap(by_hand)(state[0].inner))

    play = jax.jit(lambda key: jax.lax.scan(step, batch.reset(key), jax.random.split(key, 60)))
    now, (masks, alive, world) = play(jax.random.key(0))[1]
    assert (now.action_mask == masks).all() and (now.alive == alive).all()
    close(now.state[:, :, 1], world)
    assert (~alive).any() and now.terminated.any() and not now.truncated.any()
    won = now.reward[..., 0] >= env.won_battle_bonus
    assert won.any() and (won == now.episode_metrics[..., 0]).all() and now.terminated[won].all()


def test_a_riddle_terminates_or_is_truncated() -> None:
    """At the limit an episode is truncated, unless an agent ends it in that step."""
    task = jaxmarl.make_env("switch_riddle", "default:reward=own")
    step, limit = jax.jit(task.step), task.env.max_steps
    for last, ends in ((0, (False, True)), (2, (True, False))):
        state = task.reset(jax.random.key(0))
        for t in range(limit - 1):
            state, _, over, cut = step(state, jnp.full((3, 1), 0), jax.random.key(t))
            assert not (over | cut)
        _, reward, over, cut = step(state, jnp.full((3, 1), last), jax.random.key(limit - 1))
        assert (bool(over), bool(cut)) == ends
        assert bool(reward.any()) == (last == 2)


def test_unequal_agents_of_a_custom_environment() -> None:
    """Padding, one-hots, sub-actions, masks, world states, deaths, truncation, metrics."""
    task = jaxmarl.JaxMarl("mine", "own", ("found",), made=Unequal())
    spec = task.spec
    assert spec.actions == Discrete(((3, 1), (2, 4)))
    assert (spec.obs_size, spec.state_size, spec.agent_types) == (6, 5, (0, 1))
    batch = VmapEnv(task, 1)
    step = jax.jit(batch.step)
    state, now = jax.jit(batch.reset)(jax.random.key(0))
    close(now.obs[0], [[1, 0, 0, 0, 0, 0], [0] * 6])
    close(now.state[0, 1], np.arange(5))
    yes, no = True, False
    assert now.action_mask[0].tolist() == [
        [no, yes, yes, yes, no, no, no],
        [yes, no, no, no, no, yes, yes],
    ]
    state, now = step(state, jnp.array([[[2, 0], [0, 3]]]))
    close(now.reward[0], [2, 3])
    assert now.alive[0].tolist() == [yes, yes]
    state, now = step(state, jnp.array([[[1, 0], [0, 2]]]))
    assert now.alive[0].tolist() == [no, yes] and now.episode_metrics[0, 0] == 2
    state, now = step(state, jnp.array([[[1, 0], [0, 2]]]))
    assert now.alive[0].all() and now.episode_start[0] and now.episode_metrics[0, 0] == 3
    close(now.final_obs[0], [[0, 0, 0, 1, 0, 0], [3] * 6])
    with pytest.raises(ValueError, match="found"):
        bad = jaxmarl.JaxMarl("mine", "own", ("fond",), made=Unequal())
        jax.eval_shape(VmapEnv(bad, 1).step, state, jnp.zeros((1, 2, 2), int))


def test_numbers_are_clipped() -> None:
    task = jaxmarl.JaxMarl("mine", "sum", made=Unequal(continuous=True))
    assert task.spec.actions == Box((1, 2))
    state = task.reset(jax.random.key(0))
    _, reward, _, _ = task.step(state, jnp.array([[-3.0, 9.0], [0.5, 7.0]]), jax.random.key(0))
    close(reward, [1.5, 1.5])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["MPE_simple_speaker_listener_v4", "MPE_simple_facmac_v1", "SMAX", "hanabi",
             "overcooked", "overcooked_v2", "coin_game"],
)  # fmt: skip
# JaxMARL recommends the second version of this environment over the first.
@pytest.mark.filterwarnings("ignore:OvercookedV2 is now released:DeprecationWarning")
def test_other_jaxmarl_environments_fit(name: str) -> None:
    fits(jaxmarl.make_env(name))


def test_only_some_of_jaxmarl_can_be_rendered() -> None:
    assert get_task("jaxmarl/MPE_simple_spread_v3").renderable()
    assert not get_task("jaxmarl/switch_riddle").renderable()
