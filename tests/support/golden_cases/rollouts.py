"""Cases for the golden reference: data for both sides, and the comparison of their results."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import golden.iteration as golden
import golden.network as golden_nets
import jax
import jax.numpy as jnp
import numpy as np

from fp3o.algorithms.fp3o import non_overlapping, random_split
from fp3o.algorithms.schedules import ORDERS, SCHEDULES
from fp3o.algorithms.table import ALGORITHMS
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.returns import ValueNorm
from fp3o.learning.setup import Learner, Setup
from fp3o.learning.stage_data import StageData
from fp3o.learning.steps import shuffle_sequences
from fp3o.networks.network import Network
from fp3o.spec import Box, Discrete, EnvSpec
from fp3o.training.episodes import EpisodeStats
from fp3o.training.program import update_learner
from fp3o.training.rollout import RolloutState
from fp3o.types import Batch, Trajectory

STEPS, ENVS, AGENTS = 8, 3, 3
OBS, STATE, HIDDEN, GRU_SIZE, SEQUENCE_LENGTH = 4, 5, (6, 5), 4, 4

ACTIONS: dict[str, Discrete | Box] = {
    "discrete": Discrete(((3,), (2,), (4,))),
    "multi": Discrete(((3, 2), (2, 1), (4, 3))),
    "box": Box((2, 1, 3)),
}
CUSTOM: dict[str, dict[str, Any]] = {
    "custom": {
        "sharing": ((0, 0, 1), (0, 1, 1), (0, 1, 0)),
        "critic_sharing": ((0, 1, 1), (0, 1, 0), (0, 1, 1)),
    },
    "islands": {
        "sharing": ((0, 0, 1), (0, 0, 1), (0, 1, 2)),
        "critic_sharing": ((0, 1, 1), (0, 1, 1), (0, 1, 2)),
    },
}
"""One map per layer: a connected team with unequal heads; two components."""


@dataclass(frozen=True)
class Case:
    """An algorithm, its variant, and the data it meets."""

    algorithm: str
    sharing: str = "full"
    recurrent: bool = False
    actions: str = "discrete"
    options: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    seed: int = 2
    x64: bool = False
    fresh: bool = False
    """Whether optimisers and normalisers are new, or those of a training in progress."""
    ghost: bool = False
    """Whether the second agent is dead at every step."""
    gate: list[bool] | None = None
    """Expected gate of FP3O in every stage."""

    def __str__(self) -> str:
        net = "gru" if self.recurrent else "mlp"
        changes = [f"{k}={v}" for k, v in (self.options | self.config).items()]
        changes += ["ghost"] * self.ghost
        return "-".join([self.algorithm, self.sharing, net, self.actions, *changes])


def setup_of(case: Case) -> Setup:
    """The library's side of a case."""
    sharing = dict(CUSTOM.get(case.sharing, {"sharing": case.sharing}))
    if case.recurrent and case.sharing in CUSTOM:
        sharing = {k: (*maps[:2], (0, 1, 1), maps[2]) for k, maps in sharing.items()}
    row = dataclasses.replace(ALGORITHMS[case.algorithm], **case.options)
    hparams = Hyperparameters(
        actor_lr=1e-2,
        critic_lr=1e-2,
        clip_range=0.1,
        value_clip=0.15,
        entropy_coef=0.02,
        gamma=0.97,
        gae_lambda=0.9,
        max_grad_norm=0.4,
        huber_delta=0.8,
    )
    config = Config(
        algorithm=row,
        hyperparameters=hparams,
        num_envs=ENVS,
        rollout=STEPS,
        epochs=2,
        minibatches=2,
        hidden=HIDDEN,
        gru_size=GRU_SIZE * case.recurrent,
        sequence_length=SEQUENCE_LENGTH if case.recurrent else 1,
        output_gain=0.5,
        **sharing,
    )
    spec = EnvSpec("golden", ACTIONS[case.actions], OBS, STATE, (0, 0, 1), truncates=True)
    return Setup(spec, config.replace(**case.config))


