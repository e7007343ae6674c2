from .algorithms.row import Algorithm, Stage
from .algorithms.schedules import everyone, schedule
from .algorithms.surrogates import surrogate
from .algorithms.table import ALGORITHMS, register
from .envs.api import Env, Game
from .envs.check import check_env
from .envs.registry import TASKS, adopt, make
from .envs.toys.probe import PROBES, probe
from .envs.vectorise import Vectorised
from .errors import MissingExtraError, NonFiniteError
from .learning.config import Config, Rates
from .learning.setup import Learner, Setup
from .networks.layers import linear
from .networks.network import Blueprint, Network
from .policy import Policy, PolicyError
from .reports import report
from .runs.directory import RunError
from .runs.evaluation import evaluate
from .runs.run import Run, resume, train
from .runs.run_config import Plan
from .runs.video import render
from .sharing.auto import auto_sharing
from .sharing.schemes import SHARINGS, share
from .spec import Box, Discrete, EnvSpec
from .training.program import Program, State
from .types import TimeStep

__version__: str

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Blueprint",
    "Box",
    "Config",
    "Discrete",
    "Env",
    "EnvSpec",
    "Game",
    "Learner",
    "MissingExtraError",
    "Network",
    "NonFiniteError",
    "PROBES",
    "Plan",
    "Policy",
    "PolicyError",
    "Program",
    "Rates",
    "Run",
    "RunError",
    "SHARINGS",
    "Setup",
    "Stage",
    "State",
    "TASKS",
    "TimeStep",
    "Vectorised",
    "adopt",
    "auto_sharing",
    "check_env",
    "evaluate",
    "everyone",
    "linear",
    "make",
    "probe",
    "register",
    "render",
    "report",
    "resume",
    "schedule",
    "share",
    "surrogate",
    "train",
]
