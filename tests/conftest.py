"""Configuration of the tests: shapes checked at every call, programs compiled quickly."""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from campaigns import MEDIUM, PROPERTY, WHOLE, Campaign, totals_line

FAST_COMPILE = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
"""The programs of the tests are tiny: compiling them costs four times less this way."""


def accepted(flags: str) -> bool:
    """Whether this version of XLA knows the flags; it aborts the process on an unknown one."""
    probe = [sys.executable, "-c", "import jax; jax.numpy.zeros(1)"]
    environment = {**os.environ, "XLA_FLAGS": flags}
    return subprocess.run(probe, env=environment, capture_output=True, check=False).returncode == 0


os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tests of programs over several devices need some.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")
# Threads of small matrix products wait for each other where several workers share the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Runs of one kind, also in other processes and later sessions, share their compiled program.
CACHE = Path(__file__).parent.parent / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
if "XLA_FLAGS" not in os.environ and accepted(FAST_COMPILE):
    os.environ["XLA_FLAGS"] = FAST_COMPILE  # inherited by workers, read when JAX is imported

from jaxtyping import install_import_hook  # noqa: E402

# Traces make many short-lived objects: collecting them less often saves a tenth of the time.
gc.set_threshold(50_000, 20, 50)

# Every annotated shape and type of the package is checked while it is traced under test. Campaigns
# do without: they take several times as long otherwise.
if os.environ.get("SHAPE_CHECKS", "1") != "0":
    install_import_hook("fp3o", "beartype.beartype")


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `slow.txt` lists, and those of the slow ones in `exhaustive.txt`."""
    slow, exhaustive = listed_tests("slow.txt"), listed_tests("exhaustive.txt")
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(exhaustive) and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.exhaustive)


def listed_tests(name: str) -> tuple[str, ...]:
    """Beginnings of the ids that a file lists."""
    lines = (Path(__file__).parent / name).read_text().splitlines()
    return tuple(f"tests/{line}" for line in lines if line and not line.startswith("#"))


@pytest.fixture(scope="session", autouse=True)
def quick_pdfs() -> None:
    """Embed fonts as Type 3: a subset of a TrueType font takes a second per figure."""
    from fp3o.reports.figures.canvas import RC_PARAMS

    RC_PARAMS["pdf.fonttype"] = 3


@pytest.fixture(scope="session", autouse=True)
def shared_programs() -> Iterator[None]:
    """Compile a program once for all runs of its shape in this process."""
    from probe_runs import compiled_program

    from fp3o.runs import trainer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "make_program", compiled_program)
        yield


@pytest.fixture(scope="session", autouse=True)
def write_report() -> Iterator[Callable[..., Path]]:
    """Let runs write no report: drawing takes seconds. Tests that need the real one get it."""
    from fp3o.runs import run as run_module

    with pytest.MonkeyPatch.context() as patch:
        real = run_module.report
        patch.setattr(run_module, "report", lambda run, out: Path(out or run))
        yield real


@pytest.fixture
def registries() -> Iterator[None]:
    """Forget the algorithms, schedules, schemes, tasks and metrics that a test registers."""
    from fp3o.algorithms.registry import SCHEDULES, SURROGATES
    from fp3o.algorithms.table import ALGORITHMS, REGISTERED_IN
    from fp3o.envs.registry import REGISTERED
    from fp3o.reports.data.measures import REGISTERED_METRICS
    from fp3o.sharing.schemes import SHARINGS

    tables: list[dict[str, Any]] = [SCHEDULES, SURROGATES, ALGORITHMS, REGISTERED_IN]
    tables += [REGISTERED, SHARINGS, REGISTERED_METRICS]
    before = [dict(table) for table in tables]
    yield
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)


@pytest.fixture(params=["small", MEDIUM, WHOLE])
def campaign(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[Campaign]:
    """A campaign named after the test; its totals are part of the test's report."""
    name = request.node.originalname.removeprefix("test_").replace("_", " ")
    campaign = Campaign(name, request.param)
    yield campaign
    record_property(PROPERTY, campaign.record)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the totals of the campaigns; `CAMPAIGN_TOTALS` names a JSON file for them."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    passed = {report.nodeid for report in terminalreporter.getreports("passed")}
    records = [
        value
        for report in reports
        if getattr(report, "when", "") == "teardown" and report.nodeid in passed
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if records:
        terminalreporter.section("campaigns")
    for record in records:
        terminalreporter.write_line(totals_line(record))
    if path := os.environ.get("CAMPAIGN_TOTALS"):
        Path(path).write_text(json.dumps(records, indent=1) + "\n")
