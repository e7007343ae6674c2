"""Jumanji's multi-agent environments as games: `Jumanji`, or `make` by name and variant.

Jumanji shows everything to whoever plays all agents. Here an agent sees what `SEEN` says: its own
row of some fields, and some fields as a whole; counts of steps are told as shares of the time
limit. A critic sees every field. An agent that is done while others go on counts as dead.

An episode that is LAST is over where no agent has a discount left, else it was cut. Only
LevelBasedForaging and Connector say that their time limit is a cut. The others give a discount of
0 at the limit as well, and show the step (but MultiCVRP, which hardly ever reaches its limit).

A reward of the team goes to every agent. Of rewards of their own the agents are paid, as `reward`
says, the `sum`, the `mean`, or their `own`.
"""

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from PIL import Image

from fp3o.envs.adapters.common import UNKNOWN_LIMIT, Foreign, alike, flat
from fp3o.envs.adapters.variants import EnvArguments
from fp3o.envs.api import Observation
from fp3o.envs.rendering import add_caption
from fp3o.errors import MissingExtraError, nearest
from fp3o.spec import Box, Discrete, EnvSpec

FAMILY = "jumanji"

MASK, CLOCKS = "action_mask", ("step_count", "step")

GENERATOR = "generator."
"""What begins the names of options of an environment's generator."""


class View(NamedTuple):
    """Fields of the observation that an agent sees: its own rows, and as a whole."""

    own: tuple[str, ...]
    whole: tuple[str, ...]


SEEN: Mapping[str, View] = {
    "RobotWarehouse": View(("agents_view",), ("step_count",)),
    "LevelBasedForaging": View(("agents_view",), ("step_count",)),
    # The grid names the agents: which of them one is, only `agent_id` tells.
    "Connector": View((), ("grid", "step_count")),
    "Cleaner": View(("agents_locations",), ("agents_locations", "grid", "step_count")),
    "SearchAndRescue": View(("searcher_views",), ("targets_remaining", "step")),
    "MMST": View(("positions",), ("positions", "node_types", "adj_matrix", "step_count")),
    "MultiCVRP": View(("vehicles",), ("vehicles", "nodes", "windows", "coeffs")),
}
"""What an agent sees, by the environment's class."""

CUT = ("LevelBasedForaging", "Connector")
"""Those of them whose time limit is a cut."""


class Scene(NamedTuple):
    """An environment's state and what it showed."""

    inner: Any
    shown: Any
    alive: Bool[Array, " n"]
    episode_metrics: Float[Array, " o"]


@dataclass(frozen=True)
class Jumanji(Foreign):
    """An environment of Jumanji; `outcomes` are numbers of its timesteps' extras.

    One that is not in `SEEN` must have `num_agents`; fields of its observation with a row for each
    agent are the agents' own, unless `view` says otherwise.
    """

    reward: str = "sum"
    view: View | None = None

    @cached_property
    def env(self) -> Any:
        """Jumanji's environment."""
        return _environment(self.name, self.options) if self.made is None else self.made

    @cached_property
    def num_agents(self) -> int:
        """The size of the team."""
        if type(self.env).__name__ not in SEEN and not hasattr(self.env, "num_agents"):
            raise ValueError(f"{self.name} has one agent. Those with more: {', '.join(SEEN)}")
        return int(self.env.action_spec.shape[0])

    @property
    def max_episode_steps(self) -> int:
        """The longest an episode can be, as far as it is known."""
        return int(getattr(self.env, "time_limit", None) or UNKNOWN_LIMIT)

    @cached_property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        _ = self.env  # made before anything is traced: modules that it imports make arrays
        inner = jax.eval_shape(self.reset, jax.random.key(0))
        obs, team = jax.eval_shape(lambda shown: (self._obs(shown), self._team(shown)), inner.shown)
        return EnvSpec(
            f"{FAMILY}/{self.name}:{self.variant}",
            self._choices,
            obs.shape[1],
            team.size,
            (0,) * self.num_agents,
            truncates=type(self.env).__name__ not in {*SEEN} - {*CUT},
            episode_metrics=self.outcomes,
        )

    def reset(self, key: PRNGKeyArray) -> Scene:
        """Begin an episode."""
        inner, first = self.env.reset(jax.random.key_data(key))
        inner, shown = jax.tree.map(jnp.asarray, (inner, first.observation))
        everyone = jnp.ones(self.num_agents, bool)
        return Scene(inner, shown, everyone, jnp.zeros(len(self.outcomes)))

    def step(
        self, state: Scene, action: Array, key: PRNGKeyArray
    ) -> tuple[Scene, Array, Array, Array]:
        """Play the actions; Jumanji's states have random keys of their own."""
        inner, now = self.env.step(state.inner, self._actions(action))
        going = jnp.broadcast_to(now.discount, self.num_agents) > 0
        reward = jnp.asarray(now.reward, jnp.float32)
        earned = self.paid(reward) if reward.ndim else jnp.full(self.num_agents, reward)
        outcome = self.told(self.outcomes, now.extras or {})
        inner, shown = alike((inner, now.observation), (state.inner, state.shown))
        over, left = now.last(), going.any()
        return Scene(inner, shown, going, outcome), earned, over & ~left, over & left

    def observe(self, state: Scene) -> Observation:
        """What the agents see of what was shown."""
        n = self.num_agents
        team = jnp.tile(self._team(state.shown), (n, 1))
        return Observation(self._obs(state.shown), team, self._legal(state.shown), state.alive)

    def episode_metrics(self, state: Scene) -> Float[Array, " o"]:
        """What `outcomes` names, after the last step."""
        return state.episode_metrics

    def render(self, state: Scene, caption: str) -> np.ndarray:
        """Jumanji's own rendering."""
        return add_caption(picture(self.env, state.inner), caption)

    def _obs(self, shown: Any) -> Float[Array, "n f"]:
        own, whole = self._view
        rows = [
            jnp.asarray(x, jnp.float32).reshape(self.num_agents, -1)
            for name in own
            for x in jax.tree.leaves(getattr(shown, name))
        ]
        common = [self._numbers(name, x) for name in whole for x in _leaves(shown, name)]
        shared = [jnp.tile(x, (self.num_agents, 1)) for x in common]
        return jnp.concatenate([*rows, *shared], axis=1)

    def _team(self, shown: Any) -> Float[Array, " f"]:
        names = [name for name in _fields(shown) if name != MASK]
        return jnp.concatenate(
            [self._numbers(name, x) for name in names for x in _leaves(shown, name)]
        )

    def _numbers(self, name: str, x: Array) -> Float[Array, " f"]:
        return flat(x) / self.max_episode_steps if name in CLOCKS else flat(x)

    def _legal(self, shown: Any) -> Bool[Array, "n a"]:
        exists = jnp.asarray(self._choices.mask)
        if isinstance(self._choices, Box) or not hasattr(shown, MASK):
            return exists
        action_mask = jnp.asarray(getattr(shown, MASK), bool)
        # Somebody with nothing to do may do anything: it is of no consequence.
        return action_mask | ~action_mask.any(-1, keepdims=True)

    def _actions(self, action: Array) -> Array:
        spec = self.env.action_spec
        if isinstance(self._choices, Box):
            inside = action.reshape(spec.shape)
            return jnp.clip(inside, spec.minimum, spec.maximum).astype(spec.dtype)
        return action[:, 0].astype(spec.dtype)

    @cached_property
    def _choices(self) -> Discrete | Box:
        spec, n = self.env.action_spec, self.num_agents
        if np.issubdtype(spec.dtype, np.floating):
            return Box((math.prod(spec.shape[1:]),) * n)
        if hasattr(spec, "num_values"):
            return Discrete(tuple((int(size),) for size in np.asarray(spec.num_values)))
        # A plain array of whole numbers: how many there are is what the mask says.
        _, first = jax.eval_shape(self.env.reset, jnp.zeros(2, jnp.uint32))
        return Discrete(((getattr(first.observation, MASK).shape[-1],),) * n)

    @cached_property
    def _view(self) -> View:
        known = self.view or SEEN.get(type(self.env).__name__)
        if known is not None:
            return known
        _, first = jax.eval_shape(self.env.reset, jnp.zeros(2, jnp.uint32))
        shown, n = first.observation, self.num_agents
        names = [name for name in _fields(shown) if name != MASK]
        own = [
            name for name in names
            if all(x.ndim and x.shape[0] == n for x in jax.tree.leaves(getattr(shown, name)))
        ]  # fmt: skip
        return View(tuple(own), tuple(name for name in names if name not in own))


