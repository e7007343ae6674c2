"""The MuJoCo tasks and their presets."""

from collections.abc import Mapping
from functools import partial

from fp3o.envs.api import Env, HostEnv
from fp3o.envs.mamujoco import catalogue as bodies
from fp3o.envs.task import Family, Preset, Task


def _body(name: str) -> Task | None:
    """A MuJoCo task: any body, split in any way it can be."""
    if not bodies.known(name):
        return None
    name = bodies.canonical(name)
    profiles = bodies.profiles(name)
    presets = body(name, bodies.agents(name), "paper" in profiles)
    return Task(
        f"{bodies.FAMILY}/{name}", bodies.summary(name), partial(_mujoco, name), profiles,
        presets=presets,
    )  # fmt: skip


def _mujoco(name: str, variant: str) -> Env | HostEnv:
    from fp3o.envs.mamujoco.native import make  # imports MuJoCo, which takes a moment

    return make(name, variant)


BODIES: Preset = {
    "variant": "paper",
    "num_envs": 4,
    "rollout": 1000,
    "epochs": 5,
    "minibatches": 32,
    "hidden": (64, 64),
    "output_gain": 0.01,
    # The task itself appends the agent's one-hot, before it standardises what is seen.
    "agent_id": False,
    "actor_lr": 1e-5,
    "critic_lr": 3e-4,
    "entropy_coef": 1e-3,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber_delta": 10.0,
    "max_grad_norm": 10.0,
    "time_limit": "terminate",
    "steps": 10_000_000,
    "seeds": 5,
    "eval_every": 25,
    "eval_episodes": 32,
    "final_episodes": 100,
}
"""What the MuJoCo tasks have in common."""

TIGHT = ("Walker2d", "Hopper")
"""Bodies whose ratios are clipped at 0.05 instead of 0.2."""


def body(name: str, agents: int, in_paper: bool) -> Mapping[str, Preset]:
    """The presets of a MuJoCo task.

    Under partial sharing the authors' release multiplies the learning rate of the policy's last
    layer by the number of agents; `paper-partial` does so too.
    """
    clip = 0.05 if name.split("-")[0] in TIGHT else 0.2
    # Time limits are continued and raw observations get a one-hot: good practice, not the paper.
    today = {
        **BODIES, "clip_range": clip, "variant": "farama", "agent_id": True, "time_limit": "bootstrap",
    }  # fmt: skip
    if not in_paper:
        return {"farama": today}
    paper = {**BODIES, "clip_range": clip}
    return {
        "paper": paper,
        "paper-partial": {**paper, "sharing": "partial", "head_lr_factor": float(agents)},
        "paper-none": {**paper, "sharing": "none"},
        "farama": today,
    }


FAMILIES = (Family(bodies.FAMILY, "Multi-Agent MuJoCo", _body, tuple(bodies.names())),)
