"""Policies as ONNX and StableHLO files compute what the policy in NumPy does."""

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jaxtyping
import numpy as np
import pytest
from small_policies import NAMES, OBS_SIZES, SPACES, observe, saved_policy

from fp3o.envs.registry import get_task
from fp3o.errors import MissingExtraError, SettingError, UserError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.policy import Policy, TrustError, deploy
from fp3o.policy.deploy import input_shapes, team_step
from fp3o.policy.export import write_policy
from fp3o.spec import Discrete, EnvSpec


@pytest.fixture(autouse=True)
def _symbolic_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of shapes that tests install do not know symbolic sizes."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


CASES = [
    (sharing, gru_size, space)
    for sharing in ("full", "partial", "none", "custom")
    for gru_size in (0, 4)
    for space in SPACES
]
"""Together: with and without ids and LayerNorm, ReLU and tanh, both standard deviations."""


def run_onnx(path: Path) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(outputs, session.run(None, inputs), strict=True))


def run_stablehlo(path: Path) -> Any:
    loaded = jax.export.deserialize(bytearray(path.read_bytes()))
    assert loaded.platforms == ("cpu", "cuda", "tpu")
    return lambda inputs: jax.device_get(loaded.call(inputs))


RUNNERS = {"onnx": run_onnx, "stablehlo": run_stablehlo}


def require_parity(policy: Policy, run: Any) -> None:
    """Actions, distributions and hidden states over recurrent steps with masks."""
    random, batch = np.random.default_rng(9), 6
    hidden_state = past = policy.initial_hidden_state(batch)
    for _ in range(3):
        step = observe(random, policy.card.num_outputs)
        step["obs"] = step["obs"].astype(np.float32)
        inputs = {**step, "hidden_state": past}
        inputs = {name: inputs[name] for name in input_shapes(policy.card, batch)}
        mask = step["action_mask"] if "action_mask" in inputs else None
        given = run(inputs)
        wanted, after = policy.distribution(step["obs"], hidden_state, mask)
        actions, hidden_state = policy.act(step["obs"], hidden_state, mask)
        for name, array in (deploy._named_arrays(wanted) | {"actions": actions}).items():
            np.testing.assert_allclose(given[name], array, atol=1e-5, err_msg=name)
        assert ("next_hidden_state" in given) == bool(policy.card.gru_size)
        past = given.get("next_hidden_state", past)
        np.testing.assert_allclose(past, after, atol=1e-5)


@pytest.mark.parametrize(("sharing", "gru_size", "space"), CASES)
@pytest.mark.parametrize("to", RUNNERS)
def test_parity(to: str, sharing: str, gru_size: int, space: str, tmp_path: Path) -> None:
    """Every kind of network and action space, in both formats."""
    policy = saved_policy(sharing, gru_size, space, tmp_path / "policy")
    path = policy.export(tmp_path / f"team.{to}", to=to)
    require_parity(policy, RUNNERS[to](path))


def image_policy(folder: Path) -> Policy:
    """Convolutions of an image with numbers after it, which a running normaliser scales."""
    spec = EnvSpec("test/images", Discrete(((3,), (2,))), 110, 9, (0, 1), image=(6, 6, 3))
    config = Config(
        sharing="partial", conv=((4, 3, 1), (3, 3, 2)), hidden=(6,), gru_size=0, obs_norm=True,
        output_gain=1.0,
    )  # fmt: skip
    setup = Setup(spec, config)
    policy = write_policy(folder, setup, setup.init(0).actor, {})
    random = np.random.default_rng(2)
    moments = {
        f"obs_norm.{name}": random.uniform(0.5, 2.0, policy.weights[f"obs_norm.{name}"].shape)
        for name in ("count", "mean", "std")
    }
    weights = {**policy.weights, **{k: x.astype(np.float32) for k, x in moments.items()}}
    return Policy(policy.card, weights)


@pytest.mark.parametrize("to", RUNNERS)
def test_images(to: str, tmp_path: Path) -> None:
    """Convolutions and the running normaliser are in the file."""
    policy = image_policy(tmp_path / "policy")
    run = RUNNERS[to](policy.export(tmp_path / f"team.{to}", to=to))
    obs = np.random.default_rng(1).uniform(size=(5, 2, 110)).astype(np.float32)
    given = run({"obs": obs, "action_mask": np.ones((5, 2, 3), bool)})
    wanted, _ = policy.distribution(obs)
    np.testing.assert_allclose(given["probabilities"], wanted[0], atol=1e-5)


