"""An environment in JaxMARL's form, without JaxMARL."""

from typing import Any, NamedTuple

import jax.numpy as jnp


class Count(NamedTuple):
    time: Any


class Choice:
    def __init__(self, n: int):
        self.n, self.shape, self.dtype = n, (), jnp.int32


class Numbers:
    def __init__(self, low: float, high: float, shape: tuple[int, ...]):
        self.low, self.high, self.shape, self.dtype = low, high, shape, jnp.float32


class Choices:
    def __init__(self, *sizes: int):
        self.num_categories, self.shape, self.dtype = jnp.array(sizes), (len(sizes),), jnp.int32


Discretes = type("Discrete", (Choice,), {})
Boxes = type("Box", (Numbers,), {})
Multi = type("MultiDiscrete", (Choices,), {})


class Unequal:
    """An environment in JaxMARL's form: two agents that have nothing in common."""

    agents = ("cook_0", "scout_0")

    def __init__(self, continuous: bool = False):
        self.continuous = continuous

    def observation_space(self, agent: str) -> Any:
        return Discretes(4) if agent == "cook_0" else Boxes(-1, 1, (2, 3))

    def action_space(self, agent: str) -> Any:
        if self.continuous:
            return Boxes(0, 1, (1,) if agent == "cook_0" else (2,))
        return Discretes(3) if agent == "cook_0" else Multi(2, 4)

    def get_avail_actions(self, state: Any) -> Any:
        if self.continuous:
            raise NotImplementedError
        return {"cook_0": jnp.array([0, 1, 1]), "scout_0": jnp.array([1, 0, 0, 0, 1, 1])}

    def see(self, time: Any) -> Any:
        world = jnp.stack([jnp.arange(5.0), time + jnp.arange(5.0)])
        scout = jnp.full((2, 3), time, jnp.float32)
        return {"cook_0": time % 4, "scout_0": scout, "world_state": world}

    def reset(self, key: Any) -> Any:
        return self.see(jnp.zeros((), int)), Count(0)

    def step_env(self, key: Any, state: Count, action: Any) -> Any:
        time = state.time + 1
        pay = {a: jnp.sum(x) * 1.0 for a, x in action.items()}
        done = {"cook_0": time > 1, "scout_0": False, "__all__": time == 3}
        info = {"truncation": jnp.float32(time == 3), "found": jnp.array([time, time])}
        return self.see(time), Count(time), pay, done, info
