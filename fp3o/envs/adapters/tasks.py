"""Tasks of other libraries and of custom modules, by import path or registered name."""

from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module

from fp3o.envs.api import Env, HostEnv
from fp3o.envs.task import MEASURED_PRESETS, Family, Task, random_baseline

ADAPTERS: Mapping[str, str] = {
    "pettingzoo": "a PettingZoo environment, by import path or id",
    "jaxmarl": "a JaxMARL environment",
    "jumanji": "a multi-agent Jumanji environment",
    "gymnasium": "a Gymnasium environment, by id: one agent, or a team",
    "python": "a custom environment, by import path",
}
"""Family -> summary; the module of the same name makes its environments."""


def _adapted(family: str, target: str) -> Task:
    """A task of another library; its options are those of the variant `default`."""
    # The colon in an id of Gymnasium separates the module that registers it.
    path = target if family == "gymnasium" else target.replace(":", ".")
    build = partial(_make, family, path)
    # Each of the environments evaluated at once may be a process: keep them few.
    return Task(
        f"{family}/{path}", ADAPTERS[family], build, baselines=random_baseline,
        presets=MEASURED_PRESETS, max_parallel=32, takes_options=True,
    )  # fmt: skip


@cache
def _make(family: str, path: str, variant: str) -> Env | HostEnv:
    # One object per name, so that programs compiled for it are found again.
    return import_module(f"fp3o.envs.adapters.{family}").make_env(path, variant)


FAMILIES = tuple(
    Family(name, summary, partial(_adapted, name), imports_code=True)
    for name, summary in ADAPTERS.items()
)
