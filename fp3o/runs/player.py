"""A player of a run: made from the run's settings in another process, it answers requests.

What it raises is part of its answer, so that an error of an environment looks the same wherever the
environment is.
"""

import pickle
import sys
import traceback
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax

from fp3o.envs.workers.messages import last_lines
from fp3o.errors import SettingError, UserError
from fp3o.runs.compilation_cache import enable_compilation_cache
from fp3o.runs.programs import make_block_player
from fp3o.runs.run_config import RunConfig
from fp3o.training.host_rollout import disable_async_dispatch
from fp3o.training.player_pool import PlayerPoolError, Request
from fp3o.training.players import BlockPlayer, BlockReply

JAX_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)
"""Settings of JAX that results depend on."""

HINT = "Other processes know nothing that only this one has registered: use import paths"


class PlayerSettings(NamedTuple):
    """What makes a player in another process that plays exactly as this one would."""

    run: Mapping[str, Any]
    """The settings of the run."""
    jax: Mapping[str, Any]
    path: tuple[str, ...]
    """Where this process finds modules."""

    @classmethod
    def of(cls, config: RunConfig) -> "PlayerSettings":
        """The settings of a run in this process."""
        here = {name: getattr(jax.config, name) for name in JAX_SETTINGS}
        return cls(config.settings, here, tuple(sys.path))

    def make(self) -> BlockPlayer:
        """The player; its environments are made when a block is first played."""
        sys.path += [folder for folder in self.path if folder not in sys.path]
        for name, value in self.jax.items():
            jax.config.update(name, value)
        disable_async_dispatch()
        enable_compilation_cache()
        config = RunConfig().with_settings(self.run)
        return make_block_player(config, config.seeds if config.seeds > 1 else None)


class PlayerService:
    """A player as a service: every method returns its result or an exception."""

    def __init__(self, settings: PlayerSettings):
        self._settings = settings
        self._player: BlockPlayer | None = None

    def start(self) -> Exception | None:
        """Make the player."""
        try:
            self._player = self._settings.make()
        except UserError as error:
            return SettingError(f"a player cannot be made from the run's settings: {error}. {HINT}")
        except Exception as error:
            return as_answer(error)
        return None

    def play(self, request: Request) -> dict[int, BlockReply] | Exception:
        """Play some blocks."""
        assert self._player
        with warnings.catch_warnings(record=True) as caught:
            try:
                replies = self._player.play(*request)
            except Exception as error:
                return as_answer(error)
        last = next(reversed(replies))
        replies[last] = replies[last]._replace(warnings=tuple(map(_portable, caught)))
        return replies


def as_answer(error: Exception) -> Exception:
    """An exception that every process can read: errors of a user as they are, others as text."""
    try:
        if isinstance(error, UserError) and str(pickle.loads(pickle.dumps(error))) == str(error):
            return error
    except Exception:  # an exception of the user's own, which cannot be copied
        pass
    text = "".join(traceback.format_exception(error))
    return PlayerPoolError(f"an error in a player:\n{last_lines(text)}")


def _portable(caught: warnings.WarningMessage) -> tuple[str, type[Warning]]:
    category = caught.category
    return str(caught.message), category if category.__module__ == "builtins" else RuntimeWarning
