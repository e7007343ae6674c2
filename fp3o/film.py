"""Films of a policy: episodes as GIF or MP4, without a screen."""

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from fp3o.errors import nearest
from fp3o.policy import Policy
from fp3o.tasks import Task, find

FORMATS = (".gif", ".mp4")


def render(policy: Policy, out: str | Path, episodes: int = 3, seed: int = 0, fps: int = 8) -> Path:
    """Play some episodes with the policy's most likely actions and film them."""
    path = Path(out)
    if episodes < 1 or fps < 1:
        raise ValueError(f"episodes and fps must be at least 1, got {episodes} and {fps}")
    if path.suffix not in FORMATS:
        raise ValueError(f"cannot film as {path.name!r}: {nearest(path.suffix, FORMATS)}")
    name, _, variant = policy.card.spec.name.partition(":")
    task = find(name)
    if task.picture is None:
        raise ValueError(f"{name} has no picture to film")
    frames: list[np.ndarray] = []
    for episode in range(episodes):
        frames += film(policy, task, variant or None, jax.random.key(seed + episode), episode)
    write_film(path, frames, fps)
    return path


def film(
    policy: Policy, task: Task, variant: str | None, key: Any, episode: int
) -> list[np.ndarray]:
    """The pictures of one episode; the last one stays a moment."""
    assert task.picture is not None
    game, step_keys = task.game(variant), jax.random.split(key, task.limit + 1)
    step, sight = jax.jit(game.step), jax.jit(game.sight)
    state, memory, earned, frames = game.reset(step_keys[-1]), None, 0.0, []
    for time in range(task.limit):
        caption = f"episode {episode + 1}   step {time}   return {earned:.2f}"
        frames.append(task.picture(game, state, caption))
        seen = jax.device_get(sight(state))
        action, memory = policy.act(seen.obs, memory, seen.legal)
        state, reward, terminated, truncated = step(state, jnp.asarray(action), step_keys[time])
        earned += float(reward.mean()) / game.spec.shares
        if terminated | truncated:
            break
    caption = f"episode {episode + 1}   end   return {earned:.2f}"
    return frames + [task.picture(game, state, caption)] * 6


def write_film(path: Path, frames: list[np.ndarray], fps: int) -> None:
    """Write frames as the kind of film the name asks for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        first, *rest = map(Image.fromarray, frames)
        first.save(path, save_all=True, append_images=rest, duration=1000 // fps, loop=0)
        return
    from imageio_ffmpeg import write_frames

    height, width, _ = frames[0].shape
    film = write_frames(str(path), (width, height), fps=fps, macro_block_size=2)
    with warnings.catch_warnings():
        # The child is another program at once; it never runs JAX.
        warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
        film.send(None)
    for frame in frames:
        film.send(np.ascontiguousarray(frame))
    film.close()
