"""JaxMARL's environments as games: `JaxMarl`, or `make` by name and variant.

All agents of an environment are the team. What it pays them is shared as `reward` says: `mean` or
`sum` of all to each, or to each its `own`.

JaxMARL says only that an episode is over, not why. Where there is a limit `max_steps` and the
environment's state has a clock, an episode that ends at the limit was cut by it (`truncated`):

| environments          | episodes                                                               |
|-----------------------|------------------------------------------------------------------------|
| MPE, overcooked       | are always cut by the clock                                            |
| SMAX                  | are cut at the limit while both sides have units, else over            |
| switch_riddle         | are cut at the limit if nobody has told, else over                     |
| jaxnav                | are cut at the limit if it stopped an agent, else over                 |
| hanabi, coin_game     | have no such limit: they are always over                               |
| Brax's bodies         | are cut where the info says `truncation`                               |
| others with a limit   | are cut at the limit; one that ends by itself just then counts as cut  |

A critic sees the world state where there is one, else all observations. SMAX tells whether a
battle was `won`; with `outcomes` any numbers of the info can be told. The `storm` environments
have no observations by agent and are refused.
"""

import contextlib
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from fp3o.envs.adapters.common import UNKNOWN_LIMIT, Foreign, alike, flat
from fp3o.envs.adapters.variants import EnvArguments
from fp3o.envs.api import Observation
from fp3o.envs.rendering import add_caption
from fp3o.errors import MissingExtraError, nearest
from fp3o.spec import Box, Discrete, EnvSpec

FAMILY = "jaxmarl"

BRAX = ("ant_4x2", "halfcheetah_6x1", "hopper_3x1", "humanoid_9|8", "walker2d_2x3")


class Scene(NamedTuple):
    """An environment's state and what it showed, which cannot always be had from it again."""

    inner: Any
    obs: Float[Array, "n f"]
    team: Float[Array, "*n f2"]
    """The critic's view: of everyone, or of each agent."""
    action_mask: Bool[Array, "n a"]
    alive: Bool[Array, " n"]
    episode_metrics: Float[Array, " o"]


