"""Sweeps write no report, except where it is tested: drawing takes seconds."""

from collections.abc import Iterator

import pytest

from fp3o.experiments.sweep import launch


@pytest.fixture(scope="package", autouse=True)
def no_report() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "write_sweep_report", lambda *_: None)
        yield
