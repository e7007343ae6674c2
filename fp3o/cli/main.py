"""The entry point `fp3o COMMAND ...`.

Heavy imports are deferred until a command runs, so that `fp3o --help` is fast.
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from fp3o.cli.bench import bench_command
from fp3o.cli.curriculum import curriculum_command
from fp3o.cli.experiment import experiment_command
from fp3o.cli.inspect import check_command, doctor_command, list_command
from fp3o.cli.placement import print_error
from fp3o.cli.policies import export_command, record_command, serve_command
from fp3o.cli.runs import evaluate_command, render_command, report_command, resume_command
from fp3o.cli.sweep import sweep_command
from fp3o.cli.train import train_command
from fp3o.errors import SettingError, UserError, nearest, printable
from fp3o.imports import search_in
from fp3o.runs.compilation_cache import enable_compilation_cache
from fp3o.runs.signals import prompt_interrupts

COMMANDS: dict[str, Callable[[Sequence[str]], int | None]] = {
    "train": train_command,
    "resume": resume_command,
    "evaluate": evaluate_command,
    "render": render_command,
    "report": report_command,
    "export": export_command,
    "record": record_command,
    "serve": serve_command,
    "sweep": sweep_command,
    "curriculum": curriculum_command,
    "list": list_command,
    "check": check_command,
    "doctor": doctor_command,
    "experiment": experiment_command,
    "bench": bench_command,
}
"""The commands by name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. The exit status: 0, 1 (failed), 2 (bad value) or 130 (interrupted)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _print_commands()
        return 0
    if arguments[0] in ("-V", "--version"):
        print(version("fp3o"))
        return 0
    search_in(os.getcwd())
    try:
        with prompt_interrupts():
            enable_compilation_cache()
            return _run_command(arguments[0], arguments[1:])
    except KeyboardInterrupt:
        print_error("interrupted")
        if argv is None:
            _end(130)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has closed the pipe
        return 1
    except (UserError, OSError) as error:
        if os.environ.get("FP3O_DEBUG"):
            raise
        print_error(str(error))
        return 2 if isinstance(error, ValueError) else 1


def _end(status: int) -> NoReturn:
    """End this program at once: where it compiled, Python's own end takes long or crashes."""
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(status)


def _run_command(name: str, arguments: Sequence[str]) -> int:
    if name not in COMMANDS:
        raise SettingError(f"unknown command {name!r}: {nearest(name, COMMANDS)}")
    try:
        return COMMANDS[name](arguments) or 0
    except RuntimeError as error:
        if "Unable to initialize backend" not in str(error):
            raise
        raise SettingError(_no_platform(str(error))) from error


def _no_platform(reason: str) -> str:
    """What to do where JAX has no device of the platform that JAX_PLATFORMS names."""
    wanted = printable(repr(os.environ.get("JAX_PLATFORMS", "")), 60)
    return (
        f"JAX cannot use the platform JAX_PLATFORMS={wanted}: {printable(reason, 300)}. Unset "
        "JAX_PLATFORMS to let JAX choose, or set it to cpu, which is always there; `fp3o doctor` "
        "shows what is installed"
    )


def _print_commands() -> None:
    console = Console()
    console.print("[bold]fp3o[/]: cooperative multi-agent PPO under any parameter sharing")
    table = Table.grid(padding=(0, 2))
    for name, command in COMMANDS.items():
        table.add_row(f"  [cyan]fp3o {name}[/]", (command.__doc__ or "").splitlines()[0])
    console.print(table)
    console.print("Options of a command: [cyan]fp3o COMMAND --help[/]")
