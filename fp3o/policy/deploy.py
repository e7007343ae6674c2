"""Policies as files for other programs: ONNX, and StableHLO for everything that runs XLA.

Both contain one step of the whole team: arrays in, arrays out, with any number of rows.

| input          | shape        |                                                        |
|----------------|--------------|--------------------------------------------------------|
| `obs`          | `(b, n, f)`  | float32, shorter observations padded with zeros        |
| `action_mask`  | `(b, n, a)`  | bool, the available choices; only if there are choices |
| `hidden_state` | `(b, n, h)`  | float32, zeros at the start of an episode; only if recurrent |

| output              | shape       |                                                     |
|---------------------|-------------|-----------------------------------------------------|
| `actions`           | `(b, n, d)` | the most likely actions                             |
| `probabilities`     | `(b, n, a)` | of choices                                          |
| `mean`, `std`       | `(b, n, a)` | of vectors                                          |
| `next_hidden_state` | `(b, n, h)` | for the next step; only if recurrent                |
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fp3o.errors import MissingExtraError, SettingError, UserError, nearest
from fp3o.imports import describe_error
from fp3o.networks.backend import traced_for_cpu
from fp3o.networks.distributions import Categorical, Distribution, MixedDistribution
from fp3o.policy import Card, Policy, require_trust
from fp3o.policy.describe import policy_facts
from fp3o.policy.export import make_actor_of
from fp3o.spec import Box

Arrays = dict[str, Any]
Step = Callable[[Arrays], Arrays]
"""One step of the team: inputs by name to outputs by name."""

PLATFORMS = ("cpu", "cuda", "tpu")
"""Platforms that a StableHLO file runs on."""
OPSET = 21
"""Version of ONNX's operators: onnxruntime has it since 1.20."""
METADATA = "fp3o"
"""Key of the metadata in an ONNX file."""
EXPORT_TOLERANCE = 1e-3
"""Largest difference between a file and its policy; both compute in 32 bits."""


def export_policy(policy: Policy, out: str | os.PathLike[str], to: str = "onnx") -> Path:
    """Write a policy as a file of another format, `onnx` or `stablehlo`, and return its path.

    The file is compared with the policy on random inputs before it is written. A custom network is
    imported, which needs a policy that was loaded with trust.
    """
    if to not in EXPORT_FORMATS:
        raise SettingError(f"cannot export to {to!r}: {nearest(to, EXPORT_FORMATS)}")
    if policy.card.network_class is not None:
        require_trust(policy.trusted, "network", policy.card.network_class)
    contents = EXPORT_FORMATS[to](policy)
    path = Path(out)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for suffix, content in contents.items():
            path.with_name(path.name + suffix).write_bytes(content)
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}. Choose a file that you can write to"
        ) from error
    return path


