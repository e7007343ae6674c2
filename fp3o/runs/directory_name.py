"""Names of run directories."""

import re
from pathlib import Path

from fp3o.options import parse_options
from fp3o.runs.run_config import RunConfig


def safe_name(text: str) -> str:
    """A text as the name of a directory: letters, digits and `._+-`, which every system has."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", text).strip("._-") or "run"


def free_path(config: RunConfig) -> Path:
    """`runs/task-algorithm-sharing-1`, or the first number that is free.

    Of import paths the last part is enough.
    """
    settings = config.settings
    algorithm, _ = parse_options(settings["algorithm"])
    sharing = settings["sharing"] if isinstance(settings["sharing"], str) else "custom"
    parts = config.task.split("/")[-1], algorithm, sharing
    name = safe_name("-".join(part.rpartition(":")[2] for part in parts))
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
