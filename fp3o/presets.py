"""Settings that are known to work, task by task: data, nothing else.

The `paper` presets hold the published hyperparameters (for the particle tasks the paper points to
MAPPO's, whose scripts are the source). Where the two cannot be followed exactly the reason stands
beside the number.
"""

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, Any]

PARTICLES: Settings = {
    "num_envs": 128,
    "rollout": 25,
    "minibatches": 1,
    "hidden": (64, 64),
    "recurrent": 64,
    # The scripts say 10, which does not divide an episode of 25 steps.
    "chunk": 5,
    "gain": 0.01,
    "actor_lr": 7e-4,
    "critic_lr": 7e-4,
    "clip": 0.2,
    "entropy": 0.01,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber": 10.0,
    "max_grad_norm": 10.0,
    "seeds": 5,
    "eval_every": 25,
    "eval_episodes": 100,
}
"""What the particle tasks have in common."""

BODIES: Settings = {
    "variant": "paper",
    "num_envs": 4,
    "rollout": 1000,
    "epochs": 5,
    "minibatches": 32,
    "hidden": (64, 64),
    "gain": 0.01,
    # The task itself appends the agent's one-hot, before it standardises what is seen.
    "agent_id": False,
    "actor_lr": 1e-5,
    "critic_lr": 3e-4,
    "entropy": 1e-3,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber": 10.0,
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


def body(name: str, agents: int, in_paper: bool) -> Mapping[str, Settings]:
    """The presets of a MuJoCo task.

    Under partial sharing the authors' release multiplies the learning rate of the policy's last
    layer by the number of agents; `paper-partial` does so too.
    """
    clip = 0.05 if name.split("-")[0] in TIGHT else 0.2
    # Time limits are continued and raw observations get a one-hot: good practice, not the paper.
    today = {
        **BODIES, "clip": clip, "variant": "farama", "agent_id": True, "time_limit": "bootstrap",
    }  # fmt: skip
    if not in_paper:
        return {"farama": today}
    paper = {**BODIES, "clip": clip}
    return {
        "paper": paper,
        "paper-partial": {**paper, "sharing": "partial", "head_rate": float(agents)},
        "paper-none": {**paper, "sharing": "none"},
        "farama": today,
    }


BATTLES: Settings = {
    "variant": "paper",
    "num_envs": 8,
    "rollout": 400,
    "epochs": 5,
    "minibatches": 1,
    "hidden": (64, 64),
    "recurrent": 64,
    "chunk": 10,
    "gain": 0.01,
    # The paper's observations end in the agent's one-hot.
    "agent_id": False,
    "actor_lr": 5e-4,
    "critic_lr": 5e-4,
    "clip": 0.2,
    "entropy": 0.01,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber": 10.0,
    "max_grad_norm": 10.0,
    "time_limit": "terminate",
    "seeds": 5,
    "eval_every": 25,
    "eval_episodes": 32,
}
"""What battles have in common."""

MILLIONS: Mapping[str, tuple[int, int, int]] = {
    "bane_vs_bane": (2, 2, 2),
    "2c_vs_64zg": (5, 5, 5),
    "3s5z": (5, 5, 5),
    "5m_vs_6m": (8, 10, 10),
    "corridor": (8, 10, 10),
    "6h_vs_8z": (10, 15, 20),
    # Published for full sharing only.
    "10m_vs_11m": (8, 8, 8),
    "3s5z_vs_3s6z": (12, 12, 12),
}
"""Map -> the paper's millions of steps under full, partial and no sharing; 10 for other maps."""

WITHOUT_MEMORY = ("corridor", "6h_vs_8z")
"""Maps on which the paper's networks have no GRU."""
CAREFUL = ("5m_vs_6m", "3s5z_vs_3s6z")
"""Maps on which ratios are clipped at 0.05 instead of 0.2."""

MANY: Settings = {"num_envs": 256, "rollout": 50, "minibatches": 2, "eval_every": 10}
"""Battles on an accelerator: short rollouts of many environments, four times the paper's batch."""


def battle(name: str, agents: int) -> Mapping[str, Settings]:
    """The presets of a map: the paper's, and the same for many environments at once."""
    clip = 0.05 if name in CAREFUL else 0.2
    memory = {"recurrent": 0, "chunk": 1} if name in WITHOUT_MEMORY else {}
    sharings = {"full": {}, "partial": {"head_rate": float(agents)}, "none": {}}
    presets = {}
    for kind, more in (("paper", {}), ("many", MANY)):
        for millions, (sharing, extra) in zip(
            MILLIONS.get(name, (10, 10, 10)), sharings.items(), strict=True
        ):
            presets[kind if sharing == "full" else f"{kind}-{sharing}"] = {
                **BATTLES, "clip": clip, **memory, **extra, **more, "sharing": sharing,
                "steps": millions * 1_000_000,
            }  # fmt: skip
    return presets


PRESETS: Mapping[str, Mapping[str, Settings]] = {
    "mpe/simple_speaker_listener": {
        # One network for unequal agents needs to know whose turn it is, hence the agent's one-hot.
        "paper": {**PARTICLES, "steps": 2_000_000, "epochs": 15, "agent_id": True},
        # Found by trying: a team that talks in about a minute on two cores.
        "demo": {
            "sharing": "partial",
            "num_envs": 64,
            "rollout": 25,
            "epochs": 4,
            "minibatches": 4,
            "actor_lr": 2e-3,
            "critic_lr": 2e-3,
            "gamma": 0.9,
            "steps": 250_000,
            "seeds": 3,
            "eval_every": 20,
        },
    },
    "mpe/simple_reference": {
        "paper": {**PARTICLES, "steps": 3_000_000, "epochs": 15, "agent_id": False},
    },
    "mpe/simple_spread": {
        # The script asks for ReLU with a flag that turns it off.
        "paper": {
            **PARTICLES, "steps": 20_000_000, "epochs": 10, "agent_id": False, "activation": "tanh",
        },
    },
}  # fmt: skip
"""Task -> name of the preset -> settings; the first one is the task's default."""

MATRIX: Mapping[str, Settings] = {
    # Policies that begin with strong preferences: about half of the seeds find the best pair, so
    # the best of eight is it. From equal chances hardly any seed does.
    "decided": {
        "sharing": "none", "gain": 3.0, "seeds": 8, "num_envs": 64, "rollout": 1, "hidden": (16,),
        "epochs": 4, "actor_lr": 1e-2, "critic_lr": 1e-2, "steps": 60 * 64, "eval_episodes": 1,
        "final_episodes": 1,
    },
}  # fmt: skip
"""Presets of the matrix games."""

DEMO = "mpe/simple_speaker_listener", "demo"
"""What `fp3o train` does when it is told nothing."""
