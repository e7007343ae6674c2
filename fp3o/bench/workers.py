"""PettingZoo environments: in this process and in workers, beside other wrappers.

| peer              | steps the same environments                                                  |
|-------------------|------------------------------------------------------------------------------|
| `PettingZoo`      | directly, with dictionaries, one after the other: it has no vector           |
|                   | environments                                                                 |
| `gymnasium async` | in Gymnasium's `AsyncVectorEnv`, which has a process per environment and     |
|                   | shared memory as well; a team is one agent                                   |
| `supersuit`       | in SuperSuit's `concat_vec_envs_v1`, in this process and in two others       |

The other wrappers return observations, rewards and ends; fp3o also states, masks, which agents are
alive and the observations before a reset. Idle workers only reply, with arrays of the same shapes.
Milliseconds of computation per step are added to see from when on processes are faster.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec

from fp3o.bench.measurement import BenchSettings, Jobs, Measurement, SpeedComparison, optional_job
from fp3o.bench.worker_envs import IdleEnv, laborious_env
from fp3o.bench.worker_jobs import async_job, batched_job, pettingzoo_job, supersuit_job
from fp3o.envs.adapters.pettingzoo import PettingZoo
from fp3o.envs.workers.pool import WorkerPool
from fp3o.envs.workers.protocol import buffer_spec
from fp3o.envs.workers.vec_env import PooledVecEnv

ENV_PATH = "mpe2.simple_spread_v3:parallel_env"
POOL_SIZE = 8


def measure_workers(settings: BenchSettings) -> Iterator[Measurement]:
    """Without and with more work per step."""
    if find_spec("mpe2") is None:
        note = "not installed: pip install 'fp3o[mpe2]'"
        yield Measurement("simple_spread in workers", None, peer="PettingZoo", note=note)
        return
    for work in (0.0,) if settings.quick else (0.0, 2.0):
        yield from _measure_work(work, settings)


def _measure_work(work: float, settings: BenchSettings) -> Iterator[Measurement]:
    make = laborious_env if work else ENV_PATH
    kwargs = {"path": ENV_PATH, "work": work} if work else {}
    here, there = (PettingZoo(make, kwargs, workers=number) for number in (0, 1))
    more = f", {work:g} ms more per step" if work else ""
    with ExitStack() as closing:
        jobs = _jobs(here, there, closing)
        named = {f"{name}{more}": job for name, job in jobs.items()}
        pairs = [(f"{ours}{more}", f"{peer}{more}") for ours, peer in _PAIRS]
        yield from SpeedComparison(named, pairs).measure(settings)


_HERE, _THERE, _IDLE = (
    f"{POOL_SIZE} environments {place}" for place in ("in this process", "in workers", "idle")
)
_PAIRS = [
    (_HERE, "PettingZoo"), (_THERE, "PettingZoo"), (_IDLE, "PettingZoo"),
    (_THERE, "gymnasium async"), (_HERE, "supersuit, 0 processes"),
    (_THERE, "supersuit, 2 processes"),
]  # fmt: skip


def _jobs(here: PettingZoo, there: PettingZoo, closing: ExitStack) -> Jobs:
    spec = buffer_spec(here.spec)
    pools = {_HERE: here.vectorise(POOL_SIZE), _THERE: there.vectorise(POOL_SIZE)}
    pools[_IDLE] = PooledVecEnv(here.spec, WorkerPool(IdleEnv(spec), spec, POOL_SIZE))
    for pool in pools.values():
        closing.callback(pool.close)
    suits = {
        f"supersuit, {count} processes": optional_job(
            "supersuit", partial(supersuit_job, here, POOL_SIZE, count, closing)
        )
        for count in (0, 2)
    }
    return {
        **{name: batched_job(pool) for name, pool in pools.items()},
        "PettingZoo": pettingzoo_job(here, POOL_SIZE),
        "gymnasium async": async_job(here, POOL_SIZE, closing),
        **suits,
    }
