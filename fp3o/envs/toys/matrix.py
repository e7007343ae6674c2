"""Matrix games: two agents choose at the same time, once, and are paid the same.

They are small traps for teams that learn together. Whoever errs in choosing the best pair's part
while the other still tries things out is punished, so learners are drawn to a safe, worse pair.

| task       | best pair is paid | other pairs from which no one should move alone |
|------------|-------------------|-------------------------------------------------|
| `climbing` | 11                | 7                                               |
| `penalty`  | 10, two ways      | 2; not meeting at 10 costs 50                   |

The best pair is a matter of where one begins. From policies of nearly equal chances (`gain=0.01`)
none of 16 seeds of FP3O and MAPPO found it in 60 iterations. From policies with strong preferences
(`gain=3`) many do, and stay there; of 16 seeds (64 environments, 60 iterations of 4 epochs,
learning rates 0.01):

|                        | IPPO | MAPPO | CoPPO | HAPPO | A2PO | FP3O |
|------------------------|------|-------|-------|-------|------|------|
| `climbing`, no sharing |    7 |     7 |     7 |     8 |    7 |    9 |
| `climbing`, full       |    4 |     4 |     4 |     4 |    3 |    4 |
| `penalty`, no sharing  |   12 |    12 |    12 |    11 |   11 |   12 |
| `penalty`, full        |   12 |    12 |    12 |    13 |   13 |   13 |

So train several seeds: a run keeps the best one, and of eight hardly ever all miss it. No setting
was found with which every single seed settles there. The most in a grid of 54 (4, 16, 64
environments; learning rates, entropy, clip; no sharing, equal chances, 300 iterations) was for
`penalty` 15 of 16 seeds with FP3O (4 environments, learning rate 0.01, entropy 0.3) and 13 with
MAPPO (16, 0.05, 0.3), for `climbing` not more than half. With one network for both, no agent id, 4
environments and an entropy that is lowered in the end, 11 seeds of MAPPO and 9 of FP3O climbed.

Two environments with an entropy of 0.5 (learning rates 0.03 and 0.06, no sharing) make all 16 seeds
of all six algorithms pass the best pair within 600 iterations, and a run keeps the best policy that
it has evaluated. But that is luck more than learning: in `climbing` they are there a tenth to a
fifth of the time, which one pair of nine would be by chance, and mostly not in the end.

    fp3o train matrix/climbing
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from fp3o.envs.api import Env, Observation
from fp3o.errors import nearest
from fp3o.spec import Discrete, EnvSpec

FAMILY = "matrix"

TEAM = 2


@dataclass(frozen=True)
class Matrix(Env):
    """`payoff[a][b]` is paid when the first agent chooses `a` and the second one `b`."""

    name: str
    payoff: tuple[tuple[float, ...], ...]
    max_episode_steps = 1

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
        return EnvSpec(
            f"{FAMILY}/{self.name}", actions, obs_size=1, state_size=1, agent_types=kinds
        )

    def reset(self, key: PRNGKeyArray) -> Float[Array, ""]:
        """There is one state."""
        return jnp.ones(())

    def step(self, state: Float[Array, ""], action: Int[Array, "n 1"], key: PRNGKeyArray):
        """Pay the pair; one step, one episode."""
        paid = jnp.asarray(self.payoff)[action[0, 0], action[1, 0]]
        yes = jnp.ones((), bool)
        return state, jnp.full(TEAM, paid), yes, ~yes

    def observe(self, state: Float[Array, ""]) -> Observation:
        """A constant."""
        seen = jnp.full((TEAM, 1), state)
        mask = jnp.asarray(self.spec.actions.mask)
        return Observation(seen, seen, mask, jnp.ones(TEAM, bool))


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
