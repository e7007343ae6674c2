"""Cooperative multi-agent PPO that works with any parameter sharing.

from fp3o import Config, Program, Vectorised, probe

program = Program(Vectorised(probe("credit"), 8), Config(algorithm="fp3o", sharing="partial"))
state = program.init(seed=0)
state, metrics = program.iterate(state)
"""

from fp3o.algorithms import ALGORITHMS, Algorithm
from fp3o.config import Config, Rates, paper_time_limits
from fp3o.envs.base import Env, Game, Vectorised
from fp3o.envs.probe import PROBES, probe
from fp3o.errors import NonFiniteError
from fp3o.setup import Learner, Setup
from fp3o.sharing import SHARINGS, share
from fp3o.train import Program, State
from fp3o.types import Box, Discrete, EnvSpec, TimeStep

__all__ = [
    "ALGORITHMS",
    "PROBES",
    "SHARINGS",
    "Algorithm",
    "Box",
    "Config",
    "Discrete",
    "Env",
    "EnvSpec",
    "Game",
    "Learner",
    "NonFiniteError",
    "Program",
    "Rates",
    "Setup",
    "State",
    "TimeStep",
    "Vectorised",
    "paper_time_limits",
    "probe",
    "share",
]
