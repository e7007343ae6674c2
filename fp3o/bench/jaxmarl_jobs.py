"""JaxMARL's environments and its training script as timed jobs."""

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from fp3o.bench.timing import TimedJob
from fp3o.envs.adapters.jaxmarl_library import make_jaxmarl
from fp3o.errors import SettingError
from fp3o.imports import foreign_code
from fp3o.runs.run_config import RunConfig

EXTRA = "'fp3o[jaxmarl]'"
"""What installs JaxMARL."""

TRAINING_SCRIPT = "baselines.IPPO.ippo_ff_mpe"
"""Its training script on the particle tasks, in the sources but not in the package."""

UPDATES = 4
"""Iterations per chunk of the script."""


def jaxmarl_play_job(name: str, num_envs: int, steps: int, **options: Any) -> TimedJob:
    """Chunks of steps of random available actions, as `random_play_job`."""
    env = make_jaxmarl(name, tuple(sorted(options.items())))
    sample = _sampler(env)

    def step(state: Any, key: Array) -> tuple[Any, Any]:
        keys = jax.random.split(key, (2, num_envs))
        actions = jax.vmap(sample)(keys[0], state)
        # All observations and rewards are results, so that none of them is left out.
        obs, state, reward, done, _ = jax.vmap(env.step)(keys[1], state, actions)
        return state, jax.tree.map(lambda x: x.astype(float).mean(), (obs, reward, done))

    @jax.jit
    def chunk(state: Any, key: Array) -> tuple[Any, Any]:
        return jax.lax.scan(step, state, jax.random.split(key, steps))

    with foreign_code(f"JaxMARL's {name} cannot be run"):
        _, state = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), num_envs))
        compiled, key = chunk.lower(state, jax.random.key(0)).compile(), jax.random.key(1)

    def run() -> None:
        nonlocal state, key
        key, now = jax.random.split(key)
        state, _ = jax.block_until_ready(compiled(state, now))

    return TimedJob(num_envs * steps, run)


def _sampler(env: Any) -> Any:
    """A function from a key and a state to random actions by agent."""

    def masked(key: Array, state: Any) -> dict[str, Array]:
        masks, keys = env.get_avail_actions(state), jax.random.split(key, len(env.agents))
        return {
            agent: jax.random.categorical(now, jnp.where(masks[agent], 0.0, -jnp.inf))
            for agent, now in zip(env.agents, keys, strict=True)
        }

    def free(key: Array, state: Any) -> dict[str, Array]:
        keys = jax.random.split(key, len(env.agents))
        pairs = zip(env.agents, keys, strict=True)
        return {agent: env.action_space(agent).sample(now) for agent, now in pairs}

    try:
        jax.eval_shape(lambda key: env.get_avail_actions(env.reset(key)[1]), jax.random.key(0))
    except NotImplementedError:
        return free
    return masked


def jaxmarl_training_job(config: RunConfig) -> TimedJob:
    """The training script at the sizes of a run; one chunk trains for some iterations."""
    if find_spec("baselines") is None or find_spec(TRAINING_SCRIPT) is None:
        raise SettingError("the script is in JaxMARL's sources, not in its package")
    learner = config.learner
    settings = {
        "ENV_NAME": "MPE_simple_spread_v3", "ENV_KWARGS": {}, "NUM_ENVS": learner.num_envs,
        "NUM_STEPS": learner.rollout, "UPDATE_EPOCHS": learner.epochs,
        "NUM_MINIBATCHES": learner.minibatches, "GAMMA": 0.99, "GAE_LAMBDA": 0.95,
        "CLIP_EPS": 0.2, "ENT_COEF": 0.01, "VF_COEF": 0.5, "MAX_GRAD_NORM": 0.5, "LR": 2.5e-4,
        "ACTIVATION": "tanh", "ANNEAL_LR": True,
        "TOTAL_TIMESTEPS": UPDATES * config.steps_per_iteration,
    }  # fmt: skip
    with foreign_code(f"{TRAINING_SCRIPT} cannot be run"):
        script: Any = import_module(TRAINING_SCRIPT)
        script.wandb = SimpleNamespace(log=lambda *_: None)  # it logs every iteration
        train = jax.jit(script.make_train(settings)).lower(jax.random.PRNGKey(0)).compile()
    run = partial(_wait_for, train, jax.random.PRNGKey(0))
    return TimedJob(UPDATES * config.steps_per_iteration, run)


def _wait_for(program: Any, *inputs: Any) -> None:
    jax.block_until_ready(program(*inputs))
