"""Files of a run in its report: videos, links, and files that cannot be written."""

import base64
import os
from pathlib import Path

import pytest
from report_runs import make, written

from fp3o.errors import UserError
from fp3o.reports import RunRecord, read_runs, report
from fp3o.reports.data.timing import elapsed_seconds
from fp3o.reports.marl_eval import write_marl_eval
from fp3o.reports.pages.videos import LARGEST_VIDEO, videos_section


def test_videos_of_runs_are_part_of_the_page(tmp_path: Path) -> None:
    run = make(tmp_path / "run", plain=True)
    (run / "videos").mkdir()
    video = b"GIF89a" + bytes(range(256))
    movie = b"\0\0\0\x18ftypmp42" + bytes(range(250))
    for name in ("b.gif", "videos/c.mp4", "videos/d.mp4", "videos/note.txt"):
        (run / name).write_bytes(movie if name.endswith("mp4") else video)
    (run / "a.gif").write_bytes(video + bytes(LARGEST_VIDEO))
    (run / "empty.gif").write_bytes(b"")
    text, page = written([run], tmp_path)
    code = base64.b64encode(video).decode()
    assert page.addresses.count(f"data:image/gif;base64,{code}") == 1
    movie_code = base64.b64encode(movie).decode()
    assert page.addresses.count(f"data:video/mp4;base64,{movie_code}") == 1
    assert "img" in page.tags and "video" in page.tags and "Videos" in page.words
    named = page.words[page.words.index("Not embedded") :]
    assert str(run / "a.gif") in named and str(run / "videos" / "d.mp4") in named
    assert "note.txt" not in text and "empty.gif" not in text
    # a page about many runs has room for few: what does not fit is named
    words = "".join(videos_section(read_runs([run]), len(video)))
    assert words.count("base64") == 1 and words.count("<li>") == 3
    assert videos_section(read_runs([make(tmp_path / "other")]), 100) == []


def test_only_videos_of_the_run_are_embedded(tmp_path: Path) -> None:
    """Not what a link leads to, nor another file with the name of a video."""
    run, secret = make(tmp_path / "run", plain=True, iterations=1), tmp_path / "secret.gif"
    secret.write_bytes(b"GIF89a secret")
    (run / "link.gif").symlink_to(secret)
    (run / "videos").symlink_to(tmp_path)
    (run / "key.gif").write_text("a private key")
    (run / "key.mp4").write_text("a private key")
    os.mkfifo(run / "pipe.gif")
    (run / "folder.gif").mkdir()
    assert videos_section(read_runs([run]), LARGEST_VIDEO) == []
    (run / "inside.gif").symlink_to(run / "real.gif")
    (run / "real.gif").write_bytes(b"GIF89a movie")
    assert "".join(videos_section(read_runs([run]), LARGEST_VIDEO)).count("base64") == 2


def test_files_of_a_run_that_are_links_elsewhere_are_refused(tmp_path: Path) -> None:
    """Their content would be shown in the message or in the page."""
    for name in ("config.json", "metrics.jsonl", "results.json", "timing.jsonl"):
        run = make(tmp_path / name, plain=True, iterations=1)
        (run / name).unlink(missing_ok=True)
        (tmp_path / "elsewhere").write_text("{}")
        (run / name).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ValueError, match=f"{name} is a link to a file outside the run"):
            elapsed_seconds(run) if name == "timing.jsonl" else RunRecord.read(run)


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    """The message names the path and the option; nothing else is written."""
    run = make(tmp_path / "run", plain=True, iterations=1)
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "page.html"
    for write in (lambda: report([run], below), lambda: write_marl_eval(read_runs([run]), below)):
        with pytest.raises(
            UserError, match=r"cannot write .*page\.html: .*another place with --out"
        ):
            write()
