from .algorithms.row import Algorithm
from .algorithms.schedules import Stage, register_schedule, whole_team_stages
from .algorithms.surrogates import register_surrogate
from .algorithms.table import ALGORITHMS, register_algorithm
from .envs.api import Env, HostEnv, Observation, VecEnv
from .envs.check import check_env
from .envs.registry import TASKS, make, register_env
from .envs.toys.probe import PROBES, probe
from .envs.vectorise import VmapEnv
from .envs.workers.protocol import WorkerPoolError
from .errors import EnvError, MissingExtraError, NonFiniteError, SettingError, UserError
from .experiments.sweep.launch import sweep
from .experiments.sweep.result import SweepResult
from .learning.config import Config, Hyperparameters
from .learning.setup import Learner, Setup
from .learning.value_schedules import ValueSchedule
from .networks.layers import linear
from .networks.network import Network, NetworkSpec
from .policy import Policy, PolicyError
from .reports import report
from .reports.data.measures import register_metric
from .runs.atomic import RunError
from .runs.curriculum import curriculum
from .runs.evaluation import evaluate
from .runs.loop import TrainingLoop, iterate
from .runs.recording import record
from .runs.run import Run
from .runs.run_config import RunConfig
from .runs.source import export
from .runs.train import resume, train
from .runs.turn import TrainingStep
from .runs.video import render
from .sharing.auto import auto_sharing
from .sharing.schemes import SHARINGS, layer_groups, register_sharing
from .spec import Box, Discrete, EnvSpec, Mixed
from .training.program import Program, TrainState
from .types import TimeStep

__version__: str

__all__ = [
    "ALGORITHMS",
    "PROBES",
    "SHARINGS",
    "TASKS",
    "Algorithm",
    "Box",
    "Config",
    "Discrete",
    "Env",
    "EnvError",
    "EnvSpec",
    "HostEnv",
    "Hyperparameters",
    "Learner",
    "MissingExtraError",
    "Mixed",
    "Network",
    "NetworkSpec",
    "NonFiniteError",
    "Observation",
    "Policy",
    "PolicyError",
    "Program",
    "Run",
    "RunConfig",
    "RunError",
    "SettingError",
    "Setup",
    "Stage",
    "SweepResult",
    "TimeStep",
    "TrainState",
    "TrainingLoop",
    "TrainingStep",
    "UserError",
    "ValueSchedule",
    "VecEnv",
    "VmapEnv",
    "WorkerPoolError",
    "__version__",
    "auto_sharing",
    "check_env",
    "curriculum",
    "evaluate",
    "export",
    "iterate",
    "layer_groups",
    "linear",
    "make",
    "probe",
    "record",
    "register_algorithm",
    "register_env",
    "register_metric",
    "register_schedule",
    "register_sharing",
    "register_surrogate",
    "render",
    "report",
    "resume",
    "sweep",
    "train",
    "whole_team_stages",
]
