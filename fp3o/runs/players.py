"""The players of a run: where they are, and whether the run can have them.

Their number is no setting of a run: it changes no result, and a run may be resumed with another.
"""

from functools import partial
from typing import Any, Protocol, runtime_checkable

from fp3o.envs.api import HostEnv
from fp3o.envs.registry import REGISTERED
from fp3o.errors import SettingError
from fp3o.options import show
from fp3o.runs.player import PlayerSettings
from fp3o.runs.player_process import ProcessPlayers
from fp3o.runs.progress import Display
from fp3o.runs.run_config import RunConfig
from fp3o.training.player_pool import PlayerHandle, PlayerLimits, PlayerPool, check_players


@runtime_checkable
class PlayerSource(Protocol):
    """Starts players of one kind: processes of this machine, or elsewhere."""

    @property
    def number(self) -> int:
        """How many there are."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds for a rollout; None: ten times the median so far, and at least 60."""
        ...

    def start(self, settings: PlayerSettings, display: Display) -> PlayerHandle:
        """Start one of them."""
        ...


def player_source(players: Any, timeout: float | None = None) -> PlayerSource | None:
    """What the option `players` means: for a number, processes of this machine; for 0, none."""
    if isinstance(players, PlayerSource):
        return players
    if type(players) is not int or players < 0:
        raise SettingError(
            f"players are a number of processes, 0 for none, or an object such as `RayPlayers(4)`; "
            f"got {show(players)}"
        )
    return ProcessPlayers(players, timeout) if players else None


def require_players(config: RunConfig, source: PlayerSource | None) -> None:
    """Refuse players that a run cannot have, before anything is written."""
    if source is None:
        return
    if source.timeout is not None and not source.timeout > 0:
        raise SettingError(f"the time limit of players must be positive, got {source.timeout}")
    if not isinstance(config.task_info.env(config.variant), HostEnv):
        raise SettingError(
            f"{config.task} is simulated by JAX inside the compiled program, where it needs no "
            "players: leave them out"
        )
    if config.task in REGISTERED:
        raise SettingError(
            f"{config.task} is a Python object of this process, which players in other processes "
            "cannot make: train it by its import path, such as python:my_module:my_env"
        )
    check_players(source.number, config.learner.blocks)


def make_pool(
    config: RunConfig, source: PlayerSource | None, display: Display
) -> PlayerPool | None:
    """A pool of the players of a run; the display shows which of them fail."""
    if source is None:
        return None
    settings, limits = PlayerSettings.of(config), PlayerLimits(source.timeout)
    number, blocks = source.number, config.learner.blocks
    start = partial(source.start, settings, display)
    return PlayerPool(start, number, blocks, limits, display.say)
