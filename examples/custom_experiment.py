"""A custom experiment: does FP3O need its condition on a communication task?

    fp3o experiment custom_experiment:EXPERIMENT --scale smoke

The grid trains both variants with the same settings and seeds; the report compares them with
confidence intervals.
"""

from fp3o.experiments.framework.grid import Experiment
from fp3o.experiments.framework.scales import make_cells
from fp3o.experiments.framework.summary import Comparison, score_summary

VARIANTS = {
    "always": {"algorithm": "fp3o:gated=false"},
    "if the condition holds": {"algorithm": "fp3o"},
}

EXPERIMENT = Experiment(
    name="custom-gate",
    title="The condition of FP3O",
    question="Is the dependent step better if it runs only when the condition holds?",
    cells=lambda scale: make_cells(["mpe/simple_speaker_listener"], ["partial"], VARIANTS, scale),
    summarise=score_summary(Comparison("always", "if the condition holds", "equal")),
)
