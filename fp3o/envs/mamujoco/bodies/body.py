"""`Body`: the model, joint graph and reward rules of a body, by name."""

# MuJoCo has no type stubs.
# pyright: reportAttributeAccessIssue=false
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco

from fp3o.envs.mamujoco.bodies import ants, arms, humanoid, planar, swimmers
from fp3o.envs.mamujoco.bodies.segments import count_segments
from fp3o.envs.mamujoco.catalogue import BODY_ENTRIES
from fp3o.envs.mamujoco.models import compile_model
from fp3o.envs.mamujoco.partition import JointGraph
from fp3o.envs.mamujoco.rewards import locomotion, manipulation
from fp3o.envs.mamujoco.rewards.rules import RewardRules
from fp3o.errors import SettingError, nearest


@dataclass(frozen=True)
class Body:
    """A body under a profile."""

    model: mujoco.MjModel
    frame_skip: int
    """Simulation steps per environment step."""
    max_episode_steps: int
    graph: JointGraph
    rewards: RewardRules


@dataclass(frozen=True)
class _Recipe:
    """How a `Body` is made."""

    frame_skip: int
    graph: Callable[[mujoco.MjModel, bool, str], JointGraph]
    """Model, whether the profile is the paper's, partition -> joint graph."""
    rewards: Callable[[mujoco.MjModel, bool], RewardRules]
    max_episode_steps: int = 1000
    segmented: bool = False
    """Whether the partition `AGENTSxSEGMENTS` sets the number of segments."""


_RECIPES: Mapping[str, _Recipe] = {
    "Reacher": _Recipe(
        2, arms.reacher_graph, lambda _, paper: manipulation.reacher_rules(paper),
        max_episode_steps=50,
    ),
    "Ant": _Recipe(5, ants.ant_graph, lambda _, paper: locomotion.ant_rules(paper)),
    "Walker2d": _Recipe(4, planar.walker_graph, lambda _, paper: locomotion.walker_rules(paper)),
    "Hopper": _Recipe(4, planar.hopper_graph, lambda _, paper: locomotion.hopper_rules(paper)),
    "HalfCheetah": _Recipe(5, planar.cheetah_graph, lambda *_: locomotion.cheetah_rules()),
    "ManyagentSwimmer": _Recipe(
        4, swimmers.long_swimmer_graph, lambda *_: locomotion.swimmer_rules(), segmented=True
    ),
    "ManySegmentAnt": _Recipe(
        5, ants.long_ant_graph, lambda *_: locomotion.ant_rules(paper=False), segmented=True
    ),
    "CoupledHalfCheetah": _Recipe(
        5, planar.coupled_cheetahs_graph, lambda *_: locomotion.coupled_cheetah_rules()
    ),
    "Humanoid": _Recipe(
        5, humanoid.humanoid_graph, lambda model, _: locomotion.humanoid_rules(model)
    ),
    "HumanoidStandup": _Recipe(
        5, humanoid.humanoid_graph, lambda model, _: locomotion.standup_rules(model)
    ),
    "Swimmer": _Recipe(4, swimmers.swimmer_graph, lambda *_: locomotion.swimmer_rules()),
    "Pusher": _Recipe(
        5, arms.pusher_graph, lambda model, _: manipulation.pusher_rules(model),
        max_episode_steps=100,
    ),
    "InvertedPendulum": _Recipe(
        2, arms.pendulum_graph, lambda *_: manipulation.pendulum_rules()
    ),
    "InvertedDoublePendulum": _Recipe(
        5, arms.double_pendulum_graph, lambda *_: manipulation.double_pendulum_rules()
    ),
}  # fmt: skip
"""How the bodies of the catalogue are made."""


def make_body(name: str, profile: str, partition: str) -> Body:
    """A body by name; the partition sets the length of bodies of many segments."""
    if name not in _RECIPES:
        raise SettingError(f"unknown body {name!r}: {nearest(name, _RECIPES)}")
    recipe = _RECIPES[name]
    if profile not in (offered := BODY_ENTRIES[name].profiles):
        raise SettingError(f"{name} has no profile {profile!r}: {nearest(profile, offered)}")
    segments = count_segments(name, partition) if recipe.segmented else 0
    model, paper = compile_model(name, profile, segments), profile == "paper"
    graph = recipe.graph(model, paper, partition)
    steps = 1000 if paper else recipe.max_episode_steps
    return Body(model, recipe.frame_skip, steps, graph, recipe.rewards(model, paper))