def settings_of(case: Case, setup: Setup) -> golden.Settings:
    """The reference's side of a case."""
    config, actions = setup.config, setup.spec.actions
    names = [f.name for f in dataclasses.fields(golden.Options)]
    changes = {k: v for k, v in case.options.items() if k in names}
    return golden.Settings(
        algorithm=case.algorithm,
        actor=layers_of(setup.actor_sharing, config),
        critic=layers_of(setup.critic_sharing, config),
        widths=actions.widths if isinstance(actions, Discrete) else None,
        options=dataclasses.replace(golden.TABLE[case.algorithm], **changes),
        std_param=config.std_param,
        sequence_length=config.sequence_steps,
        epochs=config.epochs,
        bootstrap=config.time_limit == "bootstrap",
        head_lr_factor=config.head_lr_factor,
        mask_value_loss=config.mask_value_loss,
        advantage_norm=config.advantage_norm,
        **vars(config.hyperparameters),
    )


def layers_of(sharing: tuple[tuple[int, ...], ...], config: Config) -> golden_nets.Network:
    """Name the maps; the norm of the input belongs to the first layer."""
    names = [f"hidden{j}" for j in range(len(config.hidden))]
    names += ["gru"] * bool(config.gru_size) + ["output"]
    groups = {"input": sharing[0]} | dict(zip(names, sharing, strict=True))
    return golden_nets.Network(groups, config.activation)


# From the library's networks to the reference's dicts --------------------------------------------


def params_of(network: Network, log_std: Any = None) -> golden_nets.Params:
    """Every array of every layer and group, in float64."""
    norms, depth = network.norms, len(network.hidden)
    layers = {"input": {"scale": norms[0].scale, "shift": norms[0].shift}}
    for j, linear in enumerate(network.hidden):
        norm = {"scale": norms[j + 1].scale, "shift": norms[j + 1].shift}
        layers[f"hidden{j}"] = {"weight": linear.weight, "bias": linear.bias} | norm
    if (cell := network.gru) is not None:
        layers["gru"] = {
            "in_weight": cell.input.weight, "in_bias": cell.input.bias, "weight": cell.weight,
            "bias": cell.bias, "scale": norms[depth + 1].scale, "shift": norms[depth + 1].shift,
        }  # fmt: skip
    layers["output"] = {"weight": network.output.weight, "bias": network.output.bias}
    if log_std is not None:
        layers["output"]["log_std"] = log_std.value
    return {
        (layer, g): {name: np.asarray(a, np.float64)[g] for name, a in arrays.items()}
        for layer, arrays in layers.items()
        for g in range(len(next(iter(arrays.values()))))
    }


@cache
def unpacker(setup: Setup, which: str) -> Callable[[Any], Any]:
    """From packed parameters to a network."""
    return jax.jit(setup.actor if which == "actor" else setup.critic)


def actor_params(setup: Setup, params: Any) -> golden_nets.Params:
    """The actor's arrays."""
    actor = unpacker(setup, "actor")(params)
    return params_of(actor.network, actor.log_std)


def critic_params(setup: Setup, params: Any) -> golden_nets.Params:
    """The critic's arrays."""
    return params_of(unpacker(setup, "critic")(params))


def adam_of(
    setup: Setup, which: str, states: Any, net: golden_nets.Network
) -> dict[tuple[str, int], golden_nets.Adam]:
    """Moments and counts of every layer and group."""
    layout = setup.actor_layout if which == "actor" else setup.critic_layout
    unpack = actor_params if which == "actor" else critic_params
    mean = unpack(setup, tuple(state.mu for state in states))
    square = unpack(setup, tuple(state.nu for state in states))
    counts = {g: np.asarray(s.count) for g, s in zip(layout.maps, states, strict=True)}
    return {
        key: golden_nets.Adam(mean[key], square[key], int(counts[net.groups[key[0]]][key[1]]))
        for key in mean
    }


def learner_of(setup: Setup, s: golden.Settings, learner: Learner) -> golden.Learner:
    """The reference's copy of a learner."""
    return golden.Learner(
        actor=actor_params(setup, learner.actor),
        critic=critic_params(setup, learner.critic),
        actor_adam=adam_of(setup, "actor", learner.actor_adam, s.actor),
        critic_adam=adam_of(setup, "critic", learner.critic_adam, s.critic),
        norm=[[float(x[g]) for x in learner.value_norm] for g in range(setup.num_critics)],
    )


