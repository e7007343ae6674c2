"""Cooperative multi-agent PPO that works with any parameter sharing.

import fp3o

run = fp3o.train("mpe/simple_speaker_listener", algorithm="fp3o", sharing="partial")
policy = fp3o.Policy.load(run.path)
actions, memory = policy.act(observations, memory)

Names are loaded when they are first used, so a program that only plays a saved policy never
imports JAX.
"""

from importlib.metadata import version

import lazy_loader

__version__ = version("fp3o")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