@dataclass(frozen=True)
class JaxMarl(Foreign):
    """An environment of JaxMARL; `outcomes` are numbers of its info."""

    @cached_property
    def env(self) -> Any:
        """JaxMARL's environment."""
        return _environment(self.name, self.options) if self.made is None else self.made

    @property
    def agents(self) -> list[Any]:
        """The names of the team."""
        return [*self.env.agents]

    @property
    def max_episode_steps(self) -> int:
        """The longest an episode can be, as far as it is known."""
        longest = getattr(self.env, "max_steps", None) or getattr(self.env, "episode_length", None)
        # Some look at the clock before they move it on.
        return UNKNOWN_LIMIT if longest is None else int(longest) + 1

    @cached_property
    def spec(self) -> EnvSpec:
        """The task's facts."""
        seen = self._seen
        return EnvSpec(
            f"{FAMILY}/{self.name}:{self.variant}",
            self._choices,
            max(x.size for x in seen.values()),
            self._first[1].shape[-1],
            self._kinds,
            truncates=self._timed or hasattr(self.env, "episode_length"),
            episode_metrics=self._told,
        )

    def reset(self, key: PRNGKeyArray) -> Scene:
        """Begin an episode."""
        obs, inner = self.env.reset(jax.random.key_data(key))
        everyone = jnp.ones(len(self.agents), bool)
        return self._scene(inner, obs, everyone, jnp.zeros(len(self._told)))

    def step(
        self, state: Scene, action: Array, key: PRNGKeyArray
    ) -> tuple[Scene, Array, Array, Array]:
        """Play the actions. JaxMARL's own `step` would begin the next episode by itself."""
        obs, inner, reward, done, info = self.env.step_env(
            jax.random.key_data(key), state.inner, self._actions(action)
        )
        inner = alike(inner, state.inner)
        alive = ~jnp.stack([jnp.asarray(done[a], bool) for a in self.agents])
        own = jnp.stack([jnp.asarray(reward[a], jnp.float32).reshape(()) for a in self.agents])
        over = jnp.asarray(done["__all__"], bool)
        cut = over & self._late(inner, own, info)
        outcome = self.told(self._told, self._victory(inner) | {**info})
        return self._scene(inner, obs, alive, outcome), self.paid(own), over & ~cut, cut

    def observe(self, state: Scene) -> Observation:
        """What was shown."""
        n = len(self.agents)
        team = state.team if state.team.ndim == 2 else jnp.tile(state.team, (n, 1))
        return Observation(state.obs, team, state.action_mask, state.alive)

    def episode_metrics(self, state: Scene) -> Float[Array, " o"]:
        """What `outcomes` names, after the last step."""
        return state.episode_metrics

    @property
    def renderable(self) -> bool:
        """Whether the state has positions to draw."""
        first = self._first[0]
        return part(first, "p_pos") is not None or part(first, "unit_alive") is not None

    def render(self, state: Scene, caption: str) -> np.ndarray:
        """The positions of agents and landmarks, or of both sides."""
        return add_caption(picture(self.env, state.inner), caption)

    def _scene(self, inner: Any, obs: Any, alive: Array, outcome: Array) -> Scene:
        inner = jax.tree.map(jnp.asarray, inner)
        seen = [row(obs[a], self._space(a)) for a in self.agents]
        width = max(x.size for x in seen)
        padded = jnp.stack([jnp.pad(x, (0, width - x.size)) for x in seen])
        return Scene(
            inner, padded, self._team(inner, obs, seen), self._legal(inner), alive, outcome
        )

    def _team(self, inner: Any, obs: Any, seen: list[Array]) -> Array:
        """The world state, of everyone or of each agent, or all observations."""
        if "world_state" in obs:
            world = obs["world_state"]
        elif hasattr(self.env, "get_world_state"):
            world = self.env.get_world_state(inner)
        else:
            return jnp.concatenate(seen)
        if isinstance(world, Mapping):
            return _rows([flat(world[a]) for a in self.agents])
        of_each = world.ndim > 1 and len(world) == len(self.agents)
        return _rows([*map(flat, world)]) if of_each else flat(world)

    def _legal(self, inner: Any) -> Bool[Array, "n a"]:
        mask = self._choices.mask
        if self._moves is None:
            return jnp.asarray(mask)
        allowed, rows = self._moves(inner), []
        for agent, exists in zip(self.agents, mask, strict=True):
            own, places = jnp.ravel(allowed[agent]) > 0, np.flatnonzero(exists)
            own = jnp.pad(own, (0, len(places) - own.size), constant_values=True)
            # Somebody with nothing to do may do anything: it is of no consequence.
            rows.append(jnp.zeros(len(exists), bool).at[places].set(own | ~own.any()))
        return jnp.stack(rows)

    def _actions(self, action: Array) -> dict[Any, Array]:
        parts = zip(self.agents, self._spaces, action, strict=True)
        return {a: _played(space, x) for a, space, x in parts}

    def _late(self, inner: Any, reward: Array, info: Mapping[str, Any]) -> Bool[Array, ""]:
        """Whether an episode that is over now was cut by the clock."""
        if "truncation" in info:
            return jnp.asarray(info["truncation"]).any()
        if not self._timed:
            return jnp.zeros((), bool)
        late = part(inner, "step") >= self.env.max_steps
        return late & ~self._decided(inner, reward, info)

    def _decided(self, inner: Any, reward: Array, info: Mapping[str, Any]) -> Bool[Array, ""]:
        """Whether it would be over without the clock, where that can be told."""
        if (alive := part(inner, "unit_alive")) is not None:
            ours, theirs = self._sides(alive)
            return ~(ours & theirs)
        if "TimeO" in info:
            return ~jnp.asarray(info["TimeO"], bool).any()
        if type(self.env).__name__ == "SwitchRiddle":
            return (reward != 0).any()
        return jnp.zeros((), bool)

    def _sides(self, alive: Array) -> tuple[Array, Array]:
        """SMAX: whether anyone of ours, and of theirs, is alive."""
        n = self.env.num_allies
        return alive[:n].any(), alive[n:].any()

    def _victory(self, inner: Any) -> dict[str, Array]:
        """Whether the battle is `won`, where there is one."""
        if (alive := part(inner, "unit_alive")) is None:
            return {}
        ours, theirs = self._sides(alive)
        return {"won": ours & ~theirs}

    @cached_property
    def _first(self) -> tuple[Any, Any]:
        """Forms of the state and of the critic's view at the beginning."""
        env = self.env  # made before anything is traced: modules that it imports make arrays

        def begin(key: Array) -> tuple[Any, Array]:
            obs, inner = env.reset(key)
            seen = [row(obs[a], self._space(a)) for a in self.agents]
            return inner, self._team(inner, obs, seen)

        return jax.eval_shape(begin, jnp.zeros(2, jnp.uint32))

    @cached_property
    def _seen(self) -> dict[Any, Any]:
        """Forms of the observations by agent."""
        obs, _ = jax.eval_shape(self.env.reset, jnp.zeros(2, jnp.uint32))
        if not (isinstance(obs, Mapping) and {*self.agents} <= {*obs}):
            raise ValueError(
                f"{self.name} does not give observations by agent: it cannot be a game"
            )
        form = lambda a: jax.eval_shape(lambda x: row(x, self._space(a)), obs[a])  # noqa: E731
        return {a: form(a) for a in self.agents}

    @cached_property
    def _spaces(self) -> list[Any]:
        # They are kept, so they must not be made of what is being traced.
        with jax.ensure_compile_time_eval():
            return [self.env.action_space(a) for a in self.agents]

    @cached_property
    def _choices(self) -> Discrete | Box:
        spaces = self._spaces
        kinds = {type(space).__name__ for space in spaces}
        if kinds == {"Box"}:
            return Box(tuple(math.prod(space.shape) for space in spaces))
        if not kinds <= {"Discrete", "MultiDiscrete"}:
            raise ValueError(f"{self.name} has actions of the kinds {', '.join(sorted(kinds))}")
        sizes = [_sizes(space) for space in spaces]
        most = max(map(len, sizes))
        return Discrete(tuple(own + (1,) * (most - len(own)) for own in sizes))

    @cached_property
    def _kinds(self) -> tuple[int, ...]:
        """Agents are of one kind if their names differ in the number only, and their sizes not."""
        sizes = self._choices.sizes
        own = [
            (str(a).rstrip("0123456789"), self._seen[a].size, sizes[i])
            for i, a in enumerate(self.agents)
        ]
        order = list(dict.fromkeys(own))
        return tuple(map(order.index, own))

    @cached_property
    def _moves(self) -> Callable[[Any], Any] | None:
        """What tells legal choices, if anything does."""
        if isinstance(self._choices, Box):
            return None
        for name in ("get_avail_actions", "get_legal_moves"):
            moves = getattr(self.env, name, None)
            with contextlib.suppress(NotImplementedError):
                if moves is not None and jax.eval_shape(moves, self._first[0]) is not None:
                    return moves
        return None

    @cached_property
    def _timed(self) -> bool:
        limited = getattr(self.env, "max_steps", None) is not None
        return limited and part(self._first[0], "step") is not None

    @cached_property
    def _told(self) -> tuple[str, ...]:
        if self.outcomes:
            return self.outcomes
        # Where the team is one of SMAX's two sides a battle can be won.
        battle = part(self._first[0], "unit_alive") is not None
        return ("won",) if battle and len(self.agents) == self.env.num_allies else ()

    def _space(self, agent: Any) -> Any:
        return self.env.observation_space(agent)


