"""Every way to reach code that a file names, tried under an audit hook.

Run as a program, because an audit hook cannot be removed: `python trust_attempts.py FOLDER`. It
makes hostile policies and runs in the folder, uses each of them in every way without trust and
then with it, and prints one line of JSON per attempt. A second argument chooses a part of the
spellings, one in so many.
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fp3o
from fp3o.cli.main import main
from fp3o.envs.registry import get_task
from fp3o.imports import search_in
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.policy import Card, Policy
from fp3o.policy.export import write_policy
from fp3o.runs.run_config import RunConfig

HELPER = "hostile_helper"
"""The attacker's module: beside the policy, in the run, and in the current directory."""

TASK = "mpe/simple_spread"

TASKS = (
    f"python:{HELPER}:game", f"python/{HELPER}.game", f"python/{HELPER}:game",
    f"pettingzoo:{HELPER}:game", f"gymnasium/{HELPER}:Game-v0", f"jaxmarl/{HELPER}",
    f"python/{HELPER}.game:default:env.x=1", f"python:{HELPER}.game", f"jumanji:{HELPER}:Game",
    f"pettingzoo/{HELPER}.game:default:workers=1", f"gymnasium:{HELPER}:Game-v0",
)  # fmt: skip
"""Spellings of tasks that are code."""

SETTINGS = (
    *(("task", name) for name in TASKS),
    ("network", f"{HELPER}:Net"),
    ("algorithm", f"{HELPER}:row"),
    ("algorithm", f"{HELPER}:row:rounds=2"),
    ("sharing", f"{HELPER}:groups"),
    ("sharing", f"{HELPER}:full"),
    ("critic_sharing", f"{HELPER}:groups"),
)
"""Settings of a run that are code."""

touched: list[str] = []
"""What the audit hook saw of the attacker's module since the last attempt."""


class Attempt(NamedTuple):
    """A use of a hostile folder; what it names has to be imported for it, or never is."""

    name: str
    use: Callable[[bool], Any]
    imports: bool = True


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook: imports of the attacker's module, and its code compiled or executed."""
    if event in ("import", "compile", "exec"):
        where = str(getattr(arguments[0], "co_filename", arguments[0]))
        where += str(arguments[1]) if event == "compile" else ""
        if HELPER in where:
            touched.append(event)


def command(*words: Any) -> None:
    """Run a command of the command line; what it says is raised where it fails."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = main([str(word) for word in words if word != ""])
    if status:
        raise fp3o.UserError(said.getvalue())


def flag(trust: bool) -> str:
    return "--trust" if trust else ""


def policy_attempts(folder: Path, card: Card) -> Iterator[Attempt]:
    """Every use of a policy, in a folder of its own or in a run."""
    obs, custom = np.zeros((card.spec.num_agents, card.spec.obs_size)), card.network_class
    video = folder.parent / "x.gif"
    load = Policy.load
    yield Attempt("evaluate", lambda t: command("evaluate", folder, "--episodes", 2, flag(t)))
    yield Attempt("render", lambda t: command("render", folder, "--out", video, flag(t)))
    yield Attempt("export", lambda t: command("export", folder, "--out", f"{folder}-2"), False)
    yield Attempt("fp3o.evaluate", lambda t: fp3o.evaluate(folder, 2, trust=t))
    yield Attempt("fp3o.render", lambda t: fp3o.render(load(folder, trust=t), video))
    yield Attempt("act", lambda t: load(folder, trust=t).act(obs), bool(custom))
    yield Attempt("agent", lambda t: load(folder, trust=t).agent(0).act(obs[0]), bool(custom))
    file = folder.parent / "x.stablehlo"
    yield Attempt("deploy", lambda t: load(folder, trust=t).export(file, "stablehlo"), bool(custom))
    yield Attempt("repr", lambda t: (repr(load(folder)), str(load(folder))), False)


def run_attempts(path: Path) -> Iterator[Attempt]:
    """Every use of a run's settings."""
    config, load, quiet = path / "config.json", fp3o.Run.load, {"progress": "quiet", "loggers": ()}
    words = ("--quiet", "--loggers", "none")
    yield Attempt("resume", lambda t: command("resume", path, *words, flag(t)))
    yield Attempt("train", lambda t: command("train", "--config", config, *words, flag(t)))
    yield Attempt("fp3o.resume", lambda t: fp3o.resume(path, trust=t, **quiet))
    yield Attempt("fp3o.train", lambda t: fp3o.train(config=config, trust=t, **quiet))
    yield Attempt("config", lambda t: load(path, trust=t).config.check())
    yield Attempt("Run", lambda t: (repr(load(path)), load(path)._repr_html_()), False)


