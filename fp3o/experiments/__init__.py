"""The experiments, one small module each: a grid of plans, and how to show what was found."""

from collections.abc import Mapping

from fp3o.errors import SettingError, nearest
from fp3o.experiments.beyond import agents, fair, sharing_spectrum, uncertified
from fp3o.experiments.framework.grid import Experiment
from fp3o.experiments.paper import (
    a2po,
    approximation,
    compute,
    convergence,
    coppo,
    dependent_step,
    happo_kl,
    instability_order,
    mamujoco_table,
    matching_degree,
    mpe_table,
    smac_table,
    split,
    stability,
)

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        mamujoco_table, smac_table, mpe_table, coppo, a2po, convergence, split, dependent_step,
        approximation, matching_degree, happo_kl, stability, compute, instability_order,
        fair, uncertified, sharing_spectrum, agents,
    )
}  # fmt: skip
"""The paper's tables and figures in its order, then those beyond it."""


def find(name: str) -> Experiment:
    """An experiment by name."""
    if name not in EXPERIMENTS:
        raise SettingError(f"unknown experiment {name!r}: {nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