# Data --------------------------------------------------------------------------------------------


def warm(learner: Learner, rng: np.random.Generator) -> Learner:
    """A learner in the middle of training: used optimisers and value normaliser."""

    def used(state: Any) -> Any:
        return state._replace(
            count=jnp.asarray(rng.integers(400, 900, state.count.shape), state.count.dtype),
            mu=jnp.asarray(rng.normal(0.0, 0.01, state.mu.shape), state.mu.dtype),
            nu=jnp.asarray(rng.uniform(0.5, 1.5, state.nu.shape) * 1e-4, state.nu.dtype),
        )

    adams = (tuple(map(used, state)) for state in (learner.actor_adam, learner.critic_adam))
    weight = 1e-5 * (2.0 + np.arange(learner.value_norm.mean.size))
    norm = (x.astype(learner.value_norm.mean.dtype) for x in (0.3 * weight, 0.8 * weight, weight))
    actor_adam, critic_adam = adams
    value_norm = ValueNorm(*map(jnp.asarray, norm))
    return learner._replace(actor_adam=actor_adam, critic_adam=critic_adam, value_norm=value_norm)


def with_id(x: np.ndarray) -> np.ndarray:
    """The agent's one-hot behind its features."""
    return np.concatenate([x, np.broadcast_to(np.eye(AGENTS), (*x.shape[:-1], AGENTS))], axis=-1)


