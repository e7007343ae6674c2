"""The particle tasks, played by their planner up to the middle of an episode."""

from pathlib import Path

import jax
import numpy as np
from pen import ASSETS
from PIL import Image

from fp3o.envs.registry import get_task

NAMES = ("simple_speaker_listener", "simple_reference", "simple_spread")
KEY, STEP = 2, 4


def draw(folder: Path = ASSETS) -> Path:
    """Three pictures side by side."""
    shots = [shot(name) for name in NAMES]
    gap = np.full((shots[0].shape[0], 12, 3), 255, np.uint8)
    parts = [part for picture in shots for part in (picture, gap)][:-1]
    path = folder / "particles.png"
    image = Image.fromarray(np.concatenate(parts, axis=1))
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def shot(name: str) -> np.ndarray:
    """A task after some steps."""
    task = get_task(f"mpe/{name}")
    env, game = task.vec_env(None, 1), task.env()
    plan = jax.jit({baseline.name: baseline.act for baseline in task.baselines(game)}["planner"])
    state, _ = env.reset(jax.random.key(KEY))
    for number in range(STEP):
        action = plan(jax.tree.map(lambda x: x[0], state[0]), jax.random.key(number))
        state, _ = env.step(state, action[None])
    return env.render(state, "played by the planner")


if __name__ == "__main__":
    print(draw())
