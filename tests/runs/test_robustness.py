"""Robustness of runs: regression tests, one per defect that was fixed."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from probe_runs import SETTINGS
from small_runs import diverge_once, read_metrics

import fp3o
from fp3o.envs.toys.probe import PROBES
from fp3o.reports.phrasing import count_text
from fp3o.runs.directory import RunDirectory
from fp3o.runs.progress import TrainingStatus
from fp3o.runs.seed_axis import first_non_finite
from fp3o.runs.video import EpisodeRecorder

SMALL: dict[str, Any] = {
    "algorithm": "mappo", "seeds": 2, "num_envs": 4, "rollout": 6, "hidden": (8,), "epochs": 1,
    "steps": 48, "eval_every": 1, "eval_episodes": 3, "final_episodes": 3, "progress": "quiet",
    "loggers": (),
}  # fmt: skip


class Endless(fp3o.Env):
    """Some episodes (or all) are longer than the environment declares."""

    max_episode_steps = 3

    def __init__(self, share: float):
        self.share = share
        spec = PROBES["credit"].spec
        self.spec = fp3o.EnvSpec(f"endless-{share}", spec.actions, 1, 1, spec.agent_types)

    def reset(self, key: Any) -> Any:
        """Time, and whether the episode ends."""
        return jnp.zeros((), int), jax.random.uniform(key) >= self.share

    def step(self, state: Any, action: Any, key: Any) -> Any:
        """A reward of 1 per step."""
        time, ends = state
        return (time + 1, ends), jnp.ones(3), ends & (time == 2), jnp.zeros((), bool)

    def observe(self, state: Any) -> Any:
        """The time."""
        time = jnp.full((3, 1), state[0], float)
        mask = jnp.asarray(self.spec.actions.mask)
        return fp3o.Observation(time, time, mask, jnp.ones(3, bool))


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_evaluation_episodes_that_do_not_end(share: float, tmp_path: Path) -> None:
    """They are counted and left out of the mean; training continues and nothing is NaN."""
    with pytest.warns(RuntimeWarning, match=r"did not end within max_episode_steps=3.*Raise"):
        run = fp3o.train(Endless(share), out=tmp_path / "run", **SMALL)
        found = run.evaluate(8)
    assert run.finished
    rows = read_metrics(run.path)
    done = [3 - row.get("eval_unfinished", 0) for row in rows]
    assert [row["eval_episodes"] for row in rows] == done
    assert all(row["eval_return"] == row.get("eval_length") == (3.0 if n else None)
               for row, n in zip(rows, done, strict=True))  # fmt: skip
    for row in (*run.results["last"], *run.results["best"], *found["policies"]):
        assert row["return"] in (None, 3.0) and row["length"] == row["return"]
        assert share < 1 or (row["return"] is None and row["unfinished"] > 0)
    with pytest.warns(RuntimeWarning, match="did not end"):
        assert fp3o.resume(run.path, steps=72, progress="quiet", loggers=()).finished


@pytest.mark.parametrize(
    ("part", "name"),
    [("actor", "actor"), ("critic", "critic"), ("critic_adam", "critic's optimiser state"),
     ("actor_adam", "actor's optimiser state"), ("value_norm", "value normaliser")],
)  # fmt: skip
@pytest.mark.parametrize("seeds", [1, 2])
def test_every_part_of_the_learner_is_checked(part: str, name: str, seeds: int) -> None:
    """One NaN anywhere is found, with the seed it belongs to."""
    config = fp3o.Config(num_envs=4, rollout=6, hidden=(8,))
    program = fp3o.Program(fp3o.VmapEnv(PROBES["credit"], 4), config, seeds if seeds > 1 else None)
    learner = program.init(5).learner
    seed_numbers = range(5, 5 + seeds)
    assert first_non_finite(learner, seed_numbers) is None
    leaves, structure = jax.tree.flatten(getattr(learner, part))
    place = next(i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.floating))
    leaves[place] = leaves[place].at[(-1,) * leaves[place].ndim].set(math.nan)
    broken = learner._replace(**{part: jax.tree.unflatten(structure, leaves)})
    assert first_non_finite(broken, seed_numbers) == f"the {name} of seed {4 + seeds} is not finite"


def test_a_broken_critic_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last finite state is kept and can be resumed."""
    diverge_once(monkeypatch, "critic", iteration=2)
    with pytest.raises(fp3o.NonFiniteError, match="the critic of seed 1 is not finite"):
        fp3o.train("probe/credit", out=tmp_path / "run", **SETTINGS)
    assert [path.stem for path in RunDirectory(tmp_path / "run").checkpoints()][-1] == "000000001"
    assert fp3o.resume(tmp_path / "run", progress="quiet", loggers=()).finished


