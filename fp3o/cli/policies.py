"""Commands that use a trained policy elsewhere: export, record, serve."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fp3o.cli.options import DirectoryArgument, Which, read_options
from fp3o.runs.activity import activity

if TYPE_CHECKING:
    from fp3o.policy import Policy


@dataclass(kw_only=True)
class PolicyOptions:
    """The policy that a command uses."""

    run: DirectoryArgument
    """A run directory or a policy folder."""
    which: Which = "best"
    """The best or the last policy."""
    policy_seed: int | None = None
    """Seed whose policy is used; by default, the one with the best evaluation."""
    trust: bool = False
    """Import the custom task or network that the policy names."""

    def load(self) -> "Policy":
        """Read the policy."""
        from fp3o.runs.source import load_policy

        return load_policy(self.run, self.which, self.policy_seed, self.trust)


@dataclass(kw_only=True)
class ExportOptions(PolicyOptions):
    """Options of `export`."""

    out: str
    """Output: a folder, or a file for ONNX and StableHLO."""
    to: Literal["folder", "onnx", "stablehlo"] = "folder"
    """Format: a policy folder, or one step of the team for other programs."""


def export_command(argv: Sequence[str]) -> None:
    """Export a trained policy: to a folder that can be loaded anywhere, ONNX or StableHLO."""
    options = read_options(ExportOptions, argv, export_command)
    from fp3o.runs.source import export

    with activity("exporting"):
        export(
            options.run,
            options.out,
            options.to,
            which=options.which,
            policy_seed=options.policy_seed,
            trust=options.trust,
        )
    print(options.out)


@dataclass(kw_only=True)
class RecordOptions(PolicyOptions):
    """Options of `record`."""

    out: str
    """Name of the dataset, such as team/listener-v0, below $MINARI_DATASETS_PATH."""
    episodes: int = 100
    """Number of episodes."""
    stochastic: bool = False
    """Sample actions instead of taking the most likely ones."""
    seed: int = 0
    """Seed of the episodes."""


def record_command(argv: Sequence[str]) -> None:
    """Record episodes of a trained policy as a Minari dataset."""
    options = read_options(RecordOptions, argv, record_command)
    from fp3o.runs.recording import record

    policy, deterministic = options.load(), not options.stochastic
    with activity(f"recording {options.episodes} episodes"):
        path = record(policy, options.out, options.episodes, options.seed, deterministic)
    print(path)


@dataclass(kw_only=True)
class ServeOptions(PolicyOptions):
    """Options of `serve`."""

    host: str = "127.0.0.1"
    """Address to listen on; by default only programs on this machine can connect."""
    port: int = 8000
    """Port to listen on; 0: any free one."""


def serve_command(argv: Sequence[str]) -> None:
    """Serve a trained policy to other programs: observations in, actions out, by HTTP."""
    options = read_options(ServeOptions, argv, serve_command)
    from fp3o.policy.serve import PolicyServer

    with PolicyServer(options.load(), options.host, options.port) as server:
        print(f"http://{options.host}:{server.server_port}", flush=True)
        server.serve_forever()
