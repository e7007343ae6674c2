"""Play an episode with a policy and its ONNX file in a process that cannot import JAX.

    fp3o export runs/pursuit --to onnx --out pursuit.onnx
    python play_back.py runs/pursuit pursuit.onnx

Environments of PettingZoo and Gymnasium run in this process. Tasks of fp3o itself are JAX programs:
they run in a second process, to which this one sends actions. Every step, the actions of the policy
(NumPy) are compared with those of the ONNX file (ONNX Runtime); the policy's are played.
"""

import importlib
import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

import numpy as np

SEED = 1


class ParallelTask:
    """A PettingZoo environment, `pettingzoo/package.module.function`."""

    def __init__(self, name: str):
        module, function = name.split("/", 1)[1].rsplit(".", 1)
        self.env = getattr(importlib.import_module(module), function)()

    def reset(self) -> dict[str, np.ndarray]:
        """First observations by agent name."""
        return self._flat(self.env.reset(seed=SEED)[0])

    def step(self, actions: dict[str, Any], team: np.ndarray) -> tuple[Any, float, bool]:
        """Next observations, mean reward of the team, and whether the episode is over."""
        obs, rewards, *_ = self.env.step({name: self._own(name, x) for name, x in actions.items()})
        reward = sum(rewards.values()) / len(self.env.possible_agents)
        return self._flat(obs), reward, not self.env.agents

    def _own(self, name: str, action: Any) -> Any:
        """The action in the agent's space: vectors are clipped to its bounds."""
        space = self.env.action_space(name)
        return np.clip(action, space.low, space.high) if np.ndim(action) else int(action)

    def _flat(self, obs: dict[str, Any]) -> dict[str, np.ndarray]:
        return {name: np.ravel(obs[name]) for name in self.env.agents}


class TeamTask:
    """A Gymnasium environment of a team, `gymnasium/package:Name-v0`."""

    def __init__(self, name: str):
        import gymnasium

        self.env = gymnasium.make(name.split("/", 1)[1], disable_env_checker=True)

    def reset(self) -> dict[str, np.ndarray]:
        """First observations by agent name."""
        return self._named(self.env.reset(seed=SEED)[0])

    def step(self, actions: dict[str, Any], team: np.ndarray) -> tuple[Any, float, bool]:
        """Next observations, mean reward of the team, and whether the episode is over."""
        own = tuple(int(action) for action in actions.values())
        obs, rewards, terminated, truncated, _ = self.env.step(own)
        return self._named(obs), float(np.mean(rewards)), bool(np.all(terminated) or truncated)

    def _named(self, obs: Any) -> dict[str, np.ndarray]:
        return {f"agent_{i}": np.ravel(x) for i, x in enumerate(obs)}


class OwnTask:
    """A task of fp3o in a process of its own."""

    def __init__(self, name: str, variant: str):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        context.Process(target=serve, args=(name, variant, other), daemon=True).start()
        other.close()  # so that the end of that process is noticed here

    def reset(self) -> dict[str, np.ndarray]:
        """First observations by agent name."""
        return self.pipe.recv()[0]

    def step(self, actions: dict[str, Any], team: np.ndarray) -> tuple[Any, float, bool]:
        """Next observations, mean reward of the team, and whether the episode is over."""
        self.pipe.send(team)
        return self.pipe.recv()


def serve(name: str, variant: str, pipe: Any) -> None:
    """Step a task of fp3o with the actions from a pipe, for one episode."""
    import jax

    import fp3o

    env = fp3o.make(name, variant=variant)
    names, sizes = env.spec.agent_names, env.spec.agent_obs_sizes
    state, timestep = env.reset(jax.random.key(SEED))
    over = False
    while True:
        obs = {n: np.asarray(timestep.obs)[0, i, : sizes[i]] for i, n in enumerate(names)}
        reward = float(np.mean(timestep.reward)) / env.spec.reward_sum_over
        pipe.send((obs, reward, over))
        if over:
            return
        state, timestep = env.step(state, pipe.recv()[None])
        over = bool(np.all(timestep.episode_start))


def open_task(name: str, variant: str) -> ParallelTask | TeamTask | OwnTask:
    """The environment that a policy was trained in."""
    family = name.split("/")[0]
    if family == "pettingzoo":
        return ParallelTask(name)
    return TeamTask(name) if family == "gymnasium" else OwnTask(name, variant)


def play(run: Path, onnx_file: str) -> dict[str, Any]:
    """Steps and return of an episode, and the largest difference between both sets of actions."""
    import onnxruntime

    import fp3o

    settings = json.loads((run / "config.json").read_text())["settings"]
    policy, session = fp3o.Policy.load(run), onnxruntime.InferenceSession(onnx_file)
    spec, player = policy.card.spec, policy.player()
    inputs = {"action_mask": spec.actions.mask[None]}
    used = {x.name for x in session.get_inputs()}
    task = open_task(settings["task"], settings["variant"])
    obs, total, steps, gap, over = task.reset(), 0.0, 0, 0.0, False
    while not over:
        padded = np.zeros((1, spec.num_agents, spec.obs_size), np.float32)
        for i, name in enumerate(spec.agent_names):
            if name in obs:
                padded[0, i, : obs[name].size] = obs[name]
        both = {**inputs, "obs": padded}
        actions = session.run(["actions"], {k: x for k, x in both.items() if k in used})[0][0]
        team = policy.act(padded[0])[0]
        gap = max(gap, float(np.abs(team - actions).max()))
        obs, reward, over = task.step(player.act(obs), team)
        total, steps = total + reward, steps + 1
    jax = sorted(x for x, module in sys.modules.items() if module and x.startswith("jax"))
    return {"run": run.name, "steps": steps, "return": float(total), "gap": gap, "jax modules": jax}


if __name__ == "__main__":
    for package in ("jax", "jaxlib"):
        sys.modules[package] = None  # any import of it fails
    print(json.dumps(play(Path(sys.argv[1]), sys.argv[2])))
