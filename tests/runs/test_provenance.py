"""Provenance: the algorithm is recorded so that reports need not import its module."""

from pathlib import Path

import pytest

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.table import register_algorithm
from fp3o.reports.data.record import RunRecord
from fp3o.runs.provenance import provenance_record
from fp3o.runs.run_config import RunConfig


@pytest.mark.usefixtures("registries")
def test_a_custom_algorithm_is_recorded_with_its_title_and_gate() -> None:
    row = Algorithm("pipelines", inner_clip=0.3, title="Careful", colour=("#123456", "#abcdef"))
    register_algorithm("careful", row, __name__)
    config = RunConfig().with_settings({"algorithm": "careful"})
    metadata = provenance_record(config.settings, 2)
    assert config.settings["algorithm"].endswith(":careful")
    run = RunRecord(Path("run"), metadata, {}, {})
    assert (run.algorithm, run.colour, run.gated) == ("Careful", ("#123456", "#abcdef"), True)
    assert metadata["algorithm"]["fields"]["inner_clip"] == 0.3


def test_changed_fields_are_recorded() -> None:
    changed = RunConfig().with_settings({"algorithm": "fp3o:steps=independent", "sharing": "none"})
    metadata = provenance_record(changed.settings, 2)
    row = metadata["algorithm"]
    assert (row["name"], row["changes"], row["gated"]) == ("fp3o", "steps=independent", False)
    assert metadata["sharing_title"] == "none"
