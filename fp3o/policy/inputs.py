"""Inputs of a policy: observations, action masks and hidden states, checked and padded."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fp3o.errors import SettingError, nearest, printable
from fp3o.networks.numpy_network import OBS_LIMIT, obs_scale
from fp3o.policy.actions import mask_indices
from fp3o.policy.card import Card
from fp3o.sharing.maps import obs_groups

Parts = dict[int, np.ndarray]
"""One array per agent that is present, by its position in the team."""


class TeamInputs:
    """Validates and pads the inputs of some agents of a policy."""

    def __init__(self, card: Card, weights: Mapping[str, np.ndarray], agents: Sequence[int]):
        spec = card.spec
        ids = np.eye(spec.num_agents, dtype=np.float32)[list(agents)]
        self._ids = ids if card.agent_id else ids[:, :0]
        self._size, self._gru_size, self._image = spec.obs_size, card.gru_size, spec.image
        self._names = [spec.agent_names[agent] for agent in agents]
        self._sizes = [spec.agent_obs_sizes[agent] for agent in agents]
        self._mask = spec.actions.mask[list(agents)]
        self._mask_indices = [mask_indices(spec.actions, agent) for agent in agents]
        self._count, self._moments = len(agents), None
        if card.obs_norm:
            group = [obs_groups(spec, card.frozen_agents)[agent] for agent in agents]
            mean, std = (weights[f"obs_norm.{name}"][group] for name in ("mean", "std"))
            self._moments = mean, obs_scale(mean, std)

    def features(self, obs: Any) -> np.ndarray:
        """Observations followed by the agents' one-hot ids, `(*batch, k, f)`.

        Agents that are absent observe zeros, as they do in training.
        """
        size, count = self._size, self._count
        parts = self._per_agent(obs, "obs")
        if parts is None:
            obs = _array(obs, "obs")
            if obs.shape[-2:] != (count, size):
                raise SettingError(
                    f"obs has shape {obs.shape}: give (*batch, {count}, {size}), or a dict by "
                    f"agent name, or a list of {count} arrays (*batch, f_i), not padded"
                )
            batch = obs.shape[:-2]
        else:
            parts = {j: self._own_observation(j, part) for j, part in parts.items()}
            batch = _common_batch({self._names[j]: part.shape[:-1] for j, part in parts.items()})
        x = np.zeros((*batch, count, size + self._ids.shape[1]), np.float32)
        x[..., size:] = self._ids
        if parts is None:
            x[..., :size] = obs
        else:
            for j, part in parts.items():
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
        state = zeros if given is None else _array(given, "hidden_state").astype(np.float32)
        if state.shape != zeros.shape:
            raise SettingError(f"hidden_state has shape {state.shape}: expected {zeros.shape}")
        if episode_start is None:
            return state
        start = _array(episode_start, "episode_start").astype(bool)
        if start.shape != batch:
            raise SettingError(f"episode_start has shape {start.shape}: expected {batch}")
        return np.where(start[..., None, None], zeros, state)

    def action_mask(self, given: Any, batch: tuple[int, ...]) -> np.ndarray:
        """Choices (or dimensions) that exist and are available, `(*batch, k, a)` or `(k, a)`."""
        if given is None:
            return self._mask
        parts = self._per_agent(given, "action_mask")
        expected = (*batch, *self._mask.shape)
        if parts is None:
            mask = _array(given, "action_mask").astype(bool)
            if mask.shape != expected:
                raise SettingError(f"action_mask has shape {mask.shape}: expected {expected}")
            return mask & self._mask
        full = np.broadcast_to(self._mask, expected).copy()
        for j, part in parts.items():
            own = self._mask_indices[j]
            shape = (*batch, own.size)
            if part.shape != shape:
                raise SettingError(
                    f"the action mask of agent {self._names[j]!r} has shape {part.shape}: "
                    f"expected {shape}"
                )
            full[..., j, own] = part
        return full

    def _per_agent(self, value: Any, argument: str) -> Parts | None:
        """The array of each agent, from a list or from a dict by name; None for stacked input."""
        if isinstance(value, Mapping):
            for name in value:
                if name not in self._names:
                    hint = nearest(str(name), self._names)
                    shown = printable(repr(name), 80)
                    raise SettingError(f"{argument} is for an unknown agent {shown}: {hint}")
            present = [(j, name) for j, name in enumerate(self._names) if name in value]
            return {j: self._agent_array(value[name], j, argument) for j, name in present}
        if not isinstance(value, (list, tuple)):
            return None
        if len(value) != self._count:
            raise SettingError(
                f"{argument} must have one entry for each of the {self._count} agents, "
                f"got {len(value)}"
            )
        return {j: self._agent_array(part, j, argument) for j, part in enumerate(value)}

    def _agent_array(self, value: Any, j: int, argument: str) -> np.ndarray:
        return _array(value, f"{argument} of agent {self._names[j]!r}")

    def _own_observation(self, j: int, part: np.ndarray) -> np.ndarray:
        """An agent's observation with its own size in the last axis."""
        size, image = self._sizes[j], self._image
        if image and part.shape[-3:] == image and math.prod(image) == size:
            part = part.reshape(*part.shape[:-3], size)
        if part.shape[-1:] != (size,):
            given = part.shape[-1] if part.ndim else 1
            raise SettingError(
                f"the observation of agent {self._names[j]!r} has size {given} (shape "
                f"{part.shape}): expected size {size}, that is (*batch, {size})"
            )
        return part


def _array(value: Any, name: str) -> np.ndarray:
    """An array of real numbers or booleans."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise SettingError(f"{name} must be an array of numbers of one shape") from error
    if array.dtype.kind in "OSUcMm":
        raise SettingError(f"{name} must be an array of numbers, not of {array.dtype}")
    return array


def _common_batch(batches: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The batch axes, which all agents must have in common."""
    if not batches:
        raise SettingError("obs has no agent: give at least one observation")
    if len({*batches.values()}) > 1:
        raise SettingError(f"the batch axes of the agents' observations differ: {batches}")
    return next(iter(batches.values()))
