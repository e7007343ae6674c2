"""Update of the running normalisers, once per iteration, with the observations of a rollout.

Rollouts and updates of an iteration use the moments of its start, so that the probabilities of a
rollout are those that the update starts from. New moments take effect in the next rollout.
"""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fp3o.learning.collectives import total
from fp3o.learning.optim import membership, update_where
from fp3o.learning.setup import Learner, Setup
from fp3o.networks.obs_norm import ObsNorm
from fp3o.types import Trajectory


def update_obs_norms(setup: Setup, learner: Learner, trajectory: Trajectory) -> Learner:
    """Add the observations of living agents, and their critics' inputs, to the moments."""
    actor, critic = setup.actor(learner.actor), setup.critic(learner.critic)
    if actor.obs_norm is None or critic.obs_norm is None:
        return learner
    alive = trajectory.alive
    obs_norm = add_observations(actor.obs_norm, trajectory.obs, alive)
    critic_input = trajectory.critic_input
    if setup.crosses_agents:  # the links that follow are no features
        critic_input = critic_input[..., : setup.spec.obs_size]
    critic_norm = add_observations(critic.obs_norm, critic_input, alive)
    params = setup.actor_layout.pack(dataclasses.replace(actor, obs_norm=obs_norm))
    if setup.config.frozen_agents:
        params = update_where(setup.actor_layout, jnp.asarray(setup.learns), params, learner.actor)
    return learner._replace(
        actor=params,
        critic=setup.critic_layout.pack(dataclasses.replace(critic, obs_norm=critic_norm)),
    )


def add_observations(
    norm: ObsNorm, x: Float[Array, "t e n f"], alive: Bool[Array, "t e n"]
) -> ObsNorm:
    """Moments of all observations, old and new, from those of both."""
    x, member = x[..., x.shape[-1] - norm.mean.shape[-1] :], membership(norm.groups)
    weight = alive.astype(x.dtype)

    def group_sum(y: Float[Array, "t e n f"]) -> Float[Array, "g f"]:
        return member @ total((weight[..., None] * y).sum(0).sum(0))

    count = member @ total(weight.sum((0, 1)))[:, None]
    some = jnp.maximum(count, 1.0)
    mean = group_sum(x) / some
    variance = group_sum(jnp.square(x - mean[jnp.asarray(norm.groups)])) / some
    share = count / jnp.maximum(norm.count + count, 1.0)
    change = mean - norm.mean
    between = jnp.square(change) * share * (1.0 - share)
    std = jnp.sqrt((1.0 - share) * jnp.square(norm.std) + share * variance + between)
    return dataclasses.replace(
        norm, count=norm.count + count, mean=norm.mean + share * change, std=std
    )
