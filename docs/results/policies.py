"""The best policies of finished runs, as an archive for a release.

    python docs/results/policies.py FOLDER... --out policies [--videos]

Below the folders, run directories with the same settings are one run, whatever their seeds. Of each
run the policy with the best final evaluation is copied, as a folder that `fp3o.Policy.load` reads,
named like the run's document in `runs/`. `index.json` says what each is and what it scored;
`--videos` adds a video of an episode. Those in `policies/` are listed on the pages.
"""

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fp3o.experiments.framework.run_data import run_name
from fp3o.policy import Policy
from fp3o.reports.data.measures import RETURN, WIN_RATE
from fp3o.runs.video import render

VIDEO_SECONDS = 4


def group_runs(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Finished run directories below some folders, by the name of their settings."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(path.parent for folder in folders for path in folder.rglob("results.json")):
        settings = json.loads((path / "config.json").read_text())["settings"]
        groups.setdefault(run_name(settings), []).append(path)
    return groups


def best_policy(runs: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """Folder and entry of the policy with the best final evaluation of any seed."""
    found = []
    for run in runs:
        results = json.loads((run / "results.json").read_text())
        for row in results["best"]:
            wins = "won" in (row.get("episode_metrics") or {})
            measure = WIN_RATE if wins else RETURN
            found.append((measure.value(row), run, row, measure.name))
    score, run, row, name = max(found, key=lambda item: item[0])
    settings = json.loads((run / "config.json").read_text())["settings"]
    entry = {key: settings[key] for key in ("task", "algorithm", "sharing")}
    entry |= {"seed": row["seed"], "step": row["step"], "measure": name}
    return run / "policy" / f"seed-{row['seed']}" / "best", {**entry, "score": round(score, 3)}


def collect_policies(folders: Sequence[Path], out: Path, videos: bool) -> Mapping[str, Any]:
    """Copy the policies and write their index."""
    index = json.loads((out / "index.json").read_text()) if (out / "index.json").exists() else {}
    for name, runs in group_runs(folders).items():
        path, entry = best_policy(runs)
        if not path.exists():
            print(f"{name}: {path} is missing")
            continue
        shutil.rmtree(out / name, ignore_errors=True)
        shutil.copytree(path, out / name)
        if videos:
            render(Policy.load(out / name), out / name / "episode.gif", 1, seconds=VIDEO_SECONDS)
        index[name] = entry
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dict(sorted(index.items())), indent=1)
    (out / "index.json").write_text(f"{text}\n")
    return index


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("policies"))
    parser.add_argument("--videos", action="store_true", help="render an episode of each")
    arguments = parser.parse_args()
    found = collect_policies(arguments.folders, arguments.out, arguments.videos)
    print(f"{len(found)} policies in {arguments.out}")
