"""Agents that act together: from observations to actions or their distribution."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.policy.card import Card
from fp3o.policy.network import Network, sigmoid
from fp3o.policy.schema import PolicyError
from fp3o.spec import Discrete

ILLEGAL = -1e10
"""Logit of a choice that is not allowed: its probability is exactly 0."""


class Choices(NamedTuple):
    """Probabilities of discrete actions, `(*batch, n, a)`: sub-actions side by side."""

    probabilities: np.ndarray


class Normal(NamedTuple):
    """Independent normal dimensions, `(*batch, n, a)`; both numbers are 0 where there is none."""

    mean: np.ndarray
    std: np.ndarray


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
        if card.network_class is None:
            self._network = Network(card, weights, agents)
        ids = np.eye(card.spec.num_agents, dtype=np.float32)[list(agents)]
        self._ids = ids if card.agent_id else ids[:, :0]
        actions = card.spec.actions
        self._mask = actions.mask[list(agents)]
        self._std, self._widths = None, ()
        if isinstance(actions, Discrete):
            self._widths = actions.widths
        else:
            free = weights["log_std.value"][[card.sharing[-1][agent] for agent in agents]]
            self._std = _deviation(card.std_param, free)

    @cached_property
    def _network(self) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """A network of one's own: its class, and JAX, are imported when it is first needed."""
        self.require_trust(f"the network {self.card.network_class}")
        from fp3o.policy.export import acting

        return acting(self.card, self._weights, self._agents)

    def require_trust(self, what: str) -> None:
        """Refuse to import what a policy names unless somebody stands for it."""
        if not self.trusted:
            raise PolicyError(
                f"this policy needs {what}, which is code that has to be imported. If you trust "
                "where the policy comes from: Policy.load(folder, trust=True), or --trust"
            )

    def initial_hidden_state(self, *batch: int) -> np.ndarray:
        """The empty memory at the start of an episode, `(*batch, n, h)`; h = 0 without a GRU."""
        return np.zeros((*batch, len(self._agents), self.card.gru_size), np.float32)

    def act(
        self,
        obs: Any,
        hidden_state: np.ndarray | None = None,
        action_mask: Any = None,
        deterministic: bool = True,
        random: np.random.Generator | None = None,
        episode_start: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Every agent acts on its own observation; returns the actions and the new memory.

        Args:
            obs: `(*batch, n, f)`, shorter observations padded with zeros; or a list (or a dict
                keyed by agent index) of one array an agent, `(*batch, f_i)`, not padded.
            memory: what the last step returned, `(*batch, n, h)`; None when an episode begins.
            legal: the choices allowed now, `(*batch, n, a)`; or a list (or dict) of one array an
                agent with its own choices only. None: all it has.
            deterministic: take the most likely action (Box: the mean) instead of drawing one.
            random: where the draws come from; None: fresh randomness.
            start: `(*batch)`, true where an episode begins: its memory is emptied first.

        Returns:
            Discrete: integers `(*batch, n, d)`, one for each of the d sub-actions. Box: floats
            `(*batch, n, a)`, 0 in dimensions an agent does not have. And the memory to pass next.
        """
        out, std, after = self._step(obs, hidden_state, action_mask, episode_start)
        draw = None if deterministic else random or np.random.default_rng()
        if std is not None:
            if draw is not None:
                out = out + std * draw.standard_normal(out.shape, np.float32)
            return out, after
        if draw is not None:
            out = out + draw.gumbel(size=out.shape)  # the largest sum is a draw from the softmax
        return np.stack([part.argmax(-1) for part in self._parts(out)], axis=-1), after

    def distribution(
        self,
        obs: Any,
        hidden_state: np.ndarray | None = None,
        action_mask: Any = None,
        episode_start: Any = None,
    ) -> tuple[Choices | Normal, np.ndarray]:
        """What `act` draws from, and the memory after the step; arguments as in `act`."""
        out, std, after = self._step(obs, hidden_state, action_mask, episode_start)
        if std is not None:
            return Normal(out, std), after
        odds = [np.exp(part - part.max(-1, keepdims=True)) for part in self._parts(out)]
        parts = [part / part.sum(-1, keepdims=True) for part in odds]
        return Choices(np.concatenate(parts, axis=-1)), after

    def _parts(self, x: np.ndarray) -> list[np.ndarray]:
        """One piece of the last axis for every sub-action."""
        ends = [*accumulate(self._widths, initial=0)]
        return [x[..., low:high] for low, high in pairwise(ends)]

    def _step(
        self, obs: Any, hidden_state: Any, action_mask: Any, episode_start: Any
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Logits (Box: means and deviations) of what is allowed, and the memory after the step."""
        with np.errstate(all="ignore"):
            x = self._features(obs)
            batch = x.shape[:-2]
            before = self._before(hidden_state, episode_start, batch)
            out, after = self._network(_agent_first(x), _agent_first(before))
        if not np.isfinite(out).all():
            raise NonFiniteError(
                "the policy's outputs are not finite: look for numbers in the observation or the "
                "memory that are not finite or very large"
            )
        out, after = _agent_last(out, batch), _agent_last(after, batch)
        allowed = self._allowed(action_mask, batch)
        if self._std is None:
            return np.where(allowed, out, np.float32(ILLEGAL)), None, after
        std = np.broadcast_to(self._std, out.shape)
        return out * allowed, std * allowed, after

    def _features(self, obs: Any) -> np.ndarray:
        """Observations with the agents' one-hots behind them, `(*batch, k, f)`."""
        size, k = self.card.spec.obs_size, len(self._agents)
        parts = _per_agent(obs, k, "obs")
        if parts is None:
            obs = np.asarray(obs)
            batch, fits = obs.shape[:-2], obs.shape[-2:] == (k, size)
        else:
            batch = parts[0].shape[:-1]
            fits = all(p.ndim and p.shape[:-1] == batch and p.shape[-1] <= size for p in parts)
        if not fits:
            given = obs.shape if parts is None else [part.shape for part in parts]
            raise ValueError(
                f"obs has shape {given}: give (*batch, {k}, {size}), or {k} arrays (*batch, f_i), "
                f"one for each agent, with at most {size} features"
            )
        x = np.zeros((*batch, k, size + self._ids.shape[1]), np.float32)
        x[..., size:] = self._ids
        if parts is None:
            x[..., :size] = obs
        else:
            for j, part in enumerate(parts):
                x[..., j, : part.shape[-1]] = part
        return x

    def _before(self, hidden_state: Any, episode_start: Any, batch: tuple[int, ...]) -> np.ndarray:
        """The memory that the step begins with, `(*batch, k, h)`."""
        empty = self.initial_hidden_state(*batch)
        hidden_state = empty if hidden_state is None else np.asarray(hidden_state, np.float32)
        if hidden_state.shape != empty.shape:
            raise ValueError(
                f"hidden_state has shape {hidden_state.shape}: this step needs {empty.shape}"
            )
        if episode_start is None:
            return hidden_state
        episode_start = np.asarray(episode_start, bool)
        if episode_start.shape != batch:
            raise ValueError(
                f"episode_start has shape {episode_start.shape}: this step needs {batch}"
            )
        return np.where(episode_start[..., None, None], empty, hidden_state)

    def _allowed(self, action_mask: Any, batch: tuple[int, ...]) -> np.ndarray:
        """The choices (or dimensions) that exist and are legal, `(*batch, k, a)` or `(k, a)`."""
        if action_mask is None:
            return self._mask
        parts = _per_agent(action_mask, len(self._agents), "action_mask")
        wanted = (*batch, *self._mask.shape)
        if parts is None:
            action_mask = np.asarray(action_mask, bool)
            if action_mask.shape != wanted:
                raise ValueError(
                    f"action_mask has shape {action_mask.shape}: this step needs {wanted}"
                )
            return action_mask & self._mask
        full = np.zeros(wanted, bool)
        for j, (exists, part) in enumerate(zip(self._mask, parts, strict=True)):
            own = (*batch, int(exists.sum()))
            if part.shape != own:
                raise ValueError(
                    f"an agent's action_mask has shape {part.shape}: this step needs {own}"
                )
            full[..., j, exists] = part
        return full


def _deviation(kind: str, free: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        std = np.float32(0.5) * sigmoid(free) if kind == "sigmoid" else np.exp(free)
    if not np.isfinite(std).all():
        raise PolicyError("log_std.value gives a deviation that is not finite")
    return std


def _per_agent(value: Any, count: int, name: str) -> list[np.ndarray] | None:
    """One array an agent, from a list or a dict keyed by agent index; None for stacked input."""
    if not isinstance(value, (list, tuple, dict)):
        return None
    if len(value) != count or (isinstance(value, dict) and {*value} != {*range(count)}):
        given = sorted(map(str, value)) if isinstance(value, dict) else len(value)
        raise ValueError(f"{name} must have one entry for each of the {count} agents, got {given}")
    return [np.asarray(value[j]) for j in range(count)]


def _agent_first(x: np.ndarray) -> np.ndarray:
    """`(*batch, k, z)` to `(k, r, z)`."""
    return x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]).swapaxes(0, 1)


def _agent_last(x: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """`(k, r, z)` to `(*batch, k, z)`."""
    return x.swapaxes(0, 1).reshape(*batch, x.shape[0], x.shape[2])
