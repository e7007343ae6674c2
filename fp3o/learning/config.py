"""Settings: what is traced (`Rates`) and what is static (`Config`), and their checks.

`Rates` are numbers inside the compiled program: change them between iterations, or give every
seed its own, and nothing is compiled again. Everything in `Config` shapes the program.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

import equinox as eqx

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import StageFacts, stage_facts
from fp3o.algorithms.table import parse_algorithm
from fp3o.errors import nearest
from fp3o.sharing.schemes import SharingSpec
from fp3o.spec import EnvSpec
from fp3o.types import Scalar


class Hyperparameters(eqx.Module):
    """Scalar settings that are data of the compiled program: they may differ from seed to seed."""

    actor_lr: Scalar = 5e-4
    """Learning rate of the policies."""
    critic_lr: Scalar = 5e-4
    """Learning rate of the critics."""
    clip_range: Scalar = 0.2
    """ε: how far a ratio may move before its gradient stops."""
    value_clip: Scalar | None = None
    """How far a value may move from its old prediction, in normalised units; None: as `clip`."""
    entropy_coef: Scalar = 0.01
    """Weight of the entropy bonus."""
    gamma: Scalar = 0.99
    """Discount."""
    gae_lambda: Scalar = 0.95
    """λ of the advantage estimate."""
    max_grad_norm: Scalar = 10.0
    """Largest gradient norm of a component."""
    huber_delta: Scalar = 10.0
    """Error (normalised units) from which the value loss is linear."""


@dataclass(frozen=True)
class Config:
    """Settings that shape the program; changing one compiles a new program."""

    algorithm: str | Algorithm = "fp3o"
    """A name from the table, also with fields changed as in `fp3o:on_failed_condition=revert`, or a row."""
    sharing: SharingSpec = "full"
    """Sharing of the actor: full, partial, none, by_type, or a map from agent to group."""
    critic_sharing: SharingSpec | None = None
    """Sharing of the critic; None: that of the actor's first layer (D8)."""
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    """Scalars that may change without compiling again."""

    num_envs: int = 8
    """Environments stepped together."""
    rollout: int = 128
    """Steps of each environment in an iteration."""
    epochs: int = 5
    """Passes over the data in a stage."""
    minibatches: int = 1
    """Parts the data is cut into in every pass."""
    sequence_length: int | None = None
    """Length of the sequences a recurrent network learns from; None: 1 without memory, else 10."""

    network: str = "mlp_gru"
    """Kind of the actor's and the critic's network: layered, or one of your own by its import path,
    my_module:MyNetwork."""
    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers."""
    gru_size: int = 0
    """Size of the GRU in actor and critic; 0: none."""
    activation: str = "relu"
    """relu or tanh."""
    layer_norm: bool = True
    """LayerNorm before every layer, the first one included."""
    output_gain: float = 0.01
    """Gain of the policy's last layer."""
    std_param: str = "sigmoid"
    """Spread of continuous actions: sigmoid (the paper, at most 0.5) or exp."""
    agent_id: bool = True
    """Append a one-hot of the agent to what actor and critic see."""

    time_limit: Literal["bootstrap", "terminate"] = "bootstrap"
    """At a time limit: continue with the value of the last observation, or treat it as an end
    (the paper)."""
    head_lr_factor: float = 1.0
    """Factor of the learning rate in the policy's last layer; the number of agents under partial
    sharing in the authors' release (D6)."""
    mask_value_loss: bool = False
    """Leave dead agents out of the value loss (D11: the published runs do not)."""
    advantage_norm: Literal["agent", "team", "none"] = "agent"
    """Standardise advantages for each agent, over the team, or not at all."""

    @property
    def row(self) -> Algorithm:
        """The algorithm's row of the table."""
        return (
            parse_algorithm(self.algorithm) if isinstance(self.algorithm, str) else self.algorithm
        )

    @property
    def sequence_steps(self) -> int:
        """Steps of a chunk."""
        return self.sequence_length or (10 if self.gru_size else 1)

    def stage_facts(self, spec: EnvSpec) -> StageFacts:
        """What is known of the algorithm's stages for this task."""
        return stage_facts(self.row, spec.num_agents, self.epochs)

    def replace(self, **changes: object) -> "Config":
        """A copy with these settings changed; rates may be given by name too."""
        rate_names = {f.name for f in dataclasses.fields(Hyperparameters)}
        hparams = {name: changes.pop(name) for name in rate_names & changes.keys()}
        for name in changes:
            if name not in (known := [f.name for f in dataclasses.fields(Config)]):
                raise ValueError(
                    f"unknown setting {name!r}: {nearest(name, {*known, *rate_names})}"
                )
        if hparams:
            changes["hyperparameters"] = dataclasses.replace(self.hyperparameters, **hparams)
        return dataclasses.replace(self, **changes)  # pyright: ignore[reportArgumentType]