def choices(
    actions: Discrete, alive: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random masks, and an available action; dead agents have only the first choice."""
    action_mask = (rng.random((STEPS, ENVS, AGENTS, sum(actions.widths))) < 0.6) & actions.mask
    action = np.zeros((STEPS, ENVS, AGENTS, len(actions.widths)), np.int32)
    for place in np.ndindex(STEPS, ENVS, AGENTS):
        for d, size in enumerate(actions.sizes[place[2]]):
            first = sum(actions.widths[:d])
            if not alive[place]:
                action_mask[(*place, slice(first, first + size))] = np.arange(size) == 0
                continue
            action[(*place, d)] = rng.integers(size)
            action_mask[(*place, first + action[(*place, d)])] = True
    return action_mask, action


def rollout_of(
    case: Case, setup: Setup, s: golden.Settings, actor: golden_nets.Params
) -> golden.Rollout:
    """Random observations and rewards with ends, time limits and dead agents in the middle."""
    rng, spec = np.random.default_rng(100 + case.seed), setup.spec
    shape = (STEPS, ENVS, AGENTS)
    terminated, truncated = np.zeros((2, STEPS, ENVS), bool)
    terminated[5, 1] = terminated[1, 2] = True
    truncated[3, 0] = truncated[6, 2] = True
    episode_start = np.concatenate([[[True, False, False]], (terminated | truncated)[:-1]])
    alive = np.ones(shape, bool)
    alive[3:6, 1, 1] = alive[0:2, 2, 2] = alive[4:7, 2, 0] = False
    alive[:, :, 1] &= not case.ghost
    features, states = (rng.normal(size=(STEPS + 1, ENVS, AGENTS, f)) for f in (OBS, STATE))
    for x in (features, states):
        x[:-1][~alive] = 0.0
    inputs = features if setup.row.critic_input == "obs" else states
    ends = (terminated | truncated)[..., None, None]
    final_critic_input = np.where(ends, rng.normal(size=inputs[1:].shape), inputs[1:])
    if isinstance(spec.actions, Discrete):
        action_mask, action = choices(spec.actions, alive, rng)
    else:
        action_mask = np.broadcast_to(spec.actions.mask, (*shape, 3))
        action = rng.normal(0.0, 0.5, (*shape, 3)) * action_mask
    hidden_states = rng.normal(0.0, 0.5, (2, ENVS, AGENTS, setup.config.gru_size))
    rollout = golden.Rollout(
        features=with_id(features[:-1]),
        critic_input=with_id(inputs[:-1]),
        final_critic_input=with_id(final_critic_input),
        action_mask=action_mask,
        alive=alive,
        episode_start=episode_start,
        hidden_state=np.zeros((*shape, setup.config.gru_size)),
        critic_hidden=hidden_states[1],
        action=action,
        log_prob=np.zeros(shape),
        reward=rng.normal(size=shape),
        terminated=terminated,
        truncated=truncated,
    )
    return with_policy_outputs(s, actor, rollout, hidden_states[0])


def with_policy_outputs(
    s: golden.Settings, actor: golden_nets.Params, rollout: golden.Rollout, hidden_state: np.ndarray
) -> golden.Rollout:
    """Fill in the log-probabilities and hidden states that the rollout policy would have stored."""
    for e in range(ENVS):
        for i in range(AGENTS):
            own = s.actor.own(actor, i)
            out, hidden_states, _ = golden_nets.forward(
                s.actor,
                own,
                rollout.features[:, e, i],
                hidden_state[e, i][None],
                rollout.episode_start[:, e],
            )
            rollout.hidden_state[:, e, i] = np.vstack(
                [hidden_state[e, i][None], hidden_states[:-1]]
            )
            policy = golden.head_of(s, own, out, rollout.action_mask[:, e, i])
            rollout.log_prob[:, e, i] = policy.log_prob(rollout.action[:, e, i])
    return rollout


def trajectory_of(setup: Setup, rollout: golden.Rollout) -> tuple[Trajectory, RolloutState]:
    """Input of the library: no one-hots, padded actions marked as available, its precision."""
    real = lambda x: jnp.asarray(x, float)  # noqa: E731
    final_critic_input = rollout.final_critic_input
    if setup.config.time_limit == "terminate":
        final_critic_input = final_critic_input[-1:]
    trajectory = Trajectory(
        obs=real(rollout.features[..., :-AGENTS]),
        critic_input=real(rollout.critic_input[..., :-AGENTS]),
        final_critic_input=real(final_critic_input[..., :-AGENTS]),
        action_mask=jnp.asarray(rollout.action_mask | ~setup.spec.actions.mask),
        alive=jnp.asarray(rollout.alive),
        episode_start=jnp.asarray(rollout.episode_start),
        actor_hidden=real(rollout.hidden_state),
        action=jnp.asarray(rollout.action)
        if isinstance(setup.spec.actions, Discrete)
        else real(rollout.action),
        log_prob=real(rollout.log_prob),
        reward=real(rollout.reward),
        terminated=jnp.asarray(rollout.terminated),
        truncated=jnp.asarray(rollout.truncated),
        episode_metrics=jnp.zeros((*rollout.truncated.shape, 0)),
    )
    critic_hidden = real(rollout.critic_hidden)
    stats = EpisodeStats(jnp.zeros(ENVS), jnp.zeros(ENVS, int))
    return trajectory, RolloutState(None, None, critic_hidden, critic_hidden, stats)  # pyright: ignore


def draws_of(setup: Setup, key: jax.Array, score: np.ndarray) -> golden.Draws:
    """Random numbers that the library samples from this key."""
    row, config = setup.row, setup.config
    order_key, split_key, pair_key, shuffle_key = jax.random.split(key, 4)
    score = jnp.asarray(score, float)
    stages = SCHEDULES[row.schedule](order_key, score, config.epochs, row)
    orders = []
    if row.schedule == "sequential":
        orders = [
            ORDERS[row.order](k, score).tolist() for k in jax.random.split(order_key, row.rounds)
        ]
    sequences = STEPS * ENVS // config.sequence_steps
    batch = Batch(
        **dict.fromkeys(Batch._fields) | {"actor_hidden": np.zeros((AGENTS, sequences, 0))}
    )  # pyright: ignore
    shuffle = lambda k: shuffle_sequences(StageData(batch, None), k, config.minibatches).tolist()  # noqa: E731
    epochs = int(stages.epochs.max())
    keys = jax.random.split(shuffle_key, len(stages.gated))
    minibatches = [[shuffle(k) for k in jax.random.split(stage_key, epochs)] for stage_key in keys]
    split = None
    if row.split == "random":
        split = np.asarray(random_split(split_key, jnp.ones((AGENTS, STEPS * ENVS))), np.float64)
    return golden.Draws(orders, minibatches, split, non_overlapping(pair_key, AGENTS).tolist())


@dataclass
class Run:
    """Both sides of a case."""

    setup: Setup
    settings: golden.Settings
    learner: Learner
    reference: golden.Learner
    rollout: golden.Rollout
    key: jax.Array

    def draws(self) -> golden.Draws:
        score = golden.prepare(self.settings, self.reference, self.rollout)[2]["mean_abs_advantage"]
        return draws_of(self.setup, self.key, score)

    def expected(self) -> tuple[golden.Learner, np.ndarray, dict[str, Any]]:
        """One iteration of the reference."""
        return golden.iterate(self.settings, self.reference, self.rollout, self.draws())

    def found(self) -> tuple[Learner, jax.Array, dict[str, Any]]:
        """One iteration of the library."""
        trajectory, state = trajectory_of(self.setup, self.rollout)
        step = jax.jit(partial(update_learner, self.setup))
        learner, state, metrics = step(
            self.setup.config.hyperparameters.as_arrays(), self.learner, trajectory, state, self.key
        )
        return learner, state.critic_hidden, metrics


def prepare(case: Case) -> Run:
    setup = setup_of(case)
    s = settings_of(case, setup)
    learner = setup.init(case.seed)
    if not case.fresh:
        learner = warm(learner, np.random.default_rng(case.seed))
    reference = learner_of(setup, s, learner)
    rollout = rollout_of(case, setup, s, reference.actor)
    return Run(setup, s, learner, reference, rollout, jax.random.key(case.seed))


# The comparison ----------------------------------------------------------------------------------


def differences(run: Run, found: Learner, expected: golden.Learner) -> dict[str, float]:
    """The largest difference of every array: parameters, moments (√ of the second), counts.

    The normaliser's running sums are divided by their weight, of the order of 1e-5.
    """
    now = learner_of(run.setup, run.settings, found)
    result: dict[str, float] = {}
    for which in ("actor", "critic"):
        new, old = getattr(now, which), getattr(expected, which)
        new_adam, old_adam = getattr(now, f"{which}_adam"), getattr(expected, f"{which}_adam")
        for key in old:
            result[f"{which} {key} count"] = abs(new_adam[key].count - old_adam[key].count)
            for name in old[key]:
                pairs = {
                    "": (new[key][name], old[key][name]),
                    "mean": (new_adam[key].mean[name], old_adam[key].mean[name]),
                    "root": [np.sqrt(x.square[name]) for x in (new_adam[key], old_adam[key])],
                }
                for kind, (x, y) in pairs.items():
                    result[f"{which} {key} {name} {kind}"] = float(np.abs(x - y).max())
    for g, (x, y) in enumerate(zip(now.norm, expected.norm, strict=True)):
        pairs = ((x[0] / x[2], y[0] / y[2]), (x[1] / x[2], y[1] / y[2]), (x[2] / y[2], 1.0))
        result[f"norm {g}"] = max(abs(a - b) for a, b in pairs)
    return result


SUMS = ("condition_new", "condition_old", "condition_gap", "constraint_gap")
"""Metrics that are sums over all living samples; compared by the sample."""


def metric_differences(
    run: Run, found: dict[str, Any], expected: dict[str, Any]
) -> dict[str, float]:
    """The largest difference of every metric, relative where it is above 1."""
    result = {"replay_error": float(found["replay_error"])}
    for name in expected:
        samples = run.rollout.alive.sum() if name in SUMS else 1.0
        x, y = (np.asarray(side[name], np.float64) for side in (found, expected))
        assert x.shape == y.shape, name
        result[name] = float((np.abs(x - y) / np.maximum(np.abs(y), samples)).max())
    return result


def close(case: Case) -> golden.Learner:
    """Compare one iteration of both sides; returns the learner of the reference."""
    run = prepare(case)
    learner, hidden_state, metrics = run.expected()
    found, carried, log = run.found()
    gaps = differences(run, found, learner) | metric_differences(run, log, metrics)
    gaps["hidden_state"] = float(np.abs(np.asarray(carried) - hidden_state).max(initial=0.0))
    tolerance = 1e-9 if case.x64 else 1e-5
    wrong = {name: gap for name, gap in gaps.items() if not gap <= tolerance}
    assert not wrong, wrong
    assert metrics["clip_fraction"].max() > 0.05, "ratios have to leave the clip range"
    assert case.gate in (None, metrics["gate"].tolist())
    return learner