def make(name: str, variant: str = "default") -> JaxMarl:
    """A game by its name and options, as in `default:reward=sum,env.num_agents=3`.

    `env.scenario=3m` names a battle of SMAX, `env.layout=coord_ring` a kitchen of overcooked.
    """
    return JaxMarl.of(name, variant)


def names() -> tuple[str, ...]:
    """The environments that JaxMARL knows."""
    return tuple(library().registered_envs)


def library() -> Any:
    """The package, if it is installed."""
    try:
        # It puts other things in their place.
        with contextlib.redirect_stdout(sys.stdout), contextlib.redirect_stderr(sys.stderr):
            import jaxmarl
    except ImportError as error:
        raise MissingExtraError("jaxmarl", "jaxmarl") from error
    return jaxmarl


def row(x: Any, space: Any) -> Float[Array, " f"]:
    """An observation as one row; a single choice as a one-hot."""
    if jnp.ndim(x) == 0 and type(space).__name__ == "Discrete":
        return jax.nn.one_hot(x, space.n)
    return flat(x)


def _rows(rows: list[Array]) -> Float[Array, "n f"]:
    """Rows of unequal lengths, padded with zeros."""
    width = max(x.size for x in rows)
    return jnp.stack([jnp.pad(x, (0, width - x.size)) for x in rows])


