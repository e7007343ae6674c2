"""The particle tasks with the planner baseline, in the middle of an episode."""

from pathlib import Path

import jax
import numpy as np
from drawing import ASSETS
from PIL import Image

from fp3o.envs.registry import get_task

NAMES = ("simple_speaker_listener", "simple_reference", "simple_spread")
KEY, STEP = 2, 4


def draw(folder: Path = ASSETS) -> Path:
    """Three frames side by side."""
    frames = [frame(name) for name in NAMES]
    gap = np.full((frames[0].shape[0], 12, 3), 255, np.uint8)
    parts = [part for image in frames for part in (image, gap)][:-1]
    path = folder / "particles.png"
    image = Image.fromarray(np.concatenate(parts, axis=1))
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def frame(name: str) -> np.ndarray:
    """A frame of a task after some steps."""
    task = get_task(f"mpe/{name}")
    vec_env, env = task.vec_env(None, 1), task.env()
    planner = jax.jit({baseline.name: baseline.act for baseline in task.baselines(env)}["planner"])
    state, _ = vec_env.reset(jax.random.key(KEY))
    for number in range(STEP):
        action = planner(jax.tree.map(lambda x: x[0], state[0]), jax.random.key(number))
        state, _ = vec_env.step(state, action[None])
    return vec_env.render(state, "planner")


if __name__ == "__main__":
    print(draw())
