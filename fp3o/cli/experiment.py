"""`fp3o experiment`: tables and figures of the paper, and beyond."""

from collections.abc import Sequence

from rich.console import Console

from fp3o.cli.options import read_options


def experiment_command(argv: Sequence[str]) -> int:
    """Reproduce a table or figure of the paper, or run another experiment; `list` shows all."""
    from fp3o.experiments.framework.options import ExperimentOptions

    options = read_options(ExperimentOptions, argv, experiment_command)
    from fp3o.experiments.framework.session import experiments_table, run_experiment

    if options.name == "list":
        Console().print(experiments_table())
        return 0
    return run_experiment(options)
