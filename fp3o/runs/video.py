"""Videos of a policy: episodes as GIF or MP4, without a display."""

import errno
import itertools
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import jax
import numpy as np
from PIL import Image

from fp3o.envs.api import HostEnv, VecEnv
from fp3o.envs.vectorise import vectorise
from fp3o.errors import SettingError, UserError, nearest
from fp3o.options import check_seeds
from fp3o.policy import Policy
from fp3o.runs.source import PolicyChoice, PolicySource, load_policy
from fp3o.runs.trust import trusted_task
from fp3o.types import TimeStep

VIDEO_SUFFIXES = (".gif", ".mp4")

DEFAULT_FPS, MAX_FPS = 8, 30
"""Frames per second of tasks without a physical time step; maximum for those with one."""

FINAL_FRAMES = 6
"""Number of times that the last frame of an episode is repeated."""


def render(
    source: PolicySource,
    out: str | Path,
    episodes: int = 3,
    seed: int = 0,
    fps: int | None = None,
    seconds: int | float = 10,
    **choice: Unpack[PolicyChoice],
) -> Path:
    """Render episodes with the policy's most likely actions as a video.

    Args:
        source: a run, a policy, or the path of a run directory or a policy folder.
        out: the video, a .gif or .mp4 file.
        episodes: number of episodes.
        seed: random seed of the episodes.
        fps: frames per second; None: real time, where the task has a clock.
        seconds: maximum length of the video per episode.
        **choice: of a run, `which` of its policies, `best` (default) or `last`, and
            `policy_seed`, the seed whose policy is rendered, by default the one with the best
            evaluation. `trust=True` allows the policy to name a task or a network that has to be
            imported.
    """
    path = Path(out)
    _check_options(path, episodes, fps, seconds)
    check_seeds(seed, episodes)
    policy = load_policy(source, **choice)
    task, variant = trusted_task(policy.card, policy.trusted)
    if not (env := task.env(variant)).renderable:
        raise UserError(f"{env.spec.name} cannot be rendered")
    _require_writable(path)
    pace = 1 / (env.step_seconds or 1 / DEFAULT_FPS)
    every = max(1, round(pace / MAX_FPS))
    speed = fps or max(1, round(pace / every))
    batch = vectorise(env.with_rendering() if isinstance(env, HostEnv) else env, 1)
    videos = (EpisodeRecorder(policy, batch, every).frames(k, seed) for k in range(episodes))
    frames = [x for frames in videos for x in itertools.islice(frames, int(seconds * speed))]
    with _writing(path):
        write_video(path, frames, speed)
    return path


def _check_options(path: Path, episodes: int, fps: int | None, seconds: int | float) -> None:
    if episodes < 1 or seconds <= 0 or (fps is not None and fps < 1):
        raise SettingError(
            f"episodes and fps must be at least 1 and seconds above 0, got {episodes}, {fps} and "
            f"{seconds}"
        )
    if path.suffix not in VIDEO_SUFFIXES:
        raise SettingError(
            f"cannot write a video as {path.name!r}: {nearest(path.suffix, VIDEO_SUFFIXES)}"
        )


def _require_writable(path: Path) -> None:
    """Raise before minutes of rendering if the video cannot be written."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, "it is a folder or may not be written")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn errors of the disk into one that says what to do."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write the video {path}: {error.strerror or error}. Choose another place with "
            "--out, one that you can write to and that has space"
        ) from error


class EpisodeRecorder(NamedTuple):
    """Runs episodes of one environment and renders one frame in `every` steps."""

    policy: Policy
    env: VecEnv
    every: int

    def frames(self, episode: int, seed: int) -> Iterator[np.ndarray]:
        """The frames of one episode, with the return per agent so far in the caption."""
        env, spec, label = self.env, self.env.spec, f"episode {episode + 1}"
        advance = jax.jit(env.step) if env.jittable else env.step
        state, now = env.reset(jax.random.key(seed + episode))
        hidden_state, total, before = None, 0.0, state
        for time in itertools.count():
            if time % self.every == 0:
                yield env.render(state, f"{label}   step {time}   return {total:.2f}")
            observed = jax.device_get(now)
            action, hidden_state = self.policy.act(observed.obs, hidden_state, observed.action_mask)
            before, (state, now) = state, advance(state, action)
            # From the task, not from the policy: policies of format 1 do not know it.
            total += float(now.reward.mean()) / spec.reward_sum_over
            if now.terminated[0] | now.truncated[0]:
                break
        # The environment has started another episode; the state before shows the end of this one.
        ending = _ending(spec.episode_metrics, now)
        final = env.render(before, f"{label}   {ending}   return {total:.2f}")
        yield from itertools.repeat(final, FINAL_FRAMES)


def _ending(names: tuple[str, ...], now: TimeStep) -> str:
    """How the episode ended."""
    metrics = dict(zip(names, now.episode_metrics[0].tolist(), strict=True))
    return ("won" if metrics["won"] else "not won") if "won" in metrics else "end"


def write_video(path: Path, frames: list[np.ndarray], fps: int) -> None:
    """Write frames as a GIF or an MP4 file, by the suffix of the path."""
    if path.suffix == ".gif":
        first, *rest = map(Image.fromarray, frames)
        first.save(path, save_all=True, append_images=rest, duration=1000 // fps, loop=0)
        return
    from imageio_ffmpeg import write_frames

    height, width, _ = frames[0].shape
    writer: Any = write_frames(str(path), (width, height), fps=fps, macro_block_size=2)
    with warnings.catch_warnings():
        # The child process executes ffmpeg at once; it never runs JAX.
        warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
        writer.send(None)
    for frame in frames:
        writer.send(np.ascontiguousarray(frame))
    writer.close()
