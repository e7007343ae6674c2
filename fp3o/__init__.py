"""Cooperative multi-agent PPO under any parameter sharing.

    import fp3o

    run = fp3o.train("mpe/simple_speaker_listener", algorithm="fp3o", sharing="partial")
    policy = run.policy()
    actions, hidden_state = policy.act(obs, hidden_state)

Names are imported when they are first used, so that a program that only runs a saved policy never
imports JAX.
"""

from importlib.metadata import version

import lazy_loader

__version__ = version("fp3o")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