def input_shapes(card: Card, batch: Any) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and types of the inputs of one step."""
    spec, size = card.spec, card.gru_size
    shapes = {"obs": jax.ShapeDtypeStruct((batch, spec.num_agents, spec.obs_size), np.float32)}
    if not isinstance(spec.actions, Box):
        mask = (batch, spec.num_agents, card.num_outputs)
        shapes["action_mask"] = jax.ShapeDtypeStruct(mask, np.bool_)
    if size:
        shapes["hidden_state"] = jax.ShapeDtypeStruct((batch, spec.num_agents, size), np.float32)
    return shapes


def team_step(policy: Policy) -> Step:
    """One step of the team as a function that JAX can trace."""
    setup, actor = make_actor_of(policy.card, policy.weights)
    exists = jnp.asarray(policy.card.spec.actions.mask)
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731

    def step(inputs: Arrays) -> Arrays:
        obs = inputs["obs"]
        available = jnp.broadcast_to(exists, (obs.shape[0], *exists.shape))
        mask = swap(available & inputs["action_mask"] if "action_mask" in inputs else available)
        before = inputs.get("hidden_state", jnp.zeros((*obs.shape[:2], 0)))
        starts = jnp.zeros((obs.shape[1], obs.shape[0]), bool)
        with traced_for_cpu():  # without kernels for one kind of device
            features = swap(setup.inputs(obs, "actor", actor.obs_norm))
            distribution, after = actor(features, mask, swap(before), starts)
        outputs = {"actions": swap(distribution.mode())}
        outputs |= {name: swap(x) for name, x in _parameters(distribution).items()}
        return outputs | ({"next_hidden_state": swap(after)} if policy.card.gru_size else {})

    return step


def _parameters(distribution: Distribution) -> dict[str, Array]:
    """Parameters of a distribution, named as in `Policy.distribution`; 0 where there is padding."""
    if isinstance(distribution, Categorical):
        return {"probabilities": jnp.exp(distribution.log_p)}
    if isinstance(distribution, MixedDistribution):
        return _parameters(distribution.choices) | _parameters(distribution.vector)
    mask, mean = distribution.action_mask, distribution.mean
    std = jnp.broadcast_to(distribution.std, mean.shape)
    return {"mean": jnp.where(mask, mean, 0.0), "std": jnp.where(mask, std, 0.0)}


def _stablehlo(policy: Policy) -> dict[str, bytes]:
    """The serialised program of `jax.export`, and its metadata in a second file."""
    from jax import export

    (batch,) = export.symbolic_shape("b")
    shapes = input_shapes(policy.card, batch)
    exported = export.export(jax.jit(team_step(policy)), platforms=PLATFORMS)(shapes)
    content = bytes(exported.serialize())
    loaded = export.deserialize(bytearray(content))
    _require_agreement(policy, lambda inputs: jax.device_get(loaded.call(inputs)))
    return {"": content, ".json": json.dumps(policy_facts(policy.card), indent=1).encode()}


def _onnx(policy: Policy) -> dict[str, bytes]:
    """An ONNX model with its metadata."""
    try:
        import onnxruntime
        from jax2onnx import to_onnx
    except ImportError as error:
        raise MissingExtraError("jax2onnx", "onnx") from error
    step, shapes = team_step(policy), input_shapes(policy.card, "b")
    names, outputs = [*shapes], [*jax.eval_shape(step, input_shapes(policy.card, 1))]

    def flat(*arrays: Array) -> tuple[Array, ...]:
        found = step(dict(zip(names, arrays, strict=True)))
        return tuple(found[name] for name in outputs)

    try:
        with _silent_logging(), jax.disable_jit():  # without loops and nested functions
            model: Any = to_onnx(
                flat, [*shapes.values()], model_name="policy", opset=OPSET, input_names=names,
                output_names=outputs,
            )  # fmt: skip
    except Exception as error:  # what a converter raises is not documented
        raise UserError(
            f"the network cannot be converted to ONNX: {describe_error(error)}. StableHLO has all "
            "operations: --to stablehlo"
        ) from error
    model.metadata_props.add(key=METADATA, value=json.dumps(policy_facts(policy.card)))
    content = model.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    _require_agreement(
        policy, lambda inputs: dict(zip(outputs, session.run(outputs, inputs), strict=True))
    )
    return {"": content}


EXPORT_FORMATS: Mapping[str, Callable[[Policy], dict[str, bytes]]] = {
    "onnx": _onnx,
    "stablehlo": _stablehlo,
}
"""Format -> the contents of its files, by what is appended to the path."""


def _require_agreement(policy: Policy, run: Step) -> None:
    """Raise unless a file computes the distribution and hidden state of its policy."""
    random = np.random.default_rng(0)
    for rows in (1, 3):
        inputs: Arrays = {
            name: random.random(shape.shape) < 0.7
            if shape.dtype == np.bool_
            else random.normal(size=shape.shape).astype(np.float32)
            for name, shape in input_shapes(policy.card, rows).items()
        }
        distribution, after = policy.distribution(
            inputs["obs"], inputs.get("hidden_state"), inputs.get("action_mask")
        )
        wanted = _named_arrays(distribution) | {"next_hidden_state": after}
        for name, given in run(inputs).items():
            if name in wanted and not np.allclose(
                given, wanted[name], EXPORT_TOLERANCE, EXPORT_TOLERANCE
            ):
                error = np.abs(np.asarray(given) - wanted[name]).max()
                raise UserError(
                    f"the exported file computes another {name} than the policy (by {error:.2g}): "
                    "it was not written. This is an error of fp3o or of a custom network"
                )


def _named_arrays(distribution: Any) -> Arrays:
    """The arrays of a distribution, also of one with two parts, by name."""
    found: Arrays = {}
    for name, part in distribution._asdict().items():
        found |= _named_arrays(part) if isinstance(part, tuple) else {name: part}
    return found


@contextmanager
def _silent_logging() -> Iterator[None]:
    """Keep a library from logging its progress, and from installing a handler for it."""
    root, level = logging.getLogger(), logging.root.manager.disable
    handlers = [*root.handlers]
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)
        root.handlers[:] = handlers
