"""Parameters of a saved policy in networks of other teams and other sharing."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.errors import SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.policy import Policy
from fp3o.policy.export import write_policy
from fp3o.policy.fit import require_fit
from fp3o.policy.transfer import GroupedArrays, Origin, complete_map, transferred_params
from fp3o.spec import Box, Discrete, EnvSpec

OBS_SIZE = 4


def make_setup(num_agents: int, sharing: Any = "none", **settings: Any) -> Setup:
    """A team with equal observations and actions."""
    config = Config(
        sharing=sharing, num_envs=1, rollout=1, sequence_length=1,
        **{"hidden": (6,), **settings},
    )  # fmt: skip
    return Setup(
        EnvSpec("test/team", Box((2,) * num_agents), OBS_SIZE, 9, (0,) * num_agents), config
    )


def random_params(setup: Setup, seed: int) -> Any:
    """Parameters none of which has its initial value."""
    random = np.random.default_rng(seed)
    return tuple(jnp.asarray(random.normal(size=x.shape), jnp.float32) for x in setup.init(0).actor)


def moved(old: Setup, params: Any, new: Setup, agents: dict[int, int]) -> Any:
    """Parameters of the new setup, started from those of the old one."""
    saved = GroupedArrays.of(old, "actor", params)
    origin = Origin("the policy", saved, old.spec.num_agents, agents)
    return transferred_params(new, "actor", random_params(new, 2), [origin])


def outputs(setup: Setup, params: Any, agent: int, folder: Path) -> np.ndarray:
    """Means and deviations of one agent on fixed observations, over two steps."""
    policy: Policy = write_policy(folder, setup, params, {})
    obs = np.random.default_rng(5).normal(size=(2, 7, OBS_SIZE)).astype(np.float32)
    team = np.repeat(obs[:, :, None], setup.spec.num_agents, axis=2)
    first, hidden = policy.distribution(team[0])
    second, _ = policy.distribution(team[1], hidden)
    return np.stack([np.stack(x)[:, :, agent] for x in (first, second)])


@pytest.mark.parametrize(
    ("old", "new", "agents", "settings"),
    [
        ((3, "full"), (5, "full"), (0, 0, 1, 2, 2), {"layer_norm": False}),
        ((3, "none"), (5, "none"), (0, 0, 1, 2, 2), {"layer_norm": False, "gru_size": 3}),
        ((3, "none"), (2, "none"), (2, 0), {"layer_norm": False}),
        ((3, "full"), (3, "none"), (0, 1, 2), {}),
        ((3, "full"), (3, "full"), (2, 0, 1), {}),
        ((3, "partial"), (3, "none"), (1, 2, 0), {"gru_size": 3}),
        ((3, "none"), (3, ((0, 1, 1), (0, 1, 2))), (0, 2, 2), {"layer_norm": False}),
        ((3, "partial"), (5, "partial"), (0, 0, 1, 2, 2), {"agent_id": False}),
        ((3, "none"), (5, "full"), (1,) * 5, {"agent_id": False, "gru_size": 3}),
        ((3, "none"), (2, "none"), (2, 0), {"agent_id": False, "obs_norm": True}),
    ],
)  # fmt: skip
def test_agents_act_like_those_they_start_from(
    old: Any, new: Any, agents: tuple[int, ...], settings: dict[str, Any], tmp_path: Path
) -> None:
    """Other teams and sharing; with LayerNorm and an index, teams of one size."""
    source, target = make_setup(*old, **settings), make_setup(*new, **settings)
    params = random_params(source, 1)
    started = moved(source, params, target, dict(enumerate(agents)))
    for agent, origin in enumerate(agents):
        expected = outputs(source, params, origin, tmp_path / "old")
        found = outputs(target, started, agent, tmp_path / "new")
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_the_same_team_gets_the_same_bits() -> None:
    """Nothing but copies: every array equals the saved one."""
    setup = make_setup(3, "partial", gru_size=3)
    params = random_params(setup, 1)
    started = moved(setup, params, setup, {0: 0, 1: 1, 2: 2})
    for one, other in zip(started, params, strict=True):
        np.testing.assert_array_equal(one, other)


def test_entries_of_the_index_by_hand() -> None:
    """Rows of the first layer and of its norm: those of observations stay, the others move."""
    source, target = make_setup(2, "full"), make_setup(3, "full")
    params = random_params(source, 1)
    old = GroupedArrays.of(source, "actor", params).arrays
    new = GroupedArrays.of(
        target, "actor", moved(source, params, target, {0: 1, 1: 1, 2: 0})
    ).arrays
    rows = [0, 1, 2, 3, 5, 5, 4]
    for name in ("network.hidden.0.weight", "network.norms.0.scale", "network.norms.0.shift"):
        np.testing.assert_array_equal(new[name], old[name][:, rows])
    np.testing.assert_array_equal(new["network.output.weight"], old["network.output.weight"])


def test_other_agents_keep_their_parameters() -> None:
    """Agents without an origin keep what they have."""
    setup = make_setup(3)
    before = GroupedArrays.of(setup, "actor", random_params(setup, 2)).arrays
    params = random_params(setup, 1)
    after = GroupedArrays.of(setup, "actor", moved(setup, params, setup, {1: 1})).arrays
    saved = GroupedArrays.of(setup, "actor", params).arrays
    for name, array in after.items():
        np.testing.assert_array_equal(array[[0, 2]], before[name][[0, 2]])
        np.testing.assert_array_equal(array[1], saved[name][1])


def test_shared_layers_need_one_origin() -> None:
    """A group whose agents come from different groups is refused, with both agents."""
    source, target = make_setup(3, "none"), make_setup(3, "full")
    with pytest.raises(SettingError, match=r"agents 0 and 2 share .* agents 0 and 1, which do not"):
        moved(source, random_params(source, 1), target, {0: 0, 1: 0, 2: 1})


def test_complete_maps() -> None:
    """Agents that are not named get different agents of the saved team where there are enough."""
    assert complete_map({1: 0}, 3, 3) == [1, 0, 2]
    assert complete_map({0: 0, 1: 0}, 3, 3) == [0, 0, 2]
    assert complete_map({}, 3, 2) == [0, 1, 0]


def test_networks_that_do_not_fit(tmp_path: Path) -> None:
    """The message names the setting, or both sizes."""
    source = make_setup(3)
    card = write_policy(tmp_path / "p", source, random_params(source, 1), {}).card
    everyone = {0: 0, 1: 1, 2: 2}
    require_fit(card, source, everyone, "p")
    for settings, message in (
        ({"hidden": (8,)}, r"hidden=\(6,\), this run hidden=\(8,\): set hidden=\(6,\)"),
        ({"gru_size": 3}, "gru_size=0"),
        ({"agent_id": False}, "agent_id=True"),
        ({"activation": "tanh"}, "activation=relu"),
    ):
        with pytest.raises(SettingError, match=message):
            require_fit(card, make_setup(3, **settings), everyone, "p")
    other = Setup(EnvSpec("test/other", Box((2, 2, 2)), 7, 9, (0, 0, 0)), source.config)
    with pytest.raises(SettingError, match="size 4, those of test/other have size 7"):
        require_fit(card, other, everyone, "p")
    for actions in (Box((2, 1, 2)), Discrete(((2,), (2,), (2,)))):
        other = Setup(EnvSpec("test/other", actions, 4, 9, (0, 0, 0)), source.config)
        with pytest.raises(SettingError, match=r"agent . of p has the actions Box 2"):
            require_fit(card, other, everyone, "p")
