"""Films of a policy: episodes as GIF or MP4, without a screen."""

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from PIL import Image

from fp3o.envs.api import HostEnv
from fp3o.envs.vectorise import vectorise
from fp3o.errors import UserError, nearest
from fp3o.policy import Policy
from fp3o.runs.evaluation import task_of_policy
from fp3o.types import TimeStep

FORMATS = (".gif", ".mp4")

STILL, SMOOTH = 8, 30
"""Pictures a second: of worlds without a clock, and at most of those with one."""


def render(
    policy: Policy,
    out: str | Path,
    episodes: int = 3,
    seed: int = 0,
    fps: int | None = None,
    seconds: int | float = 10,
    tell: Callable[[str], None] = lambda words: None,
) -> Path:
    """Play some episodes with the policy's most likely actions and film them.

    A film shows `fps` pictures a second, at most `seconds` of an episode; without `fps` it runs as
    fast as the world it shows, where that has a clock. `tell` is told how far it is.
    """
    path = Path(out)
    if episodes < 1 or seconds <= 0 or (fps is not None and fps < 1):
        raise ValueError(
            f"episodes and fps must be at least 1 and seconds above 0, got {episodes}, {fps} and "
            f"{seconds}"
        )
    if path.suffix not in FORMATS:
        raise ValueError(f"cannot film as {path.name!r}: {nearest(path.suffix, FORMATS)}")
    task, variant = task_of_policy(policy)
    env = task.env(variant)
    if not env.renderable:
        raise UserError(f"{env.spec.name} cannot be rendered")
    batch = vectorise(env.with_rendering() if isinstance(env, HostEnv) else env, 1)
    pace = 1 / (env.step_seconds or 1 / STILL)
    every = max(1, round(pace / SMOOTH))  # steps from one picture to the next
    speed = fps or max(1, round(pace / every))
    frames: list[np.ndarray] = []
    step = jax.jit(batch.step) if batch.jittable else batch.step
    for episode in range(episodes):
        begun = batch.reset(jax.random.key(seed + episode))
        shots = film(policy, batch.render, step, begun, episode, every, env.spec.episode_metrics)
        for shot in itertools.islice(shots, int(seconds * speed)):
            frames.append(shot)
            tell(f"filming: {len(frames)} pictures, episode {episode + 1} of {episodes}")
    write_film(path, frames, speed)
    return path


def film(
    policy: Policy,
    picture: Callable[[Any, str], np.ndarray],
    step: Callable[..., Any],
    begun: tuple[Any, TimeStep],
    episode: int,
    every: int,
    outcomes: Sequence[str] = (),
) -> Iterator[np.ndarray]:
    """The pictures of one episode, one in `every` steps; the last one stays a moment."""
    state, now = begun
    hidden_state, earned, before, shares = None, 0.0, state, policy.card.spec.reward_sum_over
    for time in itertools.count():
        if time % every == 0:
            yield picture(state, f"episode {episode + 1}   step {time}   return {earned:.2f}")
        seen = jax.device_get(now)
        action, hidden_state = policy.act(seen.obs, hidden_state, seen.action_mask)
        before, (state, now) = state, step(state, action)
        earned += float(now.reward.mean()) / shares
        if now.terminated[0] | now.truncated[0]:
            break
    # The environment has begun another episode; the last thing to see is what was before.
    final = picture(before, f"episode {episode + 1}   {_end(outcomes, now)}   return {earned:.2f}")
    yield from itertools.repeat(final, 6)


def _end(outcomes: Sequence[str], now: TimeStep) -> str:
    """How the episode ended, in a word."""
    outcome = dict(zip(outcomes, now.episode_metrics[0].tolist(), strict=True))
    return ("won" if outcome["won"] else "not won") if "won" in outcome else "end"


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
