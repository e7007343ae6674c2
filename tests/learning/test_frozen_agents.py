"""Frozen agents: never updated, and to the learner like agents that are dead."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny_programs import TINY, rolled

from fp3o.envs.toys.probe import Probe
from fp3o.envs.vectorise import VmapEnv
from fp3o.errors import SettingError
from fp3o.learning.config import Config
from fp3o.learning.obs_moments import update_obs_norms
from fp3o.sharing.maps import split_off
from fp3o.training.program import Program

CREDIT = Probe("credit", (1, 1, 1), (2, 2, 2), max_episode_steps=3)


class LastIsDead(Probe):
    """The same task with a last agent that acts, but counts as dead."""

    def observe(self, state: Any) -> Any:
        """The same observation."""
        seen = super().observe(state)
        return seen._replace(alive=jnp.array([True, True, False]))


def trained(env: Probe, config: Config, iterations: int = 2) -> tuple[Any, Any, Program]:
    """The learner before and after some iterations."""
    program = Program(VmapEnv(env, config.num_envs), config)
    state = first = program.init(0)
    for _ in range(iterations):
        state, _ = program.iterate(state)
    return jax.device_get(first.learner), jax.device_get(state.learner), program


def equal(a: Any, b: Any) -> None:
    """Every array of two trees has the same bits."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("algorithm", "sharing", "gru_size"),
    [("fp3o", "partial", 0), ("mappo", "full", 0), ("happo", "none", 0), ("a2po", "partial", 4)],
)
def test_frozen_agents_stay_and_the_others_learn(
    algorithm: str, sharing: str, gru_size: int
) -> None:
    """No bit of the frozen agent changes; the others learn as in a task where it is dead."""
    config = TINY.replace(algorithm=algorithm, gru_size=gru_size)
    frozen = config.replace(sharing=sharing, frozen_agents=(2,))
    before, after, program = trained(CREDIT, frozen)
    layout = program.setup.actor_layout
    for j, groups in enumerate(layout.maps):
        parts = (before.actor, before.actor_adam), (after.actor, after.actor_adam)
        rows = [jax.tree.map(lambda x, g=groups: x[g[2]], (a[j], b[j])) for a, b in parts]
        equal(*rows)
        assert groups.count(groups[2]) == 1
        assert (before.actor[j][groups[0]] != after.actor[j][groups[0]]).any()
    whole = Program(VmapEnv(CREDIT, 4), config.replace(sharing=sharing)).setup
    by_hand = config.replace(
        sharing=split_off(whole.actor_sharing, (2,)), critic_sharing=whole.critic_sharing
    )
    dead = LastIsDead(**vars(CREDIT))
    other_before, other_after, _ = trained(dead, by_hand)
    equal(before, other_before)
    equal(after, other_after)


def test_their_running_normaliser_stays() -> None:
    """The moments of a frozen agent are separate, and no bit of them changes."""
    config = TINY.replace(sharing="full", frozen_agents=(1,), obs_norm=True)
    program, state, trajectory, _ = rolled(config)
    layout, random = program.setup.actor_layout, np.random.default_rng(0)
    params = tuple(jnp.asarray(random.random(x.shape), x.dtype) for x in state.learner.actor)
    learner = update_obs_norms(program.setup, state.learner._replace(actor=params), trajectory)
    before, after = (layout.unpack(x).obs_norm for x in (params, learner.actor))
    assert before.groups == (0, 1, 0)
    equal(*(jax.tree.map(lambda x: x[1], x) for x in (before, after)))
    assert (before.mean[0] != after.mean[0]).any()


def test_critics_are_those_of_the_whole_team() -> None:
    """The frozen agent is alone in every layer of the actor; the sharing of critics stays."""
    config = TINY.replace(sharing="full", frozen_agents=(0,))
    setup = Program(VmapEnv(CREDIT, 4), config).setup
    assert setup.actor_sharing == ((0, 1, 1),) * 2
    assert setup.critic_sharing == ((0, 0, 0),) * 2
    assert setup.learns.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("agents", "message"), [((3,), "0 to 2"), ((1, 1), "twice"), ((0, 1, 2), "must learn")]
)
def test_wrong_agents(agents: tuple[int, ...], message: str) -> None:
    """Agents that do not exist, an agent twice, or all of them."""
    with pytest.raises(SettingError, match=message):
        Program(VmapEnv(CREDIT, 4), TINY.replace(frozen_agents=agents))