@pytest.mark.parametrize("part", ["critic", "actor"])
def test_a_state_that_cannot_be_trained_is_rejected(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is compiled; a restored state is checked in the same way."""
    real = fp3o.Program.init

    def spoiled(self: Any, seed: int = 0) -> Any:
        state = real(self, seed)
        rows = tuple(x.at[1].set(1e30) for x in getattr(state.learner, part))
        return state._replace(learner=state.learner._replace(**{part: rows}))

    monkeypatch.setattr(fp3o.Program, "init", spoiled)
    words = f"the {part} of seed 1 reaches 1e[+]30, beyond 1e[+]15 in the initial state"
    with pytest.raises(fp3o.NonFiniteError, match=words):
        fp3o.train("probe/credit", out=tmp_path / "run", **SMALL)


PARTICLES = {**SMALL, "seeds": 1, "steps": 24, "gru_size": 0, "sequence_length": 1}


def test_rendered_returns_are_per_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards that are sums over agents are divided, as in evaluations; the policy knows by what.

    Policies of format 1 do not know it: the task does.
    """
    run = fp3o.train("mpe/simple_reference", out=tmp_path / "run", **PARTICLES)
    policy = run.policy()
    env = fp3o.make("mpe/simple_reference")
    assert policy.card.spec.reward_sum_over == env.spec.reward_sum_over == 2
    assert policy.card.spec == replace(env.spec, adjacency=None)  # for critics, not in policies
    assert rendered_return(policy, env, monkeypatch) == pytest.approx(
        by_hand(policy, env), abs=0.01
    )
    object.__setattr__(policy.card.spec, "reward_sum_over", 1)  # as in format 1
    assert rendered_return(policy, env, monkeypatch) == pytest.approx(
        by_hand(policy, env), abs=0.01
    )


def by_hand(policy: fp3o.Policy, env: Any) -> float:
    state, now = env.reset(jax.random.key(0))
    total, hidden_state, done = 0.0, None, False
    while not done:
        actions, hidden_state = policy.act(np.asarray(now.obs), hidden_state)
        state, now = env.step(state, actions)
        total += float(now.reward.mean()) / env.spec.reward_sum_over
        done = bool(now.terminated[0] | now.truncated[0])
    return total


def rendered_return(policy: fp3o.Policy, env: Any, monkeypatch: pytest.MonkeyPatch) -> float:
    captions: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(
            type(env),
            "render",
            lambda self, state, caption: captions.append(caption) or np.zeros(1),
        )
        list(EpisodeRecorder(policy, env, 1).frames(0, 0))
    return float(captions[-1].split("return ")[1])


@pytest.mark.parametrize(
    ("number", "text"),
    [(999_600, "1M"), (999_999, "1M"), (999_499, "999k"), (1_234_567, "1.23M"), (999.6, "1k"),
     (999, "999"), (1_500, "1.5k"), (2e9, "2G")],
)  # fmt: skip
def test_counts(number: float, text: str) -> None:
    """One formatter for all counts, which rounds before it chooses the unit."""
    assert count_text(number) == text
    status = TrainingStatus("title", 2 * round(number) + 2, round(number), 1)
    assert "e+" not in status.line()
