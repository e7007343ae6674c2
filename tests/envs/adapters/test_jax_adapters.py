"""JaxMARL and Jumanji environments equal those stepped by hand; runs and videos of them."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import fp3o
from fp3o.envs.adapters import jaxmarl, jaxmarl_library, jumanji, jumanji_library
from fp3o.envs.adapters.variants import read_variant, write_variant
from fp3o.envs.api import Env
from fp3o.envs.random_play import sample_actions
from fp3o.envs.registry import get_task
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import MissingExtraError
from fp3o.runs import run as runner
from fp3o.spec import Box, Discrete

# Not among the development tools: JaxMARL holds Gymnasium back, which the MuJoCo tests need new.
# `make test-adapters` has a virtual environment of its own.
pytest.importorskip("jaxmarl", reason="needs the extras jaxmarl and jumanji")
pytest.importorskip("jumanji", reason="needs the extras jaxmarl and jumanji")


def streams(key: Any, num_envs: int) -> tuple[Any, Any]:
    """The keys of `Vectorised`: of what follows, and of the first resets."""
    return jax.vmap(jax.random.split, out_axes=1)(jax.random.split(key, num_envs))


def numbers(key: Any) -> Any:
    return jax.random.key_data(key)


def close(one: Any, two: Any) -> None:
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def actions(env: Env, random: np.random.Generator, action_mask: Any) -> np.ndarray:
    """Random legal choices `(e, n, 1)`."""
    worth = random.random(action_mask.shape) * np.asarray(action_mask)
    return worth.argmax(-1)[..., None]


def test_variants_round_trip() -> None:
    """Ours, and the environment's in alphabetical order."""
    assert read_variant("default:env.b=1,reward=own,env.a=x", ("reward",)) == (
        {"reward": "own"}, (("a", "x"), ("b", 1)),
    )  # fmt: skip
    assert write_variant({}, ()) == "default"
    text = "default:reward=own,env.a=x,env.b=1"
    assert write_variant({"reward": "own"}, (("b", 1), ("a", "x"))) == text


def reported_return(env: Any) -> float:
    """The return per agent of two random steps, as evaluations report it."""
    batch, random, total = VmapEnv(env, 1), np.random.default_rng(0), 0.0
    step = jax.jit(batch.step)
    state, now = batch.reset(jax.random.key(0))
    for _ in range(2):
        state, now = step(state, sample_actions(env.spec, np.asarray(now.action_mask), random))
        total += float(now.reward.mean()) / env.spec.reward_sum_over
    return total


@pytest.mark.parametrize("name", ["mine", "Cleaner-v0", "LevelBasedForaging-v0"])
def test_returns_are_those_of_one_agent(name: str) -> None:
    """Under every reward: a sum over the team is divided by its size, a team reward is not."""
    returns, sizes = [], []
    for reward in ("mean", "sum", "own"):
        env = (
            jaxmarl.JaxMarl(name, reward, made=Unequal(continuous=True)) if name == "mine"
            else jumanji.make_env(name, f"default:reward={reward}")
        )  # fmt: skip
        returns.append(reported_return(env))
        sizes.append(env.spec.reward_sum_over)
    close(returns, returns[0])
    assert sizes == [1, 1 if name == "Cleaner-v0" else env.spec.num_agents, 1]


def test_unknown_words_tell() -> None:
    for task, answer in {
        lambda: jaxmarl.make_env("MPE_simple_spred_v3").spec: "MPE_simple_spread_v3",
        lambda: jaxmarl.make_env("switch_riddle", "default:rewards=sum"): "'reward'",
        lambda: jaxmarl.make_env("switch_riddle", "default:reward=all"): "mean",
        lambda: jaxmarl.make_env("switch_riddle", "default:env.agents=3").spec: "cannot be made",
        lambda: jaxmarl.make_env("HeuristicEnemySMAX", "default:env.scenario=3n").spec: "3m",
        lambda: jumanji.make_env("Connector-v9").spec: "Connector-v3",
        lambda: jumanji.make_env("Snake-v1").spec: "multi-agent",
        lambda: jumanji.make_env("Cleaner-v0", "default:env.generator.rows=3").spec: "num_rows",
    }.items():
        with pytest.raises(ValueError, match=answer):
            task()


