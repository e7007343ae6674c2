"""A custom environment as pure JAX functions: agents on a line that have to meet.

    python examples/custom_environment.py
    fp3o train python:custom_environment:Meeting

Every agent observes its own position and the mean position of the team, and moves left, stays or
moves right. The reward is minus the mean distance to the centre of the team.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

import fp3o


class Positions(NamedTuple):
    """State of an episode."""

    x: jax.Array
    time: jax.Array


class Meeting(fp3o.Env):
    """Agents on a line that have to meet."""

    max_episode_steps = 10
    num_agents = 3

    @property
    def spec(self):
        """Three choices, two observed numbers and, for the critic, all positions."""
        n = self.num_agents
        return fp3o.EnvSpec("meeting", fp3o.Discrete(((3,),) * n), 2, n, (0,) * n)

    def reset(self, key):
        """Uniform positions."""
        return Positions(jax.random.uniform(key, (self.num_agents,), minval=-1.0), jnp.array(0))

    def step(self, state, action, key):
        """Move, then reward closeness; an episode ends after a fixed number of steps."""
        state = Positions(state.x + 0.2 * (action[:, 0] - 1), state.time + 1)
        reward = -jnp.abs(state.x - state.x.mean()).mean()
        done = state.time == self.max_episode_steps
        return state, jnp.full(self.num_agents, reward), done, jnp.array(False)

    def observe(self, state):
        """The agent's position and the team's mean; the critic sees all positions."""
        n = self.num_agents
        obs = jnp.stack([state.x, jnp.full(n, state.x.mean())], axis=-1)
        critic = jnp.broadcast_to(state.x, (n, n))
        return fp3o.Observation(obs, critic, jnp.ones((n, 3), bool), jnp.ones(n, bool))


def main(steps=50_000):
    """Check the environment, then train on it."""
    print(fp3o.check_env(Meeting()))
    run = fp3o.train(Meeting(), num_envs=16, rollout=10, steps=steps, final_episodes=100)
    print(run)


if __name__ == "__main__":
    main()
