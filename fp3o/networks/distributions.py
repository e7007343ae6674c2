"""Action distributions of many agents at once, in which padding has no effect.

A distribution has shape `(*batch)` over agents, environments and steps. Its parameters have one
more axis, `a` (padded choices or dimensions), and `action_mask` says which of them are available.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from fp3o.spec import ActionSpace, Discrete, Mixed

MASKED_LOGIT = -1e10
"""Logit of an unavailable choice: its probability is exactly 0."""


class Categorical(eqx.Module):
    """Independent choices per sub-action, with `widths[d]` padded choices each."""

    log_p: Float[Array, "*batch a"]
    action_mask: Bool[Array, "*batch a"]
    widths: tuple[int, ...] = eqx.field(static=True)

    noise = staticmethod(jax.random.gumbel)
    """Key and shape `(*batch, a)` -> the noise `sample` needs (the Gumbel-max trick)."""

    def sample(self, noise: Float[Array, "*batch a"]) -> Int[Array, "*batch d"]:
        """Sample one choice per sub-action."""
        return self._argmax(self.log_p + noise)

    def mode(self) -> Int[Array, "*batch d"]:
        """Most likely choice of each sub-action."""
        return self._argmax(self.log_p)

    def log_prob(self, action: Int[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Log π(a|o): the sum over sub-actions."""
        # A product with a one-hot instead of a gather, whose gradient would be a scatter.
        chosen = [
            jax.nn.one_hot(action[..., d], width, dtype=self.log_p.dtype)
            for d, width in enumerate(self.widths)
        ]
        return (self.log_p * jnp.concatenate(chosen, axis=-1)).sum(-1)

    def entropy(self) -> Float[Array, "*batch"]:
        """Mean over sub-actions of -Σ p log p."""
        return -(jnp.exp(self.log_p) * self._finite(self.log_p)).sum(-1) / len(self.widths)

    def kl(self, new: "Categorical") -> Float[Array, "*batch"]:
        """KL(self ‖ new) in closed form."""
        gap = self._finite(self.log_p) - self._finite(new.log_p)
        return (jnp.exp(self.log_p) * gap).sum(-1)

    def _parts(self, x: Float[Array, "*batch a"]) -> list[Array]:
        edges = [sum(self.widths[: d + 1]) for d in range(len(self.widths) - 1)]
        return jnp.split(x, edges, axis=-1)

    def _argmax(self, x: Float[Array, "*batch a"]) -> Int[Array, "*batch d"]:
        return jnp.stack([part.argmax(-1) for part in self._parts(x)], axis=-1)

    def _finite(self, x: Float[Array, "*batch a"]) -> Float[Array, "*batch a"]:
        return jnp.where(self.action_mask, x, 0.0)


class Gaussian(eqx.Module):
    """Independent normal dimensions; actions are neither squashed nor clipped."""

    mean: Float[Array, "*batch a"]
    std: Float[Array, "*#batch a"]
    action_mask: Bool[Array, "*batch a"]

    noise = staticmethod(jax.random.normal)
    """Key and shape `(*batch, a)` -> the noise `sample` needs."""

    def sample(self, noise: Float[Array, "*batch a"]) -> Float[Array, "*batch a"]:
        """Sample a vector; padded dimensions are 0."""
        return jnp.where(self.action_mask, self.mean + self.std * noise, 0.0)

    def mode(self) -> Float[Array, "*batch a"]:
        """The mean; padded dimensions are 0."""
        return jnp.where(self.action_mask, self.mean, 0.0)

    def log_prob(self, action: Float[Array, "*batch a"]) -> Float[Array, "*batch"]:
        """Log π(a|o): the sum over the dimensions that exist."""
        z = (action - self.mean) / self.std
        return self._sum(-0.5 * z * z - jnp.log(self.std) - 0.5 * math.log(2 * math.pi))

    def entropy(self) -> Float[Array, "*batch"]:
        """Sum over the dimensions that exist of ½ log(2πe σ²)."""
        return self._sum(0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.std))

    def kl(self, new: "Gaussian") -> Float[Array, "*batch"]:
        """KL(self ‖ new) in closed form."""
        ratio = jnp.square(self.std / new.std)
        gap = jnp.square((self.mean - new.mean) / new.std)
        return self._sum(0.5 * (ratio + gap - 1.0 - jnp.log(ratio)))

    def _sum(self, x: Float[Array, "*#batch a"]) -> Float[Array, "*batch"]:
        return jnp.where(self.action_mask, x, 0.0).sum(-1)


class MixedDistribution(eqx.Module):
    """Choices and a vector, independent of each other; an action holds the choices first."""

    choices: Categorical
    vector: Gaussian

    def sample(self, noise: Float[Array, "*batch a"]) -> Float[Array, "*batch d"]:
        """Sample both; padded dimensions are 0."""
        num_choices = self.choices.log_p.shape[-1]
        choices = self.choices.sample(noise[..., :num_choices])
        return self._join(choices, self.vector.sample(noise[..., num_choices:]))

    def mode(self) -> Float[Array, "*batch d"]:
        """Most likely choices, and the mean."""
        return self._join(self.choices.mode(), self.vector.mode())

    def log_prob(self, action: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """Log π(a|o): the sum over sub-actions and dimensions."""
        number = len(self.choices.widths)
        choices = self.choices.log_prob(action[..., :number].astype(int))
        return choices + self.vector.log_prob(action[..., number:])

    def entropy(self) -> Float[Array, "*batch"]:
        """The entropy bonus of the choices (a mean) plus that of the vector (a sum)."""
        return self.choices.entropy() + self.vector.entropy()

    def kl(self, new: "MixedDistribution") -> Float[Array, "*batch"]:
        """KL(self ‖ new) in closed form: the sum of both."""
        return self.choices.kl(new.choices) + self.vector.kl(new.vector)

    def _join(self, choices: Array, vector: Array) -> Float[Array, "*batch d"]:
        return jnp.concatenate([choices.astype(vector.dtype), vector], axis=-1)


Distribution = Categorical | Gaussian | MixedDistribution


def categorical(
    logits: Float[Array, "*batch a"], action_mask: Bool[Array, "*batch a"], widths: tuple[int, ...]
) -> Categorical:
    """Normalise the logits of each sub-action over its available choices."""
    logits = jnp.where(action_mask, logits, MASKED_LOGIT)
    edges = [sum(widths[: d + 1]) for d in range(len(widths) - 1)]
    parts = [jax.nn.log_softmax(part) for part in jnp.split(logits, edges, axis=-1)]
    return Categorical(jnp.concatenate(parts, axis=-1), action_mask, widths)


def action_noise(
    actions: ActionSpace, key: PRNGKeyArray, batch: tuple[int, ...]
) -> Float[Array, "*batch a"]:
    """The noise from which the actions of a batch are sampled."""
    if not isinstance(actions, Mixed):
        kind = Categorical if isinstance(actions, Discrete) else Gaussian
        return kind.noise(key, (*batch, actions.num_outputs), float)
    choices = action_noise(actions.discrete, key, batch)
    vector = action_noise(actions.box, jax.random.fold_in(key, 1), batch)
    return jnp.concatenate([choices, vector], axis=-1)


def num_outputs(actions: ActionSpace) -> int:
    """Number of outputs of a policy network per agent."""
    return actions.num_outputs
