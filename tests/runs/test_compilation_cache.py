"""Compiled programs on disk: a second process compiles nothing, and the user's choice holds."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fp3o.runs import compilation_cache
from fp3o.runs.compilation_cache import JAX_VARIABLE, VARIABLE, cache_state

TRAIN = """
import sys
from collections import Counter
import jax
import fp3o
from fp3o.runs import run

events = Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event]))
small = dict(algorithm="ippo", num_envs=2, rollout=5, hidden=(4,), gru_size=0, epochs=1,
             minibatches=1, seeds=1, steps=10, eval_every=9, eval_episodes=2, final_episodes=2)
quiet = dict(out=sys.argv[1], progress="quiet", loggers=())
run.report = lambda _, out: out  # drawing takes seconds
fp3o.train("probe/credit", **quiet, **small)
print(*(events[f"/jax/compilation_cache/cache_{kind}"] for kind in ("hits", "misses")))
"""


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not imported JAX, without the cache of the tests."""
    monkeypatch.setattr(compilation_cache, "sys", SimpleNamespace(modules={}))
    for name in [*os.environ]:
        if name.startswith(("JAX_COMPILATION", "JAX_PERSISTENT")) or name == VARIABLE:
            monkeypatch.delenv(name)
    # What the function adds is removed afterwards.
    monkeypatch.setattr(os, "environ", os.environ.copy())


def enabled_folder() -> str | None:
    compilation_cache.enable_compilation_cache()
    return os.environ.get(JAX_VARIABLE)


@pytest.mark.usefixtures("unused")
def test_the_user_chooses_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Off, another directory, or JAX's own settings, which are not changed."""
    monkeypatch.setenv(VARIABLE, "0")
    assert enabled_folder() is None and cache_state() == (False, f"turned off by {VARIABLE}=0")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mine"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "7")
    assert enabled_folder() == str(tmp_path / "mine")
    assert os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] == "7"
    assert cache_state()[1].startswith(f"{tmp_path / 'mine'}, 0 programs, 0.0 MiB of at most")
    monkeypatch.setenv(JAX_VARIABLE, str(tmp_path / "of_jax"))
    assert enabled_folder() == str(tmp_path / "of_jax")
    assert cache_state()[1].startswith(f"{tmp_path / 'of_jax'} (set for JAX)")
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("unused")
def test_the_cache_is_bounded_and_in_the_user_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = compilation_cache.user_cache_dir("fp3o", appauthor=False)
    monkeypatch.setattr(compilation_cache, "_delete_incomplete", lambda _: None)
    monkeypatch.setattr(compilation_cache, "_writable", lambda _: True)
    assert Path(str(enabled_folder())) == Path(folder) / "programs"
    assert int(os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]) == 2**30


@pytest.mark.usefixtures("unused")
@pytest.mark.parametrize("kind", ["new", "below a file", "read-only"])
def test_a_cache_that_cannot_be_written_is_not_used(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX would warn of it at every program."""
    (tmp_path / "file").touch()
    folder = tmp_path / ("file" if kind == "below a file" else "new") / "cache"
    monkeypatch.setenv(VARIABLE, str(folder))
    monkeypatch.setattr(os, "access", lambda *_: kind != "read-only")
    assert cache_state()[0] == (kind == "new")
    assert enabled_folder() == (str(folder) if kind == "new" else None)
    assert not folder.parent.is_dir()


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """Keys are the same in every process, and loading a program prints nothing.

    A program whose storing was interrupted does not keep others from being stored.
    """
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "interrupted-cache").touch()
    environment = {**os.environ, VARIABLE: str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    del environment[JAX_VARIABLE]
    for k in range(2):
        program = [sys.executable, "-c", TRAIN, str(tmp_path / f"run-{k}")]
        done = subprocess.run(program, capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        hits, misses = map(int, done.stdout.split())
        assert misses > 0 if k == 0 else hits > misses == 0
