"""Action selection on the host: in NumPy for few rows, otherwise in one compiled call.

Both take only what a decision depends on. Log-probabilities are left out: they follow for a whole
rollout at once, from the outputs of the network.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.learning.setup import Setup
from fp3o.networks.backend import traced_for_cpu
from fp3o.networks.network import MLPGRUNetwork
from fp3o.training.numpy_decisions import Decide, HostDecision, NumPyDecisions
from fp3o.training.rollout import ActorInputs, sample_noise

NUMPY_PRODUCTS = 2**19
"""NumPy selects actions if no layer needs more multiplications than this, rows times weights.

Measured with 4 to 64 environments on two ARM cores: with many more, the compiled call is faster.
"""


class HostPolicy:
    """The policy of one seed, or of several with a leading axis of seeds in every array."""

    def __init__(self, setup: Setup, num_seeds: int | None):
        self.setup, self.num_seeds = setup, num_seeds
        self._recurrent = bool(setup.config.gru_size)
        self._has_choices = bool(setup.spec.actions.widths)
        over_seeds = jax.vmap if num_seeds else lambda function, *_: function
        self._structure: Any = None
        self._fold = jax.jit(over_seeds(self._folded))
        self._compiled = jax.jit(over_seeds(self._decide))
        self._compiled_mode = jax.jit(over_seeds(partial(self._decide, noise=None)))
        self._arrays = jax.jit(over_seeds(self._numpy_arrays))
        # Rollouts have time as the first axis.
        self._log_prob = jax.jit(over_seeds(self._log_probs, (0, 1, 1, 1), 1))
        self._noise: dict[tuple[int, int], Callable[[Array], Array]] = {}
        self._in_numpy: dict[int, NumPyDecisions] = {}

    def fold(self, params: Any) -> tuple[Array, ...]:
        """Leaves of the policy on the CPU, with the norms folded into its layers."""
        return self._fold(_to_cpu(params))

    def decide(self, folded: tuple[Array, ...], num_envs: int) -> Decide:
        """The function that selects actions with these parameters."""
        if not self._uses_numpy(num_envs):
            return partial(self._choose, folded)
        if num_envs not in self._in_numpy:
            seeds = (self.num_seeds,) if self.num_seeds else ()
            self._in_numpy[num_envs] = NumPyDecisions(self.setup, (*seeds, num_envs))
        decide = self._in_numpy[num_envs]
        decide.load(*self._arrays(folded))
        return decide

    def log_prob(self, folded: tuple[Array, ...], output: Any, action: Any, mask: Any) -> Any:
        """Log-probabilities `(t, *s, e, n)` of a rollout's actions."""
        return np.asarray(self._log_prob(folded, output, action, mask))

    def sample_noise(self, keys: Array, num_envs: int, blocks: int = 1) -> np.ndarray:
        """Noise of all steps of keys `(*s, t)` at once, step first: `(t, *s, e, n, a)`."""
        if (num_envs, blocks) not in self._noise:
            sample = lambda key: sample_noise(self.setup, key, num_envs, blocks).swapaxes(0, 1)  # noqa: E731
            steps = jax.vmap(sample)
            self._noise[num_envs, blocks] = jax.jit(
                jax.vmap(steps, out_axes=1) if self.num_seeds else steps
            )
        return np.asarray(self._noise[num_envs, blocks](_to_cpu(keys)))

    def _uses_numpy(self, num_envs: int) -> bool:
        spec = self.setup.network_spec("actor")
        sizes, gru_size = (spec.num_in, *spec.trunk.hidden), spec.trunk.gru_size
        weights = [one * two for one, two in pairwise(sizes)]
        weights.append(3 * gru_size * max(gru_size, sizes[-1]))
        weights.append((gru_size or sizes[-1]) * spec.num_out)
        rows = (self.num_seeds or 1) * num_envs * self.setup.spec.num_agents
        small = rows * max(weights) <= NUMPY_PRODUCTS
        single = self.setup.config.precision == "float32"
        plain = self.setup.network is MLPGRUNetwork and not spec.trunk.conv.layers
        return small and single and plain

    def _choose(self, folded: tuple[Array, ...], inputs: ActorInputs, noise: Any) -> HostDecision:
        passed = (
            inputs.obs,
            inputs.action_mask if self._has_choices else None,
            inputs.episode_start if self._recurrent else None,
            inputs.hidden_state if self._recurrent else None,
        )
        if noise is None:
            outputs = self._compiled_mode(folded, passed)
        else:
            outputs = self._compiled(folded, passed, noise)
        action, output, *after = map(np.asarray, outputs)
        return HostDecision(action, output, *after or (inputs.hidden_state,))  # pyright: ignore

    def _folded(self, params: Any) -> tuple[Array, ...]:
        # A flat tuple is the fastest to pass to a compiled call.
        leaves, self._structure = jax.tree.flatten(self.setup.actor(params).folded())
        return tuple(leaves)

    def _numpy_arrays(self, folded: tuple[Array, ...]) -> tuple[tuple[Any, ...], Any, Any]:
        """Weights and biases of the layers, and standard deviations `(1, g, a)` or None.

        And mean and factor `(1, n, f)` of the running normaliser, or None.
        """
        actor = jax.tree.unflatten(self._structure, folded)
        network, gru = actor.network, actor.network.gru
        layers = [(layer.weight, layer.bias) for layer in (*network.hidden, network.output)]
        if gru is not None:
            inner = gru.of(gru.weight, None), gru.of(gru.bias, None)
            layers[-1:-1] = [(gru.input.weight, gru.input.bias), inner]
        std = None if actor.actions.integers else actor.std().swapaxes(0, 1)
        norm, moments = actor.obs_norm, None
        if norm is not None:
            moments = norm.of(norm.mean, None)[None], norm.of(norm.scale, None)[None]
        return tuple(layers), std, moments

    def _decide(
        self, folded: tuple[Array, ...], passed: tuple[Array, Any, Any, Any], noise: Any
    ) -> tuple[Array, ...]:
        obs, action_mask, episode_start, hidden_state = passed
        swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
        available = self._mask(action_mask, obs.shape[0])
        shape = available.shape[:2]
        starts = jnp.zeros(shape, bool)
        if episode_start is not None:
            starts = jnp.broadcast_to(episode_start, shape)
        before = jnp.zeros((*shape, 0)) if hidden_state is None else swap(hidden_state)
        actor = jax.tree.unflatten(self._structure, folded)
        with traced_for_cpu():  # kernels for GPUs do not compile for a CPU
            features = self.setup.inputs(obs, "actor", actor.obs_norm)
            output, after = actor.network(swap(features), before, starts)
        policy = actor.distribution(output, available)
        action = policy.mode() if noise is None else policy.sample(swap(noise))
        outputs = swap(action), swap(output)
        return outputs if hidden_state is None else (*outputs, swap(after))

    def _log_probs(self, folded: tuple[Array, ...], output: Array, action: Array, mask: Any) -> Any:
        steps, num_envs, num_agents = output.shape[:3]
        rows = lambda x: jnp.moveaxis(x, 2, 0).reshape(num_agents, steps * num_envs, -1)  # noqa: E731
        actor, mask = (
            jax.tree.unflatten(self._structure, folded),
            mask & self.setup.spec.actions.mask,
        )
        log_prob = actor.distribution(rows(output), rows(mask)).log_prob(rows(action))
        return jnp.moveaxis(log_prob.reshape(num_agents, steps, num_envs), 0, 2)

    def _mask(self, action_mask: Any, num_envs: int) -> Array:
        mask = jnp.asarray(self.setup.spec.actions.mask)[:, None]
        if action_mask is None:
            return jnp.broadcast_to(mask, (mask.shape[0], num_envs, mask.shape[2]))
        return jnp.swapaxes(action_mask, 0, 1) & mask


def _to_cpu(tree: Any) -> Any:
    """Copy to the CPU, where the environments are."""
    try:
        cpu = jax.devices("cpu")[0]
    except RuntimeError:  # excluded by JAX_PLATFORMS
        return tree
    return jax.device_put(tree, cpu)
