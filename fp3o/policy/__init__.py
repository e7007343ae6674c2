"""A trained policy as a folder that a stranger can load without risk and act with, NumPy only.

    policy = fp3o.Policy.load("runs/my-run")             # or one artefact folder
    memory = None                                        # an episode begins
    actions, memory = policy.act(observations, memory)   # (*batch, n, f) -> (*batch, n, d)

| file                  | holds                                                               |
|-----------------------|---------------------------------------------------------------------|
| `policy.json`         | task, network, sharing, normalisers, provenance, the weights' hash  |
| `weights.safetensors` | float32 arrays, named as in the network: `network.hidden.0.weight`  |

Nothing in a folder is believed before it is checked. The shapes follow from the JSON, whose sizes
have limits; the header of the weights must name exactly these arrays; only then are they read.
Any doubt is a `PolicyError`. No file is ever executed or unpickled.

| module    | what it does                                                    |
|-----------|-----------------------------------------------------------------|
| `schema`  | values of a JSON text that nobody vouches for, checked          |
| `card`    | what `policy.json` says, and which arrays go with it            |
| `files`   | finds, reads and replaces a folder                              |
| `network` | from features to outputs                                        |
| `team`    | agents that act together: from observations to actions          |
| `policy`  | the whole team with its folder; one agent alone                 |
"""

from fp3o.policy.card import Card
from fp3o.policy.files import is_run
from fp3o.policy.policy import Agent, Policy
from fp3o.policy.schema import PolicyError
from fp3o.policy.team import Choices, Normal

__all__ = ["Agent", "Card", "Choices", "Normal", "Policy", "PolicyError", "is_run"]
