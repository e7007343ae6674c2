"""JaxMARL and Jumanji tasks: variants, returns, errors, complete runs."""

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from PIL import Image

import fp3o
from fp3o.envs.adapters import jaxmarl, jaxmarl_library, jumanji, jumanji_library
from fp3o.envs.adapters.variants import read_variant, write_variant
from fp3o.envs.random_play import sample_actions
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import MissingExtraError

# Not among the development tools: JaxMARL holds Gymnasium back, which the MuJoCo tests need new.
# `make test-adapters` has a virtual environment of its own.
pytest.importorskip("jaxmarl", reason="needs the extras jaxmarl and jumanji")
pytest.importorskip("jumanji", reason="needs the extras jaxmarl and jumanji")

from jax_by_hand import BY_HAND, close
from tiny_jaxmarl import Unequal


def test_variants_round_trip() -> None:
    """Options of the adapter, then those of the environment in alphabetical order."""
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


def test_unknown_names_suggest_known_ones() -> None:
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


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("jaxmarl/MPE_simple_spread_v3", "default:env.num_agents=2"),
        ("jumanji/Cleaner-v0", BY_HAND["Cleaner-v0"]),
    ],
)
def test_a_run_from_training_to_its_video(name: str, variant: str, tmp_path: Path) -> None:
    """Trained, resumed, evaluated and rendered as any other task."""
    silent: Any = {"progress": "quiet", "loggers": ()}
    run = fp3o.train(
        name, variant=variant, algorithm="fp3o", sharing="partial", num_envs=2, rollout=6,
        hidden=(8,), epochs=1, steps=12, eval_episodes=2, final_episodes=2, out=tmp_path / "run",
        **silent,
    )  # fmt: skip
    more = fp3o.resume(run.path, steps=24, trust=True, **silent)
    assert run.finished and more.finished and more.config.iterations == 2
    evaluated = more.evaluate(3)
    assert evaluated["episodes"] == 3 and np.isfinite(evaluated["policies"][0]["return"])
    video = more.render(tmp_path / "video.gif", episodes=1, seconds=0.5)
    with Image.open(video) as frames:
        assert frames.size == (480, 506) and len(frames.convert("RGB").getcolors(10**6) or ()) > 2