def part(state: Any, name: str) -> Any:
    """A field of a state, also of one that is wrapped in others; None if there is none."""
    while state is not None and not hasattr(state, name):
        state = getattr(state, "state", None)
    return None if state is None else getattr(state, name)


def picture(env: Any, inner: Any) -> np.ndarray:
    """Particles, or the living units of a battle, as discs on a board."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    battle = (alive := part(inner, "unit_alive")) is not None
    canvas = FigureCanvasAgg(Figure((4.0, 4.0), dpi=120))
    axes = canvas.figure.add_axes((0.02, 0.02, 0.96, 0.96), xticks=[], yticks=[], aspect="equal")
    if battle:
        axes.set(xlim=(0, env.map_width), ylim=(0, env.map_height))
        sizes = np.asarray(env.unit_type_radiuses)[part(inner, "unit_types")]
        colours = np.where(np.arange(len(alive)) < env.num_allies, "tab:blue", "tab:red")
        discs = zip(part(inner, "unit_positions")[alive], sizes[alive], colours[alive], strict=True)
    else:
        axes.set(xlim=(-2, 2), ylim=(-2, 2))
        discs = zip(part(inner, "p_pos"), env.rad, np.asarray(env.colour) / 255, strict=True)
    for place, size, colour in discs:
        axes.add_patch(Circle(place, float(size), color=colour))
    canvas.draw()
    return np.array(canvas.buffer_rgba())[..., :3]


@cache
def _environment(name: str, options: EnvArguments) -> Any:
    package = library()
    if name not in package.registered_envs:
        raise ValueError(
            f"unknown JaxMARL environment {name!r}: {nearest(name, package.registered_envs)}"
        )
    # Brax would begin the next episode by itself.
    given = {"auto_reset": False} if name in BRAX else {}
    try:
        # It is kept, so it must not be made of what is being traced.
        with jax.ensure_compile_time_eval():
            return package.make(name, **given, **_objects(name, dict(options)))
    except (TypeError, ImportError) as error:
        raise ValueError(f"{name} cannot be made: {error}") from error


def _objects(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Some options are objects that have a name."""
    if "SMAX" in name and isinstance(word := options.get("scenario"), str):
        maps = import_module("jaxmarl.environments.smax.smax_env").MAP_NAME_TO_SCENARIO
        return {**options, "scenario": _named("scenario", word, maps)}
    if name == "overcooked" and isinstance(word := options.get("layout"), str):
        layouts = import_module("jaxmarl.environments.overcooked").overcooked_layouts
        return {**options, "layout": _named("layout", word, layouts)}
    return options


def _named(kind: str, word: str, known: Mapping[str, Any]) -> Any:
    if word not in known:
        raise ValueError(f"unknown {kind} {word!r}: {nearest(word, known)}")
    return known[word]


def _sizes(space: Any) -> tuple[int, ...]:
    if type(space).__name__ == "Discrete":
        return (int(space.n),)
    return tuple(np.asarray(space.num_categories).tolist())


def _played(space: Any, action: Array) -> Array:
    """An agent's action as its environment wants it."""
    if type(space).__name__ == "Box":
        inside = action[: math.prod(space.shape)].reshape(space.shape)
        return jnp.clip(inside, space.low, space.high).astype(space.dtype)
    if type(space).__name__ == "Discrete":
        return action[0].astype(space.dtype)
    return action[: space.shape[0]].astype(space.dtype)
