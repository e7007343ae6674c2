"""The command line: `fp3o COMMAND ...`. Every command is a function of the package with options.

Heavy imports wait until a command is known, so that `fp3o --help` answers at once.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fp3o.cli.experiment import experiment
from fp3o.cli.inspect import check, doctor, list_all
from fp3o.cli.runs import evaluate, export, render, report, resume
from fp3o.cli.train import train
from fp3o.errors import MissingExtraError, NonFiniteError, nearest


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, 1 (it failed), 2 (asked wrongly) or 130 (stopped)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        overview()
        return 0
    if words[0] in ("-V", "--version"):
        from fp3o.runs.provenance import versions

        print(versions()["fp3o"])
        return 0
    keep_compiled()
    # Modules of one's own lie here; at the end, so that a file called `jax.py` does no harm.
    sys.path.append(os.getcwd())
    try:
        if words[0] not in COMMANDS:
            raise ValueError(f"unknown command {words[0]!r}: {nearest(words[0], COMMANDS)}")
        return COMMANDS[words[0]](words[1:]) or 0
    except KeyboardInterrupt:
        complain("stopped")
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; there is nobody to tell
        return 1
    except Exception as error:
        if os.environ.get("FP3O_DEBUG"):
            raise
        if not isinstance(error, known_errors()):
            raise
        complain(str(error))
        return 2 if isinstance(error, ValueError) else 1


def keep_compiled() -> None:
    """Keep compiled programs on the disk: a second run of the same kind starts in seconds."""
    folder = os.environ.get("FP3O_CACHE") or Path.home() / ".cache" / "fp3o"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")


def known_errors() -> tuple[type[Exception], ...]:
    """Errors whose message is all that a person needs; others are ours, and keep their trace."""
    from fp3o.envs.workers.protocol import WorkerPoolError
    from fp3o.runs.directory import RunError

    return (ValueError, RunError, WorkerPoolError, MissingExtraError, NonFiniteError, OSError)


def complain(text: str) -> None:
    """One line on the error stream."""
    console = Console(stderr=True)
    console.print(f"error: {text}", style="red", markup=False, highlight=False, soft_wrap=True)


def overview() -> None:
    """The commands in one table."""
    console = Console()
    console.print(
        "[bold]fp3o[/]: cooperative multi-agent PPO that works with any parameter sharing"
    )
    table = Table.grid(padding=(0, 2))
    for name, command in COMMANDS.items():
        table.add_row(f"  [cyan]fp3o {name}[/]", (command.__doc__ or "").splitlines()[0])
    console.print(table)
    console.print("Options of a command: [cyan]fp3o COMMAND --help[/]")


COMMANDS: dict[str, Callable[[Sequence[str]], int | None]] = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "render": render,
    "report": report,
    "export": export,
    "list": list_all,
    "check": check,
    "doctor": doctor,
    "experiment": experiment,
}
"""The commands by name."""
