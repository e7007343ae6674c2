"""Starting the processes of a run, here or on Ray, and watching them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fp3o.cli.placement import PlacementOptions, member_status
from fp3o.imports import search_in
from fp3o.runs.compilation_cache import enable_compilation_cache
from fp3o.runs.directory import RunDirectory
from fp3o.runs.progress import Display
from fp3o.runs.run_config import RunConfig
from fp3o.runs.supervisor import LocalProcesses, process_command, supervise
from fp3o.runs.watch import RunWatch

STARTING = (
    "processes", "process-id", "coordinator", "on", "address", "cpus", "gpus", "retries", "out",
)  # fmt: skip
"""Options that the processes of a run do not get from the command that starts them."""

RETRIES = 3
"""Times that failed processes are started again, unless the user says otherwise."""


@dataclass(frozen=True)
class Launch:
    """A command whose processes are started and watched."""

    command: str
    """`train`, or `resume` of a run that exists."""
    arguments: Sequence[str]
    path: str
    """The run directory."""
    options: PlacementOptions
    resume_arguments: Sequence[str]
    """Options of `resume`, with which the run continues after a failure."""

    def processes(self, count: int, address: str, path: str) -> list[list[str]]:
        """The arguments of each of several processes that work on a directory."""
        if self.command == "train" and not RunDirectory(path).exists():
            arguments = ["train", *without_options(self.arguments, STARTING), "--out", path]
        else:
            arguments = ["resume", path, *self.resume_arguments]
        if count == 1:
            return [arguments]
        joined = ["--coordinator", address, "--processes", str(count), "--process-id"]
        return [[*arguments, *joined, str(number)] for number in range(count)]


def launch(work: Launch, display: Display, config: RunConfig) -> int:
    """Start the processes of a run and see it to the end; returns the exit status."""
    options = work.options
    retries = RETRIES if options.retries is None else options.retries
    count = options.processes or 1
    if options.on == "ray":
        return _launch_on_ray(work, display, config, retries)

    def commands(attempt: int, address: str) -> list[list[str]]:
        return [process_command(each) for each in work.processes(count, address, work.path)]

    processes = LocalProcesses(commands)
    with processes.signals():
        return supervise(processes.start, retries, display)


def _launch_on_ray(work: Launch, display: Display, config: RunConfig, retries: int) -> int:
    from fp3o.experiments.framework.ray_processes import RayProcesses

    options = work.options
    processes = RayProcesses(
        run_arguments,
        work.processes,
        Path(work.path).resolve(),
        options.processes or 1,
        options.devices or 1,
        (config.seeds, config.learner.blocks),
        {"CPU": options.cpus, **({"GPU": options.gpus} if options.gpus else {})},
        display,
    )
    processes.connect(options.address)
    try:
        watch = RunWatch(Path(work.path), config, display)
        return supervise(processes.start, retries, display, watch.look)
    except KeyboardInterrupt:
        display.say(f"interrupted; continue from what has arrived: `fp3o resume {work.path}`")
        return 130
    finally:
        processes.close()


def run_arguments(arguments: Sequence[str]) -> int:
    """Run `train` or `resume` in this process, as one of several; returns the exit status."""
    from fp3o.cli.runs import resume_status
    from fp3o.cli.train import train_status

    enable_compilation_cache()
    search_in(os.getcwd())
    command = {"train": train_status, "resume": resume_status}[arguments[0]]
    return member_status(lambda: command(arguments[1:])[1])


def without_options(arguments: Sequence[str], names: Sequence[str]) -> list[str]:
    """The arguments without some options and their values."""
    kept, skip = [], False
    flags = {f"--{form}" for name in names for form in (name, name.replace("-", "_"))}
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if skip or name in flags:
            skip = not skip and not equals
        else:
            kept.append(argument)
    return kept


def resume_arguments(options: Any) -> list[str]:
    """Arguments of `resume` that continue a run as these options of `train` or `resume` say.

    What the run names was named by the command that started it, so it may be imported.
    """
    arguments = ["--trust", "--loggers", *(options.loggers or ("none",))]
    arguments += ["--quiet"] * options.quiet
    for name in ("devices", "players", "player_timeout"):
        if (value := getattr(options.placement, name)) not in (None, "0"):
            arguments += [f"--{name.replace('_', '-')}", str(value)]
    return arguments
