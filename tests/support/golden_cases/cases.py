"""Cases of the golden comparison: the settings of both sides."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from golden.data import TABLE, Options, Settings
from golden.network import Network

from fp3o.algorithms.table import ALGORITHMS
from fp3o.learning.config import Config, Hyperparameters
from fp3o.learning.setup import Setup
from fp3o.spec import ActionSpace, Box, Discrete, EnvSpec, Mixed

STEPS, ENVS, AGENTS = 8, 3, 3
OBS, STATE, HIDDEN, GRU_SIZE, SEQUENCE_LENGTH = 4, 5, (6, 5), 4, 4

ACTIONS: dict[str, ActionSpace] = {
    "discrete": Discrete(((3,), (2,), (4,))),
    "multi": Discrete(((3, 2), (2, 1), (4, 3))),
    "box": Box((2, 1, 3)),
    "mixed": Mixed(Discrete(((3, 2), (1, 1), (2, 1))), Box((2, 1, 0))),
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
    """An algorithm, its variant, and the kind of data."""

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
    sharing: dict[str, Any] = dict(CUSTOM.get(case.sharing, {"sharing": case.sharing}))
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


def settings_of(case: Case, setup: Setup) -> Settings:
    """The reference's side of a case."""
    config, actions = setup.config, setup.spec.actions
    names = [f.name for f in dataclasses.fields(Options)]
    changes = {k: v for k, v in case.options.items() if k in names}
    return Settings(
        algorithm=case.algorithm,
        actor=layers_of(setup.actor_sharing, config),
        critic=layers_of(setup.critic_sharing, config),
        widths=actions.widths,
        num_dimensions=actions.num_dimensions,
        options=dataclasses.replace(TABLE[case.algorithm], **changes),
        num_envs=config.num_envs,
        std_param=config.std_param,
        sequence_length=config.sequence_steps,
        epochs=config.epochs,
        bootstrap=config.time_limit == "bootstrap",
        head_lr_factor=config.head_lr_factor,
        mask_value_loss=config.mask_value_loss,
        advantage_norm=config.advantage_norm,
        **vars(config.hyperparameters),
    )


def layers_of(sharing: tuple[tuple[int, ...], ...], config: Config) -> Network:
    """Name the maps; the norm of the input belongs to the first layer."""
    names = [f"hidden{j}" for j in range(len(config.hidden))]
    names += ["gru"] * bool(config.gru_size) + ["output"]
    groups = {"input": sharing[0]} | dict(zip(names, sharing, strict=True))
    return Network(groups, config.activation)
