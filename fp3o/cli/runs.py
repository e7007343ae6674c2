"""Commands about trained runs: resume, evaluate, render, report."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fp3o.cli.options import DirectoriesArgument, DirectoryArgument, Which, read_options
from fp3o.cli.placement import PlacementOptions, end_member, member_status
from fp3o.cli.train import conclude
from fp3o.errors import SettingError, escaped
from fp3o.runs.activity import activity


@dataclass
class ResumeOptions:
    """Options of `resume`."""

    run: DirectoryArgument
    """The run directory."""
    steps: int | None = None
    """Total environment steps per seed; by default, the number in the run's settings."""
    restart: bool = False
    """Start over with the same settings; the old files are kept in a folder of the run."""
    loggers: tuple[str, ...] = ("tensorboard",)
    """Loggers in addition to metrics.jsonl, as in `train`; W&B and MLflow continue their runs."""
    quiet: bool = False
    """Print errors only."""
    trust: bool = False
    """Import the custom task, network, sharing or algorithm that the run names."""
    placement: PlacementOptions = field(default_factory=PlacementOptions)


def resume_command(argv: Sequence[str]) -> int:
    """Resume a run exactly from its latest checkpoint."""
    return end_member(*resume_status(argv))


def resume_status(argv: Sequence[str]) -> tuple[PlacementOptions, int]:
    """Resume, or start processes that do: the placement and the exit status."""
    options = read_options(ResumeOptions, argv, resume_command)
    where = options.placement
    where.check()
    if where.supervises:
        return where, _launch_resume(options)

    def work_here() -> int:
        from fp3o.runs.progress import make_display
        from fp3o.runs.train import continue_run, prepare_resume

        placement = where.make_placement()
        display = make_display("quiet" if options.quiet else "auto")
        prepare_resume(options.run, options.restart, options.trust, display)
        run = continue_run(
            options.run, display, options.loggers, options.steps, placement=placement
        )
        return conclude(run and replace(run, trust=options.trust), options.quiet)

    return where, member_status(work_here) if where.is_member else work_here()


def _launch_resume(options: ResumeOptions) -> int:
    """Start the processes that resume a run."""
    from fp3o.cli.launch import Launch, launch, resume_arguments
    from fp3o.runs.directory import RunDirectory
    from fp3o.runs.progress import make_display
    from fp3o.runs.run_config import RunConfig

    if options.restart:
        raise SettingError("--restart starts a run over in one process: leave out --processes")
    config = RunConfig().with_settings(RunDirectory(options.run).read_settings())
    arguments = [x for x in resume_arguments(options) if x != "--trust" or options.trust]
    if options.steps is not None:
        arguments += ["--steps", str(options.steps)]
        config = config.with_settings({"steps": options.steps})
    work = Launch("resume", (), options.run, options.placement, arguments)
    display = make_display("quiet" if options.quiet else "auto")
    return launch(work, display, config)


@dataclass
class EvaluateOptions:
    """Options of `evaluate`."""

    run: DirectoryArgument
    """A run directory or a policy folder."""
    episodes: int | None = None
    """Episodes per policy; by default 1000, or as many as the speed of the environment allows."""
    which: Which = "last"
    """The last policy of every seed, or its best policy in the evaluations during training."""
    policy_seed: int | None = None
    """Seed whose policy is evaluated; by default, all of them."""
    stochastic: bool = False
    """Sample actions instead of taking the most likely ones."""
    seed: int = 0
    """Seed of the episodes."""
    trust: bool = False
    """Import the custom task or network that the policy names."""
    json: bool = False
    """Print JSON."""