def run_policy_attempts(path: Path) -> Iterator[Attempt]:
    """Every use of the policies of a run."""
    load = fp3o.Run.load
    yield Attempt("Run.evaluate", lambda t: load(path, trust=t).evaluate(2))
    yield Attempt("Run.render", lambda t: load(path, trust=t).render(path / "x.gif"))


def make_policy(folder: Path, task: str, network: str | None) -> Card:
    """A policy that names this task and network, with the attacker's files beside it."""
    spec = replace(get_task(TASK).spec(), name=task)
    setup = Setup(spec, Config(hidden=(4,)))
    policy = write_policy(folder, setup, setup.init(0).actor, {})
    card = policy.card
    if network is not None:
        card = replace(card, network_class=network, arrays=tuple(card.shapes().items()))
        Policy(card, policy.weights).save(folder)
    (folder / f"{HELPER}.py").symlink_to(Path(f"{HELPER}.py").absolute())
    (folder / "config.json").write_text("{}")
    (folder / "policy").mkdir()
    return card


def make_run(path: Path, settings: dict[str, Any]) -> None:
    """A run directory with these settings and no policies."""
    path.mkdir(parents=True)
    small = {"task": TASK, "steps": 8, "num_envs": 2, "rollout": 4, "epochs": 1, "hidden": [4]}
    full = {**RunConfig().settings, "variant": None, **small, **settings}
    (path / "config.json").write_text(json.dumps({"format": 2, "agents": 3, "settings": full}))
    row = {"iteration": 0, "step": 0, "seed": 0, "eval_return": 1.0}
    (path / "metrics.jsonl").write_text(json.dumps(row) + "\n")


def attempts(root: Path, every: int) -> Iterator[Attempt]:
    """All hostile folders, or one in so many, and all uses of each."""
    cards = [(task, None) for task in TASKS[::every]] + [(TASK, f"{HELPER}:Net")]
    for number, (task, network) in enumerate(cards):
        names = network or task
        folder, run = root / f"policy-{number}", root / f"run-{number}"
        card = make_policy(folder, task, network)
        make_run(run, {})
        make_policy(run / "policy/seed-0/best", task, network)
        make_policy(run / "policy/seed-0/last", task, network)
        for attempt in policy_attempts(folder, card):
            yield attempt._replace(name=f"policy {names}: {attempt.name}")
        for attempt in (*policy_attempts(run, card), *run_policy_attempts(run)):
            yield attempt._replace(name=f"run with the policy {names}: {attempt.name}")
    chosen = SETTINGS[::-every]
    for number, (setting, text) in enumerate(chosen):
        path = root / f"settings-{number}"
        make_run(path, {setting: text})
        for attempt in run_attempts(path):
            yield attempt._replace(name=f"{setting} {text}: {attempt.name}")
    if every > 1:
        return  # drawing figures takes seconds
    runs = [root / f"settings-{number}" for number in range(len(chosen))]
    report = lambda t: command("report", *runs, "--out", root / "report.html")  # noqa: E731
    yield Attempt("report", report, False)


def tried(attempt: Attempt, trust: bool, marker: Path) -> dict[str, Any]:
    """The result of an attempt, and whether the attacker's code was reached."""
    touched.clear()
    marker.unlink(missing_ok=True)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            attempt.use(trust)
        result = ""
    except (Exception, SystemExit) as error:
        result = f"{type(error).__name__}: {error}"
    reached = bool(touched) or marker.exists()
    return {"name": attempt.name, "trust": trust, "imports": attempt.imports, "result": result,
            "reached": reached}  # fmt: skip


def run_all(root: Path, every: int) -> None:
    """Try everything in a folder and print the results."""
    os.chdir(root)
    marker = root / "reached"
    code = f"open({str(marker)!r}, 'w').close()\nraise KeyError('hostile code ran')\n"
    Path(f"{HELPER}.py").write_text(code)
    search_in(str(root))  # as the command line does
    sys.addaudithook(watch)
    everything = [*attempts(root, every)]
    for trust in (False, True):
        for attempt in everything:
            if attempt.imports or not trust:
                print(json.dumps(tried(attempt, trust, marker)), flush=True)


if __name__ == "__main__":
    run_all(Path(sys.argv[1]).resolve(), int(sys.argv[2]))
