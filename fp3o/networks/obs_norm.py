"""Running normaliser: observations minus their mean, divided by their standard deviation.

The moments are arrays of the actor and of the critic, so that they are saved, copied, evaluated and
resumed together with the parameters, but no gradient changes them (`Grouped.trained`). Agents of
one type with observations of one length have the same moments, whatever parameters they share.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from fp3o.networks.layers import Grouped
from fp3o.networks.numpy_network import FLAT_STD, MIN_STD, OBS_LIMIT
from fp3o.sharing.maps import Groups


class ObsNorm(Grouped):
    """Moments of the last features of observations; an image before them has none."""

    trained: ClassVar[bool] = False

    count: Float[Array, "g 1"]
    """Number of observations."""
    mean: Float[Array, "g f"]
    std: Float[Array, "g f"]
    groups: Groups = eqx.field(static=True)

    def __call__(self, x: Float[Array, "*e n f2"]) -> Float[Array, "*e n f2"]:
        """Normalised observations of the team, limited to ±`OBS_LIMIT`."""
        first = x.shape[-1] - self.mean.shape[-1]
        mean, scale = self.of(self.mean, None), self.of(self.scale, None)
        y = ((x[..., first:] - mean) * scale).clip(-OBS_LIMIT, OBS_LIMIT)
        return jnp.concatenate([x[..., :first], y], axis=-1) if first else y

    @property
    def scale(self) -> Float[Array, "g f"]:
        """Factor of every feature: 1 for one that has not varied, such as padding."""
        varies = self.std > FLAT_STD * jnp.abs(self.mean) + MIN_STD
        return 1.0 / jnp.where(varies, self.std, 1.0)


def make_obs_norm(num_features: int, groups: Groups) -> ObsNorm:
    """Moments of no observations: the normaliser changes nothing but extreme values."""
    number = max(groups) + 1
    zeros = jnp.zeros((number, num_features))
    return ObsNorm(count=jnp.zeros((number, 1)), mean=zeros, std=zeros, groups=groups)
