"""From full sharing to none, layer by layer; by agent type; and as found by `auto`."""

from collections.abc import Iterator

from fp3o.experiments.framework.grid import Cell, CellResults, Experiment, Scale
from fp3o.experiments.framework.scales import algorithm_variants, cell_config, controls
from fp3o.experiments.framework.summary import FP3O_AGAINST_MAPPO, score_summary
from fp3o.reports.phrasing import score_text, sharing_title
from fp3o.reports.stats.intervals import mean_interval
from fp3o.runs.run_config import RunConfig

_TASKS = {
    "paper": ("smac/3s5z", "mamujoco/HalfCheetah-6x1"),
    "gpu": ("smac/3s5z",),
    "laptop": ("mpe/simple_reference",),
    "smoke": ("mpe/simple_speaker_listener",),
}

_SMOKE = ("full", "none", "auto")


def _cells(scale: Scale) -> Iterator[Cell]:
    for task in _TASKS[scale]:
        variants = algorithm_variants("fp3o")
        if scale != "smoke":
            variants |= algorithm_variants("mappo") | controls(task, scale)
        for title, settings in variants.items():
            config = cell_config(task, "full", scale, **settings)
            for name, sharing in _sharings(config).items():
                if scale != "smoke" or name in _SMOKE:
                    changed = config.with_settings({"sharing": sharing})
                    yield Cell(task, name, title, changed)


def _sharings(config: RunConfig) -> dict[str, object]:
    """Named schemes, and maps whose last k layers are separate per agent."""
    agents = config.task_info.spec(config.variant).num_agents
    layers = len(config.learner.hidden) + bool(config.learner.gru_size) + 1
    shared, separate = (0,) * agents, tuple(range(agents))
    sharings: dict[str, object] = {"full": "full", "partial": "partial"}
    for own in range(2, layers):
        sharings[f"{own} separate layers"] = (shared,) * (layers - own) + (separate,) * own
    return sharings | {"none": "none", "by_type": "by_type", "auto": "auto"}


def _best_sharings(results: CellResults) -> list[str]:
    """The sharing with the highest mean per task and algorithm."""
    lines = []
    for task, variant in dict.fromkeys((item.cell.task, item.cell.variant) for item in results):
        group = [x for x in results if (x.cell.task, x.cell.variant) == (task, variant)]
        scored = [item for item in group if item.seeds.size]
        if scored:
            best = max(scored, key=lambda item: item.seeds.mean())
            score = score_text(mean_interval(best.seeds), best.measure.unit)
            sharing = sharing_title(best.cell.sharing)
            lines.append(f"{variant} on {task}: highest mean with {sharing}, {score}.")
    return lines


EXPERIMENT = Experiment(
    name="sharing-spectrum",
    title="From full sharing to none",
    question="Between one network for all agents and one per agent: which sharing learns best?",
    cells=_cells,
    summarise=score_summary(
        FP3O_AGAINST_MAPPO[0]._replace(expected=""),
        *FP3O_AGAINST_MAPPO[1:],
        verdict=_best_sharings,
    ),
    order=3,
)
