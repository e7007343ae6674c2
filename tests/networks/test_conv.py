"""Convolutions of image observations: values, sharing, sizes and errors."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fp3o.errors import EnvError, SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.networks.conv import apply_convolutions, image_patches
from fp3o.networks.conv_layers import ConvStack, conv_stack, default_conv, parse_conv, write_conv
from fp3o.networks.layers import linear
from fp3o.runs.limits import RunCounts, check_limits, memory_needed, num_parameters
from fp3o.runs.run_config import RunConfig
from fp3o.spec import Discrete, EnvSpec
from fp3o.training.host_policy import HostPolicy
from fp3o.training.rollout import ActorInputs, choose_actions

IMAGE, AGENTS = (7, 6, 3), 3
CONV = ((4, 3, 1), (5, 2, 2))
NUMBERS = 7 * 6 * 3


def spec(**changes: Any) -> EnvSpec:
    """Three agents with an image and two other numbers; the state is all images."""
    sizes: dict[str, Any] = {
        "obs_size": NUMBERS + 2, "state_size": AGENTS * NUMBERS + 1, "agent_types": (0, 0, 1),
        "image": IMAGE, "state_image": (7, 6, 9),
    }  # fmt: skip
    return EnvSpec("test/images", Discrete(((4,),) * AGENTS), **sizes | changes)


def test_a_convolution_is_that_of_jax() -> None:
    """Per agent, with its own kernel; entries after the image are left as they are."""
    random, groups = np.random.default_rng(0), (0, 1, 0)
    stack = ConvStack(CONV, IMAGE)
    layers = [linear(random, *shape, groups) for shape in stack.matrices]
    x = jnp.asarray(random.normal(size=(AGENTS, 5, NUMBERS + 2)), float)
    wanted = []
    for agent, group in enumerate(groups):
        image = x[agent, :, :NUMBERS].reshape(5, *IMAGE)
        for layer, (channels, kernel, stride) in zip(layers, CONV, strict=True):
            weight = layer.weight[group].reshape(kernel, kernel, -1, channels)
            layout = ("NHWC", "HWIO", "NHWC")
            image = jax.lax.conv_general_dilated(
                image, weight, (stride, stride), "VALID", dimension_numbers=layout
            )
            image = jnp.tanh(image)
        wanted.append(jnp.concatenate([image.reshape(5, -1), x[agent, :, NUMBERS:]], axis=1))
    given = apply_convolutions(x, layers, stack, "tanh", None)
    assert given.shape[-1] == stack.num_features(NUMBERS + 2)
    np.testing.assert_allclose(given, jnp.stack(wanted), atol=1e-5)
    some = apply_convolutions(x[1:2], layers, stack, "tanh", jnp.array([1]))
    np.testing.assert_allclose(some, given[1:2], atol=1e-5)


def test_patches_are_ordered_by_row_column_and_channel() -> None:
    """Kernels that do not reach the border leave the last rows and columns out."""
    x = jnp.arange(2.0 * 4 * 5 * 3).reshape(2, 4, 5, 3)
    patches = image_patches(x, 2, 2)
    assert patches.shape == (2, 2, 2, 12)
    np.testing.assert_array_equal(patches[1, 1, 0], x[1, 2:4, 0:2].reshape(-1))


@pytest.mark.parametrize("sharing", ["full", "partial", "none", "by_type"])
@pytest.mark.parametrize("critic_input", ["state", "obs"])
def test_networks_have_one_map_per_convolution(sharing: str, critic_input: str) -> None:
    """Groups, sizes and the number of parameters of actor and critic."""
    algorithm = f"mappo:critic_input={critic_input}"
    config = Config(algorithm, sharing=sharing, conv=CONV, hidden=(8,), num_envs=2, rollout=4)
    setup = Setup(spec(), config)
    learner = setup.init(0)
    networks: Any = setup.actor(learner.actor).network, setup.critic(learner.critic).network
    shared = {"full": [1] * 4, "partial": [1, 1, 1, 3], "none": [3] * 4, "by_type": [2] * 4}
    layers = [*networks[0].conv, *networks[0].hidden, networks[0].output]
    assert [layer.weight.shape[0] for layer in layers] == shared[sharing]
    channels = 3 if critic_input == "obs" else 9
    assert [n.conv[0].weight.shape[1] for n in networks] == [9 * 3, 9 * channels]
    weights = [sum(layer.weight.size for layer in (*n.conv, *n.hidden, n.output)) for n in networks]
    assert num_parameters(spec(), config) == tuple(weights)


@pytest.mark.parametrize("settings", [{}, {"layer_norm": False}, {"gru_size": 4}])
def test_the_folded_network_is_the_same_function(settings: dict[str, Any]) -> None:
    """With norms and convolutions whose parameters differ between agents."""
    steps = 4 if settings.get("gru_size") else 1
    config = Config(
        sharing="none", conv=CONV, hidden=(8,), num_envs=2, rollout=4, sequence_length=steps,
        **settings,
    )  # fmt: skip
    setup, random = Setup(spec(), config), np.random.default_rng(1)
    params = jax.tree.map(lambda x: x + 0.1 * random.normal(size=x.shape), setup.init(0).actor)
    network = setup.actor(params).network
    x = jnp.swapaxes(setup.inputs(jnp.asarray(random.normal(size=(4, 3, NUMBERS + 2)))), 0, 1)
    state, start = jnp.ones((3, 4 // steps, config.gru_size)), jnp.zeros((3, 4), bool)
    one, two = network(x, state, start), network.folded()(x, state, start)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    # The first LayerNorm follows the convolutions: a brighter image changes the outputs.
    brighter, _ = network(x.at[..., :NUMBERS].multiply(3.0), state, start)
    assert np.abs(np.asarray(brighter - one[0])).max() > 1e-3


def test_convolutions_chosen_by_size() -> None:
    """Every size of image has features after its convolutions."""
    sizes = (*range(1, 100), 128, 210)
    assert {side: len(default_conv((side, 99, 3))) for side in (2, 3, 5, 20, 64)} == {
        2: 0, 3: 1, 5: 2, 20: 2, 64: 3,
    }  # fmt: skip
    for side in sizes:
        stack = conv_stack(None, (side, side + 1, 3))
        assert all(min(shape) >= 1 for shape in stack.outputs)
    assert conv_stack(None, None) == conv_stack((), IMAGE) == ConvStack()


@pytest.mark.parametrize("text", ["16x3x1,32x3x2", "4x2x2", "flatten", "None"])
def test_text_is_read_as_it_is_written(text: str) -> None:
    """The form of the command line, and that of JSON."""
    conv = parse_conv(text)
    assert write_conv(conv) == text
    assert parse_conv(conv and [list(layer) for layer in conv]) == conv


@pytest.mark.parametrize("wrong", ["16x3", "16,3,1", "3x", "", "x", [16, 3, 1], [[1, 2]], 5, {}])
def test_other_text_is_refused(wrong: Any) -> None:
    """The message shows the form."""
    with pytest.raises(SettingError, match="16x3x1,32x3x2"):
        parse_conv(wrong)


@pytest.mark.parametrize(
    ("task", "settings", "error", "message"),
    [
        ({}, {"conv": ((4, 8, 1),)}, SettingError, "kernel of 8, .* image of 6 pixels"),
        ({}, {"conv": ((4, 3, 2), (4, 3, 1))}, SettingError, "convolution 2 has a kernel of 3"),
        ({}, {"conv": ((0, 3, 1),)}, SettingError, "channels"),
        ({}, {"conv": ((4, 3, 0),)}, SettingError, "stride of at least 1"),
        ({}, {"conv": ((4, 1, 1),) * 64}, SettingError, "at most 64 convolutions"),
        ({"image": None, "state_image": None}, {"conv": CONV}, SettingError, "has none"),
        ({"image": (7, 7, 3)}, {}, EnvError, "obs_size is 128, .* image of 7 x 7 x 3"),
        ({"state_image": (99, 9, 9)}, {}, EnvError, "state_size is 379"),
    ],
)
def test_impossible_images_are_refused(
    task: dict[str, Any], settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Before anything is compiled, with the numbers that do not fit."""
    with pytest.raises(error, match=message):
        Setup(spec(**task), Config(**settings))


