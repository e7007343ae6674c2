"""Detection of updates that diverged: parameters, optimisers, normalisers and outputs.

An iteration whose result could not be trained, saved or evaluated further is refused as a whole. A
metric that overflows (the KL of two very different policies, a quantile of ratios) is no reason to
stop: it is logged as null.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fp3o.errors import NonFiniteError
from fp3o.learning.collectives import maxima
from fp3o.learning.config import Hyperparameters
from fp3o.learning.setup import Learner, Setup
from fp3o.types import LARGEST_NUMBER, Trajectory

PARTS = {
    "actor": "actor",
    "actor_adam": "actor's optimiser state",
    "critic": "critic",
    "critic_adam": "critic's optimiser state",
    "value_norm": "value normaliser",
}
"""How messages name the parts of a `Learner`."""
OUTPUTS = {"log_prob": "policy's log-probability", "value": "critic's prediction"}
"""Outputs of the updated networks on the rollout."""
DATA = {"reward": "reward", "advantage": "advantage", "target": "value target"}
"""What the update was computed from."""
CHECKED = {"target": "value target", **PARTS, **OUTPUTS}
"""What must be finite, in the order in which one thing causes the next."""
BOUNDED = ("target", "actor", "critic", "value")
"""What must also be at most `LARGEST_NUMBER`: the next update would overflow."""

USUAL = {
    "actor_lr": 0.1, "critic_lr": 0.1, "clip_range": 2.0, "value_clip": 1e3, "entropy_coef": 1.0,
    "huber_delta": 1e4, "max_grad_norm": 1e4, "output_gain": 100.0, "head_lr_factor": 100.0,
}  # fmt: skip
"""Largest values of settings that no message calls extreme."""
ACTOR_SETTINGS = (
    "entropy_coef", "actor_lr", "head_lr_factor", "output_gain", "clip_range", "max_grad_norm",
)  # fmt: skip
CRITIC_SETTINGS = ("huber_delta", "critic_lr", "value_clip", "max_grad_norm")
LARGE_REWARD = 1e4
"""Rewards above this are named as a likely cause."""


def magnitudes(
    setup: Setup,
    learner: Learner,
    trajectory: Trajectory,
    critic_hidden: Float[Array, "e n h"],
    numbers: Mapping[str, Any],
) -> Float[Array, " m"]:
    """Largest magnitudes of everything in `CHECKED` and `DATA`; NaN if there is a NaN.

    `numbers` has those of the data and of the log-probabilities. The critic is asked for the
    values after the last step of the rollout.
    """
    swap = lambda x: jnp.swapaxes(x, 0, 1)  # noqa: E731
    critic = setup.critic(learner.critic)
    inputs = swap(setup.inputs(trajectory.final_critic_input[-1], "critic", critic.obs_norm))
    start = jnp.zeros(inputs.shape[:2], bool)
    output, _ = critic(inputs, swap(critic_hidden), start)
    value = learner.value_norm.denormalise(output[..., 0], setup.critic_of_agent)
    found = {**learner._asdict(), **numbers, "value": value, "reward": trajectory.reward}
    return maxima(jnp.stack([largest(found[name]) for name in {**CHECKED, **DATA}]))


def largest(tree: Any) -> Array:
    """The largest magnitude in a tree of arrays; NaN if it holds a NaN."""
    sizes = [jnp.abs(x).max(initial=0).astype(float) for x in jax.tree.leaves(tree)]
    return jnp.stack(sizes).max()


def refuse_divergence(sizes: Any, hparams: Hyperparameters, setup: Setup, seed: int) -> None:
    """Raise if the update of a seed diverged; the message says what and why.

    `sizes` has one row of `magnitudes` per seed, from `seed` on.
    """
    names = [*{**CHECKED, **DATA}]
    for number, row in enumerate(np.asarray(sizes).reshape(-1, len(names))):
        found = dict(zip(names, row.tolist(), strict=True))
        if broken := next((name for name in CHECKED if is_broken(name, found[name])), None):
            values = {name: _setting(setup, hparams, name, number) for name in USUAL}
            data = ", ".join(f"{text} {found[name]:.3g}" for name, text in DATA.items())
            raise NonFiniteError(
                f"training diverged: the {describe(broken, found[broken], seed + number)}. Largest "
                f"magnitudes of this iteration: {data}. {likely_cause(broken, found, values)}"
            )


def is_broken(name: str, size: float) -> bool:
    """Whether a magnitude is not finite, or too large for another update."""
    return not (size <= LARGEST_NUMBER if name in BOUNDED else np.isfinite(size))


def describe(name: str, size: float, seed: int) -> str:
    """`critic of seed 1 is not finite`, or that it is too large."""
    too_large = f"reaches {size:.3g}, beyond {LARGEST_NUMBER:.0e}"
    what = too_large if np.isfinite(size) else "is not finite"
    return f"{CHECKED[name]} of seed {seed} {what}"


def likely_cause(broken: str, found: Mapping[str, float], values: Mapping[str, float]) -> str:
    """What is extreme among the task's numbers and the settings that concern the broken part."""
    actor = broken in ("actor", "actor_adam", "log_prob")
    names = ACTOR_SETTINGS if actor else CRITIC_SETTINGS
    causes = []
    if found["reward"] > LARGE_REWARD:
        causes.append(f"rewards of {found['reward']:.3g}, which should be scaled to about 1")
    causes += [
        f"{name} {values[name]:.3g}, where at most {USUAL[name]:g} is usual"
        for name in names
        if values[name] > USUAL[name]
    ]
    if causes:
        return f"Likely cause: {'; '.join(causes)}"
    rate = "actor_lr" if actor else "critic_lr"
    return (
        f"Neither the rewards nor the settings are extreme: try a lower {rate} "
        f"(now {values[rate]:.3g}), a smaller clip_range or fewer epochs"
    )


def _setting(setup: Setup, hparams: Hyperparameters, name: str, seed: int) -> float:
    value = getattr(hparams if hasattr(hparams, name) else setup.config, name)
    values = [0.0] if value is None else np.ravel(value).tolist()
    return values[seed % len(values)]  # one for all seeds, or one per seed