def make(name: str, variant: str = "default") -> Jumanji:
    """A game by its name and options, as in `default:reward=mean,env.time_limit=50`.

    `env.generator.num_agents=3` changes the generator of an environment's episodes.
    """
    return Jumanji.of(name, variant)


def names() -> tuple[str, ...]:
    """The multi-agent environments that Jumanji knows."""
    return tuple(
        sorted(n for n in library().registered_environments() if n.partition("-v")[0] in SEEN)
    )


def library() -> Any:
    """The package, if it is installed."""
    try:
        import jumanji
    except ImportError as error:
        raise MissingExtraError("jumanji", "jumanji") from error
    return jumanji


def picture(env: Any, inner: Any) -> np.ndarray:
    """A state as Jumanji draws it: all environments can make films, only some make pictures."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "still.gif"
        # Some begin to draw at the second state only.
        env.animate([inner, inner]).save(path, writer="pillow", dpi=48)
        with Image.open(path) as film:
            film.seek(film.n_frames - 1)  # pyright: ignore
            return np.array(film.convert("RGB"))


@cache
def _environment(name: str, options: EnvArguments) -> Any:
    package, known = library(), names()
    if name not in known:
        raise ValueError(
            f"unknown multi-agent Jumanji environment {name!r}: {nearest(name, known)}"
        )
    made_of = {k.removeprefix(GENERATOR): v for k, v in options if k.startswith(GENERATOR)}
    given: dict[str, Any] = {k: v for k, v in options if not k.startswith(GENERATOR)}
    try:
        # It is kept, so it must not be made of what is being traced.
        with jax.ensure_compile_time_eval():
            if made_of:
                given["generator"] = _generator(package.make(name), made_of)
            return package.make(name, **given)
    except TypeError as error:
        raise ValueError(f"{name} cannot be made: {error}") from error


def _generator(env: Any, changes: dict[str, Any]) -> Any:
    """The environment's generator with some of its parameters changed."""
    old = env.generator if hasattr(env, "generator") else env._generator
    allowed = [*inspect.signature(type(old)).parameters]
    for name in changes:
        if name not in allowed:
            raise ValueError(
                f"unknown parameter {name!r} of the generator: {nearest(name, allowed)}"
            )
    kept = {
        name: getattr(old, own)
        for name in allowed
        for own in (name, f"_{name}")
        if own in vars(old)
    }
    return type(old)(**{**kept, **changes})


def _fields(shown: Any) -> tuple[str, ...]:
    return getattr(shown, "_fields", None) or tuple(shown.__dataclass_fields__)


def _leaves(shown: Any, name: str) -> list[Any]:
    return jax.tree.leaves(getattr(shown, name))
