"""Programs compile once, share their stages and do not grow with the team."""

from functools import partial

import jax
import jax.numpy as jnp

from fp3o.envs.toys.probe import PROBES
from fp3o.envs.vectorise import VmapEnv
from fp3o.learning.batch import IterationData, TDResiduals
from fp3o.learning.config import Config
from fp3o.learning.setup import Setup
from fp3o.learning.update import policy_iteration
from fp3o.spec import Discrete, EnvSpec
from fp3o.training.program import Program
from fp3o.types import Batch

TINY = Config(num_envs=4, rollout=6, hidden=(8,), epochs=2, minibatches=2)


def program_length(algorithm: str, num_agents: int) -> int:
    """Lines of the text of one policy iteration."""
    spec = EnvSpec("many", Discrete(((2,),) * num_agents), 4, 4, (0,) * num_agents)
    setup = Setup(spec, TINY.replace(algorithm=algorithm, agent_id=False))
    row = lambda *f: jnp.ones((num_agents, 24, *f))  # noqa: E731
    batch = Batch(
        obs=row(4),
        critic_input=row(4),
        action_mask=row(2) > 0,
        alive=row(),
        episode_start=row() > 1,
        actor_hidden=row(0),
        critic_hidden=row(0),
        action=row(1).astype(int),
        log_prob=row(),
        value=row(),
        advantage=row(),
        target=row(),
    )
    residuals = TDResiduals(*(jnp.ones((num_agents, 4, 6)) for _ in range(3)))
    score = jnp.arange(num_agents, dtype=float)
    data = IterationData(batch, residuals, score)
    inputs = setup.config.hyperparameters.as_arrays(), setup.init(0), data, jax.random.key(0)
    return len(jax.jit(partial(policy_iteration, setup)).lower(*inputs).as_text().splitlines())


def test_program_does_not_grow_with_agents() -> None:
    """Stages are data: HAPPO's program is as long for 12 agents as for 3."""
    few, many = program_length("happo", 3), program_length("happo", 12)
    assert abs(many - few) <= 0.02 * few


def test_fp3o_stages_share_one_body() -> None:
    """Two steps, one body: FP3O's program is not much longer than MAPPO's."""
    assert program_length("fp3o", 3) < 1.15 * program_length("mappo", 3)


def test_one_compilation_per_program_shape() -> None:
    """Nothing is compiled from the second iteration on, not even for other hyperparameters."""
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    program = Program(VmapEnv(PROBES["credit"], 4), TINY)
    state, hparams = program.init(0), program.hyperparameters()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        state, _ = program.iterate(state, hparams)
        first = len(compiled)
        other = jax.tree.map(lambda x: x * 0.5, hparams)  # compiles a multiplication
        made = len(compiled)
        for chosen in (hparams, other, hparams):
            state, _ = program.iterate(state, chosen)
        assert len(compiled) == made
        for seed in range(3):
            program.evaluate(
                state.learner.actor,
                VmapEnv(PROBES["credit"], 8),
                program.keys(seed),
                num_steps=3,
            )
            made = max(made, len(compiled)) if seed == 0 else made
    finally:
        jax.monitoring.clear_event_listeners()
    assert first == 1
    assert len(compiled) == made
