"""Gymnasium environments by `module:Name-v0`, teams with Tuple spaces, and nested spaces."""

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import fp3o
from fp3o.envs.adapters.gymnasium import make_env
from fp3o.envs.registry import get_task, parse_task
from fp3o.errors import MissingExtraError, SettingError
from fp3o.spec import Box, Discrete, Mixed

KEY = jax.random.key(0)
PAIR, CRANE = "gymnasium/gym_teams:Pair-v0", "gymnasium/gym_teams:Crane-v0"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "support")


def played(name: str, actions: list[Any]) -> list[Any]:
    """Time steps of one environment, starting with its reset."""
    env = fp3o.make(name)
    state, now = env.reset(KEY)
    steps = [now]
    for action in actions:
        state, now = env.step(state, np.array([action], np.float32))
        steps.append(now)
    return steps


def test_names() -> None:
    """The colon of an id is no variant; the name of the specification finds the task again."""
    spec = fp3o.make(f"{PAIR}:default:reward=sum,env.max_steps=4").spec
    assert spec.name == f"{PAIR}:default:reward=sum,env.max_steps=4"
    task, variant = parse_task(spec.name)
    assert (task.name, variant) == (PAIR, "default:reward=sum,env.max_steps=4")
    assert (parse_task(PAIR)[0].name, parse_task(PAIR)[1]) == (PAIR, None)
    assert parse_task("gymnasium/CartPole-v1:default")[1] == "default"
    assert parse_task("pettingzoo/a.b:make:default:workers=1")[0].name == "pettingzoo/a.b.make"
    with pytest.raises(SettingError, match=r"no variant 'reward=sum'.*default"):
        fp3o.make(f"{PAIR}:reward=sum")
    with pytest.raises(SettingError, match="at most one colon, module:Name-v0"):
        fp3o.make(f"{PAIR}:defult")


def test_a_team_of_tuples() -> None:
    """One agent per entry; lists of rewards, masks and a limit that is reported as an end."""
    team = [[0, 0.5], [0, 2.0]]
    first, second, _, last = played(PAIR, [team] * 3)
    spec = get_task(PAIR).spec()
    assert spec.actions == Mixed(Discrete(((2,), (1,))), Box((0, 1)))
    assert spec.agents == ("agent_0", "agent_1") and spec.obs_sizes == (2, 3)
    assert spec.agent_types == (0, 1) and get_task(PAIR).max_episode_steps() == 3
    assert first.action_mask[0].tolist() == [[True, False, False], [True, False, True]]
    assert second.obs[0, 1].tolist() == [0, 1, 0] and second.reward.tolist() == [[2, 2]]
    assert last.truncated.all() and not last.terminated.any() and last.episode_start.all()
    for reward, wanted in (("own", [1, 3]), ("sum", [4, 4])):
        assert played(f"{PAIR}:default:reward={reward}", [team])[1].reward.tolist() == [wanted]
    assert played(f"{PAIR}:default:env.per_agent=false", [team])[1].reward.tolist() == [[2, 2]]


def test_one_agent_with_nested_spaces() -> None:
    """The image first, scaled; a dictionary of actions; time limits of the registry."""
    spec = get_task(CRANE).spec()
    assert spec.image == spec.state_image == (4, 4, 1) and spec.obs_size == 18
    assert spec.actions == Mixed(Discrete(((2,),)), Box((2,)))
    assert get_task(CRANE).max_episode_steps() == 5
    first, *steps = played(CRANE, [[[1, 3.0, 0.25]]] * 5)
    np.testing.assert_allclose(first.obs[0, 0, :16], 0.2, rtol=1e-6)
    assert first.obs[0, 0, 16:].tolist() == [0, 1]
    assert [now.reward.item() for now in steps] == [1.25] * 5
    assert steps[-1].truncated.all() and not steps[-2].truncated.any()


def test_rendering_with_the_older_interface() -> None:
    env = make_env("gym_teams:Pair-v0").with_rendering().vectorise(1)
    state, _ = env.reset(KEY)
    state, _ = env.step(state, np.zeros((1, 2, 2), np.float32))
    assert (env.render(state, "")[:8, :8] == 40).all()


def test_failures() -> None:
    """Unknown ids and modules, constructors that raise, packages that are not installed."""
    for name, words in {
        "gym_teams:Par-v0": "Pair", "gym_teams:Pair-v3": "^gym_teams:Pair-v3: it cannot be made",
        "gym_teamz:Pair-v0": "No module named 'gym_teamz'",
        "gym_teams:Broken-v0": "cannot be made: RuntimeError: the crane is broken",
    }.items():  # fmt: skip
        with pytest.raises(SettingError, match=words) as error:
            _ = make_env(name).spec
        assert "\n" not in str(error.value)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rware", None)
    with pytest.raises(MissingExtraError, match=r"fp3o\[rware\]"):
        _ = make_env("rware:rware-tiny-3ag-v2").spec


@pytest.mark.parametrize("name", ["lbforaging:Foraging-5x5-2p-1f-v3", "rware:rware-tiny-2ag-v2"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_equals_the_raw_environment(name: str) -> None:
    """Observations, rewards and ends of a package."""
    package = pytest.importorskip(name.partition(":")[0])
    import gymnasium

    assert package
    env = make_env(name)
    raw: Any = gymnasium.make(name, disable_env_checker=True)
    batch = env.vectorise(1)
    assert env.spec.num_agents == 2 and env.spec.agent_types == (0, 0)
    assert env.max_episode_steps == (50 if "Foraging" in name else 500)
    state, now = batch.reset(KEY)
    words = [*np.asarray(jax.random.key_data(KEY)).tolist(), 0, 0]
    obs, _ = raw.reset(seed=int(np.random.SeedSequence(words).generate_state(1)[0] >> 1))
    random = np.random.default_rng(0)
    for _ in range(8):
        np.testing.assert_array_equal(now.obs[0], np.stack(obs).astype(np.float32))
        action = random.integers(0, 5, (2, 1))
        state, now = batch.step(state, action[None])
        obs, rewards, over, *_ = raw.step(tuple(action[:, 0].tolist()))
        assert now.reward[0, 0] == np.float32(np.mean(rewards))  # pyright: ignore
        assert bool(now.terminated[0]) == over
        if over:
            break