@pytest.mark.parametrize("package", ["jaxmarl", "jumanji"])
def test_a_missing_package_names_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    list_names = {
        "jaxmarl": jaxmarl_library.jaxmarl_names, "jumanji": jumanji_library.jumanji_names
    }[package]  # fmt: skip
    with pytest.raises(MissingExtraError, match=rf"fp3o\[{package}\]"):
        list_names()


def test_particles_equal_jaxmarl_by_hand() -> None:
    """Observations, rewards, ends and resets over two episodes; they are cut by the clock."""
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
        action = actions(task, random, now.action_mask)
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


def test_battles_have_masks_and_dead() -> None:
    """SMAX: legal choices, the fallen, the world state; who wins is paid the bonus."""
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


def test_a_riddle_is_over_or_cut() -> None:
    """At the limit an episode is cut, unless it has just been ended by someone who tells."""
    task = jaxmarl.make_env("switch_riddle", "default:reward=own")
    step, limit = jax.jit(task.step), task.env.max_steps
    for last, ends in ((0, (False, True)), (2, (True, False))):
        state = task.reset(jax.random.key(0))
        for t in range(limit):
            action = jnp.full((3, 1), last if t == limit - 1 else 0)
            state, reward, over, cut = step(state, action, jax.random.key(t))
            assert t == limit - 1 or not (over | cut)
        assert (bool(over), bool(cut)) == ends
        assert bool(reward.any()) == (last == 2)


class Count(NamedTuple):
    time: Any


class Choice:
    def __init__(self, n: int):
        self.n, self.shape, self.dtype = n, (), jnp.int32


class Numbers:
    def __init__(self, low: float, high: float, shape: tuple[int, ...]):
        self.low, self.high, self.shape, self.dtype = low, high, shape, jnp.float32


class Choices:
    def __init__(self, *sizes: int):
        self.num_categories, self.shape, self.dtype = jnp.array(sizes), (len(sizes),), jnp.int32


Discretes = type("Discrete", (Choice,), {})
Boxes = type("Box", (Numbers,), {})
Multi = type("MultiDiscrete", (Choices,), {})


class Unequal:
    """An environment in JaxMARL's form: two agents that have nothing in common."""

    agents = ("cook_0", "scout_0")

    def __init__(self, continuous: bool = False):
        self.continuous = continuous

    def observation_space(self, agent: str) -> Any:
        return Discretes(4) if agent == "cook_0" else Boxes(-1, 1, (2, 3))

    def action_space(self, agent: str) -> Any:
        if self.continuous:
            return Boxes(0, 1, (1,) if agent == "cook_0" else (2,))
        return Discretes(3) if agent == "cook_0" else Multi(2, 4)

    def get_avail_actions(self, state: Any) -> Any:
        if self.continuous:
            raise NotImplementedError
        return {"cook_0": jnp.array([0, 1, 1]), "scout_0": jnp.array([1, 0, 0, 0, 1, 1])}

    def see(self, time: Any) -> Any:
        world = jnp.stack([jnp.arange(5.0), time + jnp.arange(5.0)])
        scout = jnp.full((2, 3), time, jnp.float32)
        return {"cook_0": time % 4, "scout_0": scout, "world_state": world}

    def reset(self, key: Any) -> Any:
        return self.see(jnp.zeros((), int)), Count(0)

    def step_env(self, key: Any, state: Count, action: Any) -> Any:
        time = state.time + 1
        pay = {a: jnp.sum(x) * 1.0 for a, x in action.items()}
        done = {"cook_0": time > 1, "scout_0": False, "__all__": time == 3}
        info = {"truncation": jnp.float32(time == 3), "found": jnp.array([time, time])}
        return self.see(time), Count(time), pay, done, info


def test_unequal_agents_of_an_environment_of_ones_own() -> None:
    """Padding, one-hots, sub-actions, masks, a world state of each, deaths, cuts, outcomes."""
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


