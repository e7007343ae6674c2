"""The logger for Weights & Biases."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fp3o.errors import UserError
from fp3o.runs.logger import LoggedRun, TrackedPart, TrackerOptions, tracked_parts


@dataclass(frozen=True)
class WandBOptions(TrackerOptions):
    """Options of Weights & Biases."""

    project: str = "fp3o"
    entity: str | None = None
    """User or team; by default, that of the login."""


def check_wandb_login() -> None:
    """Raise if runs are sent to Weights & Biases and nobody is logged in there."""
    import wandb  # pyright: ignore[reportMissingImports]

    online = wandb.setup().settings.mode in ("online", None)
    if online and wandb.run is None and not wandb.login(prompt=False, verify=False):
        raise UserError("nobody is logged in at Weights & Biases")


class _Tracked(NamedTuple):
    part: TrackedPart
    run: Any
    first_step: int
    """A resumed run refuses the steps before: it has them."""


class WandB:
    """Runs at Weights & Biases."""

    def __init__(self, run: LoggedRun, options: WandBOptions):
        import wandb  # pyright: ignore[reportMissingImports]

        self._wandb, self._run = wandb, run
        self._runs: list[_Tracked] = []
        group = options.group or run.path.name
        for part in tracked_parts(run, options):
            tracked: Any = wandb.init(
                project=options.project, entity=options.entity, group=group,
                id=run.ids.setdefault(part.key, secrets.token_hex(8)), name=group + part.suffix,
                dir=str(run.path), config=part.settings, tags=list(options.tags) or None,
                resume="allow", reinit="create_new",
            )  # fmt: skip
            self._runs.append(_Tracked(part, tracked, int(tracked.step)))

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Log the metrics at their step."""
        step = rows[0]["step"]
        for part, tracked, first in self._runs:
            if step >= first:
                tracked.log(part.values(self._run, rows), step=step)

    def video(self, path: Path, seed: int, step: int) -> None:
        """Log a video at its step."""
        for part, tracked, first in self._runs:
            if seed in part.seeds and step >= first:
                video = self._wandb.Video(str(path), format="gif")
                tracked.log({self._run.video_name: video}, step=step)

    def close(self) -> None:
        """Finish the runs."""
        for _, tracked, _ in self._runs:
            tracked.finish()
