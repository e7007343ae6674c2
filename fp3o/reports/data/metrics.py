"""Metrics of `metrics.jsonl` under the readable names that loggers use: `fp3o/condition_gap`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

PROGRESS = ("iteration", "step", "seed")
"""Keys of a row that are no metrics."""

QUANTILE_NAMES = ("min", "p5", "median", "p95", "max")
"""Names of the entries of quantiles."""


class MetricName(NamedTuple):
    """Readable name of a metric, and the axes of its lists."""

    name: str
    axes: str = ""
    """`s`: one entry per stage, `n`: per agent, `q`: per quantile."""


METRIC_NAMES: Mapping[str, MetricName] = {
    "policy_loss": MetricName("loss/policy", "s"),
    "value_loss": MetricName("loss/value", "s"),
    "kl": MetricName("policy/kl", "sn"),
    "kl_quantiles": MetricName("policy/kl_quantiles", "sq"),
    "entropy": MetricName("policy/entropy", "sn"),
    "clip_fraction": MetricName("policy/clip_fraction", "s"),
    "ratio_quantiles": MetricName("policy/ratio", "sq"),
    "others_ratio_quantiles": MetricName("policy/others_ratio", "sq"),
    "product_variance": MetricName("policy/product_variance", "s"),
    "effective_sample_size": MetricName("policy/effective_sample_size", "s"),
    "replay_error": MetricName("policy/replay_error"),
    "value": MetricName("critic/value"),
    "explained_variance": MetricName("critic/explained_variance"),
    "mean_abs_advantage": MetricName("critic/mean_abs_advantage", "n"),
    "actor_grad_norm": MetricName("optimiser/actor_grad_norm", "s"),
    "critic_grad_norm": MetricName("optimiser/critic_grad_norm", "s"),
    "actor_steps": MetricName("optimiser/actor_steps"),
    "critic_steps": MetricName("optimiser/critic_steps"),
    "condition_gap": MetricName("fp3o/condition_gap", "s"),
    "condition_new": MetricName("fp3o/condition_new", "s"),
    "condition_old": MetricName("fp3o/condition_old", "s"),
    "condition_holds": MetricName("fp3o/condition_holds"),
    "condition_matches": MetricName("fp3o/condition_matches"),
    "constraint_gap": MetricName("fp3o/constraint_gap", "s"),
    "gate": MetricName("fp3o/gate", "s"),
    "pipeline_objective": MetricName("fp3o/pipeline_objective", "sn"),
    "episodes": MetricName("train/episodes"),
}
"""The metrics of a policy iteration."""

PREFIXES: Mapping[str, str] = {"eval_": "eval/", "episode_": "train/", "env_": "workers/"}
"""Beginnings of the keys of evaluations, of episodes of training and of failed workers."""


def is_built_in(key: str) -> bool:
    """Whether fp3o itself logs a metric of this key, or an environment as an episode metric."""
    return key in METRIC_NAMES or key in PROGRESS or key.startswith(tuple(PREFIXES))


def metric_name(key: str) -> MetricName:
    """The readable name of a key; a custom metric has its own."""
    if key in METRIC_NAMES:
        return METRIC_NAMES[key]
    prefix = next((prefix for prefix in PREFIXES if key.startswith(prefix)), "")
    return MetricName(PREFIXES.get(prefix, "") + key.removeprefix(prefix))


def flat_metrics(row: Mapping[str, Any], agents: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The numbers of a row by name: `policy/kl/stage_2/agent_0`; missing ones are left out.

    An axis with a single entry, such as the stages of MAPPO, has no part in the name.
    """
    for key, value in row.items():
        if key not in PROGRESS:
            name, axes = metric_name(key)
            yield from _numbers(name, axes, value, agents)


def _numbers(
    name: str, axes: str, value: Any, agents: Sequence[str]
) -> Iterator[tuple[str, float]]:
    if isinstance(value, list):
        labels = _labels(axes[:1], len(value), agents)
        for label, part in zip(labels, value, strict=True):
            yield from _numbers(
                f"{name}/{label}" if len(value) > 1 else name, axes[1:], part, agents
            )
    elif isinstance(value, int | float):
        yield name, float(value)


def _labels(axis: str, size: int, agents: Sequence[str]) -> Sequence[str]:
    """Names of the entries of a list; numbers, if its axis is unknown."""
    known: dict[str, Sequence[str]] = {
        "s": [f"stage_{k + 1}" for k in range(size)],
        "n": agents,
        "q": QUANTILE_NAMES,
    }
    labels = known.get(axis, ())
    return labels if len(labels) == size else [str(k) for k in range(size)]
