"""Matrix games: two agents choose at the same time, once, and are paid the same.

They are small traps for teams that learn together. Whoever errs in choosing the best pair's part
while the other still tries things out is punished, so learners are drawn to a safe, worse pair.

| task       | best pair is paid | other pairs from which no one should move alone |
|------------|-------------------|-------------------------------------------------|
| `climbing` | 11                | 7                                               |
| `penalty`  | 10, two ways      | 2; not meeting at 10 costs 50                   |

In 60 iterations from policies of nearly equal chances FP3O and MAPPO come to 6 or 7, and to 2: none
of 16 seeds found the best pair. From policies with strong preferences (`gain=3`, no sharing) about
half of the seeds found 11, and three quarters 10.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.base import Sight
from fp3o.errors import nearest
from fp3o.spaces import Discrete, EnvSpec

FAMILY = "matrix"
TEAM = 2


@dataclass(frozen=True)
class Matrix:
    """`payoff[a][b]` is paid when the first agent chooses `a` and the second one `b`."""

    name: str
    payoff: tuple[tuple[float, ...], ...]

    @property
    def best(self) -> float:
        """The most that can be had."""
        return max(map(max, self.payoff))

    @property
    def spec(self) -> EnvSpec:
        """The task's facts; there is nothing to see but a constant."""
        rows, columns = len(self.payoff), len(self.payoff[0])
        kinds = (0, 0) if rows == columns else (0, 1)
        actions = Discrete(((rows,), (columns,)))
        return EnvSpec(f"{FAMILY}/{self.name}", actions, obs_size=1, state_size=1, kinds=kinds)

    def reset(self, key: PRNGKeyArray) -> Float[Array, ""]:
        """There is one state."""
        return jnp.ones(())

    def step(self, state: Float[Array, ""], action: Int[Array, "n 1"], key: PRNGKeyArray):
        """Pay the pair; one step, one episode."""
        paid = jnp.asarray(self.payoff)[action[0, 0], action[1, 0]]
        yes = jnp.ones((), bool)
        return state, jnp.full(TEAM, paid), yes, ~yes

    def sight(self, state: Float[Array, ""]) -> Sight:
        """A constant."""
        seen = jnp.full((TEAM, 1), state)
        mask = jnp.asarray(self.spec.actions.mask)
        return Sight(seen, seen, mask, jnp.ones(TEAM, bool))


GAMES = {
    "climbing": Matrix("climbing", ((11.0, -30.0, 0.0), (-30.0, 7.0, 6.0), (0.0, 0.0, 5.0))),
    "penalty": Matrix("penalty", ((-50.0, 0.0, 10.0), (0.0, 2.0, 0.0), (10.0, 0.0, -50.0))),
}
"""The games by name."""


def matrix(name: str) -> Matrix:
    """A matrix game by its name."""
    if name not in GAMES:
        raise ValueError(f"unknown matrix game {name!r}: {nearest(name, GAMES)}")
    return GAMES[name]