def evaluate_command(argv: Sequence[str]) -> int:
    """Evaluate trained policies over many episodes."""
    options = read_options(EvaluateOptions, argv, evaluate_command)
    from fp3o.runs.evaluation import default_episodes, evaluate
    from fp3o.runs.source import PolicyChoice, load_policies

    choice: PolicyChoice = {
        "which": options.which,
        "policy_seed": options.policy_seed,
        "trust": options.trust,
    }
    episodes = options.episodes
    if episodes is None:
        with activity("measuring the speed of the environment"):
            policies = load_policies(options.run, **choice)
            episodes = default_episodes(policies, lambda text: print(text, file=sys.stderr))
    with activity(f"evaluating {episodes} episodes per policy"):
        result = evaluate(
            options.run,
            episodes,
            seed=options.seed,
            deterministic=not options.stochastic,
            **choice,
        )
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        Console().print(_evaluation_table(result))
    return 0


def _evaluation_table(result: Mapping[str, Any]) -> Table:
    kind = "most likely" if result["deterministic"] else "sampled"
    title = f"{result['task']}: {result['episodes']} episodes, {kind} actions"
    # Headings of several lines and one space between columns: the numbers of battles fit into 80.
    table = Table(title=_plain_text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    table.add_column("policy")
    for name in ("return_per_agent", "std", "length", *result["policies"][0]["episode_metrics"]):
        table.add_column(Text(escaped(name).replace("_", "\n")), justify="right")
    for row in result["policies"]:
        table.add_row(_plain_text(row["name"]), *_evaluation_cells(row))
    table.add_section()
    for name, row in result["baselines"].items():
        table.add_row(_plain_text(name, "dim"), *_evaluation_cells(row))
    return table


def _plain_text(text: str, style: str = "") -> Text:
    """Text from files and paths, which may contain neither markup nor control characters."""
    return Text(escaped(text), style)


def _evaluation_cells(row: Mapping[str, Any]) -> list[str]:
    """Return with its standard error, standard deviation, length and episode metrics."""
    if row["return"] is None:  # no episode ended
        return ["–"] * (3 + len(row["episode_metrics"]))
    metrics = [
        f"{100 * x:.1f} %" if name == "won" else f"{x:.2f}" if abs(x) < 100 else f"{x:.0f}"
        for name, x in row["episode_metrics"].items()
    ]
    score = f"{row['return']:.3f} ± {row['stderr']:.3f}"
    return [score, f"{row['std']:.2f}", f"{row['length']:.1f}", *metrics]


@dataclass
class RenderOptions:
    """Options of `render`."""

    run: DirectoryArgument
    """A run directory or a policy folder."""
    out: str = "episode.gif"
    """Output file, .gif or .mp4."""
    episodes: int = 3
    """Number of episodes."""
    which: Which = "best"
    """The best or the last policy."""
    policy_seed: int | None = None
    """Seed whose policy is rendered; by default, the one with the best evaluation."""
    seed: int = 0
    """Seed of the episodes."""
    fps: int | None = None
    """Frames per second; by default real time, or 8 if the task has no physical time step."""
    seconds: float = 10.0
    """Maximum length of the video per episode, in seconds."""
    trust: bool = False
    """Import the custom task or network that the policy names."""


def render_command(argv: Sequence[str]) -> None:
    """Render episodes of a trained policy as GIF or MP4."""
    options = read_options(RenderOptions, argv, render_command)
    from fp3o.runs.video import render

    with activity("rendering"):
        path = render(
            options.run,
            options.out,
            options.episodes,
            options.seed,
            options.fps,
            options.seconds,
            which=options.which,
            policy_seed=options.policy_seed,
            trust=options.trust,
        )
    print(path)


@dataclass
class ReportOptions:
    """Options of `report`."""

    runs: DirectoriesArgument
    """One or more run directories."""
    out: str | None = None
    """Output file; by default, report.html in the directory of the run, or, of several runs, in
    the current one."""


def report_command(argv: Sequence[str]) -> None:
    """Write an HTML report with figures on one or more runs."""
    options = read_options(ReportOptions, argv, report_command)
    if not options.runs:
        raise SettingError("name one or more run directories: fp3o report DIR... --out report.html")
    from fp3o.reports import report

    with activity("writing the report"):
        path = report(options.runs, options.out)
    print(path)
