"""Helpers for comparisons with JaxMARL and Jumanji environments stepped by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.envs.vectorise import VmapEnv
from fp3o.spec import Box


def streams(key: Any, num_envs: int) -> Any:
    """The keys of a `VmapEnv`: of what follows, and of the first resets, `(2, e)`."""
    return jax.vmap(jax.random.split, out_axes=1)(jax.random.split(key, num_envs))


def numbers(key: Any) -> Any:
    return jax.random.key_data(key)


def close(one: Any, two: Any) -> None:
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def actions(random: np.random.Generator, action_mask: Any) -> np.ndarray:
    """Random available choices `(e, n, 1)`."""
    worth = random.random(action_mask.shape) * np.asarray(action_mask)
    return worth.argmax(-1)[..., None]


SIZES = "env.generator.num_agents=2,env.generator.num_cols=4,env.generator.num_rows=4"
BY_HAND = {
    "LevelBasedForaging-v0": "default:episode_metrics=percent_eaten,env.time_limit=8",
    "Cleaner-v0": f"default:{SIZES},env.time_limit=8",
}


def fits(task: Any) -> None:
    """Time steps have the shapes of the spec, and states can be carried by a loop."""
    spec, batch = task.spec, VmapEnv(task, 2)
    state, now = jax.eval_shape(batch.reset, jax.random.key(0))
    continuous = isinstance(spec.actions, Box)
    width = max(spec.actions.sizes) if continuous else len(spec.actions.sizes[0])
    form = (2, spec.num_agents, width), jnp.float32 if continuous else jnp.int32
    after, then = jax.eval_shape(batch.step, state, jax.ShapeDtypeStruct(*form))
    assert now.obs.shape == (2, spec.num_agents, spec.obs_size)
    assert now.state.shape == (2, spec.num_agents, spec.state_size)
    assert now.action_mask.shape == (2, *spec.actions.mask.shape)
    same = jax.tree.map(
        lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype), (state, now), (after, then)
    )
    assert all(jax.tree.leaves(same))
