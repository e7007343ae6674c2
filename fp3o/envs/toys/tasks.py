"""The probe tasks, matrix games, pixel tasks and radio tasks, and their presets."""

from collections.abc import Mapping

from fp3o.envs.task import Family, Preset, Task
from fp3o.envs.toys.matrix import FAMILY, MATRIX_GAMES
from fp3o.envs.toys.pixels import PIXEL_FAMILY, PIXEL_TASKS, Cover, pixel_baselines
from fp3o.envs.toys.probe import PROBES
from fp3o.envs.toys.radio import RADIO, RADIO_TASKS, radio_baselines

_QUESTIONS = {
    "value": "is the value learned, whatever the actions?",
    "credit": "is an action learned that is rewarded two steps later?",
    "roles": "do agents with equal observations learn to differ?",
    "memory": "is a cue remembered for two steps?",
    "unequal": "do agents of unequal sizes learn together?",
    "target": "are continuous actions learned?",
}


def _probe(name: str) -> Task | None:
    if name not in PROBES:
        return None
    env = PROBES[name]
    return Task(f"probe/{name}", f"tests: {_QUESTIONS[name]}", lambda _: env)


def _matrix(name: str) -> Task | None:
    if name not in MATRIX_GAMES:
        return None
    env = MATRIX_GAMES[name]
    summary = f"two agents choose once; the best reward is {env.best:g}"
    return Task(f"{FAMILY}/{name}", summary, lambda _: env, presets=_MATRIX_PRESETS)


def _radio(name: str) -> Task | None:
    if name not in RADIO_TASKS:
        return None
    env, summary = RADIO_TASKS[name], _RADIO_SUMMARIES[name]
    return Task(
        f"{RADIO}/{name}", summary, lambda _: env, baselines=radio_baselines, presets=_RADIO_PRESETS
    )


_RADIO_SUMMARIES = {
    "guide": "mixed actions: one agent chooses a channel, the other one steers",
    "pair": "mixed actions: both agents choose a channel and steer",
}

_RADIO_PRESETS: Mapping[str, Preset] = {
    "demo": {
        "sharing": "none", "num_envs": 64, "rollout": 20, "epochs": 3, "minibatches": 4,
        "hidden": (64, 64), "std_param": "exp", "actor_lr": 1e-3, "critic_lr": 1e-3,
        "entropy_coef": 0.03, "gamma": 0.8, "gae_lambda": 0.8, "steps": 120_000, "seeds": 3,
        "eval_every": 25,
        "eval_episodes": 100,
    },
}  # fmt: skip


def _pixels(name: str) -> Task | None:
    if name not in PIXEL_TASKS:
        return None
    agents, size = PIXEL_TASKS[name]
    return Task(
        f"{PIXEL_FAMILY}/{name}", f"{agents} agents that see images cover {agents} targets",
        lambda rules: Cover(agents, size, blind=rules == "blind"), ("default", "blind"),
        pixel_baselines, _PIXEL_PRESETS,
    )  # fmt: skip


_PIXEL_PRESETS: Mapping[str, Preset] = {
    "quick": {
        "algorithm": "mappo", "num_envs": 32, "rollout": 40, "epochs": 5, "minibatches": 2,
        "hidden": (64,), "actor_lr": 1e-3, "critic_lr": 1e-3, "steps": 80_000, "eval_every": 10,
    },
}  # fmt: skip

_MATRIX_PRESETS: Mapping[str, Preset] = {
    # Initial policies with strong preferences: about half of the seeds learn the best pair, so the
    # best of eight does. From uniform ones hardly any seed does.
    "decided": {
        "sharing": "none", "output_gain": 3.0, "seeds": 8, "num_envs": 64, "rollout": 1,
        "hidden": (16,), "epochs": 4, "actor_lr": 1e-2, "critic_lr": 1e-2, "steps": 60 * 64,
        "eval_episodes": 1, "final_episodes": 1,
    },
}  # fmt: skip

FAMILIES = (
    Family("probe", "tiny tasks with known optima", _probe, (*PROBES,)),
    Family(FAMILY, "matrix games", _matrix, (*MATRIX_GAMES,)),
    Family(PIXEL_FAMILY, "agents that see images", _pixels, (*PIXEL_TASKS,)),
    Family(RADIO, "choices and steering: mixed actions", _radio, (*RADIO_TASKS,)),
)
