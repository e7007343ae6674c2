"""`fp3o curriculum`: runs one after another, each started from the one before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from fp3o.cli.options import read_options
from fp3o.cli.train import conclude

FileArgument = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]


@dataclass
class CurriculumOptions:
    """Options of `curriculum`."""

    file: FileArgument
    """Settings file with a list `stages`, and settings for all of them; or the folder of a
    curriculum, to continue it."""
    out: str | None = None
    """Folder of the curriculum; an existing one is continued. By default, runs/NAME for
    NAME.toml."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Loggers in addition to metrics.jsonl: tensorboard, wandb, mlflow, or none."""
    quiet: bool = False
    """Print errors only."""
    trust: bool = False
    """Import the custom task, network, sharing or algorithm that the file names."""
    devices: int | None = None
    """Devices of this machine that share seeds and blocks of environments; by default, one."""


def curriculum_command(argv: Sequence[str]) -> int:
    """Train stages one after another, each started from the one before.

    The same command continues a curriculum that was interrupted: stages that are finished are
    skipped.
    """
    options = read_options(CurriculumOptions, argv, curriculum_command)
    from fp3o.runs.curriculum import curriculum

    runs = curriculum(
        options.file,
        options.out,
        progress="quiet" if options.quiet else "auto",
        loggers=options.loggers,
        trust=options.trust,
        devices=options.devices,
    )
    return conclude(runs[-1] if runs else None, options.quiet)
