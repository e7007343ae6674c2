"""Training speed on the particle tasks, in environment steps per second.

    python benchmarks/particles.py

`baseline` has the sizes of JaxMARL's feed-forward IPPO script on simple_spread (64 environments x
128 steps, 4 epochs x 4 minibatches, two layers of 64 with tanh and no LayerNorm, shared, no
agent id), so that the two can be compared on one machine. The others are the paper's
recurrent presets. The fastest of several iterations counts; compilation is reported separately.
"""

import argparse
import time

import jax

from fp3o.runs.evaluation import make_program
from fp3o.runs.run_config import RunConfig

BASELINE = {
    "algorithm": "ippo",
    "sharing": "full",
    "num_envs": 64,
    "rollout": 128,
    "epochs": 4,
    "minibatches": 4,
    "hidden": (64, 64),
    "gru_size": 0,
    "sequence_length": None,
    "activation": "tanh",
    "layer_norm": False,
    "agent_id": False,
    "actor_lr": 2.5e-4,
    "critic_lr": 2.5e-4,
    "max_grad_norm": 0.5,
    "seeds": 1,
    "variant": "mpe2",
}
PAPER = {"seeds": 1}


def cases() -> dict[str, RunConfig]:
    baseline = RunConfig.from_preset("mpe/simple_spread").with_settings(BASELINE)
    configs = {"baseline IPPO spread": baseline}
    for algorithm in ("ippo", "mappo", "fp3o"):
        for task in ("simple_spread", "simple_reference", "simple_speaker_listener"):
            settings = PAPER | {"algorithm": algorithm}
            config = RunConfig.from_preset(f"mpe/{task}", "paper").with_settings(settings)
            configs[f"GRU {algorithm} {task}"] = config
    return configs


def measure(config: RunConfig, seconds: float) -> tuple[float, float, float]:
    """Compile time in seconds; steps per second of the fastest iteration, and on average."""
    program = make_program(config.check())
    state = program.init(config.seed)
    began = time.perf_counter()
    program.compile(state)
    compiled = time.perf_counter() - began
    state, _ = program.iterate(state)
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        began = time.perf_counter()
        state, _ = program.iterate(state)
        jax.block_until_ready(state)
        times.append(time.perf_counter() - began)
    steps = config.steps_per_iteration * config.seeds
    return compiled, steps / min(times), steps * len(times) / sum(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of training on the particle tasks.")
    parser.add_argument("--seconds", type=float, default=10.0, help="measuring time per case")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    print(f"{'case':40} {'compile s':>10} {'steps/s, fastest':>18} {'steps/s, all':>14}")
    for name, config in cases().items():
        if options.only in name:
            compiled, best, mean = measure(config, options.seconds)
            print(f"{name:40} {compiled:10.1f} {best:18,.0f} {mean:14,.0f}", flush=True)


if __name__ == "__main__":
    main()
