"""Every algorithm under every sharing solves every probe task it can solve."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_probe import HostCue, HostProbe
from mixture import TASKS, Mixture

from fp3o.algorithms.table import ALGORITHMS
from fp3o.envs.toys.probe import PROBES, Cue, Probe
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.config import Config
from fp3o.networks.layers import normalise
from fp3o.training.program import Program
from fp3o.training.rollout import evaluate_episodes
from fp3o.training.state import TrainState

SHARINGS = {"full": "full", "partial": "partial", "none": "none", "custom": (0, 0, 1)}


def unhurried(*slow: str) -> list[Any]:
    """Every sharing; these are left to the slow tests."""
    mark = {True: (pytest.mark.slow,), False: ()}
    return [pytest.param(name, marks=mark[name in slow]) for name in SHARINGS]


SOLVED = {"credit": 0.98, "roles": 0.98, "memory": 0.98, "unequal": 0.98}
"""Deterministic return that counts as solved; the best is 1."""


def small(**changes: object) -> Config:
    base = Config(num_envs=16, rollout=6, hidden=(32,), epochs=5, minibatches=2)
    return base.replace(**{"actor_lr": 5e-3, "critic_lr": 5e-3, "entropy_coef": 0.01, **changes})


def cue_probe(name: str) -> Probe:
    """A probe of discrete actions."""
    probe = PROBES[name]
    assert isinstance(probe, Probe)
    return probe


def one_task_a_seed(program: Program) -> TrainState:
    """Seed number i trains on task number i, from its second episode on."""
    state = program.init(0)
    _, envs = state.rollout.env_state
    return state._replace(rollout=state.rollout._replace(env_state=(jnp.arange(len(TASKS)), envs)))


def evaluate_tasks(program: Program, state: TrainState) -> dict[str, float]:
    """Mean deterministic return of every task."""
    setup, key = program.setup, jax.random.key(1)

    def one(params: Any, task: Any) -> Any:
        return evaluate_episodes(setup, Mixture(64, task), params, key, 3).episodes.returns

    returns = jax.jit(jax.vmap(one))(state.learner.actor, jnp.arange(len(TASKS)))
    return dict(zip(TASKS, np.asarray(returns).mean(1).tolist(), strict=True))


@pytest.mark.parametrize("sharing", unhurried("none", "partial", "custom"))
@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in ("ippo", "coppo"))) for n in ALGORITHMS],
)
def test_solves_discrete_probes(algorithm: str, sharing: str) -> None:
    """Value, credit assignment, coordination, memory and unequal agents, with one GRU network."""
    config = small(algorithm=algorithm, sharing=SHARINGS[sharing], gru_size=16, sequence_length=6)
    program = Program(Mixture(config.num_envs), config, num_seeds=len(TASKS))
    state = one_task_a_seed(program)
    metrics: dict[str, Any] = {}
    for _ in range(80):
        state, metrics = program.iterate(state)
        if metrics["episode_return"][1:].min() > 0.93:  # sampled actions: the modes are right
            break
    returns = evaluate_tasks(program, state)
    assert {t: returns[t] for t, bar in SOLVED.items() if returns[t] < bar} == {}
    # Only one of IPPO's three critics observes the reward in advance.
    least = 0.3 if algorithm == "ippo" else 0.9
    assert float(metrics["explained_variance"][TASKS.index("value")]) > least
    assert float(metrics["replay_error"].max()) < 1e-4


@pytest.mark.parametrize("sharing", unhurried("full", "none", "custom"))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_solves_continuous_probe(algorithm: str, sharing: str) -> None:
    """Box actions of unequal sizes, feed-forward; both parametrisations of the spread."""
    std = "exp" if sharing in ("partial", "custom") else "sigmoid"
    config = small(algorithm=algorithm, sharing=SHARINGS[sharing], std_param=std, entropy_coef=0.0)
    # Turns under full sharing move every policy n times: they need small steps to stay stable.
    config = config.replace(rollout=8, activation="tanh", actor_lr=1e-3)
    program = Program(VmapEnv(PROBES["target"], config.num_envs), config)
    state = program.init(0)
    for _ in range(60):
        state, _ = program.iterate(state)
    returns = program.evaluate(
        state.learner.actor, VmapEnv(PROBES["target"], 256), program.keys(0, 1), num_steps=1
    ).returns
    assert float(returns.mean()) > -0.03  # blind: -0.21


UNSOLVABLE = {
    ("full", "roles", "without agent id"): "equal observations and one policy give equal actions",
    ("any", "memory", "without recurrence"): "the cue is gone when the action counts",
}
"""Probes that no algorithm can solve under these settings, and why; tested below."""


@pytest.mark.parametrize(
    ("task", "changes", "best"),
    [("roles", {"agent_id": False}, 1 / 3), ("memory", {}, 0.6)],
    ids=["roles-without-id", "memory-without-recurrence"],
)
def test_cannot_solve(task: str, changes: dict[str, object], best: float) -> None:
    """The tasks of `UNSOLVABLE` are not solved: the probes do measure what they say."""
    config = small(**changes)
    program = Program(VmapEnv(PROBES[task], config.num_envs), config)
    state = program.init(0)
    for _ in range(40):
        state, _ = program.iterate(state)
    returns = program.evaluate(
        state.learner.actor, VmapEnv(PROBES[task], 256), program.keys(0, 1), num_steps=3
    ).returns
    assert float(returns.mean()) <= best + 1e-6


def test_value_is_the_known_one() -> None:
    """The critic of the value probe predicts γ x at the first step and x at the second."""
    config = small(algorithm="mappo", sharing="none", gamma=0.8, critic_lr=1e-2)
    program = Program(VmapEnv(PROBES["value"], config.num_envs), config)
    state = program.init(0)
    for _ in range(60):
        state, _ = program.iterate(state)
    setup, probe = program.setup, cue_probe("value")
    for x in (-1.0, 1.0):
        for time, known in ((0, 0.8 * x), (1, x)):
            shown = jnp.full((3, 1), 1.0).at[0, 0].set(x)
            observation = probe.observe(Cue(shown, jnp.zeros(()), jnp.asarray(time)))
            view = jnp.swapaxes(normalise(setup.features(observation.state[None])), 0, 1)
            out, _ = setup.critic(state.learner.critic)(
                view, jnp.zeros((3, 1, 0)), jnp.zeros((3, 1), bool)
            )
            value = state.learner.value_norm.denormalise(out[..., 0], setup.critic_of_agent)
            np.testing.assert_allclose(value[:, 0], known, atol=0.1)


@pytest.mark.parametrize("num_seeds", [None, 2])
def test_host_environment_learns(num_seeds: int | None) -> None:
    """The NumPy twin of `credit` is solved by host rollouts, for one seed and for two."""
    config = small(rollout=9)
    env = HostProbe(cue_probe("credit"), config.num_envs * (num_seeds or 1))
    program = Program(env, config, num_seeds)
    state = program.init(0)
    for _ in range(20):
        state, _ = program.iterate(state)
    env = VmapEnv(PROBES["credit"], 128)
    returns = program.evaluate(state.learner.actor, env, program.keys(0, 1), num_steps=3).returns
    assert np.all(np.asarray(returns).reshape(num_seeds or 1, -1).mean(1) > 0.98)
    twins = HostProbe(cue_probe("credit"), 128 * (num_seeds or 1))
    for deterministic in (True, False):
        keys = program.keys(0, 2)
        played = program.evaluate(state.learner.actor, twins, keys, 3, deterministic)
        returns = played.returns
        assert returns.shape == ((num_seeds, 128) if num_seeds else (128,))
        assert played.lengths.shape == returns.shape and np.all(played.lengths == 3)
        assert np.all(np.asarray(returns).reshape(num_seeds or 1, -1).mean(1) > 0.9)


@pytest.mark.parametrize("task", ["credit", "memory", "unequal"])
def test_host_twin_steps_like_the_probe(task: str) -> None:
    """From the same states, the same actions give the same steps."""
    env, twin = VmapEnv(PROBES[task], 64), HostProbe(cue_probe(task), 64)
    (cue, _), step = state = env.reset(jax.random.key(0))
    state, random = state[0], np.random.default_rng(0)
    shown, score, cue_time = map(np.asarray, cue)
    host = HostCue(shown, score, cue_time, np.zeros(3, int))
    for _ in range(PROBES[task].max_episode_steps):
        action = random.integers(0, 2, (64, 3, 1))
        state, step = env.step(state, jnp.asarray(action))
        host, twin_step = twin.step(host, action)
        for name in (
            "reward",
            "terminated",
            "truncated",
            "episode_start",
            "final_obs",
            "final_state",
        ):
            np.testing.assert_allclose(getattr(step, name), getattr(twin_step, name), atol=1e-6)
        if not step.episode_start.all():
            np.testing.assert_allclose(step.obs, twin_step.obs, atol=1e-6)
