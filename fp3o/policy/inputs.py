"""Inputs of a policy: observations, action masks and hidden states, checked and padded."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fp3o.errors import SettingError
from fp3o.networks.numpy_network import OBS_LIMIT, obs_scale
from fp3o.policy.card import Card
from fp3o.sharing.maps import obs_groups


class TeamInputs:
    """Validates and pads the inputs of some agents of a policy."""

    def __init__(self, card: Card, weights: Mapping[str, np.ndarray], agents: Sequence[int]):
        ids = np.eye(card.spec.num_agents, dtype=np.float32)[list(agents)]
        self._ids = ids if card.agent_id else ids[:, :0]
        self._size, self._gru_size = card.spec.obs_size, card.gru_size
        self._mask = card.spec.actions.mask[list(agents)]
        self._count, self._moments = len(agents), None
        if card.obs_norm:
            group = [obs_groups(card.spec, card.frozen_agents)[agent] for agent in agents]
            mean, std = (weights[f"obs_norm.{name}"][group] for name in ("mean", "std"))
            self._moments = mean, obs_scale(mean, std)

    def features(self, obs: Any) -> np.ndarray:
        """Observations followed by the agents' one-hot ids, `(*batch, k, f)`."""
        size, count = self._size, self._count
        parts = _per_agent(obs, count, "obs")
        if parts is None:
            obs = np.asarray(obs)
            batch, fits = obs.shape[:-2], obs.shape[-2:] == (count, size)
        else:
            batch = parts[0].shape[:-1]
            fits = all(p.ndim and p.shape[:-1] == batch and p.shape[-1] <= size for p in parts)
        if not fits:
            shape = obs.shape if parts is None else [part.shape for part in parts]
            raise SettingError(
                f"obs has shape {shape}: give (*batch, {count}, {size}), or {count} arrays "
                f"(*batch, f_i), one per agent, with at most {size} features"
            )
        x = np.zeros((*batch, count, size + self._ids.shape[1]), np.float32)
        x[..., size:] = self._ids
        if parts is None:
            x[..., :size] = obs
        else:
            for j, part in enumerate(parts):
                x[..., j, : part.shape[-1]] = part
        if self._moments is not None:
            mean, scale = self._moments
            part = x[..., size - mean.shape[-1] : size]
            np.clip((part - mean) * scale, -OBS_LIMIT, OBS_LIMIT, out=part)
        return x

    def initial_hidden_state(self, *batch: int) -> np.ndarray:
        """The hidden state at the start of an episode: zeros `(*batch, k, h)`."""
        return np.zeros((*batch, self._count, self._gru_size), np.float32)

    def hidden_state(self, given: Any, episode_start: Any, batch: tuple[int, ...]) -> np.ndarray:
        """The hidden state before the step, `(*batch, k, h)`; zeros where an episode starts."""
        zeros = self.initial_hidden_state(*batch)
        state = zeros if given is None else np.asarray(given, np.float32)
        if state.shape != zeros.shape:
            raise SettingError(f"hidden_state has shape {state.shape}: expected {zeros.shape}")
        if episode_start is None:
            return state
        start = np.asarray(episode_start, bool)
        if start.shape != batch:
            raise SettingError(f"episode_start has shape {start.shape}: expected {batch}")
        return np.where(start[..., None, None], zeros, state)

    def action_mask(self, given: Any, batch: tuple[int, ...]) -> np.ndarray:
        """Choices (or dimensions) that exist and are available, `(*batch, k, a)` or `(k, a)`."""
        if given is None:
            return self._mask
        parts = _per_agent(given, self._count, "action_mask")
        expected = (*batch, *self._mask.shape)
        if parts is None:
            mask = np.asarray(given, bool)
            if mask.shape != expected:
                raise SettingError(f"action_mask has shape {mask.shape}: expected {expected}")
            return mask & self._mask
        full = np.zeros(expected, bool)
        for j, (exists, part) in enumerate(zip(self._mask, parts, strict=True)):
            shape = (*batch, int(exists.sum()))
            if part.shape != shape:
                raise SettingError(
                    f"action_mask of an agent has shape {part.shape}: expected {shape}"
                )
            full[..., j, exists] = part
        return full


def _per_agent(value: Any, count: int, name: str) -> list[np.ndarray] | None:
    """One array per agent, from a list or a dict keyed by agent index; None for stacked input."""
    if not isinstance(value, (list, tuple, dict)):
        return None
    if len(value) != count or (isinstance(value, dict) and {*value} != {*range(count)}):
        given = sorted(map(str, value)) if isinstance(value, dict) else len(value)
        raise SettingError(
            f"{name} must have one entry for each of the {count} agents, got {given}"
        )
    return [np.asarray(value[j]) for j in range(count)]
