"""The environment of a MuJoCo task by name and variant."""

from functools import cache

from fp3o.envs.api import Env, HostEnv
from fp3o.envs.mamujoco.native import NativeEnv
from fp3o.envs.mamujoco.task import body_task


@cache
def mamujoco_env(name: str, variant: str) -> Env | HostEnv:
    """The environment of a task, such as `HalfCheetah-6x1`, on the backend of its variant."""
    task = body_task(name, variant)
    if task.variant.backend == "native":
        return NativeEnv(task)
    if task.variant.backend == "fused":
        from fp3o.envs.mamujoco.fused.env import FusedEnv  # importing JAX is slow

        return FusedEnv(task)
    from fp3o.envs.mamujoco.mjx import MjxEnv  # an optional package

    return MjxEnv(task)
