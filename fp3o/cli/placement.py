"""Options of `train` and `resume` that say where a run is computed."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.console import Console

from fp3o.cli.players import read_players
from fp3o.errors import SettingError, UserError, escaped

if TYPE_CHECKING:
    from fp3o.runs.placement import Placement


@dataclass(frozen=True)
class PlacementOptions:
    """Devices, processes and machines; results do not depend on them."""

    devices: int | None = None
    """Devices of this machine (and of every other process) that share seeds and blocks of
    environments; by default, one."""
    processes: int | None = None
    """Processes that train one run together. Without --coordinator, this command starts them."""
    process_id: int | None = None
    """Number of this process, from 0; with --coordinator."""
    coordinator: str | None = None
    """HOST:PORT of process 0, which the others connect to."""
    distributed: bool = False
    """This process is one of several that SLURM, MPI or a TPU pod has started: find the others."""
    on: Literal["here", "ray"] = "here"
    """Where to start the processes: on this machine, or on a Ray cluster."""
    address: str | None = None
    """Address of the Ray cluster; by default, the one Ray finds, or a new one on this machine."""
    cpus: float = 1.0
    """CPU cores per process on Ray."""
    gpus: float = 0.0
    """GPUs per process on Ray."""
    retries: int | None = None
    """Times that failed processes are started again from the newest checkpoint; by default, 3 if
    this command starts them."""
    players: str = "0"
    """Other processes that play the blocks of environments on the host, a divisor of --blocks, or
    ray:N for as many actors of a Ray cluster; by default, none."""
    player_timeout: float | None = None
    """Seconds for a rollout, after which a player is replaced; by default ten times the median so
    far, and at least 60."""

    @property
    def is_member(self) -> bool:
        """Whether this process is one of several that train a run."""
        return self.distributed or self.coordinator is not None

    @property
    def supervises(self) -> bool:
        """Whether this command starts the processes of the run and watches them."""
        started = (self.processes or 1) > 1 or self.on == "ray" or bool(self.retries)
        return started and not self.is_member

    def check(self) -> None:
        """Reject options that do not fit together."""
        if self.coordinator is not None and None in (self.processes, self.process_id):
            raise SettingError("--coordinator also needs --processes and --process-id")
        if self.process_id is not None and self.coordinator is None:
            raise SettingError("--process-id also needs --coordinator, the address of process 0")
        for name in ("devices", "processes"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise SettingError(f"{name} must be at least 1, got {value}")
        if self.retries is not None and self.retries < 0:
            raise SettingError(f"retries must be at least 0, got {self.retries}")

    def make_placement(self) -> "Placement":
        """The devices of the run, ready before JAX is used; other processes are connected."""
        from fp3o.runs.placement import Placement
        from fp3o.runs.processes import join_processes

        placement = Placement(self.devices, read_players(self))
        placement.prepare()
        if self.coordinator:
            join_processes(self.coordinator, self.processes, self.process_id)
        elif self.distributed:
            join_processes()
        return placement


def member_status(work: Callable[[], int]) -> int:
    """Exit status of the work of one of several processes, whatever happens in it."""
    from fp3o.runs.supervisor import LOST

    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        print_error(str(error))
        return 2 if isinstance(error, ValueError) else 1
    except Exception:  # the others are lost, or this process is: the supervisor starts all again
        traceback.print_exc()
        return LOST


def end_member(options: PlacementOptions, status: int) -> int:
    """End one of several processes that has failed, without waiting for the others."""
    if options.is_member and status:
        from fp3o.runs.supervisor import end_process

        end_process(status)
    return status


def print_error(text: str) -> None:
    """Print one line to standard error."""
    shown = escaped(f"error: {text}")  # names from files must not control the terminal
    console = Console(stderr=True)
    console.print(shown, style="red", markup=False, highlight=False, soft_wrap=True)
