"""An empty directory in which the code of one documentation page runs, with small numbers."""

import ast
import dataclasses
import re
import shlex
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from doc_commands import FewerIterations, fewer, parse_command, replace
from doc_pages import Block, blocks, commands, page_id

import fp3o
from fp3o.bench import session as bench_session
from fp3o.cli import main as cli
from fp3o.envs.registry import get_task, parse_task
from fp3o.errors import MissingExtraError
from fp3o.experiments import find_experiment
from fp3o.experiments.framework import session
from fp3o.experiments.sweep import launch
from fp3o.experiments.sweep.folder import SweepFolder
from fp3o.experiments.sweep.study import SweepStudy
from fp3o.reports import read_runs
from fp3o.runs import run as run_module
from fp3o.runs import train as train_module
from fp3o.runs.loggers import read_loggers
from fp3o.runs.progress import make_display
from fp3o.runs.run_config import RunConfig
from fp3o.runs.source import PolicyChoice, load_policies, load_policy
from fp3o.sharing.schemes import AUTO

TASK = "mpe/simple_speaker_listener"
EXISTING = ("runs/my-run", "runs/a", "runs/b", "runs/c", "runs/cheetah", "runs/battle", "my-policy")
"""Runs (and a policy) that pages use without creating them."""
EXPENSIVE = {
    "adapters", "custom-environments", "extending", "mpe", "README", "sharing", "smac", "tasks",
    "toys", "training-loop", "warm-start",
}  # fmt: skip
"""Pages whose Python takes long: by default only their imports and definitions are executed."""

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
"""Statements that take no time."""


def shrink(config: RunConfig) -> RunConfig:
    """The same settings with as little to do as possible."""
    length = config.learner.sequence_steps
    learner = config.learner.replace(
        num_envs=2, blocks=1, rollout=2 * length, minibatches=1, epochs=1
    )
    return dataclasses.replace(
        config,
        learner=learner,
        steps=learner.num_envs * learner.rollout,
        seeds=min(config.seeds, 2),
        eval_episodes=2,
        final_episodes=2,
        eval_every=0 if config.task.startswith("mamujoco") else 1,  # episodes of 1,000 steps
    )


def baseline_rows(task: str, variant: str | None, episodes: int) -> dict[str, dict[str, Any]]:
    """Stand-in for the evaluation of baseline policies, which takes a while."""
    info = get_task(task)
    metrics = dict.fromkeys(info.spec(variant).episode_metrics, 0.5)
    row = {
        "return": -1.0, "std": 1.0, "stderr": 0.1, "length": 25.0, "episode_metrics": metrics,
        "episodes": episodes, "title": "Random", "summary": "",
    }  # fmt: skip
    return {"random": row} if info.baselines(info.env(variant)) else {}


def _choice(options: dict[str, Any]) -> Any:
    """The options that choose a policy of a run."""
    names = PolicyChoice.__annotations__
    return {name: value for name, value in options.items() if name in names}


