"""Videos in run directories; small ones are embedded in the page."""

import base64
import re
from collections.abc import Sequence
from pathlib import Path

from fp3o.reports.data.files import ReportError, run_file
from fp3o.reports.data.record import RunRecord
from fp3o.reports.pages.markup import Html, join_html, tag

VIDEO_TYPES = {".gif": ("image/gif", rb"GIF8[79]a"), ".mp4": ("video/mp4", rb".{4}ftyp")}
"""Suffix of a file -> its media type, and the bytes with which such a file begins."""

TRAINING_VIDEO = "step-[0-9]+"
"""Names of videos of the policy during training."""

PER_RUN, LARGEST_VIDEO = 2, 4_000_000
"""Maximum number of embedded videos per run, and maximum size of one in bytes."""


def run_videos(run: RunRecord) -> list[Path]:
    """The videos in a run directory and in its folder `videos`: by name, those of training last.

    Of those of training, the newest come first.

    A report is made to be shown to others: a file that is something else, or lies elsewhere, is
    left out.
    """
    paths = [*run.path.glob("*"), *run.path.glob("videos/*")]
    found = sorted(path for path in paths if _is_video(run.path, path))
    training = [path for path in found if re.fullmatch(TRAINING_VIDEO, path.stem)]
    return [path for path in found if path not in training] + training[::-1]


def _is_video(run: Path, path: Path) -> bool:
    """Whether a path is a regular file of the run with the content that its suffix says."""
    _, beginning = VIDEO_TYPES.get(path.suffix.lower(), ("", None))
    try:
        if beginning is None or run_file(run, str(path.relative_to(run))) is None:
            return False
        with path.open("rb") as file:
            return re.match(beginning, file.read(16), re.DOTALL) is not None
    except (ReportError, OSError):
        return False


def videos_section(runs: Sequence[RunRecord], max_bytes: int) -> list[Html]:
    """The videos of all runs, at most `max_bytes` in total; the others are listed."""
    embedded, listed = [], []
    for run in runs:
        left = PER_RUN
        for path in run_videos(run):
            size = path.stat().st_size
            if left and size <= min(LARGEST_VIDEO, max_bytes):
                embedded.append(_video(run, path))
                left, max_bytes = left - 1, max_bytes - size
            else:
                listed.append(tag("li", f"{run.label}: ", tag("code", str(path))))
    content = [tag("div", *embedded, class_="grid")] if embedded else []
    if listed:
        content += [tag("p", "Not embedded, to keep this file small:"), tag("ul", *listed)]
    return content


def _video(run: RunRecord, path: Path) -> Html:
    media_type, _ = VIDEO_TYPES[path.suffix.lower()]
    address = f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}"
    text = f"{run.label} on {run.task}"
    if media_type.startswith("image"):
        video = Html(f'<img src="{address}" alt="{join_html(text)}">')
    else:
        video = tag("video", controls="controls", preload="metadata", src=address)
    return tag("figure", video, tag("figcaption", join_html(text, ": ", tag("code", path.name))))
