"""Environments of other packages: trained, resumed, evaluated and rendered through adapters."""

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import fp3o
from fp3o.cli.main import main
from fp3o.spec import Box, Discrete

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "num_envs": 2, "rollout": 8, "minibatches": 1, "hidden": (8,),
    "epochs": 1, "eval_every": 0, "eval_episodes": 2, "final_episodes": 2, "progress": "quiet",
    "loggers": (),
}  # fmt: skip
ITERATION = 2 * 8


class Case(NamedTuple):
    """An environment, its options, and what is known of it."""

    package: str
    task: str
    options: str
    actions: Discrete | Box
    agent_types: tuple[int, ...]


# The modules with a version in their names, as `pursuit_v5`, warn that a registry will replace
# them, and versions of PettingZoo have others; what they import stays where it is.
CASES = {
    "mpe2": Case(
        "mpe2",
        "pettingzoo:mpe2.simple_speaker_listener_v4:parallel_env",
        "env.max_cycles=6",
        Discrete(((3,), (5,))),
        (0, 1),
    ),
    "pursuit": Case(
        "pettingzoo.sisl.pursuit.pursuit",
        "pettingzoo:pettingzoo.sisl.pursuit.pursuit:parallel_env",
        "env.max_cycles=6,env.n_pursuers=3,env.n_evaders=4,env.x_size=10,env.y_size=10",
        Discrete(((5,), (5,), (5,))),
        (0, 0, 0),
    ),
    # Archers and knights are killed one by one, if zombies come soon.
    "knights_archers_zombies": Case(
        "pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies",
        "pettingzoo:pettingzoo.butterfly.knights_archers_zombies.knights_archers_zombies:"
        "parallel_env",
        "reward=sum,env.max_cycles=30,env.spawn_delay=1",
        Discrete(((6,),) * 4),
        (0, 0, 1, 1),
    ),
    "gymnasium_robotics": Case(
        "gymnasium_robotics",
        "pettingzoo:gymnasium_robotics.mamujoco_v1:parallel_env",
        "max_episode_steps=6,env.scenario=Hopper,env.agent_conf=3x1",
        Box((1, 1, 1)),
        (0, 1, 0),
    ),
    "pursuit by id": Case(
        "pettingzoo.sisl.pursuit.pursuit",
        "pettingzoo/sisl/pursuit-v5",
        "env.max_cycles=6,env.n_pursuers=3,env.n_evaders=4,env.x_size=10,env.y_size=10",
        Discrete(((5,), (5,), (5,))),
        (0, 0, 0),
    ),
    "multiwalker": Case(
        "pettingzoo.sisl.multiwalker.multiwalker",
        "pettingzoo/sisl/multiwalker-v9",
        "env.max_cycles=6",
        Box((4, 4, 4)),
        (0, 0, 0),
    ),
    "lbforaging": Case(
        "lbforaging",
        "gymnasium/lbforaging:Foraging-8x8-2p-3f-v3",
        "env.max_episode_steps=6",
        Discrete(((6,), (6,))),
        (0, 0),
    ),
    "rware": Case(
        "rware",
        "gymnasium/rware:rware-tiny-2ag-v2",
        "env.max_steps=6",
        Discrete(((5,), (5,))),
        (0, 0),
    ),
    "gymnasium": Case(
        "gymnasium",
        "gymnasium/CartPole-v1",
        "env.max_episode_steps=6",
        Discrete(((2,),)),
        (0,),
    ),
}


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes warnings to the working directory."""
    monkeypatch.chdir(tmp_path)


OFTEN = ("mpe2", "pursuit", "gymnasium_robotics")
"""Environments of the default run; the others are tested in `make test-slow`."""


@pytest.fixture(
    params=[pytest.param(n, marks=[pytest.mark.slow] * (n not in OFTEN)) for n in CASES]
)
def case(request: pytest.FixtureRequest) -> Case:
    """An environment whose package is installed, with its own warnings silenced."""
    found = CASES[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(found.package)
        except ImportError as error:
            pytest.skip(f"needs {error.name}")
    return found


@pytest.mark.filterwarnings("ignore:The system font:UserWarning")
@pytest.mark.filterwarnings("ignore:.*running episodes:RuntimeWarning")
def test_from_training_to_video(case: Case) -> None:
    """From training to a video, through the public API."""
    variant = f"default:{case.options}"
    spec = fp3o.make(case.task, variant=variant).spec
    assert spec.actions == case.actions and spec.agent_types == case.agent_types
    run = fp3o.train(case.task, variant=variant, out="run", steps=2 * ITERATION, **SMALL)
    assert run.finished and run.config.task_info.renderable(variant)
    run = fp3o.resume(run.path, steps=3 * ITERATION, progress="quiet", loggers=(), trust=True)
    assert run.finished and run.results["steps"] == 3 * ITERATION
    found = run.evaluate(3)
    assert found["task"] == spec.name and found["agents"] == spec.num_agents
    assert all(np.isfinite(row["return"]) for row in found["policies"])
    with Image.open(rendered(run.path)) as video:
        assert getattr(video, "n_frames", 1) > 1
        assert len(video.convert("RGB").getcolors(1 << 24) or ()) > 2


def rendered(path: Path) -> Path:
    """A short video of a run's policy, where it can be drawn.

    In a process of its own: MuJoCo's viewer crashed in one that had run hundreds of other tests.
    """
    words = f"render {path} --out video.gif --episodes 1 --seconds 0.5 --trust"
    command = [sys.executable, "-m", "fp3o", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "MUJOCO_GL" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return Path("video.gif")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*running episodes:RuntimeWarning")
def test_in_workers(case: Case) -> None:
    """The same numbers as in this process."""
    if case.task.startswith("gymnasium/"):
        pytest.skip("its environments have no workers")
    runs = {
        number: fp3o.train(
            case.task, variant=f"default:workers={number},{case.options}", out=f"run-{number}",
            steps=2 * ITERATION, **SMALL,
        ).results
        for number in (0, 1)
    }  # fmt: skip
    assert runs[0]["last"] == runs[1]["last"] and runs[0]["best"] == runs[1]["best"]


@pytest.mark.slow
def test_through_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What follows `--env.` reaches the constructor; a check is given it in the task's name."""
    pytest.importorskip("mpe2", reason="needs the extra mpe2")
    path = "mpe2.simple_spread_v3.parallel_env"
    words = "--env.N 2 --env.max_cycles 6 --out run --steps 16 --num-envs 2 --rollout 8 --hidden 8"
    few = "--eval-episodes 2 --final-episodes 2 --loggers none --quiet"
    assert main(["train", f"pettingzoo:{path}", *words.split(), *few.split()]) == 0
    name = f"pettingzoo/{path}:default:env.N=2,env.max_cycles=6"
    assert fp3o.Policy.load("run").card.spec.name == name
    assert main(["evaluate", "run", "--episodes", "2", "--trust"]) == 0
    assert main(["check", name]) == 0
    assert f"{name}: ready for training" in capsys.readouterr().out
