"""`fp3o sweep`: search for the settings of training with the best score."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from fp3o.cli.options import read_options
from fp3o.cli.train import read_train_options


def sweep_command(argv: Sequence[str]) -> int:
    """Search for the settings of training with the best score.

    Searched settings are given as NAME=LOW..HIGH (uniform), NAME=LOW..HIGH:log (uniform in the
    logarithm), NAME=LOW..HIGH:STEP (single values) or NAME=A,B,C (choices):

    fp3o sweep mpe/simple_spread --search actor_lr=1e-4..1e-2:log clip_range=0.05..0.4
    --trials 32 --seeds 2 --steps 200k

    Trials that differ in hyperparameters only (actor_lr, critic_lr, clip_range, value_clip,
    entropy_coef, gamma, gae_lambda, max_grad_norm, huber_delta) train side by side in one compiled
    program; every combination of other settings compiles a program of its own. The same command,
    or `fp3o sweep --resume DIR`, continues an interrupted sweep. The folder has the trials, a
    report, and best.json for `fp3o train --config`.
    """
    from fp3o.cli.sweep_options import ResumeSweepOptions, SweepOptions
    from fp3o.experiments.sweep.launch import continue_sweep, run_sweep
    from fp3o.runs.progress import make_display
    from fp3o.training.host_rollout import disable_async_dispatch

    disable_async_dispatch()  # before anything uses the CPU
    if any(word.split("=")[0] == "--resume" for word in argv):
        again = read_options(ResumeSweepOptions, argv, sweep_command)
        display = make_display("quiet" if again.quiet else "auto")
        result = continue_sweep(again.resume, display, again.trials, again.trust, again.where)
        return _conclude(result, again.quiet)
    from fp3o.experiments.sweep.settings import SweepSettings, refuse_evaluation_settings
    from fp3o.experiments.sweep.space import parse_search

    refuse_evaluation_settings(
        word.split("=")[0].removeprefix("--").replace("-", "_") for word in argv
    )
    options = read_train_options(SweepOptions, argv, sweep_command)
    space = parse_search(options.search)
    settings = SweepSettings(options.settings.config, space, options.how)
    display = make_display("quiet" if options.quiet else "auto")
    return _conclude(run_sweep(settings, options.out, display, options.where), options.quiet)


def _conclude(result: Any, quiet: bool) -> int:
    """Print the best trials and the paths of the results; returns the exit status."""
    if not result.finished:
        return 130
    if not quiet:
        from fp3o.experiments.sweep.report import trials_table, verdict_text

        console = Console()
        console.print(trials_table(result))
        lines = {
            "verdict": verdict_text(result),
            "report": str(result.path / "report.html"),
            "train": f"fp3o train --config {result.path / 'best.json'}",
        }
        for name, text in lines.items():
            console.print(f"{name:8} {text}", markup=False, highlight=False, soft_wrap=True)
    return 0 if result.best else 1
