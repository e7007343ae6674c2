"""TODO."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from fp3o.cli.options import Name, ask
from fp3o.cli.train import with_variant


@dataclass
class List:
    """Options of `list`."""

    json: bool = False
    """Print JSON."""


def list_all(argv: Sequence[str]) -> None:
    """Tasks, algorithms, sharings and presets."""
    options = ask(List, argv, "list", list_all)
    from fp3o.cli.listing import catalogue, tables

    if options.json:
        print(json.dumps(catalogue(), indent=2))
        return
    for table in tables():
        Console().print(table)


@dataclass
class Check:
    """Options of `check`."""

    env: Name
    """A task (`fp3o list`), also with a variant, as in `mpe/simple_spread:mpe2`."""
    variant: str | None = None
    """The variant, for tasks from elsewhere; `--env.N 3` is short for `default:env.N=3`."""
    num_envs: int = 4
    """Environments played together."""
    steps: int = 200
    """Steps of each."""
    seed: int = 0
    """Of the actions and the environments."""
    json: bool = False
    """Print JSON."""


def check(argv: Sequence[str]) -> int:
    """Play an environment at random and name everything that does not fit, with its cure."""
    options = ask(Check, with_variant(list(argv)), "check", check)
    from fp3o.envs.check import check_env
    from fp3o.envs.registry import make

    env = options.env if options.variant is None else make(options.env, options.variant)
    with Console(stderr=True).status("playing it three times ..."):
        found = check_env(env, num_envs=options.num_envs, steps=options.steps, seed=options.seed)
    if options.json:
        problems = [problem._asdict() for problem in found.problems]
        print(json.dumps({"well": found.ok, "problems": problems, **found.numbers}, indent=2))
    else:
        print(found)
    return int(not found.ok)


@dataclass
class Doctor:
    """Options of `doctor`."""

    json: bool = False
    """Print JSON."""


def doctor(argv: Sequence[str]) -> int:
    """Versions, devices, what can run here, and how to mend what cannot."""
    options = ask(Doctor, argv, "doctor", doctor)
    from fp3o.cli.diagnosis import examine, table

    findings = examine()
    if options.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        Console().print(table(findings))
    return int(any(finding.needed and not finding.well for finding in findings))
