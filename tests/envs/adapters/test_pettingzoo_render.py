"""Images of PettingZoo environments."""

import os
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
pytest.importorskip("mpe2", reason="needs the extra mpe2")

from scripted_zoo import KEY, SPREAD, TWO, same, scripted, seen
from tiny_zoo import Scripted

from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.workers.vec_env import PooledVecEnv
from fp3o.errors import UserError


def test_images() -> None:
    """Of a single in-process environment; for an older state, the last image taken."""
    pytest.importorskip("pygame")
    env = PettingZoo(SPREAD, render_mode="rgb_array").vectorise(1)
    state, _ = env.reset(KEY)
    shot = env.render(state, "step 0")
    assert shot is not None and shot.dtype == np.uint8 and shot.shape[2] == 3
    later, _ = env.step(state, np.ones((1, 3, 1), int))
    same(env.render(state, "step 0"), shot)
    later, _ = env.step(later, np.ones((1, 3, 1), int))  # the first one only makes them move
    assert not np.array_equal(env.render(later, "step 0"), shot)
    env.close()
    many = PettingZoo(SPREAD, render_mode="rgb_array").vectorise(2)
    with pytest.raises(UserError, match="returned no image"):
        many.render(many.reset(KEY)[0], "")
    assert "render_mode" not in PettingZoo(SPREAD, render_mode="rgb_array").name
    plain, _ = scripted(TWO, [{"obs": seen(0, 0)}])
    assert isinstance(plain.vectorise(1), PooledVecEnv)


def test_environments_that_cannot_be_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """No image, or an error that says what is required; without a display, drivers are selected."""

    class Blind(Scripted):
        def __init__(self, render_mode: str | None = None):
            super().__init__(TWO, [{"obs": seen(0, 0)}])

        def render(self) -> Any:
            return 1 / 0

    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SDL_VIDEODRIVER", "offscreen")
    env = PettingZoo(Blind).with_rendering().vectorise(1)
    if sys.platform == "linux":
        assert (os.environ["SDL_VIDEODRIVER"], os.environ["MUJOCO_GL"]) == ("offscreen", "egl")
    state, _ = env.reset(KEY)
    with pytest.raises(UserError, match=r"cannot be rendered: ZeroDivisionError.*MUJOCO_GL=egl"):
        env.render(state, "")
    monkeypatch.setattr(Blind, "render", lambda _: "a text")
    with pytest.raises(UserError, match="returned no image"):
        env.render(state, "")
