"""Pictures of the particle tasks, drawn without a screen. Needs matplotlib, loaded when drawing."""

from typing import Any

import numpy as np

from fp3o.envs.mpe.particles import LENGTH, NONE, Particle, Particles
from fp3o.envs.rendering import ALERT, BLUE, GREEN, GRID, INK, ORANGE, PAPER, PURPLE, RED, TEAL

COLOURS = (RED, GREEN, BLUE)
"""Of the landmarks, and of the agents that are to reach them."""

TEAM = (PURPLE, ORANGE, TEAL)
"""Of agents without a goal of their own."""

ALARM = ALERT

SAYS = {
    "simple_reference": "each must reach its ring, which only the other one knows",
    "simple_speaker_listener": "S sees which landmark is the goal and tells L to go there",
    "simple_spread": "cover every landmark, touch nobody",
}
"""What a picture is about."""


def picture(game: Particle, state: Particles, caption: str = "") -> np.ndarray:
    """The state as an image, uint8 `(480, 480, 3)`, with the task above and a caption below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = FigureCanvasAgg(Figure((4.0, 4.0), dpi=120, facecolor=PAPER))
    axes = canvas.figure.add_axes((0.085, 0.07, 0.83, 0.83))
    x, landmarks = np.asarray(state.position), np.asarray(state.landmarks)
    board(axes, max(1.2, float(np.abs(x).max()) + 0.25))
    draw = goals if any(game.seekers) else cover
    draw(axes, game, x, landmarks, np.asarray(state.goal))
    agents(axes, game, state)
    write = canvas.figure.text
    write(0.085, 0.955, game.name, color=INK, size=9.5, weight="bold")
    write(0.915, 0.955, f"step {int(state.time)} of {LENGTH}", color=INK, size=8, ha="right")
    write(0.085, 0.915, SAYS[game.name], color=INK, size=7.5)
    write(0.085, 0.025, caption, color=INK, size=8)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def board(axes: Any, reach: float) -> None:
    """The plane, with the square in which agents begin."""
    from matplotlib.patches import Rectangle

    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=(), yticks=())
    axes.set_facecolor("white")
    for line in (-0.5, 0.0, 0.5):
        axes.plot((line, line), (-1, 1), color=GRID, lw=0.6, zorder=0)
        axes.plot((-1, 1), (line, line), color=GRID, lw=0.6, zorder=0)
    axes.add_patch(Rectangle((-1, -1), 2, 2, fill=False, ec="#bdb8ac", lw=0.8, ls="--", zorder=0))
    for side in axes.spines.values():
        side.set_color("#bdb8ac")


def disc(axes: Any, place: np.ndarray, radius: float, **style: Any) -> None:
    """A circle."""
    from matplotlib.patches import Circle

    axes.add_patch(Circle((float(place[0]), float(place[1])), radius, **style))


def goals(
    axes: Any, game: Particle, x: np.ndarray, landmarks: np.ndarray, goal: np.ndarray
) -> None:
    """Coloured landmarks; a ring round a goal and a line to it from the agent that seeks it."""
    for place, colour in zip(landmarks, COLOURS, strict=True):
        disc(axes, place, 0.06, color=colour, zorder=2)
    for agent in np.flatnonzero(goal != NONE):
        place, colour = landmarks[goal[agent]], COLOURS[goal[agent]]
        ring = 0.10 + 0.045 * int((goal[:agent] == goal[agent]).sum())  # a ring for each seeker
        disc(axes, place, ring, fill=False, ec=colour, lw=1.8, zorder=2)
        axes.plot(*np.stack([x[agent], place], 1), color=colour, lw=1.1, ls=(0, (4, 3)), zorder=1)


def cover(
    axes: Any, game: Particle, x: np.ndarray, landmarks: np.ndarray, goal: np.ndarray
) -> None:
    """Grey landmarks, each tied to the agent nearest to it; touching agents get a red edge."""
    for place in landmarks:
        nearest = x[np.linalg.norm(x - place, axis=1).argmin()]
        axes.plot(*np.stack([nearest, place], 1), color="#77736a", lw=1.1, ls=(0, (4, 3)), zorder=2)
        disc(axes, place, 0.05, fc="#55524b", ec="white", lw=1.0, zorder=5)
    apart = np.linalg.norm(x[:, None] - x, axis=-1) + 9.0 * np.eye(len(x))
    for agent in np.flatnonzero(apart.min(1) < 2 * game.radius):
        disc(axes, x[agent], game.radius, fill=False, ec=ALARM, lw=2.4, zorder=6)


def agents(axes: Any, game: Particle, state: Particles) -> None:
    """Discs with names, an arrow for the velocity, and in a bubble what was last said."""
    names = "SL" if game.name == "simple_speaker_listener" else "012"
    radius, velocity = max(game.radius, 0.085), np.asarray(state.velocity)
    for i, place in enumerate(np.asarray(state.position)):
        aim, word = int(state.goal[i]), int(state.message[i])
        colour = COLOURS[aim] if aim != NONE else INK if any(game.seekers) else TEAM[i]
        disc(axes, place, radius, fc=colour, ec="white", lw=1.2, zorder=3 if game.solid else 7)
        above = 0.62 * radius if game.solid else 0.0  # a landmark may be right in the middle
        axes.text(place[0], place[1] + above, names[i], color="white", size=8, weight="bold",
                  ha="center", va="center_baseline", zorder=8)  # fmt: skip
        arrow(axes, place, velocity[i], radius)
        if word != NONE:
            bubble(axes, place, f"word {word}", colour)


def arrow(axes: Any, place: np.ndarray, velocity: np.ndarray, radius: float) -> None:
    """From the edge of an agent, as far as it will move in two steps."""
    speed = float(np.linalg.norm(velocity))
    if speed > 0.25:
        edge = place + velocity / speed * radius
        style = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", edge + 0.2 * velocity, edge, zorder=6, arrowprops=style)


def bubble(axes: Any, place: np.ndarray, words: str, colour: str) -> None:
    """What an agent says, beside it and inside the picture."""
    side, height = -1 if place[0] > 0.5 else 1, -1 if place[1] > 0.9 else 1
    box = {"boxstyle": "round,pad=0.3", "fc": "white", "ec": colour, "lw": 1.2}
    line = {"arrowstyle": "-", "color": colour, "shrinkB": 7}
    axes.annotate(words, place, (14 * side, 14 * height), textcoords="offset points", size=7.5,
                  color=INK, bbox=box, zorder=9, ha="left" if side > 0 else "right", va="center",
                  arrowprops=line)  # fmt: skip
