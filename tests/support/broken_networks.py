"""Networks that break one of the rules of `fp3o.Network`, and a critic that does not."""

from typing import Any, ClassVar

import jax.numpy as jnp

from fp3o.networks.network import MLPGRUNetwork, Network


class Broken(Network):
    """Does one thing wrong, named by a class attribute."""

    inner: Network
    wrong = ""

    @classmethod
    def num_layers(cls, trunk: Any, role: str) -> int:
        return MLPGRUNetwork.num_layers(trunk, role)

    @classmethod
    def make(cls, spec: Any, random: Any) -> Any:
        inner = MLPGRUNetwork.make(spec, random)
        return cls(inner) if spec.role == "actor" else inner

    def __call__(self, x: Any, hidden_state: Any, episode_start: Any, agents: Any = None) -> Any:
        if self.wrong == "mixes agents":
            x = x + x.mean(0)
        if self.wrong == "mixes rows":
            x = x + x.mean(1, keepdims=True)
        if self.wrong == "never forgets":
            episode_start = jnp.zeros_like(episode_start)
        out, after = self.inner(x, hidden_state, episode_start, agents)
        return (out[..., :-1], after) if self.wrong == "too narrow" else (out, after)


class Loose(Broken):
    """Has an array outside of any grouped layer."""

    factor: Any

    @classmethod
    def make(cls, spec: Any, random: Any) -> Any:
        inner = MLPGRUNetwork.make(spec, random)
        return cls(inner, jnp.ones(3)) if spec.role == "actor" else inner


class Sound(Network):
    """A critic that looks across agents as it should: a mean over the linked ones."""

    inner: Network
    scope: ClassVar = "team"
    wrong = ""

    @classmethod
    def make(cls, spec: Any, random: Any) -> Any:
        return cls(MLPGRUNetwork.make(spec._replace(num_in=2 * spec.num_in), random))

    def __call__(self, x: Any, hidden_state: Any, episode_start: Any, agents: Any = None) -> Any:
        features, links = x[..., : -len(x)], x[..., -len(x) :]
        if self.wrong == "ignores links":
            links = jnp.ones_like(links)
        total = jnp.einsum("irj,jrf->irf", links, features)
        mean = total / jnp.maximum(links.sum(-1, keepdims=True), 1.0)
        both = jnp.concatenate([features, mean], -1)
        if self.wrong == "ignores agents":
            both = both[: len(episode_start)]
        elif agents is not None:
            both = both[agents]
        return self.inner(both, hidden_state, episode_start, agents)


class Gossip(Sound):
    """Depends on agents that are not linked."""

    wrong = "ignores links"


class Indifferent(Sound):
    """Answers for the first agents, whichever are asked for."""

    wrong = "ignores agents"
