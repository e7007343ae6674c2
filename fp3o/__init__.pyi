from .algorithms.row import Algorithm
from .algorithms.schedules import Stage, register_schedule, whole_team_stages
from .algorithms.surrogates import register_surrogate
from .algorithms.table import ALGORITHMS, register_algorithm
from .envs.api import Env, VecEnv
from .envs.check import check_env
from .envs.registry import TASKS, make, register_env
from .envs.toys.probe import PROBES, probe
from .envs.vectorise import VmapEnv
from .errors import MissingExtraError, NonFiniteError
from .learning.config import Config, Hyperparameters
from .learning.setup import Learner, Setup
from .networks.layers import linear
from .networks.network import Network, NetworkSpec
from .policy import Policy, PolicyError
from .reports import report
from .runs.atomic import RunError
from .runs.evaluation import evaluate
from .runs.run import Run
from .runs.train import resume, train
from .runs.run_config import RunConfig
from .runs.video import render
from .sharing.auto import auto_sharing
from .sharing.schemes import SHARINGS, layer_groups
from .spec import Box, Discrete, EnvSpec
from .training.program import Program, TrainState
from .types import TimeStep

__version__: str

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "NetworkSpec",
    "Box",
    "Config",
    "Discrete",
    "VecEnv",
    "EnvSpec",
    "Env",
    "Learner",
    "MissingExtraError",
    "Network",
    "NonFiniteError",
    "PROBES",
    "RunConfig",
    "Policy",
    "PolicyError",
    "Program",
    "Hyperparameters",
    "Run",
    "RunError",
    "SHARINGS",
    "Setup",
    "Stage",
    "TrainState",
    "TASKS",
    "TimeStep",
    "VmapEnv",
    "register_env",
    "auto_sharing",
    "check_env",
    "evaluate",
    "whole_team_stages",
    "linear",
    "make",
    "probe",
    "register_algorithm",
    "render",
    "report",
    "resume",
    "register_schedule",
    "layer_groups",
    "register_surrogate",
    "train",
]