def test_other_networks_get_images_as_features() -> None:
    """A custom network has no convolutions, and says so."""
    with pytest.raises(SettingError, match="conv is for the built-in network"):
        Setup(spec(), Config(network="broken_networks:Broken", conv=CONV))


def test_patches_that_do_not_fit_into_memory_are_refused() -> None:
    """The message names the settings that help."""
    config = RunConfig.from_preset("pixels/cover-2").with_settings({"num_envs": 10**6})
    spec, counts = config.task_info.spec(), RunCounts(1, 1, 1)
    parts = memory_needed(spec, config.learner, counts)
    # The larger of two layers: 5 x 5 patches of 3 x 3 x 3, 2 x 2 of 3 x 3 x 16.
    patches = max(5 * 5 * 27, 2 * 2 * 144)
    name = "the convolutions of a rollout"
    assert parts[name].bytes == 4 * 10**6 * config.learner.rollout * 2 * patches
    with pytest.raises(SettingError, match=f"{name} would need .* the kernels of conv"):
        check_limits(spec, config.learner, 0, counts)


def test_host_environments_get_the_same_decisions() -> None:
    """Action selection on the host is compiled where there are convolutions."""
    config = Config(sharing="none", conv=CONV, hidden=(8,), num_envs=2, rollout=4, obs_norm=True)
    setup, random = Setup(spec(), config), np.random.default_rng(4)
    policy, params = HostPolicy(setup, None), setup.init(1).actor
    assert not policy._uses_numpy(1)
    obs = random.random((2, AGENTS, NUMBERS + 2)).astype(np.float32)
    mask, start = np.ones((2, AGENTS, 4), bool), np.zeros(2, bool)
    inputs: Any = ActorInputs(obs, mask, start, np.zeros((2, AGENTS, 0), np.float32))  # pyright: ignore
    decision = policy.decide(policy.fold(params), 2)(inputs, None)
    wanted = choose_actions(setup, setup.actor(params), jax.tree.map(jnp.asarray, inputs), None)
    np.testing.assert_array_equal(decision.action, wanted.action)
