"""Stand-ins for the packages wandb and mlflow, with the part of their interface that is used."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest


def fake_package(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> ModuleType:
    """A package that may not be installed here."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


class FakeWandB:
    """Weights & Biases: its runs by id, with what was logged."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, logged_in: bool = True, mode: str = "online"
    ):
        self.runs: dict[str, FakeWandBRun] = {}
        settings = SimpleNamespace(mode=mode)
        self.module = fake_package(
            monkeypatch, "wandb", init=self.init, run=None,
            Video=lambda path, **_: ("video", path),
            setup=lambda: SimpleNamespace(settings=settings),
            login=lambda prompt, verify: logged_in,
        )  # fmt: skip

    def init(self, *, id: str, resume: str, reinit: str, **options: Any) -> "FakeWandBRun":  # noqa: A002
        assert (resume, reinit) == ("allow", "create_new")
        run = self.runs.setdefault(id, FakeWandBRun())
        run.options, run.finished = options, False
        return run


class FakeWandBRun:
    """A run, which refuses steps that it has, as the real one."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.options: dict[str, Any] = {}
        self.finished = False

    @property
    def step(self) -> int:
        return max(self.rows, default=-1) + 1

    def log(self, values: dict[str, Any], step: int) -> None:
        assert step >= self.step - 1, "the real one leaves this out, with a warning"
        self.rows.setdefault(step, {}).update(values)

    def finish(self) -> None:
        self.finished = True


class Metric(NamedTuple):
    key: str
    value: float
    timestamp: int
    step: int


class Param(NamedTuple):
    key: str
    value: str


class FakeMLflow:
    """MLflow: its runs by id, with what was logged. The class of clients is the object itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.runs: dict[str, Any] = {}
        self.experiments: dict[str, str] = {}
        entities = SimpleNamespace(Metric=Metric, Param=Param)
        fake_package(monkeypatch, "mlflow", MlflowClient=lambda: self, entities=entities)

    def get_experiment_by_name(self, name: str) -> Any:
        known = self.experiments.get(name)
        return known and SimpleNamespace(experiment_id=known)

    def create_experiment(self, name: str) -> str:
        return self.experiments.setdefault(name, f"experiment {len(self.experiments)}")

    def create_run(self, experiment: str, tags: dict[str, str], run_name: str) -> Any:
        number = f"run {len(self.runs)}"
        self.runs[number] = SimpleNamespace(
            name=run_name, experiment=experiment, info=SimpleNamespace(run_id=number), metrics=[],
            params={}, artifacts=[], status="RUNNING", data=SimpleNamespace(tags=dict(tags)),
        )  # fmt: skip
        return self.runs[number]

    def get_run(self, number: str) -> Any:
        return self.runs[number]

    def update_run(self, number: str, status: str) -> None:
        self.runs[number].status = status

    def log_batch(self, number: str, metrics: Any = (), params: Any = ()) -> None:
        assert len(metrics) <= 1000 and len(params) <= 100
        self.runs[number].metrics += metrics
        self.runs[number].params.update(params)

    def set_tag(self, number: str, name: str, value: Any) -> None:
        self.runs[number].data.tags[name] = str(value)

    def log_artifact(self, number: str, path: str, folder: str) -> None:
        self.runs[number].artifacts.append((folder, path))

    def set_terminated(self, number: str) -> None:
        self.runs[number].status = "FINISHED"
