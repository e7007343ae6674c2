"""Commands that train nothing: list, check, doctor."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from fp3o.cli.options import NameArgument, read_options
from fp3o.cli.train import fold_env_options
from fp3o.runs.activity import activity


@dataclass
class ListOptions:
    """Options of `list`."""

    filter: str | None = None
    """Only names or summaries that contain this text; a pattern such as 'smac/*' fits names."""
    json: bool = False
    """Print JSON."""


def list_command(argv: Sequence[str]) -> None:
    """List tasks, presets, algorithms, sharing schemes, loggers and experiments."""
    options = read_options(ListOptions, argv, list_command)
    from fp3o.cli.listing import listing, listing_tables

    if options.json:
        print(json.dumps(listing(options.filter), indent=2))
        return
    for table in listing_tables(options.filter):
        Console().print(table)


@dataclass
class CheckOptions:
    """Options of `check`."""

    env: NameArgument
    """Name of a task (see `fp3o list`), optionally with a variant: `mpe/simple_spread:mpe2`."""
    variant: str | None = None
    """Variant of an adapted environment; `--env.N 3` is short for `default:env.N=3`."""
    num_envs: int = 4
    """Number of parallel environments."""
    steps: int = 200
    """Steps per environment."""
    seed: int = 0
    """Random seed of actions and environments."""
    json: bool = False
    """Print JSON."""


def check_command(argv: Sequence[str]) -> int:
    """Check an environment with random actions: what was seen, and every problem with a fix."""
    options = read_options(CheckOptions, fold_env_options(list(argv)), check_command)
    from fp3o.envs.check import check_env

    name = options.env if options.variant is None else f"{options.env}:{options.variant}"
    with activity("running random episodes three times"):
        result = check_env(name, num_envs=options.num_envs, steps=options.steps, seed=options.seed)
    if options.json:
        print(json.dumps(result.as_json(), indent=2))
    else:
        print(result)
    return int(not result.ok)


@dataclass
class DoctorOptions:
    """Options of `doctor`."""

    json: bool = False
    """Print JSON."""


def doctor_command(argv: Sequence[str]) -> int:
    """Check versions, devices, tasks and optional packages; every problem comes with a fix."""
    options = read_options(DoctorOptions, argv, doctor_command)
    from fp3o.cli.diagnosis import diagnose, findings_table

    with activity("checking packages and tasks"):
        findings = diagnose()
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        Console().print(findings_table(findings))
    return int(any(finding.required and not finding.ok for finding in findings))
