"""An object store in memory with S3's conditional writes, and the requests that reach it.

As in S3, the tag of an object is a digest of its content: equal contents have equal tags.
"""

import hashlib
from enum import Enum
from typing import NamedTuple

ABSENT = "absent"
"""The condition that there is no object yet (`If-None-Match: *`)."""


class Get(NamedTuple):
    """Read an object."""

    key: str


class Head(NamedTuple):
    """Read the checksum of an object that the store has computed, not the object."""

    key: str


class Put(NamedTuple):
    """Write an object if its tag is as stated (`If-Match`); None: in any case."""

    key: str
    content: bytes
    condition: str | None


class List(NamedTuple):
    """The keys of a folder (`name/`), and their tags."""

    prefix: str


Request = Get | Head | Put | List


class Status(Enum):
    """What a client knows after a request."""

    DONE = "done"
    MISSING = "missing"
    CONFLICT = "the condition does not hold"
    FORBIDDEN = "the key of the client is revoked"
    UNKNOWN = "time-out or server error: done or not"


class Reply(NamedTuple):
    """The answer of the store."""

    status: Status
    content: bytes = b""
    tag: str = ""
    listing: tuple[tuple[str, str], ...] = ()


class ObjectStore:
    """Objects by key; every request is atomic, and readers see the last write."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, tuple[bytes, str]]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._folder(key)

    def content(self, key: str) -> bytes:
        """The content of an object; empty if there is none."""
        return self._folder(key).get(key, (b"", ABSENT))[0]

    def _folder(self, key: str) -> dict[str, tuple[bytes, str]]:
        return self._folders.setdefault(key[: key.index("/") + 1], {})

    def apply(self, request: Request) -> Reply:
        """Do what a request asks for."""
        if isinstance(request, List):
            folder = self._folder(request.prefix)
            return Reply(Status.DONE, listing=tuple((key, x[1]) for key, x in folder.items()))
        folder = self._folder(request.key)
        content, tag = folder.get(request.key, (b"", ABSENT))
        if isinstance(request, Put):
            if request.condition not in (None, tag):
                return Reply(Status.CONFLICT)
            tag = hashlib.md5(request.content, usedforsecurity=False).hexdigest()
            folder[request.key] = request.content, tag
            return Reply(Status.DONE, tag=tag)
        if tag == ABSENT:
            return Reply(Status.MISSING)
        return Reply(Status.DONE, content, tag)