SIZES = "env.generator.num_agents=2,env.generator.num_cols=4,env.generator.num_rows=4"
BY_HAND = {
    "LevelBasedForaging-v0": "default:episode_metrics=percent_eaten,env.time_limit=8",
    "Cleaner-v0": f"default:{SIZES},env.time_limit=8",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_equals_jumanji_by_hand(name: str) -> None:
    """Views, masks, rewards and ends; only foraging says that its limit is a cut."""
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
        action = actions(task, random, now.action_mask)
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


def test_connected_agents_are_dead_until_the_end() -> None:
    """Connector: who is connected or blocked has no discount left; with all of them it is over."""
    task = jumanji.make_env(
        "Connector-v3",
        "default:episode_metrics=ratio_connections,env.generator.grid_size=5,env.generator.num_agents=3",
    )
    assert task.spec.obs_size == 26  # the grid is everyone's, also where it has a row for each
    step, random, dead, over = jax.jit(task.step), np.random.default_rng(0), 0, False
    state, t = jax.jit(task.reset)(jax.random.key(0)), 0
    look = jax.jit(task.observe)
    while not over:
        seen = look(state)
        dead += int((~seen.alive).sum())
        assert seen.action_mask.any(-1).all()
        action = jnp.asarray(actions(task, random, seen.action_mask))
        state, _, over, cut = step(state, action, jax.random.key(t))
        t += 1
        assert not cut and t < 50
    assert dead and not state.alive.any()
    assert 0 <= task.episode_metrics(state)[0] <= 1


def test_the_grid_of_ten_is_not_ten_rows() -> None:
    """Ten agents on ten rows: what is whose is said, not guessed."""
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
@pytest.mark.parametrize(
    "name", ["MPE_simple_speaker_listener_v4", "MPE_simple_facmac_v1", "SMAX", "hanabi",
             "overcooked", "overcooked_v2", "coin_game"],
)  # fmt: skip
# JaxMARL recommends the second version of this environment over the first.
@pytest.mark.filterwarnings("ignore:OvercookedV2 is now released:DeprecationWarning")
def test_other_jaxmarl_environments_fit(name: str) -> None:
    fits(jaxmarl.make_env(name))


def fits(task: Any) -> None:
    """What flows has the shapes of the spec, and a loop can carry it."""
    spec, batch = task.spec, VmapEnv(task, 2)
    state, now = jax.eval_shape(batch.reset, jax.random.key(0))
    continuous = isinstance(spec.actions, Box)
    width = max(spec.actions.sizes) if continuous else len(spec.actions.sizes[0])
    form = (2, spec.num_agents, width), jnp.float32 if continuous else jnp.int32
    after, then = jax.eval_shape(batch.step, state, jax.ShapeDtypeStruct(*form))
    assert now.obs.shape == (2, spec.num_agents, spec.obs_size)
    assert now.state.shape == (2, spec.num_agents, spec.state_size)
    assert now.action_mask.shape == (2, *spec.actions.mask.shape)
    same = jax.tree.map(
        lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype), (state, now), (after, then)
    )
    assert all(jax.tree.leaves(same))


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("jaxmarl/MPE_simple_spread_v3", "default:env.num_agents=2"),
        ("jumanji/Cleaner-v0", BY_HAND["Cleaner-v0"]),
    ],
)
def test_a_run_from_training_to_its_film(
    name: str, variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained, gone on with, judged and filmed as any other task."""
    monkeypatch.setattr(runner, "report", lambda _, out: out)
    silent: Any = {"progress": "quiet", "loggers": ()}
    run = fp3o.train(
        name, variant=variant, algorithm="fp3o", sharing="partial", num_envs=2, rollout=6,
        hidden=(8,), epochs=1, steps=12, eval_episodes=2, final_episodes=2, out=tmp_path / "run",
        **silent,
    )  # fmt: skip
    more = fp3o.resume(run.path, steps=24, **silent)
    assert run.finished and more.finished and more.config.iterations == 2
    judged = fp3o.evaluate(run.path, 3)
    assert judged["episodes"] == 3 and np.isfinite(judged["policies"][0]["return"])
    film = fp3o.render(fp3o.Policy.load(run.path), tmp_path / "film.gif", episodes=1, seconds=0.5)
    with Image.open(film) as frames:
        assert frames.size == (480, 506) and len(frames.convert("RGB").getcolors(10**6) or ()) > 2


def test_only_some_of_jaxmarl_has_pictures() -> None:
    assert get_task("jaxmarl/MPE_simple_spread_v3").renderable()
    assert not get_task("jaxmarl/switch_riddle").renderable()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LevelBasedForaging-v0", "MultiCVRP-v0", "SearchAndRescue-v0"])
def test_pictures_of_other_jumanji_environments(name: str) -> None:
    batch = VmapEnv(jumanji.make_env(name), 1)
    state, _ = batch.reset(jax.random.key(0))
    drawn = batch.render(state, "now")
    assert drawn.shape == (506, 480, 3) and drawn[:480].std() > 1
