"""Draw the learning curves of the page "Other environments".

python curves.py                          # curves.png from the CSV files of this folder
python curves.py pursuit=runs/pursuit     # write pursuit.csv from a run first
"""

import csv
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
COLUMNS = ("seed", "step", "training_return", "evaluation_return")
RANDOM = {
    "pursuit": -46.20,
    "multiwalker": -98.19,
    "pixels": 0.124,
    "blind": 0.124,
    "lbf": 0.100,
    "rware": 0.0,
    "guide": -21.27,
    "pair": -21.36,
}
"""Returns of random actions, by the final evaluations."""

TITLES = {
    "pursuit": "pursuit_v5",
    "multiwalker": "multiwalker_v9",
    "pixels": "pixels/cover-2",
    "blind": "pixels/cover-2, blind",
    "lbf": "Foraging-8x8-2p-3f-v3",
    "rware": "rware-tiny-2ag-v2",
    "guide": "radio/guide",
    "pair": "radio/pair",
}


def write_csv(name: str, run: Path) -> None:
    """The returns in a run's metrics, one row per seed and iteration that has one."""
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for line in (run / "metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            returns = [row.get("episode_return"), row.get("eval_return")]
            if returns != [None, None]:
                shown = ["" if x is None else f"{x:.4f}" for x in returns]
                writer.writerow([row["seed"], row["step"], *shown])


def draw_task(axis, name: str) -> None:
    """Training and evaluation returns of every seed, and the return of random actions."""
    with (HERE / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    for seed in sorted({row["seed"] for row in rows}):
        for column, style in (
            ("training_return", {"color": "#4aa3df", "lw": 0.8}),
            ("evaluation_return", {"color": "#d55e00", "lw": 1.2, "marker": ".", "ms": 4}),
        ):
            points = [
                (int(row["step"]) / 1e6, float(row[column]))
                for row in rows
                if row["seed"] == seed and row[column]
            ]
            axis.plot(
                *zip(*points, strict=True),
                label=column.split("_")[0] if seed == "0" else None,
                **style,
            )
    axis.axhline(RANDOM[name], color="0.4", lw=0.8, ls="--", label="random actions")
    axis.set_title(TITLES[name], fontsize=9)
    axis.set_xlabel("million steps", fontsize=8)
    axis.tick_params(labelsize=7)


def main() -> None:
    """Write the CSV files of the runs that are given, and draw all tasks."""
    for argument in sys.argv[1:]:
        name, run = argument.split("=", 1)
        write_csv(name, Path(run))
    figure, axes = plt.subplots(2, 4, figsize=(12, 5.4))
    for axis, name in zip(axes.flat, TITLES, strict=True):
        draw_task(axis, name)
    for axis in axes[:, 0]:
        axis.set_ylabel("return per agent", fontsize=8)
    axes[0, 0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "curves.png", dpi=110)


if __name__ == "__main__":
    main()
