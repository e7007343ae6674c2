"""The modules that a setting passes on its way from `fp3o.train` into the compiled program.

`python tests/support/setting_path.py` trains a tiny run with a marked `clip_range` and watches all
calls: a module counts if it makes a new object that carries the value (a dict, a config, an array)
or is on the call stack when the loss that uses the value is traced.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

MARK = 0.123456
"""A value of `clip_range` that nothing else has."""
LOSS = "actor_loss"
"""The function that uses it."""
RECORDS = {
    "fp3o.files", "fp3o.runs.checkpoint_files", "fp3o.runs.directory", "fp3o.runs.provenance",
}  # fmt: skip
"""Modules that only save the setting or read it back, and do not pass it on to the program."""


def carries(value: Any, depth: int = 3) -> bool:
    """Whether an object holds the marked value, a few levels deep."""
    if isinstance(value, float):
        return value == MARK
    if isinstance(value, np.ndarray | np.generic) or type(value).__name__ == "ArrayImpl":
        return np.size(value) == 1 and bool(np.isclose(float(np.ravel(value)[0]), MARK, 1e-6, 0))
    if depth == 0 or isinstance(value, str | bytes | int | type):
        return False
    if isinstance(value, Mapping):
        return any(carries(x, depth - 1) for x in value.values())
    if is_dataclass(value):
        return any(carries(getattr(value, x.name, None), depth - 1) for x in fields(value))
    return False


class Watch:
    """Collects the modules while a run is trained."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.done = False

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """Inspect one call or return; the callback of `sys.setprofile`."""
        name = frame.f_globals.get("__name__", "")
        if self.done or not name.startswith("fp3o."):
            return
        if event == "call" and frame.f_code.co_name == LOSS:
            self.done = True
            self.modules += reversed([*_stack(frame)])
        elif event == "return" and carries(value):
            given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
            if not any(frame.f_locals.get(x) is value for x in given):
                self.modules.append(name)


def _stack(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        if (name := frame.f_globals.get("__name__", "")).startswith("fp3o."):
            yield name
        frame = frame.f_back


def setting_path() -> list[str]:
    """The modules of the package that the marked setting passes, in order, each once."""
    import fp3o

    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(watch)
        try:
            fp3o.train(
                "probe/credit", clip_range=MARK, out=Path(folder) / "run", progress="quiet",
                loggers=("none",), num_envs=2, rollout=4, hidden=(4,), epochs=1, steps=8,
                eval_every=0, eval_episodes=1, final_episodes=1,
            )  # fmt: skip
        finally:
            sys.setprofile(None)
    return [name for name in dict.fromkeys(watch.modules) if name not in RECORDS]


if __name__ == "__main__":
    for number, module in enumerate(setting_path(), 1):
        print(number, module)
