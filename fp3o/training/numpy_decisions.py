"""Action selection of the built-in network in NumPy."""

import math
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fp3o.learning.setup import Setup
from fp3o.networks.distributions import MASKED_LOGIT
from fp3o.networks.layers import EPSILON
from fp3o.networks.numpy_network import OBS_LIMIT, BufferedNetwork
from fp3o.training.rollout import ActorInputs


class HostDecision(NamedTuple):
    """Actions at one step, of one seed or several, in arrays that the next decision may change."""

    action: Any
    """(*s, e, n, d)"""
    output: Any
    """(*s, e, n, a): outputs of the network."""
    hidden_state: Any
    """(*s, e, n, h), after the step."""


Decide = Callable[[ActorInputs, Any], HostDecision]
"""Inputs and noise `(*s, e, n, a)` -> decision; without noise, the most likely actions."""


class NumPyDecisions:
    """Decisions of the built-in network in NumPy, for `(*s, e)` environments."""

    def __init__(self, setup: Setup, envs: tuple[int, ...]):
        spec, config = setup.spec, setup.config
        self._rows = (*envs, spec.num_agents)
        epsilon = EPSILON if config.layer_norm else None
        self._network = BufferedNetwork(
            self._rows, config.activation, bool(config.gru_size), epsilon
        )
        size = setup.network_spec("actor").num_in
        self._features = np.zeros((*self._rows, size), jnp.zeros(()).dtype)
        self._obs, ids = np.split(self._features, [spec.obs_size], axis=-1)
        ids[...] = np.eye(spec.num_agents)[:, : ids.shape[-1]]
        self._flat = self._features.reshape(math.prod(self._rows), size)
        self._recurrent, self._mask = bool(config.gru_size), spec.actions.mask
        self._padded = not self._mask.all()
        self._edges = [*pairwise(accumulate(spec.actions.widths, initial=0))]
        self._num_choices = sum(spec.actions.widths)
        self._std = self._moments = None
        self._choice_type = jnp.zeros(0, int).dtype

    def load(self, layers: tuple[Any, ...], std: Any, moments: Any) -> None:
        """Set the parameters, and mean and factor of the running normaliser if there is one."""
        layers, self._std, self._moments = jax.tree.map(np.asarray, (layers, std, moments))
        self._network.load(layers)

    @np.errstate(invalid="ignore", over="ignore")  # such inputs are refused after the rollout
    def __call__(self, inputs: ActorInputs, noise: np.ndarray | None) -> HostDecision:
        """Select the actions of all agents."""
        self._obs[...] = inputs.obs
        if self._moments is not None:
            mean, scale = self._moments
            self._obs -= mean
            self._obs *= scale
            np.clip(self._obs, -OBS_LIMIT, OBS_LIMIT, out=self._obs)
        before: Any = inputs.hidden_state
        if self._recurrent and inputs.episode_start.any():
            before = np.where(inputs.episode_start[..., None, None], before.dtype.type(0), before)
        rows = len(self._flat)
        output, after = self._network(self._flat, before.reshape(rows, before.shape[-1]))
        output = output.reshape(*self._rows, output.shape[-1])
        action = self._choose(output, inputs.action_mask, noise)
        return HostDecision(action, output, after.reshape(before.shape))

    def _choose(self, output: np.ndarray, action_mask: Any, noise: np.ndarray | None) -> np.ndarray:
        if not self._edges:
            return self._gaussian(output, noise)
        choices = self._categorical(output, action_mask, noise)
        if self._std is None:
            return choices
        rest = slice(self._num_choices, None)
        vector = self._gaussian(output[..., rest], None if noise is None else noise[..., rest])
        return np.concatenate([choices.astype(vector.dtype), vector], axis=-1)

    def _gaussian(self, mean: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
        action = mean.copy() if noise is None else mean + noise * self._std
        exists = self._mask[:, self._num_choices :]
        return np.where(exists, action, mean.dtype.type(0)) if self._padded else action

    def _categorical(
        self, logits: np.ndarray, action_mask: Any, noise: np.ndarray | None
    ) -> np.ndarray:
        logits = np.where(action_mask & self._mask, logits, logits.dtype.type(MASKED_LOGIT))
        action = np.empty((*self._rows, len(self._edges)), self._choice_type)
        for d, (start, stop) in enumerate(self._edges):
            part = logits[..., start:stop]
            if noise is not None:
                # Relative to the largest: beside a masked logit the noise would vanish.
                part = part - part.max(-1, keepdims=True) + noise[..., start:stop]
            action[..., d] = part.argmax(-1)
        return action
