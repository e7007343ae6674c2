"""Images of the particle tasks, drawn off-screen; matplotlib is imported when drawing."""

from typing import Any

import numpy as np

from fp3o.envs.mpe.particles import EPISODE_STEPS, NONE, ParticleEnv, ParticleState
from fp3o.envs.rendering import (
    ALERT,
    BLUE,
    GREEN,
    GRID,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
    RED,
    TEAL,
    add_caption,
    font,
)

LANDMARK_COLOURS = (RED, GREEN, BLUE)
"""Colours of the landmarks, and of the agents that have to reach them."""

SPREAD_COLOURS = (PURPLE, ORANGE, TEAL)
"""Colours of agents without a goal."""

BORDER, TIE, LANDMARK = "#bdb8ac", "#77736a", "#55524b"
"""Colours of the border of the plane, of lines to landmarks, and of landmarks to cover."""

_DASHED = (0, (4, 3))

_CAPTIONS = {
    "simple_reference": "each must reach its ring, which only the other one knows",
    "simple_speaker_listener": "S observes which landmark is the goal and sends L there",
    "simple_spread": "cover every landmark without collisions",
}
"""Description of the task above its image."""


def render_particles(env: ParticleEnv, state: ParticleState, caption: str = "") -> np.ndarray:
    """The state as an image, uint8 `(482, 480, 3)`, with the task above and a caption below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = FigureCanvasAgg(Figure((4.0, 3.8), dpi=120, facecolor=PAPER))
    axes = canvas.figure.add_axes((0.085, 0.02, 0.83, 0.874))
    x = np.asarray(state.position)
    _draw_plane(axes, max(1.2, float(np.abs(x).max()) + 0.25))
    draw = _draw_goals if any(env.has_goal) else _draw_coverage
    draw(axes, env, state)
    _draw_agents(axes, env, state)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    return add_caption(_with_header(image, env, int(state.time)), caption)


def _with_header(image: np.ndarray, env: ParticleEnv, time: int) -> np.ndarray:
    from PIL import Image, ImageDraw

    headed = Image.fromarray(image)
    pen = ImageDraw.Draw(headed)
    pen.text((12, 14), env.name, INK, font(15), "lm")
    pen.text((468, 14), f"step {time} of {EPISODE_STEPS}", INK, font(12), "rm")
    pen.text((12, 34), _CAPTIONS[env.name], INK, font(12), "lm")
    return np.asarray(headed)


def _draw_plane(axes: Any, reach: float) -> None:
    """The plane, with the square in which agents start."""
    from matplotlib.patches import Rectangle

    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=(), yticks=())
    axes.set_facecolor("white")
    for line in (-0.5, 0.0, 0.5):
        axes.plot((line, line), (-1, 1), color=GRID, lw=0.6, zorder=0)
        axes.plot((-1, 1), (line, line), color=GRID, lw=0.6, zorder=0)
    axes.add_patch(Rectangle((-1, -1), 2, 2, fill=False, ec=BORDER, lw=0.8, ls="--", zorder=0))
    for side in axes.spines.values():
        side.set_color(BORDER)


def _disc(axes: Any, centre: np.ndarray, radius: float, **style: Any) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((float(centre[0]), float(centre[1])), radius, **style))


def _draw_goals(axes: Any, env: ParticleEnv, state: ParticleState) -> None:
    """Landmarks in colour; around each goal a ring, with a line from the agent that seeks it."""
    x, landmarks, goal = map(np.asarray, (state.position, state.landmarks, state.goal))
    for centre, colour in zip(landmarks, LANDMARK_COLOURS, strict=True):
        _disc(axes, centre, 0.06, color=colour, zorder=2)
    for agent in np.flatnonzero(goal != NONE):
        centre, colour = landmarks[goal[agent]], LANDMARK_COLOURS[goal[agent]]
        ring = 0.10 + 0.045 * int((goal[:agent] == goal[agent]).sum())  # one ring per agent
        _disc(axes, centre, ring, fill=False, ec=colour, lw=1.8, zorder=2)
        axes.plot(*np.stack([x[agent], centre], 1), color=colour, lw=1.1, ls=_DASHED, zorder=1)


def _draw_coverage(axes: Any, env: ParticleEnv, state: ParticleState) -> None:
    """Grey landmarks, each with a line to the nearest agent; red edges of colliding agents."""
    x, landmarks = np.asarray(state.position), np.asarray(state.landmarks)
    for centre in landmarks:
        nearest = x[np.linalg.norm(x - centre, axis=1).argmin()]
        axes.plot(*np.stack([nearest, centre], 1), color=TIE, lw=1.1, ls=_DASHED, zorder=2)
        _disc(axes, centre, 0.05, fc=LANDMARK, ec="white", lw=1.0, zorder=5)
    distance = np.linalg.norm(x[:, None] - x, axis=-1) + 9.0 * np.eye(len(x))
    for agent in np.flatnonzero(distance.min(1) < 2 * env.radius):
        _disc(axes, x[agent], env.radius, fill=False, ec=ALERT, lw=2.4, zorder=6)


def _draw_agents(axes: Any, env: ParticleEnv, state: ParticleState) -> None:
    """Discs with names, an arrow for the velocity, and the last message in a bubble."""
    names = "SL" if env.name == "simple_speaker_listener" else "012"
    radius, velocity = max(env.radius, 0.085), np.asarray(state.velocity)
    for i, centre in enumerate(np.asarray(state.position)):
        goal, message = int(state.goal[i]), int(state.message[i])
        alone = INK if any(env.has_goal) else SPREAD_COLOURS[i]
        colour = LANDMARK_COLOURS[goal] if goal != NONE else alone
        _disc(axes, centre, radius, fc=colour, ec="white", lw=1.2, zorder=3 if env.solid else 7)
        above = 0.62 * radius if env.solid else 0.0  # a landmark may be at the centre
        axes.text(centre[0], centre[1] + above, names[i], color="white", size=8, weight="bold",
                  ha="center", va="center_baseline", zorder=8)  # fmt: skip
        _draw_velocity(axes, centre, velocity[i], radius)
        if message != NONE:
            _draw_message(axes, centre, f"message {message}", colour)


def _draw_velocity(axes: Any, centre: np.ndarray, velocity: np.ndarray, radius: float) -> None:
    """An arrow from the edge of an agent, as long as its motion in two steps."""
    speed = float(np.linalg.norm(velocity))
    if speed > 0.25:
        edge = centre + velocity / speed * radius
        style = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", edge + 0.2 * velocity, edge, zorder=6, arrowprops=style)


def _draw_message(axes: Any, centre: np.ndarray, text: str, colour: str) -> None:
    """A bubble beside an agent, inside the image."""
    side, height = -1 if centre[0] > 0.5 else 1, -1 if centre[1] > 0.9 else 1
    box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": colour, "lw": 1.2}
    line = {"arrowstyle": "-", "color": colour, "shrinkB": 7}
    axes.annotate(text, centre, (14 * side, 14 * height), textcoords="offset points", size=7.5,
                  color=INK, bbox=box, zorder=9, ha="left" if side > 0 else "right", va="center",
                  arrowprops=line)  # fmt: skip
