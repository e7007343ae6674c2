"""Pairwise differences between agents and the groups found by `auto_sharing`."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fp3o.envs.registry import get_task
from fp3o.sharing.auto import NUM_ENVS, auto_sharing, effect_differences

ASSETS = Path(__file__).parent.parent / "assets"
TEAMS = {
    "smac/3s5z": ["stalker"] * 3 + ["zealot"] * 5,
    "smac/2s3z": ["stalker"] * 2 + ["zealot"] * 3,
    "mamujoco/HalfCheetah-6x1": [
        f"{end} {part}" for end in ("b", "f") for part in ("thigh", "shin", "foot")
    ],
    "mamujoco/Ant-4x2": ["leg 1", "leg 2", "leg 3", "leg 4"],
    "mpe/simple_speaker_listener": ["speaker", "listener"],
}  # fmt: skip
"""Tasks and the names of their agents (of the cheetah: back and front)."""


def draw(folder: Path = ASSETS) -> Path:
    """One matrix per task, each with its own scale, because differences in battles are small."""
    canvas = FigureCanvasAgg(Figure((15, 3.9), dpi=90, layout="constrained"))
    for axes, (task, names) in zip(
        canvas.figure.subplots(1, len(TEAMS)), TEAMS.items(), strict=True
    ):
        env = get_task(task).vec_env(None, NUM_ENVS)
        square(axes, task, names, effect_differences(env), auto_sharing(env))
    path = folder / "auto-sharing.png"
    canvas.print_png(str(path))
    return path


def square(axes, task: str, names: list[str], differ: np.ndarray, groups: tuple[int, ...]) -> None:
    """The differences in one team, with the agents of a group adjacent and framed."""
    order = np.argsort(groups, kind="stable")
    shown, high = differ[np.ix_(order, order)], differ.max()
    axes.imshow(shown, cmap="Blues", vmin=0, vmax=1.3 * high)
    size = 11 if len(names) < 6 else 8
    for i, row in enumerate(shown):
        for j, value in enumerate(row):
            ink = "white" if value > 0.75 * high else "black"
            axes.text(j, i, f"{value:.2f}" if i != j else "", ha="center", va="center",
                      size=size, color=ink)  # fmt: skip
    start = 0
    for count in np.bincount(groups):
        axes.add_patch(Rectangle((start - 0.5, start - 0.5), count, count, fill=False,
                                 edgecolor="tab:red", linewidth=3, clip_on=False))  # fmt: skip
        start += count
    labels = [names[i] for i in order]
    axes.set_xticks(range(len(names)), labels, rotation=90)
    axes.set_yticks(range(len(names)), labels)
    axes.set_title(task, size=11)


if __name__ == "__main__":
    draw()
