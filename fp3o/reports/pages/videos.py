"""Films that lie in run directories, put into the page itself as far as they are small."""

import base64
from collections.abc import Sequence
from pathlib import Path

from fp3o.reports.data.record import RunRecord
from fp3o.reports.pages.markup import Html, join, tag

KINDS = {".gif": "image/gif", ".mp4": "video/mp4"}
"""What the name of a film ends in -> what a browser calls it."""

EACH, LARGEST = 2, 4_000_000
"""Films a run, and bytes of a film, that go into a page."""


def films_of(run: RunRecord) -> list[Path]:
    """The films in a run directory and in its folder `films`, by name."""
    found = [*run.path.glob("*"), *run.path.glob("films/*")]
    films = [path for path in found if path.suffix.lower() in KINDS and path.is_file()]
    return sorted(path for path in films if path.stat().st_size)


def watch(runs: Sequence[RunRecord], room: int) -> list[Html]:
    """The films of all runs, at most `room` bytes together; the others are named."""
    shown, named = [], []
    for run in runs:
        places = EACH
        for path in films_of(run):
            size = path.stat().st_size
            if places and size <= min(LARGEST, room):
                shown.append(_shown(run, path))
                places, room = places - 1, room - size
            else:
                named.append(tag("li", f"{run.label}: ", tag("code", str(path))))
    found = [tag("div", *shown, class_="grid")] if shown else []
    if named:
        found += [tag("p", "Not in this file, to keep it small:"), tag("ul", *named)]
    return found


def _shown(run: RunRecord, path: Path) -> Html:
    """A film as part of the page."""
    kind = KINDS[path.suffix.lower()]
    address = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    words = f"{run.label} on {run.task}"
    if kind.startswith("image"):
        film = Html(f'<img src="{address}" alt="{join(words)}">')
    else:
        film = tag("video", controls="controls", preload="metadata", src=address)
    return tag("figure", film, tag("figcaption", join(words, ": ", tag("code", path.name))))
