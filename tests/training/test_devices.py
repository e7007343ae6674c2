"""Laws of programs over several devices: their number changes no result, only who computes it."""

import logging
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_probe import HostProbe
from tiny_programs import TINY, credit

from fp3o.algorithms.fp3o import random_split
from fp3o.envs.toys.probe import PROBES, Probe
from fp3o.errors import NonFiniteError, SettingError
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.learning.stage_data import StageData
from fp3o.learning.steps import shuffle_sequences
from fp3o.learning.update import split_by_block
from fp3o.training.mesh import split_devices
from fp3o.training.program import Program
from fp3o.training.rollout import sample_noise
from fp3o.training.state import TrainState
from fp3o.types import Batch

CONFIG = TINY.replace(num_envs=8, rollout=20, blocks=4, actor_lr=1e-3, critic_lr=1e-3)
CASES = {
    "fp3o": CONFIG,
    "a2po": CONFIG.replace(algorithm="a2po", gru_size=8, sequence_length=10),
    "coppo": CONFIG.replace(algorithm="coppo", sharing="none"),
    "mappo": CONFIG.replace(algorithm="mappo", sharing="partial", advantage_norm="team"),
    "ippo": CONFIG.replace(algorithm="ippo", minibatches=1),
    "happo": CONFIG.replace(algorithm="happo", gru_size=8, sequence_length=10),
    "split": CONFIG.replace(algorithm="fp3o:split=random", sharing="none"),
}
"""The six algorithms, with different sharings, recurrence, numbers of minibatches."""
DEFAULT = [("fp3o", 4), ("a2po", 4), ("coppo", 2)]
SLOW = [(name, devices) for name in CASES for devices in (2, 4) if (name, devices) not in DEFAULT]


def program_on(devices: int, config: Config, num_seeds: int | None = None) -> Program:
    """A program on some devices; on 0, one that is not divided at all."""
    assert len(jax.devices()) >= 4, "the tests need four devices of the CPU"
    return Program(credit(8), config, num_seeds, jax.devices()[:devices] or None)


class Compilations(logging.Handler):
    """Messages of JAX about the training iterations that it compiles."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("Compiling") and "train_iteration" in text:
            self.texts.append(text)


@cache
def trained(
    name: str, devices: int, num_seeds: int | None = None, seed: int = 3
) -> tuple[TrainState, dict[str, Any], Program]:
    """State and metrics after three iterations."""
    program = program_on(devices, CASES[name], num_seeds)
    state = program.init(seed)
    metrics = {}
    for _ in range(3):
        state, metrics = program.iterate(state)
    return state, metrics, program


def numbers(tree: Any) -> list[np.ndarray]:
    """All arrays of a tree; random keys as integers."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)  # noqa: E731
    leaves = [x if not is_key(x) else jax.random.key_data(x) for x in jax.tree.leaves(tree)]
    return [np.asarray(x) for x in leaves]


def difference(one: Any, other: Any) -> float:
    """The largest difference of two trees."""
    pairs = [*zip(numbers(one), numbers(other), strict=True)]
    assert all(x.shape == y.shape for x, y in pairs)
    return max(float(np.abs(x.astype(float) - y).max(initial=0)) for x, y in pairs)


