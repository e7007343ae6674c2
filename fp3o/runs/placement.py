"""Where a run is computed: on which devices of how many processes. Results do not depend on it."""

import contextlib
from dataclasses import dataclass
from typing import Any

import jax

from fp3o.envs.api import HostEnv
from fp3o.errors import SettingError
from fp3o.runs.players import PlayerSource, player_source, require_players
from fp3o.runs.processes import num_processes
from fp3o.runs.run_config import RunConfig
from fp3o.runs.split_estimate import split_lines
from fp3o.training.mesh import Devices, split_devices


@dataclass(frozen=True)
class Placement:
    """Devices that share the seeds and the blocks of environments of a run, and its players."""

    devices: int | None = None
    """Number of devices of this machine, and of that of every other process; None: one, or with
    several processes all."""
    players: PlayerSource | None = None
    """Other processes that play the blocks of host environments; None: this one does."""

    @classmethod
    def take(cls, options: dict[str, Any]) -> "Placement":
        """The placement among the options of `train` or `resume`, ready before JAX is used."""
        players = player_source(options.pop("players", 0))
        placement = cls(options.pop("devices", None), players)
        placement.prepare()
        return placement

    def prepare(self) -> None:
        """Provide several devices of a CPU; this must happen before JAX is used."""
        if self.devices is not None and self.devices < 1:
            raise SettingError(f"devices must be at least 1, got {self.devices}")
        if self.devices:
            with contextlib.suppress(RuntimeError):  # JAX has already been used
                jax.config.update("jax_num_cpu_devices", self.devices)

    def choose(self, config: RunConfig) -> Devices | None:
        """The devices of all processes that train the run; None: one device, no division.

        A placement that the run cannot have is refused.
        """
        require_players(config, self.players)
        if num_processes() == 1 and self.devices in (None, 1):
            return None
        chosen = []
        for process in range(num_processes()):
            found = [device for device in jax.devices() if device.process_index == process]
            if len(found) < (self.devices or 1):
                raise SettingError(_too_few(self.devices or 1, len(found)))
            chosen += found[: self.devices]
        if num_processes() > 1 and isinstance(config.task_info.env(config.variant), HostEnv):
            raise SettingError(HOST_PROCESSES.format(task=config.task))
        split_devices(len(chosen), config.seeds, config.learner.blocks)
        return chosen

    def explain(self, config: RunConfig) -> list[str]:
        """What the run says about the division among its devices, and what to expect of it."""
        if (devices := self.choose(config)) is None:
            return []
        shape = split_devices(len(devices), config.seeds, config.learner.blocks)
        return split_lines(config, shape, devices[0].platform)


ONE_DEVICE = Placement()
"""One device, as long as there is one process."""

HOST_PROCESSES = (
    "{task} is simulated on the host: one process trains it. --players moves its rollouts to other "
    "processes and machines"
)


def _too_few(wanted: int, found: int) -> str:
    platform = jax.default_backend()
    text = f"{wanted} devices were asked for, and there are {found} ({platform})"
    if platform == "cpu":
        text += (
            ". JAX has already started with them: ask for devices before anything uses JAX, or set "
            f"JAX_NUM_CPU_DEVICES={wanted}"
        )
    return text
