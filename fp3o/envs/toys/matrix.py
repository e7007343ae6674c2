"""Matrix games: two agents choose simultaneously, once, and receive the same reward.

They have deceptive equilibria. An agent that chooses its part of the best pair while the other one
still explores is punished, so learners are drawn to a safe, worse pair.

| task       | reward of the best pair | other equilibria                           |
|------------|-------------------------|--------------------------------------------|
| `climbing` | 11                      | 7                                          |
| `penalty`  | 10, two ways            | 2; mixing the two ways costs 50            |

Which pair is learned depends on the initial policies. From nearly uniform ones
(`output_gain=0.01`) none of 16 seeds of FP3O and MAPPO learned the best pair in 60 iterations. From
policies with strong preferences (`output_gain=3`) many do; of 16 seeds (64 environments, 60
iterations of 4 epochs, learning rates 0.01):

|                        | IPPO | MAPPO | CoPPO | HAPPO | A2PO | FP3O |
|------------------------|------|-------|-------|-------|------|------|
| `climbing`, no sharing |    7 |     7 |     7 |     8 |    7 |    9 |
| `climbing`, full       |    4 |     4 |     4 |     4 |    3 |    4 |
| `penalty`, no sharing  |   12 |    12 |    12 |    11 |   11 |   12 |
| `penalty`, full        |   12 |    12 |    12 |    13 |   13 |   13 |

So train several seeds: a run keeps the best one, and all eight rarely miss it. No
setting was found with which every seed learns the best pair. The most in a grid of 54 (4, 16, 64
environments; learning rates, entropy, clip; no sharing, uniform start, 300 iterations) was for
`penalty` 15 of 16 seeds with FP3O (4 environments, learning rate 0.01, entropy 0.3) and 13 with
MAPPO (16, 0.05, 0.3), for `climbing` at most half. With one network for both agents, no agent id, 4
environments and an entropy that is lowered at the end, 11 seeds of MAPPO and 9 of FP3O learned it.

With two environments and an entropy of 0.5 (learning rates 0.03 and 0.06, no sharing) all 16 seeds
of all six algorithms pass the best pair within 600 iterations, and a run keeps the best policy that
it has evaluated. But that is chance rather than learning: in `climbing` they are there a tenth to a
fifth of the time, about as often as one of nine pairs by chance, and mostly not at the end.

    fp3o train matrix/climbing
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.errors import SettingError, nearest
from fp3o.spec import Discrete, EnvSpec

FAMILY = "matrix"

_NUM_AGENTS = 2


@dataclass(frozen=True)
class MatrixGame(Env):
    """The reward is `payoff[a][b]` when the first agent chooses `a` and the second one `b`."""

    name: str
    payoff: tuple[tuple[float, ...], ...]
    max_episode_steps = 1

    @property
    def best(self) -> float:
        """The largest reward."""
        return max(map(max, self.payoff))

    @property
    def spec(self) -> EnvSpec:
        """Sizes of the task; observations are constant."""
        rows, columns = len(self.payoff), len(self.payoff[0])
        types = (0, 0) if rows == columns else (0, 1)
        actions = Discrete(((rows,), (columns,)))
        return EnvSpec(
            f"{FAMILY}/{self.name}", actions, obs_size=1, state_size=1, agent_types=types
        )

    def reset(self, key: PRNGKeyArray) -> Float[Array, ""]:
        """The only state."""
        return jnp.ones(())

    def step(self, state: Float[Array, ""], action: Int[Array, "n 1"], key: PRNGKeyArray):
        """The reward of the pair; one step per episode."""
        reward = jnp.asarray(self.payoff)[action[0, 0], action[1, 0]]
        yes = jnp.ones((), bool)
        return state, jnp.full(_NUM_AGENTS, reward), yes, ~yes

    def observe(self, state: Float[Array, ""]) -> Observation:
        """A constant."""
        obs = jnp.full((_NUM_AGENTS, 1), state)
        mask = jnp.asarray(self.spec.actions.mask)
        return Observation(obs, obs, mask, jnp.ones(_NUM_AGENTS, bool))


MATRIX_GAMES = {
    "climbing": MatrixGame("climbing", ((11.0, -30.0, 0.0), (-30.0, 7.0, 6.0), (0.0, 0.0, 5.0))),
    "penalty": MatrixGame("penalty", ((-50.0, 0.0, 10.0), (0.0, 2.0, 0.0), (10.0, 0.0, -50.0))),
}
"""The matrix games by name."""


def matrix_game(name: str) -> MatrixGame:
    """A matrix game by its name."""
    if name not in MATRIX_GAMES:
        raise SettingError(f"unknown matrix game {name!r}: {nearest(name, MATRIX_GAMES)}")
    return MATRIX_GAMES[name]
