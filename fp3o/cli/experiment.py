"""`fp3o experiment`: tables and figures of the paper, and beyond."""

from collections.abc import Sequence

from rich.console import Console

from fp3o.cli.options import read_options


def experiment_command(argv: Sequence[str]) -> int:
    """Reproduce a table or figure of the paper, or one beyond it; `list` names them all."""
    from fp3o.experiments.framework.session import ExperimentOptions, overview, run_experiment

    options = read_options(ExperimentOptions, argv, experiment_command)
    if options.name == "list":
        Console().print(overview())
        return 0
    return run_experiment(options)
