"""Action distributions of the golden reference, with their gradients."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.network import Array, Layer, Mask, sigmoid


@dataclass(frozen=True)
class Categorical:
    """One choice per sub-action, among the available ones."""

    out: Array
    action_mask: Mask
    widths: tuple[int, ...]

    def parts(self) -> Iterator[tuple[int, slice, Array, Array]]:
        """For every sub-action: its number, its columns, p, and log p (0 where masked)."""
        for d, width in enumerate(self.widths):
            columns = slice(sum(self.widths[:d]), sum(self.widths[:d]) + width)
            action_mask = self.action_mask[:, columns]
            logits = np.where(action_mask, self.out[:, columns], -np.inf)
            logits = logits - logits.max(1, keepdims=True)
            log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
            yield d, columns, np.exp(log_p), np.where(action_mask, log_p, 0.0)

    def log_prob(self, action: NDArray[Any]) -> Array:
        """Log π(a|o), summed over sub-actions."""
        rows = np.arange(len(action))
        parts = (log_p[rows, action[:, d]] for d, _, _, log_p in self.parts())
        return sum(parts, np.zeros(len(rows)))

    def entropy(self) -> Array:
        """-Σ p log p, averaged over sub-actions."""
        parts = (-(p * log_p).sum(1) for _, _, p, log_p in self.parts())
        return sum(parts, np.zeros(len(self.out))) / len(self.widths)

    def kl(self, new: "Policy") -> Array:
        """Σ p (log p - log q), summed over sub-actions."""
        assert isinstance(new, Categorical)
        pairs = zip(self.parts(), new.parts(), strict=True)
        parts = ((p * (log_p - log_q)).sum(1) for (_, _, p, log_p), (_, _, _, log_q) in pairs)
        return sum(parts, np.zeros(len(self.out)))

    def back(self, action: NDArray[Any], dlog_prob: Array, dentropy: Array) -> tuple[Array, Layer]:
        """∂log π/∂logit_k = [k = a] - p_k and ∂H/∂logit_k = -p_k (log p_k + H)."""
        dout = np.zeros_like(self.out)
        for d, columns, p, log_p in self.parts():
            taken = np.arange(p.shape[1]) == action[:, d, None]
            own = -(p * log_p).sum(1, keepdims=True)
            dout[:, columns] += dlog_prob[:, None] * (taken - p)
            dout[:, columns] -= dentropy[:, None] / len(self.widths) * p * (log_p + own)
        return dout, {}


@dataclass(frozen=True)
class Gaussian:
    """Independent normal dimensions, those that exist; σ depends on no observation."""

    out: Array
    action_mask: Mask
    free: Array
    std: str

    @property
    def sigma(self) -> Array:
        """σ = ½ sigmoid(v) or σ = exp(v)."""
        return 0.5 * sigmoid(self.free) if self.std == "sigmoid" else np.exp(self.free)

    def log_prob(self, action: Array) -> Array:
        """Σ -½ z² - log σ - ½ log 2π with z = (a - μ) / σ."""
        z = (action - self.out) / self.sigma
        return (
            self.action_mask * (-0.5 * z**2 - np.log(self.sigma) - 0.5 * np.log(2 * np.pi))
        ).sum(1)

    def entropy(self) -> Array:
        """Σ ½ log(2πe σ²)."""
        return (self.action_mask * 0.5 * np.log(2 * np.pi * np.e * self.sigma**2)).sum(1)

    def kl(self, new: "Policy") -> Array:
        """Σ log(σ'/σ) + (σ² + (μ - μ')²) / 2σ'² - ½."""
        assert isinstance(new, Gaussian)
        spread = (self.sigma**2 + (self.out - new.out) ** 2) / (2 * new.sigma**2)
        return (self.action_mask * (np.log(new.sigma / self.sigma) + spread - 0.5)).sum(1)

    def back(self, action: Array, dlog_prob: Array, dentropy: Array) -> tuple[Array, Layer]:
        """∂log π/∂μ = z/σ, ∂log π/∂σ = (z² - 1)/σ, ∂H/∂σ = 1/σ, and σ' of the free number."""
        z = (action - self.out) / self.sigma
        dlog_prob, dentropy = (
            self.action_mask * dlog_prob[:, None],
            self.action_mask * dentropy[:, None],
        )
        dsigma = ((dlog_prob * (z**2 - 1.0) + dentropy) / self.sigma).sum(0)
        slope = self.sigma * (1.0 - 2.0 * self.sigma) if self.std == "sigmoid" else self.sigma
        return dlog_prob * z / self.sigma, {"log_std": dsigma * slope}


@dataclass(frozen=True)
class Mixed:
    """Choices and a vector, independent of each other; actions hold the choices first."""

    choices: Categorical
    vector: Gaussian

    def log_prob(self, action: Array) -> Array:
        """The sum of both."""
        chosen, rest = self._parts(action)
        return self.choices.log_prob(chosen) + self.vector.log_prob(rest)

    def entropy(self) -> Array:
        """The sum of both."""
        return self.choices.entropy() + self.vector.entropy()

    def kl(self, new: "Policy") -> Array:
        """The sum of both."""
        assert isinstance(new, Mixed)
        return self.choices.kl(new.choices) + self.vector.kl(new.vector)

    def back(self, action: Array, dlog_prob: Array, dentropy: Array) -> tuple[Array, Layer]:
        """The gradients of both, side by side."""
        chosen, rest = self._parts(action)
        dlogits, _ = self.choices.back(chosen, dlog_prob, dentropy)
        dmean, layer = self.vector.back(rest, dlog_prob, dentropy)
        return np.concatenate([dlogits, dmean], axis=1), layer

    def _parts(self, action: Array) -> tuple[NDArray[Any], Array]:
        number = len(self.choices.widths)
        return action[:, :number].astype(int), action[:, number:]


Policy = Categorical | Gaussian | Mixed
