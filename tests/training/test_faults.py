"""Non-finite numbers from the task are rejected, including those after the last step."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.envs.toys.probe import Probe
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import NonFiniteError
from fp3o.learning.config import Config
from fp3o.training.program import Program

TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=1)


@dataclasses.dataclass(frozen=True)
class BrokenEnd(Probe):
    """The state of agent 2 is NaN when an episode has ended, and only then."""

    def observe(self, state: Any) -> Any:
        observation = super().observe(state)
        bad = jnp.where((jnp.arange(3) == 2) & (state.time == self.max_episode_steps), jnp.nan, 0.0)
        return observation._replace(state=observation.state + bad[:, None])


@pytest.mark.parametrize(("time_limit", "step"), [("bootstrap", 2), ("terminate", 5)])
def test_final_critic_input_is_checked(time_limit: Any, step: int) -> None:
    """After a time limit where it is bootstrapped from; after the last step in any case."""
    probe = BrokenEnd("broken", (1, 1, 1), (2, 2, 2), max_episode_steps=3, truncates=True)
    program = Program(VmapEnv(probe, 4), TINY.replace(time_limit=time_limit))
    with pytest.raises(NonFiniteError) as caught:
        program.iterate(program.init(0))
    message = f"not finite, or beyond 1e+15, in environment 0, agent 2, step {step}"
    assert message in str(caught.value)


@dataclasses.dataclass(frozen=True)
class Broken(Probe):
    """Agent 1 produces NaN at the second step of an episode."""

    part: str = "reward"

    def step(self, state: Any, action: Any, key: Any) -> Any:
        new, reward, terminated, truncated = super().step(state, action, key)
        bad = jnp.where((jnp.arange(3) == 1) & (state.time == 1), jnp.nan, 0.0)
        return new, reward + bad if self.part == "reward" else reward, terminated, truncated

    def observe(self, state: Any) -> Any:
        observation = super().observe(state)
        bad = jnp.where((jnp.arange(3) == 1) & (state.time == 1), jnp.nan, 0.0)[:, None]
        parts = {name: getattr(observation, name) for name in ("obs", "state")}
        changed = {n: x + (bad if n == self.part else 0.0) for n, x in parts.items()}
        return observation._replace(**changed)


@pytest.mark.parametrize(
    ("part", "what", "num_seeds"),
    [
        ("reward", "reward", None),
        ("reward", "reward", 2),
        ("obs", "observation", None),
        ("state", "critic input", None),
    ],
)
def test_numbers_that_are_not_finite(part: str, what: str, num_seeds: int | None) -> None:
    """Environment, agent and step are named, and the previous state stays usable."""
    probe = Broken("broken", (1, 1, 1), (2, 2, 2), max_episode_steps=3, part=part)
    program = Program(VmapEnv(probe, 4), TINY, num_seeds)
    state = program.init(0)
    with pytest.raises(NonFiniteError) as caught:
        program.iterate(state)
    message = f"the {what} is not finite, or beyond 1e+15, in environment 0, agent 1, step 1"
    assert message in str(caught.value)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state.learner))