@pytest.mark.parametrize("to", RUNNERS)
def test_custom_networks(to: str, tmp_path: Path) -> None:
    """A custom network is exported if the policy is trusted; otherwise nothing is imported."""
    setup = Setup(
        get_task("mpe/simple_spread").spec(),
        Config(network="custom_network:Attention", sharing=(0, 1, 0), output_gain=1.0),
    )
    policy = write_policy(tmp_path / "policy", setup, setup.init(3).actor, {})
    with pytest.raises(TrustError, match="custom_network:Attention"):
        Policy.load(tmp_path / "policy").export(tmp_path / f"team.{to}", to=to)
    run = RUNNERS[to](policy.export(tmp_path / f"team.{to}", to=to))
    obs = np.random.default_rng(0).normal(size=(4, 3, 18)).astype(np.float32)
    given = run({"obs": obs, "action_mask": np.ones((4, 3, 5), bool)})
    wanted, _ = policy.distribution(obs)
    np.testing.assert_allclose(given["probabilities"], wanted[0], atol=1e-5)


@pytest.mark.parametrize("space", SPACES)
def test_the_traced_step(space: str, tmp_path: Path) -> None:
    """The function that both formats are made from, without a conversion."""
    policy = saved_policy("custom", 4, space, tmp_path / "policy")
    step = jax.jit(team_step(policy))
    require_parity(policy, lambda inputs: jax.device_get(step(inputs)))


@pytest.mark.parametrize("to", RUNNERS)
def test_metadata(to: str, tmp_path: Path) -> None:
    """Names and sizes of the agents, in the file or beside it; inputs have a free batch axis."""
    policy = saved_policy("full", 4, "discrete", tmp_path / "policy")
    handlers = [*logging.getLogger().handlers]
    path = policy.export(tmp_path / "folder" / f"team.{to}", to=to)
    assert logging.getLogger().handlers == handlers
    if to == "onnx":
        import onnx

        model = onnx.load(path)
        facts = json.loads({x.key: x.value for x in model.metadata_props}["fp3o"])
        dimensions = {x.name: x.type.tensor_type.shape.dim for x in model.graph.input}
        assert [*dimensions] == ["obs", "action_mask", "hidden_state"]
        assert [x[0].dim_param for x in dimensions.values()] == ["b"] * 3
        assert [x[2].dim_value for x in dimensions.values()] == [5, 8, 4]
    else:
        facts = json.loads(Path(f"{path}.json").read_text())
    assert [agent["name"] for agent in facts["agents"]] == [*NAMES]
    assert [agent["obs_size"] for agent in facts["agents"]] == [*OBS_SIZES]


def test_files_that_differ_from_the_policy_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversion that computes something else is noticed."""
    policy = saved_policy("full", 0, "box", tmp_path / "policy")
    real = deploy._parameters
    monkeypatch.setattr(
        deploy, "_parameters", lambda x: {name: 1.01 * y for name, y in real(x).items()}
    )
    with pytest.raises(UserError, match="computes another mean than the policy"):
        policy.export(tmp_path / "team.stablehlo", to="stablehlo")
    assert not (tmp_path / "team.stablehlo").exists()


def test_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown formats, a missing package, a failing converter, a folder in place of the file."""
    policy = saved_policy("full", 0, "discrete", tmp_path / "policy")
    with pytest.raises(SettingError, match="to 'onx': did you mean 'onnx'"):
        policy.export(tmp_path / "team", to="onx")
    with pytest.raises(UserError, match="Choose a file"):
        policy.export(tmp_path / "policy", to="stablehlo")
    monkeypatch.setitem(sys.modules, "jax2onnx", None)
    with pytest.raises(MissingExtraError, match=r"fp3o\[onnx\]"):
        policy.export(tmp_path / "team.onnx")

    def to_onnx(*_: Any, **options: Any) -> None:
        raise NotImplementedError("no plugin for primitive 'erf_inv'")

    monkeypatch.setitem(sys.modules, "jax2onnx", SimpleNamespace(to_onnx=to_onnx))
    with pytest.raises(UserError, match=r"'erf_inv'.*--to stablehlo"):
        policy.export(tmp_path / "team.onnx")
    assert not (tmp_path / "team.onnx").exists()