def train_small_run(folder: Path) -> None:
    """One small run, `run`, and one of its policies, `policy`, for all pages."""
    config = shrink(RunConfig.from_preset().with_settings({"seeds": 2, "algorithm": "mappo"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fp3o.runs.results.evaluate_baselines", baseline_rows)
        train_module.start_run(
            config, folder / "run", make_display("quiet"), ("none",), with_report=False
        )
    fp3o.Policy.load(folder / "run").save(folder / "policy")


class World:
    """Runs the blocks of a page; without `complete` nothing expensive is done.

    Training on the command line is then checked up to the point where it would start, and nothing
    is evaluated, rendered or plotted. With `complete` the first training of a block takes place.
    """

    def __init__(self, page: Path, trained: Path, patch: pytest.MonkeyPatch, complete: bool):
        self.page, self.trained, self.complete = page, trained, complete
        self.names: dict[str, Any] = {"__name__": "__page__"}
        self.in_command = False
        self.trained_in_block = False
        self._write_files()
        self._resolve, self._start = RunConfig.resolve, train_module.start_run
        self._continue = train_module.continue_run
        patch.setenv("FP3O_DEBUG", "1")  # errors are raised, not printed
        patch.setenv("MINARI_DATASETS_PATH", str(Path("datasets").absolute()))
        fewer(patch, "fp3o.runs.recording.record", 2, "episodes", 2)
        patch.setattr(RunConfig, "resolve", lambda config: self.resolve(config))
        patch.setattr(train_module, "start_run", self.start_run)
        patch.setattr(train_module, "continue_run", self.continue_run)
        patch.setattr(session, "run_experiment", self.run_experiment)
        patch.setattr(bench_session, "run_topics", self.run_topics)
        self._sweep, self._continue_sweep = launch.run_sweep, launch.continue_sweep
        patch.setattr(launch, "run_sweep", self.run_sweep)
        patch.setattr(launch, "continue_sweep", self.continue_sweep)
        if complete:
            fewer(patch, "fp3o.runs.evaluation.evaluate", 1, "episodes", 4)
            fewer(patch, "fp3o.runs.evaluation.evaluate_baselines", 2, "episodes", 4)
            fewer(patch, "fp3o.runs.video.render", 2, "episodes", 1)
            fewer(patch, "fp3o.envs.check.check_env", 1, "steps", 30)
            patch.setattr(run_module, "evaluate", fp3o.evaluate)
            patch.setattr(run_module, "render", fp3o.render)
        else:
            self._stub(patch)

    def _write_files(self) -> None:
        """Runs that the page uses, and its first TOML block as `settings.toml`."""
        text = self.page.read_text()
        for name in EXISTING:
            if name in text and not re.search(rf"fp3o train .*--out {name}\b", text):
                self.copy(name)
        for block in blocks(self.page):
            if block.language == "toml" and not Path("settings.toml").exists():
                Path("settings.toml").write_text(block.code)

    def _stub(self, patch: pytest.MonkeyPatch) -> None:
        replace(patch, "fp3o.runs.results.evaluate_baselines", baseline_rows)
        replace(patch, "fp3o.runs.evaluation.evaluate_baselines", baseline_rows)
        replace(patch, "fp3o.reports.report", self.report)
        replace(patch, "fp3o.envs.check.check_env", self.check_env)
        replace(patch, "fp3o.cli.diagnosis._tasks", list)
        for module in ("fp3o.runs.evaluation", "fp3o.runs.run"):
            replace(patch, f"{module}.evaluate", self.evaluate)
        for module in ("fp3o.runs.video", "fp3o.runs.run"):
            replace(patch, f"{module}.render", self.render)

    def copy(self, place: str | Path) -> Path:
        """The small run (or its policy) under the name that the page uses."""
        source = self.trained / ("policy" if str(place) == "my-policy" else "run")
        return Path(shutil.copytree(source, place))

    def resolve(self, config: RunConfig) -> RunConfig:
        """Check the settings as they are, then shrink them."""
        if not self.complete and AUTO in (config.learner.sharing, config.learner.critic_sharing):
            config = dataclasses.replace(config, learner=config.learner.replace(sharing="full"))
        self._resolve(config)
        return self._resolve(shrink(config))

    def start_run(
        self, config: RunConfig, out: Any, display: Any, loggers: Any, **_: Any
    ) -> fp3o.Run | None:
        if self.in_command:
            trains = self.complete and not self.trained_in_block
            self.trained_in_block = True
        else:
            trains = self.complete or config.task != TASK
        if trains:
            return self._start(config, out, make_display("quiet"), ("none",), with_report=False)
        read_loggers(loggers)  # their packages may be missing here
        return fp3o.Run.load(self.copy(out if out is not None else train_module.free_path(config)))

    def continue_run(
        self, path: Any, display: Any, loggers: Any, steps: Any = None, **_: Any
    ) -> fp3o.Run | None:
        more = 2 * shrink(RunConfig.from_preset()).steps
        steps = more if steps is not None and self.complete else None
        with warnings.catch_warnings():  # host environments whose state cannot be restored
            warnings.simplefilter("ignore", RuntimeWarning)
            return self._continue(path, make_display("quiet"), ("none",), steps, with_report=False)

    def run_experiment(self, options: Any) -> int:
        """Experiments take hours; the name and the part must exist."""
        cells = find_experiment(options.name).cells(options.scale)
        return int(not any(options.part in cell.label for cell in cells))

    def run_sweep(self, settings: Any, out: Any, *_: Any) -> fp3o.SweepResult:
        """Two trials; without `complete` they are made up."""
        least = {"trials": 2, "parallel": 2, "evaluations": 1, "episodes": 2}
        options = dataclasses.replace(settings.options, **least)
        small = dataclasses.replace(settings, options=options)
        if self.complete:
            return self._sweep(small, out, make_display("quiet"))
        small = small.check()
        folder = SweepFolder(out or launch._default_path(small))
        with folder.writing(small):
            study = SweepStudy(small, folder.path)
            for _trial in range(small.trials):
                study.tell(study.ask(), "finished", [1.0] * small.base.seeds)
            folder.write_results(study)
        return fp3o.SweepResult(folder.path, small, study.records(), True)

    def continue_sweep(self, path: Any, *_: Any) -> fp3o.SweepResult:
        """The sweep must exist."""
        if self.complete:
            return self._continue_sweep(path, make_display("quiet"))
        study = SweepStudy(SweepFolder(path).settings(), Path(path))
        return fp3o.SweepResult(Path(path), study.settings, study.records(), True)

    def run_topics(self, topics: Any, settings: Any, *_: Any) -> list[Path]:
        """Measurements take minutes; the names must exist."""
        bench_session.check_bench_settings(settings)
        return []

    def evaluate(self, source: Any, *_: Any, **options: Any) -> dict[str, Any]:
        """The policies must exist."""
        assert load_policies(source, **_choice(options))
        row = baseline_rows(TASK, None, 4)["random"]
        rows = [{"name": "seed-0", **row}]
        return {
            "task": TASK, "agents": 2, "episodes": 4, "deterministic": True, "policies": rows,
            "baselines": {"random": row},
        }  # fmt: skip

    def render(self, source: Any, out: Any, *_: Any, **options: Any) -> Path:
        """An empty video; the policy must exist."""
        assert load_policy(source, **_choice(options))
        assert Path(out).suffix in (".gif", ".mp4")
        Path(out).touch()
        return Path(out)

    def report(self, runs: Any, out: Any = None, *_: Any) -> Path:
        """Plotting takes seconds; the runs must exist."""
        assert read_runs(runs)
        return Path(out or "report.html")

    def check_env(self, env: Any, **options: Any) -> Any:
        """Stepping takes seconds; the task must exist."""
        from fp3o.envs.check import EnvReport

        if not isinstance(env, str):
            return EnvReport(env.spec, [])
        return EnvReport(parse_task(env)[0].spec(), [])

    def run(self, block: Block) -> None:
        """Execute one block."""
        self.trained_in_block = False
        if block.title:
            if "/" not in block.title:  # else a file of the package: see test_contributing.py
                Path(block.title).write_text(block.code)
        elif block.language == "python":
            tree = ast.parse("\n" * block.line + block.code)
            if not self.complete and self.page.stem in EXPENSIVE:
                tree.body = [node for node in tree.body if isinstance(node, DEFINITIONS)]
            tree = FewerIterations().visit(tree)
            exec(compile(tree, page_id(block.page), "exec"), self.names)
        elif block.language == "sh":
            for line in commands(block):
                self.run_command(block, line)

    def run_command(self, block: Block, line: str) -> None:
        """Execute one line of a `sh` block."""
        words = shlex.split(line)
        if words[0] == "cmp" and self.complete:
            assert subprocess.run(words, check=False).returncode == 0, f"{block.place}: {line}"
        if words[0] != "fp3o":
            return
        self._write_modules(words)
        self.in_command = True
        try:
            status = cli.main(words[1:])
        except MissingExtraError:
            parse_command(line)
            status = 0
        finally:
            self.in_command = False
        assert status == 0, f"{block.place}: {line}"

    def _write_modules(self, words: list[str]) -> None:
        """`python:meet:Meet` refers to a file that the page describes: the block of its class."""
        for word in words:
            path = re.match(r"python:(\w+):(\w+)", word)
            if path and not Path(f"{path[1]}.py").exists():
                sources = [block.code for block in blocks(self.page) if block.language == "python"]
                code = [text for text in sources if re.search(rf"(class|def) {path[2]}\b", text)]
                assert code, f"{page_id(self.page)} does not define {path[2]}"
                Path(f"{path[1]}.py").write_text(code[0])