@pytest.mark.parametrize(
    ("name", "devices"),
    [*DEFAULT, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_devices_that_share_environments_train_like_one(name: str, devices: int) -> None:
    """Learner, environments and metrics are those of one device, and equal on all devices."""
    one, many = trained(name, 0), trained(name, devices)
    assert many[2].grid and dict(many[2].grid.mesh.shape) == {"seed": 1, "env": devices}
    assert difference(one[0].learner, many[0].learner) <= 2e-6
    assert difference(one[0].rollout, many[0].rollout) <= 2e-6
    for metric, value in one[1].items():
        np.testing.assert_allclose(many[1][metric], value, rtol=1e-4, atol=1e-4, err_msg=metric)
    for x in jax.tree.leaves(many[0].learner):
        copies = [np.asarray(shard.data) for shard in x.addressable_shards]
        assert len(copies) == devices
        assert all(np.array_equal(copies[0], copy) for copy in copies)


def test_the_program_is_compiled_once_and_its_work_is_divided() -> None:
    """No second program for the state that an iteration returns; a quarter of the work each."""
    program = program_on(4, CASES["fp3o"])
    state, seen = program.init(3), Compilations()
    logging.getLogger("jax").addHandler(seen)
    with jax.log_compiles():
        for _ in range(3):
            state, _ = program.iterate(state)
    logging.getLogger("jax").removeHandler(seen)
    assert len(seen.texts) == 1
    program.compile(state)
    alone = program_on(1, CASES["fp3o"])
    alone.compile(alone.init(3))
    work = [each._iterate.cost_analysis()["flops"] for each in (program, alone)]
    assert work[0] < 0.4 * work[1]


def test_seeds_on_devices_are_programs_of_these_seeds() -> None:
    """Bit for bit: devices that have different seeds exchange nothing."""
    together, metrics, program = trained("fp3o", 2, num_seeds=4)
    assert program.grid and dict(program.grid.mesh.shape) == {"seed": 2, "env": 1}
    for k in range(2):
        alone, own, _ = trained("fp3o", 0, num_seeds=2, seed=3 + 2 * k)
        part = jax.tree.map(lambda x, k=k: x[2 * k : 2 * k + 2], (together, metrics))
        assert difference(part, (alone, own)) == 0


def test_a_grid_of_seeds_and_environments() -> None:
    """Two seeds on two devices each, against both seeds on one."""
    one, many = trained("split", 0, num_seeds=2), trained("split", 4, num_seeds=2)
    assert many[2].grid and dict(many[2].grid.mesh.shape) == {"seed": 2, "env": 2}
    assert difference(one[0], many[0]) <= 2e-6


def test_evaluations_on_devices() -> None:
    """The same episodes, whether the policies were trained on one device or on several."""
    _, _, one = trained("fp3o", 0)
    state, _, many = trained("fp3o", 4)
    params = jax.device_get(state.learner.actor)
    found = [
        each.evaluate(params, credit(6), each.keys(0, 7), 20, deterministic)
        for each in (one, many)
        for deterministic in (True, False)
    ]
    assert difference(found[0], found[2]) == difference(found[1], found[3]) == 0
    assert np.isfinite(found[0].returns).all()


def test_one_block_has_the_random_numbers_of_the_whole() -> None:
    """Without blocks nothing is drawn differently than from the key itself; with them, it is."""
    setup, key = Setup(credit(8).spec, CONFIG), jax.random.key(5)
    shape = (setup.spec.num_agents, 8, setup.spec.actions.mask.shape[1])
    whole = jax.random.gumbel(key, shape)
    np.testing.assert_array_equal(sample_noise(setup, key, 8), whole)
    blocks = sample_noise(setup, key, 8, 4)
    own = jax.random.gumbel(jax.random.fold_in(key, 2), (shape[0], 2, shape[2]))
    np.testing.assert_array_equal(blocks[:, 4:6], own)
    empty = Batch(**{name: jnp.zeros((2, 160, 0)) for name in Batch._fields})
    data = StageData(empty, jnp.zeros((2, 160)))
    order = jnp.argsort(jax.random.bits(key, (160,))).reshape(2, -1)
    np.testing.assert_array_equal(shuffle_sequences(data, key, 2), order)
    shares = np.asarray(shuffle_sequences(data, key, 2, 4))
    assert sorted(shares.ravel().tolist()) == [*range(160)]
    assert (np.bincount(shares[0] // 40) == 20).all()
    advantage = jax.random.normal(key, (3, 16))
    single = Setup(credit(8).spec, CONFIG.replace(blocks=1))
    split = jax.jit(lambda: split_by_block(single, key, advantage))()
    np.testing.assert_array_equal(split, jax.jit(random_split)(key, advantage))


def test_a_fault_on_any_device_is_found() -> None:
    """With its environment, as on one device: the last one belongs to the last device."""
    program = program_on(4, CASES["fp3o"])
    state = program.init(0)
    env_state = state.rollout.timestep
    obs = np.array(env_state.obs)
    obs[6, 1] = np.nan
    broken = state._replace(rollout=state.rollout._replace(timestep=env_state._replace(obs=obs)))
    with pytest.raises(NonFiniteError, match="environment 6, agent 1, step 0"):
        program.iterate(program.place(broken))


@pytest.mark.parametrize(
    ("devices", "seeds", "blocks", "shape"),
    [(4, 1, 4, (1, 4)), (4, 4, 1, (4, 1)), (4, 2, 2, (2, 2)), (6, 4, 3, (2, 3)), (1, 5, 1, (1, 1))],
)
def test_seeds_are_divided_first(
    devices: int, seeds: int, blocks: int, shape: tuple[int, int]
) -> None:
    assert split_devices(devices, seeds, blocks) == shape


def test_devices_that_cannot_share_the_work() -> None:
    """The message says which numbers can, and which setting allows the wanted one."""
    with pytest.raises(SettingError, match=r"possible numbers are 1, 2\..*blocks=4"):
        split_devices(4, 1, 2)
    with pytest.raises(SettingError, match="3 blocks do not divide the 8 environments"):
        Setup(credit(8).spec, CONFIG.replace(blocks=3))
    with pytest.raises(SettingError, match="20 minibatches do not divide the 10 sequences of each"):
        config = CONFIG.replace(blocks=8, minibatches=20, sequence_length=2)
        Setup(credit(8).spec, config)


def test_learning_from_host_environments_on_devices() -> None:
    """The rollout is on the host, the update on two devices."""
    config = CASES["fp3o"].replace(blocks=2)
    states = []
    probe = PROBES["credit"]
    assert isinstance(probe, Probe)
    for devices in (0, 2):
        env = HostProbe(probe, 8)
        program = Program(env, config, None, jax.devices()[:devices] or None)
        state = program.init(3)
        for _ in range(2):
            state, _ = program.iterate(state)
        states.append(state)
    assert difference(states[0].learner, states[1].learner) <= 2e-6
    assert difference(states[0].rollout, states[1].rollout) <= 2e-6
