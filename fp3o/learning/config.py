"""Settings of the learner: traced scalars (`Hyperparameters`) and static settings (`Config`).

`Hyperparameters` are inputs of the compiled program: they can change between iterations or differ
between seeds without recompiling. A new value in `Config` compiles a new program.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from fp3o.algorithms.row import Algorithm
from fp3o.algorithms.schedules import StageFacts, stage_facts
from fp3o.algorithms.table import parse_algorithm
from fp3o.errors import SettingError, nearest
from fp3o.learning.value_schedules import ValueSchedule
from fp3o.networks.conv_layers import ConvSpec, ConvStack, conv_stack
from fp3o.networks.network import Role
from fp3o.sharing.schemes import SharingSpec
from fp3o.spec import EnvSpec, ImageShape
from fp3o.types import Scalar


class Hyperparameters(eqx.Module):
    """Scalars of the compiled program, which may differ between seeds.

    Each may be a `ValueSchedule`; `at` gives its value.
    """

    actor_lr: Scalar = 5e-4
    """Learning rate of the policies."""
    critic_lr: Scalar = 5e-4
    """Learning rate of the critics."""
    clip_range: Scalar = 0.2
    """Clip range ε of the probability ratios."""
    value_clip: Scalar | None = None
    """Clip range of value predictions around the old ones, in normalised units; None: the same as
    clip_range."""
    entropy_coef: Scalar = 0.01
    """Coefficient of the entropy bonus."""
    gamma: Scalar = 0.99
    """Discount factor γ."""
    gae_lambda: Scalar = 0.95
    """λ of generalised advantage estimation."""
    max_grad_norm: Scalar = 10.0
    """Maximum gradient norm, per set of agents connected by shared parameters."""
    huber_delta: Scalar = 10.0
    """Huber threshold: error, in normalised units, above which the value loss is linear."""

    def at(self, progress: float) -> "Hyperparameters":
        """The values after a share of training: those of schedules change."""
        return jax.tree.map(lambda x: x.at(progress) if isinstance(x, ValueSchedule) else x, self)

    def as_arrays(self) -> "Hyperparameters":
        """The same values as arrays, to be traced or stacked over seeds."""
        return jax.tree.map(lambda x: jnp.asarray(x, float), self)


@dataclass(frozen=True)
class Config:
    """Static settings; changing one compiles a new program."""

    algorithm: str | Algorithm = "fp3o"
    """Algorithm by name, optionally with changed fields, as in fp3o:on_failed_condition=revert."""
    sharing: SharingSpec = "full"
    """Parameter sharing of the actor: full, partial, none, by_type, auto, or a map from agent to
    group."""
    critic_sharing: SharingSpec | None = None
    """Parameter sharing of the critic; None: the same as the actor's first layer."""
    frozen_agents: tuple[int, ...] = ()
    """Agents whose policies are never updated. They share no parameters of the actor with others,
    and the agents that learn treat them as part of the environment."""
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    """Scalars that can change without recompiling."""

    num_envs: int = 8
    """Number of parallel environments."""
    blocks: int = 1
    """Equal blocks of environments, each with separate random streams: the largest number of
    devices or rollout processes that can share the environments of a seed. Results depend on the
    number of blocks, never on how many devices share them."""
    rollout: int = 128
    """Steps per environment per iteration."""
    epochs: int = 5
    """Passes over the data per stage."""
    minibatches: int = 1
    """Number of minibatches per epoch."""
    sequence_length: int | None = None
    """Length of the training sequences of a recurrent network; None: 10, or 1 without a GRU."""

    network: str = "mlp_gru"
    """Network of actor and critic: mlp_gru, or a custom class by import path,
    my_module:MyNetwork."""
    critic: str | None = None
    """Network of the critic: attention (over the living agents), graph (messages between
    neighbours), mlp_gru, or a custom class by import path; None: the same as network."""
    conv: ConvSpec | None = None
    """Convolutions of image observations, before the hidden layers: channels x kernel x stride,
    such as 16x3x1,32x3x2; flatten: none; None: chosen by the size of the image."""
    hidden: tuple[int, ...] = (64, 64)
    """Sizes of the hidden layers."""
    gru_size: int = 0
    """Size of the GRU in actor and critic; 0: no GRU."""
    activation: str = "relu"
    """Activation function: relu or tanh."""
    layer_norm: bool = True
    """Apply LayerNorm before every layer, including the first; not before convolutions."""
    output_gain: float = 0.01
    """Initialisation gain of the policy's output layer."""
    std_param: str = "sigmoid"
    """Parametrisation of the standard deviation of continuous actions: sigmoid (as in the paper, at
    most 0.5) or exp."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of inputs and products of the networks, except in the output layer after a GRU
    (float32 is TF32 on GPUs that have it); parameters, sums, everything outside of the networks,
    and saved policies are in float32."""
    agent_id: bool = True
    """Append the agent's one-hot index to the inputs of actor and critic."""
    obs_norm: bool = False
    """Normalise observations and states by their running mean and standard deviation, per agent
    type; images that are convolved stay as they are."""

    time_limit: Literal["bootstrap", "terminate"] = "bootstrap"
    """At a time limit: bootstrap from the value of the last observation, or treat it as a
    termination (as in the paper)."""
    head_lr_factor: float = 1.0
    """Multiplier of the learning rate of the policy's output layer; in the authors' release, the
    number of agents under partial sharing."""
    mask_value_loss: bool = False
    """Exclude dead agents from the value loss (the published runs include them)."""
    advantage_norm: Literal["agent", "team", "none"] = "agent"
    """Standardise advantages per agent, over the whole team, or not at all."""

    @property
    def row(self) -> Algorithm:
        """The algorithm as a row of the table."""
        if isinstance(self.algorithm, str):
            return parse_algorithm(self.algorithm)
        return self.algorithm

    @property
    def sequence_steps(self) -> int:
        """Length of a training sequence."""
        return self.sequence_length or (10 if self.gru_size else 1)

    def stage_facts(self, spec: EnvSpec) -> StageFacts:
        """Static properties of the algorithm's stages for this task."""
        return stage_facts(self.row, spec.num_agents, self.epochs)

    def conv_stacks(self, spec: EnvSpec) -> Mapping[Role, ConvStack]:
        """Convolutions of the actor and of the critic, whose inputs may begin with an image."""
        central = self.row.critic_input == "state"
        images: Mapping[Role, ImageShape | None] = {
            "actor": spec.image,
            "critic": spec.state_image if central else spec.image,
        }
        return {role: conv_stack(self.conv, image) for role, image in images.items()}

    def replace(self, **changes: object) -> "Config":
        """Copy with these settings changed; hyperparameters can be given by name as well."""
        scalars = {f.name for f in dataclasses.fields(Hyperparameters)}
        hparams = {name: changes.pop(name) for name in scalars & changes.keys()}
        for name in changes:
            if name not in (known := [f.name for f in dataclasses.fields(Config)]):
                raise SettingError(f"unknown setting {name!r}: {nearest(name, {*known, *scalars})}")
        if hparams:
            changes["hyperparameters"] = dataclasses.replace(self.hyperparameters, **hparams)
        return dataclasses.replace(self, **changes)  # pyright: ignore[reportArgumentType]
