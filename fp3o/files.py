"""Files of runs and policies: reading what may be damaged, and checksums of JSON documents.

A checksum shows that a file was damaged or edited. It does not show who wrote the file.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CHECKSUM = "checksum"
"""Key of a document under which its own checksum is stored."""


class DamagedFileError(ValueError):
    """A file is missing, damaged or of an unexpected kind; the message does not name it."""


def read_regular(path: Path, most: int | None = None, follow: bool = False) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Pipes, devices and larger files are rejected unread, links too unless `follow`.
    """
    if path.is_symlink() and not follow:
        raise DamagedFileError("is a symbolic link, not a regular file")
    # Opening a pipe would wait for a writer, and a link may take the file's place meanwhile.
    names = ("O_NONBLOCK", "O_BINARY", *(() if follow else ("O_NOFOLLOW",)))
    flags = sum(getattr(os, name, 0) for name in names)
    with open(os.open(path, os.O_RDONLY | flags), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise DamagedFileError("is not a regular file")
        if most is not None and info.st_size > most:
            raise DamagedFileError(f"has {info.st_size} bytes, at most {most} are allowed")
        return file.read(info.st_size)


def document_checksum(document: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object, whatever its layout, without its own checksum."""
    content = {name: value for name, value in document.items() if name != CHECKSUM}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its checksum as last entry."""
    return {
        **{name: value for name, value in document.items() if name != CHECKSUM},
        CHECKSUM: document_checksum(json.loads(json.dumps(document))),
    }


def parse_document(text: bytes) -> dict[str, Any]:
    """The JSON object of a text; one with a checksum must match it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"is damaged: {error}") from None
    if not isinstance(document, dict):
        raise DamagedFileError("is damaged: it is not a JSON object")
    if CHECKSUM in document and document[CHECKSUM] != document_checksum(document):
        raise DamagedFileError("is damaged or was edited: its checksum does not match its content")
    return document


def flush(path: Path) -> None:
    """Flush a file, or the names in a directory, to disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open directories; renames there are durable enough
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
