"""Joint policy of some agents: from observations to actions or their distribution."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.networks.numpy_network import sigmoid
from fp3o.policy.card import Card
from fp3o.policy.inputs import TeamInputs
from fp3o.policy.network import NumPyNetwork
from fp3o.policy.schema import PolicyError
from fp3o.policy.trust import require_trust
from fp3o.spec import Mixed

_MASKED_LOGIT = -1e10
"""Logit of a choice that is not available: its probability is exactly 0."""


class Choices(NamedTuple):
    """Probabilities of discrete actions, `(*batch, n, a)`: sub-actions side by side."""

    probabilities: np.ndarray


class Normal(NamedTuple):
    """Independent normal dimensions, `(*batch, n, a)`; 0 in dimensions an agent does not have."""

    mean: np.ndarray
    std: np.ndarray


class ChoicesAndVector(NamedTuple):
    """Distributions of the two parts of mixed actions."""

    choices: Choices
    vector: Normal


class Team:
    """Agents of a policy that act together."""

    def __init__(
        self,
        card: Card,
        weights: Mapping[str, np.ndarray],
        agents: Sequence[int],
        trusted: bool = True,
    ):
        self.card, self.trusted = card, trusted
        self._agents, self._weights = tuple(agents), weights
        self._inputs = TeamInputs(card, weights, agents)
        if card.network_class is None:
            self._network = NumPyNetwork(card, weights, agents)
        self._widths, self._mixed = card.spec.actions.widths, isinstance(card.spec.actions, Mixed)
        self._std = np.zeros((len(self._agents), 0), np.float32)
        if card.spec.actions.num_dimensions:
            free = weights["log_std.value"][[card.sharing[-1][agent] for agent in agents]]
            self._std = _standard_deviation(card.std_param, free)

    @cached_property
    def _network(self) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """A custom network; its class, and JAX, are imported when it is first needed."""
        require_trust(self.trusted, "network", str(self.card.network_class))
        from fp3o.policy.export import custom_network

        return custom_network(self.card, self._weights, self._agents)

    def initial_hidden_state(self, *batch: int) -> np.ndarray:
        """The hidden state at the start of an episode: zeros `(*batch, n, h)`, h = 0 if no GRU."""
        return self._inputs.initial_hidden_state(*batch)

    def act(
        self,
        obs: Any,
        hidden_state: np.ndarray | None = None,
        action_mask: Any = None,
        deterministic: bool = True,
        random: np.random.Generator | None = None,
        episode_start: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Padded actions of all agents and the next hidden state; arguments as in `Policy.act`."""
        logits, (vector, std), after = self._step(obs, hidden_state, action_mask, episode_start)
        if not deterministic:
            generator = random or np.random.default_rng()
            if self._widths:  # the argmax samples from the softmax
                logits = logits + generator.gumbel(size=logits.shape)
            vector = vector + std * generator.standard_normal(vector.shape, np.float32)
        if not self._widths:
            return vector, after
        choices = np.stack([part.argmax(-1) for part in self._sub_actions(logits)], axis=-1)
        if not self._mixed:
            return choices, after
        return np.concatenate([choices.astype(np.float32), vector], axis=-1), after

    def distribution(
        self,
        obs: Any,
        hidden_state: np.ndarray | None = None,
        action_mask: Any = None,
        episode_start: Any = None,
    ) -> tuple[Choices | Normal | ChoicesAndVector, np.ndarray]:
        """The distribution `act` samples from, and the next hidden state; arguments as in `act`.

        It always has a row for every agent, padded.
        """
        logits, vector, after = self._step(obs, hidden_state, action_mask, episode_start)
        if not self._widths:
            return vector, after
        odds = [np.exp(part - part.max(-1, keepdims=True)) for part in self._sub_actions(logits)]
        parts = [part / part.sum(-1, keepdims=True) for part in odds]
        choices = Choices(np.concatenate(parts, axis=-1))
        return ChoicesAndVector(choices, vector) if self._mixed else choices, after

    def _sub_actions(self, x: np.ndarray) -> list[np.ndarray]:
        """The last axis cut into one piece per sub-action."""
        ends = [*accumulate(self._widths, initial=0)]
        return [x[..., low:high] for low, high in pairwise(ends)]

    def _step(
        self, obs: Any, hidden_state: Any, action_mask: Any, episode_start: Any
    ) -> tuple[np.ndarray, Normal, np.ndarray]:
        """Masked logits, the distribution of the vector, and the next hidden state."""
        with np.errstate(all="ignore"):
            x = self._inputs.features(obs)
            batch = x.shape[:-2]
            before = self._inputs.hidden_state(hidden_state, episode_start, batch)
            out, after = self._network(_agent_first(x), _agent_first(before))
        if not np.isfinite(out).all():
            raise NonFiniteError(
                "the policy's outputs are not finite: check the observation and the hidden state "
                "for values that are not finite or very large"
            )
        out, after = _agent_last(out, batch), _agent_last(after, batch)
        mask = self._inputs.action_mask(action_mask, batch)
        number = sum(self._widths)
        logits = np.where(mask[..., :number], out[..., :number], np.float32(_MASKED_LOGIT))
        mean, exists = out[..., number:], mask[..., number:]
        std = np.broadcast_to(self._std, mean.shape)
        return logits, Normal(mean * exists, std * exists), after


def _standard_deviation(kind: str, free: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        std = np.float32(0.5) * sigmoid(free) if kind == "sigmoid" else np.exp(free)
    if not np.isfinite(std).all():
        raise PolicyError("log_std.value gives a standard deviation that is not finite")
    return std


def _agent_first(x: np.ndarray) -> np.ndarray:
    """`(*batch, k, z)` to `(k, r, z)`."""
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]).swapaxes(0, 1)


def _agent_last(x: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """`(k, r, z)` to `(*batch, k, z)`."""
    return x.swapaxes(0, 1).reshape(*batch, x.shape[0], x.shape[2])
