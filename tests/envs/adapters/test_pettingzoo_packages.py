"""Environments of real packages through the PettingZoo adapter equal those stepped by hand."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
pytest.importorskip("mpe2", reason="needs the extra mpe2")

from particle import MODULES
from scripted_zoo import KEY, play, same

from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.adapters.pettingzoo_make import load_factory
from fp3o.envs.adapters.pettingzoo_worker import episode_seed
from fp3o.envs.mpe.scenarios import SCENARIOS, particle_env
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.learning.config import Config
from fp3o.runs.checkpoint import from_arrays, to_arrays
from fp3o.spec import Box, Discrete
from fp3o.training.program import Program
from fp3o.types import TimeStep


def by_hand(env: Any, task: PooledVecEnv, state: Any, now: TimeStep, steps: int, i: int) -> int:
    """Step an environment beside one of a batch; returns the number of episodes that ended."""
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
    """Equal to the package stepped by hand, with the specification of our own tasks."""
    task = PettingZoo(f"mpe2.{MODULES[name]}:parallel_env")
    ours = particle_env(name, "mpe2").spec
    for fact in ("actions", "obs_size", "state_size", "agent_types", "truncates"):
        assert getattr(task.spec, fact) == getattr(ours, fact)
    env = task.vectorise(2)
    raw = importlib.import_module(f"mpe2.{MODULES[name]}").parallel_env()
    assert by_hand(raw, env, *env.reset(KEY), 55, 1) == 2


def test_registry() -> None:
    """PettingZoo's registry: rock, paper, scissors, with one of four observations."""
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


def small(num_seeds: int | None = None, **options: Any) -> Program:
    """Training on a particle task of the package."""
    config = Config(algorithm="fp3o", num_envs=2, rollout=10, minibatches=2, hidden=(8,), epochs=1)
    env = PettingZoo("mpe2.simple_speaker_listener_v4", {"max_cycles": 8}, **options)
    return Program(env.vectorise(2 * (num_seeds or 1)), config, num_seeds)


def test_training() -> None:
    """A discarded iteration, such as that of compiling, has no effect."""
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
