"""The particle tasks and their presets."""

from collections.abc import Mapping
from functools import partial

from fp3o.envs.mpe import scenarios as mpe
from fp3o.envs.mpe import scripted as mpe_scripted
from fp3o.envs.task import Family, Preset, Task


def _particle(name: str, summary: str) -> Task:
    return Task(
        f"mpe/{name}", summary, partial(mpe.particle, name), mpe.VARIANTS,
        mpe_scripted.baselines, PRESETS[f"mpe/{name}"],
    )  # fmt: skip


PARTICLES: Preset = {
    "num_envs": 128,
    "rollout": 25,
    "minibatches": 1,
    "hidden": (64, 64),
    "gru_size": 64,
    # The scripts say 10, which does not divide an episode of 25 steps.
    "sequence_length": 5,
    "output_gain": 0.01,
    "actor_lr": 7e-4,
    "critic_lr": 7e-4,
    "clip_range": 0.2,
    "entropy_coef": 0.01,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "huber_delta": 10.0,
    "max_grad_norm": 10.0,
    "seeds": 5,
    "eval_every": 25,
    "eval_episodes": 100,
}
"""What the particle tasks have in common."""

PRESETS: Mapping[str, Mapping[str, Preset]] = {
    "mpe/simple_speaker_listener": {
        # One network for unequal agents needs to know whose turn it is, hence the agent's one-hot.
        "paper": {**PARTICLES, "steps": 2_000_000, "epochs": 15, "agent_id": True},
        # Found by trying: a team that talks in about a minute on two cores.
        "demo": {
            "sharing": "partial",
            "num_envs": 64,
            "rollout": 25,
            "epochs": 3,
            "minibatches": 4,
            "actor_lr": 2e-3,
            "critic_lr": 2e-3,
            # A short horizon and much entropy: seeds no longer settle on a poor language.
            "entropy_coef": 0.04,
            "gamma": 0.7,
            "gae_lambda": 0.8,
            "steps": 400_000,
            "seeds": 3,
            "eval_every": 25,
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

SUMMARIES = {
    "simple_speaker_listener": "one agent sees the goal and speaks, the other moves",
    "simple_reference": "each agent knows the other's goal; both speak and move",
    "simple_spread": "three agents cover three landmarks without collisions",
}

FAMILIES = (
    Family(
        "mpe", "multi-agent particle environments",
        lambda name: _particle(name, SUMMARIES[name]) if name in SUMMARIES else None, (*SUMMARIES,),
    ),
)  # fmt: skip
