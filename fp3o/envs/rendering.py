"""TODO."""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def without_screen() -> None:
    """Let environments draw themselves where there is no screen; they read these variables."""
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame
        os.environ.setdefault("MUJOCO_GL", "egl")


def drawn(render: Callable[[], Any]) -> np.ndarray | None:
    """An environment's picture of itself, if it has one."""
    try:
        shot = render()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"the environment cannot draw itself: {what}. Without a screen, pygame needs "
            "SDL_VIDEODRIVER=dummy and MuJoCo a library for MUJOCO_GL=egl (libEGL) or osmesa"
        ) from error
    return shot if isinstance(shot, np.ndarray) and shot.ndim == 3 else None


def captioned(shot: np.ndarray, caption: str) -> np.ndarray:
    """A picture with words under it."""
    from PIL import Image, ImageDraw

    height, width = shot.shape[:2]
    paper = Image.new("RGB", (width, height + 20), "white")
    paper.paste(Image.fromarray(shot))
    ImageDraw.Draw(paper).text((6, height + 4), caption, fill="black")
    return np.asarray(paper)
