"""Ctrl-C is answered at once, also while the main thread computes without a pause."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fp3o.runs.signals import prompt_interrupts, stop_at_once, stop_signals

DEFAULT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Tests may run in the background of a shell, where Ctrl-C is ignored."""
BUSY = f"""
{DEFAULT}
import hashlib, sys
from fp3o.runs import signals
signals.ANSWER_SECONDS = 0.3
signals.END_SECONDS = 0.5
def compute():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 400_000_000)  # minutes in C, without a pause
"""
WAYS = {
    "computing": "with signals.prompt_interrupts(): compute()",
    "closing": """
with signals.prompt_interrupts():
    try:
        print("ready", flush=True)
        while True: pass
    finally:
        compute()
""",
    "compiling": """
def say(text): print(text, file=sys.stderr, flush=True)
with signals.prompt_interrupts(), signals.stop_signals(say), signals.stop_at_once(): compute()
""",
    "training": """
def say(text): print(text, file=sys.stderr, flush=True)
with signals.prompt_interrupts(), signals.stop_signals(say): compute()
""",
}


DROPPED = """
import gc, os, time, weakref
class Thing: pass
def wait(*_):
    print("ready", flush=True)
    time.sleep(60)
def reference():
    thing = Thing()
    return weakref.ref(thing, wait)
def collection():
    gc.disable()  # once is enough
    gc.callbacks.append(lambda phase, _: phase == "start" or wait())
    gc.collect()
with signals.prompt_interrupts():
    try:
        {callback}()  # what the callback raises is dropped
        time.sleep(60)
    except KeyboardInterrupt:
        os._exit(7)
"""


@contextmanager
def started(code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to be interrupted, and ended afterwards."""
    program = [sys.executable, "-c", BUSY + code]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(program, env=environment, **pipes)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.5)  # it says so just before
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("way", ["computing", "closing", "compiling"])
def test_a_busy_main_thread(way: str) -> None:
    """The process ends with the status of an interruption and one line."""
    with started(WAYS[way]) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; what was saved is intact" in errors
    assert ("closing environments and files" in errors) == (way == "closing")


@pytest.mark.parametrize("callback", ["reference", "collection"])
def test_an_interruption_that_a_callback_drops(callback: str) -> None:
    """It is raised again in the program itself, without a traceback of the callback."""
    with started(DROPPED.format(callback=callback)) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (7, "")


def test_an_interruption_before_compiling() -> None:
    """One that was collected stops where nothing is worth waiting for."""
    said: list[str] = []
    with stop_signals(said.append) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop == [signal.SIGINT] and len(said) == 1
        with pytest.raises(KeyboardInterrupt), stop_at_once():
            pass


def test_the_first_interruption_of_training_waits() -> None:
    """The answer comes at once; only a second one ends the process before the iteration is done."""
    with started(WAYS["training"]) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline() == "stopping after this iteration ...\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted" in errors


@pytest.fixture
def usual_handler() -> Iterator[None]:
    """The handler with which Python starts in a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_handler")
def test_a_responsive_main_thread() -> None:
    """`KeyboardInterrupt` as usual; afterwards everything is as before."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), prompt_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.usefixtures("usual_handler")
def test_other_handlers_stay() -> None:
    """An ignored signal, as under `nohup`, and other threads."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with prompt_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    found = []

    def enter() -> None:
        with prompt_interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [before]


COMMAND = "import sys; from fp3o.cli.main import main; sys.exit(main())"
COMMANDS = {
    "train": ("train smac/3m --preset paper --out run", "compiling"),
    "check": ("check smac/3m", "running random episodes"),
    "evaluate": ("evaluate policy --trust", "evaluating"),
    "experiment": ("experiment mpe-table --scale laptop --out grid", "compiling"),
    "sweep": ("sweep smac/3m --search actor_lr=1e-4..1e-3 --out sweep", "compiling"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, tmp_path: Path) -> None:
    """Commands that compile say something and end within two seconds (more on a busy machine)."""
    words, sign = COMMANDS[name]
    if name == "evaluate":
        _write_policy(tmp_path / "policy")
    settings = {"FP3O_COMPILATION_CACHE": "0", "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.getcwd()}
    process = subprocess.Popen(
        [sys.executable, "-c", f"{DEFAULT}\n{COMMAND}", *words.split()], cwd=tmp_path, text=True,
        env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    assert any(sign in line for line in lines), "it ended without the line"
    time.sleep(1.0)  # inside the computation
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    try:
        said = process.stdout.readline()
        answered = time.monotonic() - sent
        text, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert "interrupted" in said + text or "stopping" in said + text
    assert process.returncode == 130
    assert answered < 2.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _write_policy(folder: Path) -> None:
    """An untrained policy of a task whose evaluation takes long to compile."""
    from fp3o import Program, make
    from fp3o.policy.export import write_policy
    from fp3o.runs.run_config import RunConfig

    learner = RunConfig.from_preset("smac/3m", "paper").learner
    program = Program(make("smac/3m", learner.num_envs), learner)
    write_policy(folder, program.setup, program.setup.init(0).actor, {})


def test_loops_side_by_side_end_in_any_order() -> None:
    """One that is still running is stopped by Ctrl-C after the other has ended."""
    said: list[str] = []
    first, second = stop_signals(said.append), stop_signals(said.append)
    one, other = first.__enter__(), second.__enter__()
    handler = signal.getsignal(signal.SIGINT)
    assert callable(handler)
    first.__exit__(None, None, None)
    handler(signal.SIGINT, None)
    second.__exit__(None, None, None)
    assert (one, other) == ([], [signal.SIGINT])
    assert len(said) == 1
