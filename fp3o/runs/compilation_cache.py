"""Compiled programs on disk, so that a second run of the same kind starts without compiling.

JAX's persistent compilation cache in the user's cache directory. `FP3O_COMPILATION_CACHE=0` turns
it off, another value names its directory. A directory that the user has given to JAX, by
`JAX_COMPILATION_CACHE_DIR` or in `jax.config`, is used as it is.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_dir

VARIABLE = "FP3O_COMPILATION_CACHE"
"""Environment variable: 0 or the directory of the cache."""

JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
"""JAX's own environment variable."""

MAX_MEBIBYTES = 1024
"""Size of the cache, beyond which the programs that were not used for longest are deleted."""

MIN_COMPILE_SECONDS = 1.0
"""Programs that compile faster are not stored."""


def enable_compilation_cache() -> None:
    """Store compiled programs from now on, unless the user has chosen otherwise.

    Where JAX is not imported yet, its environment variables are set, which child processes inherit.
    """
    folder = cache_folder()
    if folder is None or _user_folder() or not _writable(folder):
        return
    _delete_incomplete(folder)
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_compilation_cache_max_size": MAX_MEBIBYTES * 2**20,
        "jax_persistent_cache_min_compile_time_secs": MIN_COMPILE_SECONDS,
    }
    chosen = {name: value for name, value in settings.items() if name.upper() not in os.environ}
    if "jax" not in sys.modules:
        os.environ.update({name.upper(): str(value) for name, value in chosen.items()})
        return
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    for name, value in chosen.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX may have looked for its directory already


@contextmanager
def without_compilation_cache() -> Iterator[None]:
    """Context in which programs are compiled, not loaded: their compile time is measured."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    before = bool(getattr(jax.config, "jax_enable_compilation_cache", True))
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def cache_folder() -> Path | None:
    """Directory of the cache; None if it is turned off."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "0":
        return None
    return Path(chosen) if chosen else Path(user_cache_dir("fp3o", appauthor=False)) / "programs"


def _writable(folder: Path) -> bool:
    """Whether files can be written to a directory, which need not exist yet."""
    places = (folder, *folder.absolute().parents)
    exists = next(place for place in places if os.path.exists(place))
    return exists.is_dir() and os.access(exists, os.W_OK | os.X_OK)


def cache_state() -> tuple[bool, str]:
    """Whether compiled programs are stored, and where, or why not; for people."""
    chosen, folder = _user_folder(), cache_folder()
    if chosen and chosen != str(folder):
        return True, f"{chosen} (set for JAX), {_size_text(Path(chosen))}"
    if folder is None:
        return False, f"turned off by {VARIABLE}=0"
    if not _writable(folder):
        return False, f"{folder} cannot be written"
    return True, f"{folder}, {_size_text(folder)} of at most {MAX_MEBIBYTES} MiB"


def _user_folder() -> str:
    """The directory that JAX uses by the user's choice, or by an earlier call; else empty."""
    if "jax" not in sys.modules:
        return os.environ.get(JAX_VARIABLE, "")
    import jax

    return getattr(jax.config, "jax_compilation_cache_dir", None) or ""


def _size_text(folder: Path) -> str:
    sizes = [file.stat().st_size for file in folder.glob("*-cache") if file.exists()]
    return f"{len(sizes)} programs, {sum(sizes) / 2**20:.1f} MiB"


def _delete_incomplete(folder: Path) -> None:
    """Delete programs without a time of use, from a process that was killed while it stored them.

    JAX would fail to store any further program.
    """
    for file in folder.glob("*-cache"):
        if not file.with_name(f"{file.name.removesuffix('cache')}atime").exists():
            with contextlib.suppress(OSError):  # another process may be faster
                file.unlink()
