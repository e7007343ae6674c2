"""StarCraft II itself, through SMAC: a batch of games in worker processes.

The real game cannot be saved or put back. A state names the moment it belongs to: from one that is
not the newest, as after a resumption, running episodes cannot be played on. They end as those of a
worker that died do, as if cut by a time limit, and new ones begin.
"""

import secrets
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Key

from fp3o.envs.smac.game import skirmish
from fp3o.envs.smac.maps import LAYOUTS, MAPS, REAL
from fp3o.envs.starcraft2_install import require
from fp3o.envs.starcraft2_worker import Launch, Report
from fp3o.envs.workers import Crew, Field, Losses, Patience, Place, Reply
from fp3o.errors import nearest
from fp3o.spaces import EnvSpec
from fp3o.types import TimeStep


class Standing(NamedTuple):
    """Where all games stand: what was last seen of them, numbers only."""

    moment: np.ndarray
    """(2,): which batch this is, and how many moments it has had."""
    time: np.ndarray
    """(e,): steps of the running episode."""
    obs: np.ndarray
    team: np.ndarray
    outcome: np.ndarray


class Games:
    """`num_envs` games of one task, each in a process; episodes begin again by themselves.

    A game takes its random seed when it starts: at the first reset, and in a worker's place.
    """

    traced = False

    def __init__(
        self,
        spec: EnvSpec,
        num_envs: int,
        make: Callable[[int], Place],
        patience: Patience = Patience(),  # noqa: B008
    ):
        self.spec, self.num_envs = spec, num_envs
        self._crew = Crew(make, form(spec), num_envs, patience)
        self._moment = np.array([secrets.randbits(62), 0], np.int64)

    @property
    def losses(self) -> Losses:
        """What went wrong with the workers since the beginning."""
        return self._crew.losses

    def close(self) -> None:
        """End all games."""
        self._crew.close()

    def reset(self, key: Key[Array, "*s"]) -> tuple[Standing, TimeStep]:
        """Begin an episode in every game; of several keys each has an equal part of them."""
        numbers = np.asarray(jax.random.key_data(key)).reshape(key.size, -1)
        each = self.num_envs // key.size
        self._crew.seeds[:] = [_seed(own, i) for own in numbers for i in range(each)]
        now = stack(self._crew.reset(range(self.num_envs)))
        return self._shown(now, now, np.ones(self.num_envs, bool))

    def step(self, state: Standing, action: Any) -> tuple[Standing, TimeStep]:
        """Play the actions `(e, n, 1)`; where an episode ends, the next one begins."""
        chosen = np.asarray(action)[..., 0]
        answers = self._crew.step({i: chosen[i] for i in self._able(state)})
        played = [answers.get(i) or self._cut(state, i) for i in range(self.num_envs)]
        final = stack(played)
        ended = final.terminated | final.truncated
        ids = np.flatnonzero(ended).tolist()
        for i, fresh in zip(ids, self._crew.reset(ids), strict=True):
            played[i] = fresh
        return self._shown(stack(played), final, ended)

    def _shown(self, now: Report, final: Report, start: np.ndarray) -> tuple[Standing, TimeStep]:
        self._moment = self._moment + np.array([0, 1])
        time = self._crew.steps.copy()
        standing = Standing(self._moment, time, now.obs, now.state, now.outcome)
        step = TimeStep._make((
            now.obs, now.state, now.legal, now.alive, final.reward, final.terminated,
            final.truncated, start, final.obs, final.state, final.outcome,
        ))  # fmt: skip
        return standing, step

    def _cut(self, state: Standing, i: int) -> Report:
        """The last step of a lost episode: nothing is paid, and what was last seen is its end."""
        mask = self.spec.actions.mask
        nothing, nobody = np.zeros_like(mask), np.zeros(len(mask), bool)
        unpaid, ends = nobody.astype(np.float32), (np.array(False), np.array(True))
        seen = state.obs[i], state.team[i]
        return Report(*seen, nothing, nobody, unpaid, *ends, state.outcome[i])

    def _able(self, state: Standing) -> list[int]:
        """Games that can be played on from a state: all, if it is the newest one.

        Nothing leads back to an older one, but an episode that had just begun may begin alike.
        """
        if np.array_equal(state.moment, self._moment):
            return [*range(self.num_envs)]
        new = np.flatnonzero(state.time == 0).tolist()
        begun = [Report._make(answer) for answer in self._crew.reset(new)]
        self._tell(state.time)
        old = zip(new, begun, state.obs[new], state.team[new], strict=True)
        return [
            i for i, now, obs, team in old
            if np.array_equal(now.obs, obs) and np.array_equal(now.state, team)
        ]  # fmt: skip

    def _tell(self, time: np.ndarray) -> None:
        """Account for episodes that cannot be taken up again."""
        if lost := int(time.sum()):
            self.losses.steps += lost
            warnings.warn(
                f"{self.spec.name}: games cannot be put back to where they were; "
                f"{np.count_nonzero(time)} running episodes of {lost} steps end as if cut by a "
                "time limit",
                RuntimeWarning,
                stacklevel=4,
            )


@dataclass(frozen=True)
class StarCraft2:
    """A map of the real game under one layout of observations."""

    name: str
    layout: str = LAYOUTS[0]

    @property
    def spec(self) -> EnvSpec:
        """The task's facts; they are those of the simulator's map."""
        if self.name not in MAPS:
            raise ValueError(f"unknown map {self.name!r}: {nearest(self.name, MAPS)}")
        if self.layout not in LAYOUTS:
            raise ValueError(f"unknown layout {self.layout!r}: {nearest(self.layout, LAYOUTS)}")
        known = skirmish(self.name, self.layout).spec
        return replace(known, name=f"{REAL}/{self.name}:{self.layout}")

    @property
    def limit(self) -> int:
        """The longest an episode can be."""
        return MAPS[self.name].limit

    def batch(self, num_envs: int) -> Games:
        """Games that are stepped together; they start at the first reset."""
        spec = self.spec
        require(self.name)
        return Games(spec, num_envs, Launch(self.name, self.layout))


@cache
def starcraft2(name: str, layout: str) -> StarCraft2:
    """A task by the name of its map."""
    return StarCraft2(name, layout)


def form(spec: EnvSpec) -> list[Field]:
    """What a worker's report has to be."""
    n, choices = spec.actions.mask.shape
    shapes = {
        "obs": (n, spec.obs_size), "state": (n, spec.state_size), "legal": (n, choices),
        "alive": (n,), "reward": (n,), "terminated": (), "truncated": (),
        "outcome": (len(spec.outcomes),),
    }  # fmt: skip
    flags = {"legal", "alive", "terminated", "truncated"}
    return [
        Field(name, shapes[name], np.bool_ if name in flags else np.float32)
        for name in Report._fields
    ]


def stack(reports: Sequence[Reply]) -> Report:
    """The reports of all games, `(e, ...)`."""
    return Report._make(map(np.stack, zip(*reports, strict=True)))


def _seed(key: np.ndarray, number: int) -> int:
    """A random seed for a game, as large as the game can take."""
    return int(np.random.SeedSequence([*key.tolist(), number]).generate_state(1)[0] >> 1)
