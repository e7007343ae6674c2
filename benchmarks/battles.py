"""Speed of the SMAC tasks: random actions, and training.

    python benchmarks/battles.py                          # 256 environments on a CPU, else 4,096
    python benchmarks/battles.py --only random --maps 3s5z --envs 1024 4096

`random`: available actions sampled on the device, observations and states of all agents computed at
every step, chunks of steps in one program. `training`: iterations of the preset `many`, for one
seed and for five (not on a CPU, unless given by `--only`). A step is one step of one environment,
half a second of game time. Compilation is reported separately. The aims are for a GPU with 4,096
environments, and for 3s5z on two cores.
"""

import argparse
import json
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from fp3o.envs.registry import make
from fp3o.runs.evaluation import make_program
from fp3o.runs.provenance import device_name, package_versions
from fp3o.runs.run_config import RunConfig

AIMS = {"3s5z": 1_000_000, "bane_vs_bane": 300_000, "2c_vs_64zg": 200_000}
"""Steps per second of random actions on a GPU, 4,096 environments; 5,000 for 3s5z on two cores."""
MAPS = (*AIMS, "5m_vs_6m", "6h_vs_8z", "corridor", "10m_vs_11m", "3s5z_vs_3s6z")
CHUNK = 50
"""Steps per program call."""


def random_program(name: str, variant: str, num_envs: int) -> tuple[Any, Any]:
    """A compiled chunk of steps with random available actions, and its first input."""
    env = make(f"smac/{name}", num_envs, variant=variant)

    def step(carry: Any, key: Any) -> tuple[Any, Any]:
        state, now = carry
        logits = jnp.where(now.action_mask, 0.0, -jnp.inf)
        state, now = env.step(state, jax.random.categorical(key, logits)[..., None])
        return (state, now), now.reward.mean()

    @partial(jax.jit, donate_argnums=0)
    def chunk(carry: Any, key: Any) -> tuple[Any, Any]:
        return jax.lax.scan(step, carry, jax.random.split(key, CHUNK))

    carry = jax.jit(env.reset)(jax.random.key(0))
    return chunk.lower(carry, jax.random.key(0)).compile(), carry


def random_actions(name: str, variant: str, num_envs: int, seconds: float) -> dict[str, Any]:
    """Steps per second of random available actions."""
    started = time.perf_counter()
    run, carry = random_program(name, variant, num_envs)
    compiled = time.perf_counter() - started
    carry, _ = run(carry, jax.random.key(0))
    jax.block_until_ready(carry)
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds or count < 3:
        carry, _ = jax.block_until_ready(run(carry, jax.random.key(count)))
        count += 1
    taken = time.perf_counter() - started
    rate = count * CHUNK * num_envs / taken
    return {"case": f"{name}, {num_envs} environments", "steps/s": rate, "compile s": compiled,
            "ms per step": 1e3 * taken / (count * CHUNK), "aim": AIMS.get(name)}  # fmt: skip


def training(name: str, algorithm: str, seeds: int, seconds: float) -> dict[str, Any]:
    """Steps per second of the fastest training iteration."""
    config = RunConfig.from_preset(f"smac/{name}", "many")
    config = config.with_settings({"algorithm": algorithm, "seeds": seeds})
    program = make_program(config)
    state, started = program.init(0), time.perf_counter()
    program.compile(state)
    compiled, times = time.perf_counter() - started, []
    while sum(times) < seconds or len(times) < 3:
        started = time.perf_counter()
        state, _ = jax.block_until_ready(program.iterate(state))
        times.append(time.perf_counter() - started)
    rate = config.steps_per_iteration * seeds / min(times)
    case = f"{name}, {algorithm}, {seeds} seed{'s' * (seeds > 1)}"
    return {"case": case, "steps/s": rate, "compile s": compiled,
            "ms per iteration": 1e3 * min(times)}  # fmt: skip


def main() -> None:
    fast = jax.default_backend() != "cpu"
    parser = argparse.ArgumentParser(description="Speed of the SMAC tasks.")
    parser.add_argument("--only", nargs="*", choices=("random", "training"))
    parser.add_argument("--maps", nargs="*", default=MAPS)
    parser.add_argument("--envs", type=int, nargs="*", default=[4096 if fast else 256])
    parser.add_argument("--variant", default="paper", help="layout and rules of random actions")
    parser.add_argument("--algorithms", nargs="*", default=["fp3o", "mappo", "happo", "ippo"])
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time per case")
    parser.add_argument("--json", help="also write the numbers to this file")
    options = parser.parse_args()
    parts = options.only or (["random", "training"] if fast else ["random"])
    versions = [f"{k} {v}" for k, v in package_versions().items() if "jax" in k]
    print(", ".join([device_name(), *versions]))
    rows = []

    def report(row: dict[str, Any]) -> None:
        rows.append(row)
        numbers = (f"{key} {value:,.1f}" for key, value in row.items() if isinstance(value, float))
        aim = f"  (aim on a GPU, 4,096 environments: {row['aim']:,})" if row.get("aim") else ""
        print(f"{row['case']:36} {'   '.join(numbers)}{aim}", flush=True)

    if "random" in parts:
        print("\nrandom: random available actions")
        for name in options.maps:
            for num_envs in options.envs:
                report(random_actions(name, options.variant, num_envs, options.seconds))
    if "training" in parts:
        print("\ntraining: preset many, complete iterations")
        for name in [name for name in ("3s5z", "5m_vs_6m", "6h_vs_8z") if name in options.maps]:
            for algorithm in options.algorithms:
                for seeds in (1, 5) if algorithm == "fp3o" else (5,):
                    report(training(name, algorithm, seeds, options.seconds))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
