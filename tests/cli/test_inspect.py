"""`fp3o list` and `fp3o doctor` are complete, and a failing check does not stop them."""

import json
import sys
from dataclasses import replace
from typing import Any

import pytest

import fp3o
from fp3o.algorithms.table import ALGORITHMS
from fp3o.cli import diagnosis
from fp3o.cli.listing import listing
from fp3o.envs.registry import imports_code
from fp3o.envs.toys.probe import PROBES
from fp3o.policy import PolicyError, require_trust
from fp3o.sharing.schemes import SHARINGS


@pytest.mark.usefixtures("registries")
def test_registered_things_are_listed() -> None:
    """Registered algorithms, sharings and environments are listed beside the built-in ones."""
    ALGORITHMS["mine"] = replace(ALGORITHMS["mappo"], summary="my summary")
    SHARINGS["pairs"] = replace(SHARINGS["full"], summary="pairs of agents")
    name = fp3o.register_env(PROBES["credit"]).name
    found = listing()
    assert found["algorithms"]["mine"]["summary"] == "my summary"
    assert found["sharings"]["pairs"] == "pairs of agents"
    assert name in found["tasks"]
    assert json.dumps(found)


def test_the_doctor_checks_every_extra() -> None:
    """All optional dependencies of pyproject.toml that add a feature are examined."""
    extras = {extra for extra, _ in diagnosis.OPTIONAL_PACKAGES.values()}
    assert extras == {
        "wandb", "mlflow", "mpe2", "mjx", "pettingzoo", "jaxmarl", "jumanji", "ray",
        "onnx", "minari",
    }  # fmt: skip


def test_a_check_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing backend, a missing MuJoCo and a broken check do not stop the others."""

    def broken() -> Any:
        raise RuntimeError("unable to initialize backend 'cuda'\nmore")

    monkeypatch.setattr(diagnosis, "_tasks", broken)
    monkeypatch.setattr("fp3o.runs.provenance.device_name", broken)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.setattr("fp3o.cli.diagnosis.find_spec", _without_parents)
    found = {finding.name: finding for finding in diagnosis.diagnose()}
    assert not found["device"].ok and "JAX_PLATFORMS" in found["device"].fix
    assert found["device"].detail == "RuntimeError: unable to initialize backend 'cuda'"
    assert not found["tasks"].ok and found["tasks"].required and found["tasks"].fix
    assert not found["mujoco.mjx"].ok and "fp3o[mjx]" in found["mujoco.mjx"].fix
    assert "ray" in found and "this directory" in found


def _without_parents(name: str) -> None:
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("python:my_module:make", True),
        ("python/my_module.make", True),
        ("pettingzoo:my_module:env", True),
        ("mpe/simple_spread", False),
        ("smac/3m:smac", False),
    ],
)
def test_trust_is_required_for_every_spelling(name: str, imported: bool) -> None:
    """Every name that imports code needs trust."""
    assert imports_code(name) is imported
    with pytest.raises(PolicyError, match="trust=True"):
        require_trust(False, "task", name)
    require_trust(True, "task", name)
