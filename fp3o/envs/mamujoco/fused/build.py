"""Compiles `environment.h` for a task with the machine's compilers, once, and gives it to JAX."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jax
from platformdirs import user_cache_dir

from fp3o.errors import UserError

SOURCE_FOLDER = Path(__file__).parent

SOURCE_FILES = (
    "lanes.h", "scratch.h", "algebra.h", "dynamics.h", "constraints.h", "integration.h",
    "environment.h", "target.cpp",
)  # fmt: skip
"""The sources besides the header of a task."""

CACHE_VARIABLE = "FP3O_PHYSICS_CACHE"
"""Environment variable: the directory of compiled physics."""


@cache
def register_step(header: str) -> str:
    """Name of the function of the task with this header, for `jax.ffi.ffi_call`.

    It is compiled for the CPU, and for the GPU if JAX has one.
    """
    sources = [(SOURCE_FOLDER / name).read_text() for name in SOURCE_FILES]
    name = "fp3o_step_" + _digest(header, *sources)
    for kind, compiler in _compilers().items():
        library = _load(_library(header, sources, kind, compiler))
        # The library stays loaded as long as the process: JAX keeps the address.
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(library.Step), platform=kind)
    return name


def _compilers() -> dict[str, list[str]]:
    """Command that compiles for each kind of device."""
    found = {"cpu": [*_compiler("CXX", "c++", "g++", "clang++"), "-O3"]}
    devices = jax.devices()
    if devices[0].platform == "gpu":
        version = str(getattr(devices[0], "compute_capability", "")).replace(".", "")
        nvcc = _compiler("NVCC", "nvcc", "/usr/local/cuda/bin/nvcc")
        target = f"-arch=sm_{version}" if version else "-arch=native"
        # The last option passes on the next one, -fPIC, to the host's compiler.
        found["CUDA"] = [*nvcc, "-x", "cu", "-O3", target, "-Xcompiler"]
    return found


def _compiler(variable: str, *names: str) -> list[str]:
    """The command that an environment variable names, or else the first of some that exists."""
    chosen = shlex.split(os.environ.get(variable, ""))
    for name, *options in [chosen] if chosen else [[name] for name in names]:
        if path := shutil.which(name):
            return [path, *options]
    if chosen:
        raise UserError(f"{variable} is {shlex.join(chosen)!r}, and no {chosen[0]} was found")
    raise UserError(
        f"backend=fused needs a compiler: none of {', '.join(names)} was found. Install one (nvcc "
        f"is part of the CUDA toolkit), name another with {variable}, or use backend=native"
    )


def _library(header: str, sources: Sequence[str], kind: str, compiler: Sequence[str]) -> Path:
    """The shared library for a kind of device; compiled if it is not kept from before."""
    folder = Path(
        os.environ.get(CACHE_VARIABLE) or Path(user_cache_dir("fp3o", appauthor=False)) / "physics"
    )
    key = _digest(header, *sources, *compiler, platform.machine(), sys.platform, jax.__version__)
    path = folder / f"{key}.so"
    if path.exists():
        return path
    with _scratch_folder(folder) as place:
        for name, text in zip(("model.h", *SOURCE_FILES), (header, *sources), strict=True):
            (place / name).write_text(text)
        include = [f"-I{place}", f"-I{jax.ffi.include_dir()}"]
        command = [*compiler, "-fPIC", "-shared", "-std=c++17", "-w", *include]
        result = subprocess.run(
            [*command, str(place / "target.cpp"), "-o", str(place / "physics.so")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if result.returncode:
            raise UserError(
                f"{compiler[0]} cannot compile the simulation:\n{result.stderr[-2000:]}"
            )
        os.replace(place / "physics.so", path)  # at once, for processes that start together
    return path


def _load(path: Path) -> Any:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:  # written by another system, or where nothing may be executed
        raise UserError(
            f"the compiled simulation {path} cannot be loaded: {error}. Remove it, or name another "
            f"directory with {CACHE_VARIABLE}"
        ) from error


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder inside of the one in which libraries are kept."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=folder)
    except OSError as error:
        raise UserError(
            f"compiled simulations cannot be kept in {folder}: {error.strerror}. "
            f"{CACHE_VARIABLE} names another directory"
        ) from error
    with scratch as path:
        yield Path(path)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
