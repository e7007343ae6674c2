"""Reading the files of a run: regular files in its directory, valid JSON, right types."""

import json
import math
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fp3o.errors import UserError
from fp3o.files import CHECKSUM, document_checksum
from fp3o.reports.data.schema import DamageError, ValueCheck

LARGEST_JSON = 50_000_000
"""Bytes of the largest `config.json` or `results.json`."""


class ReportError(UserError, ValueError):
    """An error in reading or reporting runs; the message says why."""


class ReportWriteError(UserError, OSError):
    """A file of a report that cannot be written."""

    def __init__(self, path: Path, error: OSError):
        super().__init__(error.errno, error.strerror or str(error))
        self.path = path

    def __str__(self) -> str:
        return (
            f"cannot write {self.path}: {self.strerror}. Choose another place with --out, or make "
            "this one writable"
        )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Context in which disk errors say what could not be written, and what to do."""
    try:
        yield
    except (ReportWriteError, BrokenPipeError):
        raise
    except OSError as error:
        raise ReportWriteError(path, error) from error


def run_file(run: Path, name: str) -> Path | None:
    """A regular file of a run; None if there is none. A link out of the run is refused."""
    path = run / name
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        if not path.resolve().is_relative_to(run.resolve()):
            raise ReportError(f"{path} is a link to a file outside the run: it is not read")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}") from error
    return path


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}") from error


def read_object(path: Path, check: ValueCheck) -> dict[str, Any]:
    """A JSON object that passes a check, and whose checksum matches if it has one."""
    if path.stat().st_size > LARGEST_JSON:
        raise ReportError(f"{path} is damaged: it is larger than {LARGEST_JSON:,} bytes")
    try:
        content = parse(read_bytes(path))
    except ValueError as error:
        raise ReportError(f"{path} is damaged: it is not JSON ({error})") from error
    check_content(path, content, check)
    if CHECKSUM in content and content[CHECKSUM] != document_checksum(content):
        raise ReportError(f"{path} is damaged or was edited: its checksum does not match")
    return content


def check_content(path: Path, content: Any, check: ValueCheck) -> None:
    """Raise an error that names file and place if its content does not pass a check."""
    try:
        check(content, "")
    except DamageError as error:
        raise ReportError(f"{path} is damaged: {error}") from error


def read_lines(path: Path, check: ValueCheck) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The numbers and objects of a file of JSON lines; None for a line that is damaged.

    The last line of a run that is being written may be incomplete: it is left out.
    """
    lines = read_bytes(path).splitlines()
    for number, text in enumerate(lines, 1):
        try:
            content = parse(text)
            check(content, "")
            yield number, content
        except ValueError:
            if text.strip() and number < len(lines):
                yield number, None


def parse(text: bytes) -> Any:
    """JSON as Python objects; an integer too large for a float becomes infinite."""
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _integer(text: str) -> int | float:
    if len(text) < 20:
        return int(text)
    return math.inf if len(text) > 300 else float(text)
