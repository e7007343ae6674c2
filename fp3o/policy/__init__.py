"""Trained policies as folders that can be loaded without risk and used with NumPy alone.

    policy = fp3o.Policy.load("runs/my-run")                   # or one policy folder
    actions, hidden_state = policy.act(obs, hidden_state)      # by agent name, or arrays

| file                  | contents                                                            |
|-----------------------|---------------------------------------------------------------------|
| `policy.json`         | task, network, sharing, normalisers, provenance, checksums          |
| `weights.safetensors` | float32 arrays, named as in the network: `network.hidden.0.weight`  |

Everything in a folder is validated before it is used. The shapes follow from the JSON, whose sizes
are limited; the header of the weights must name exactly these arrays; only then are they read.
Anything else is a `PolicyError`. No file is ever executed or unpickled.

| module      | contents                                                              |
|-------------|-----------------------------------------------------------------------|
| `schema`    | checks of untrusted JSON                                              |
| `card`      | what `policy.json` holds, and which arrays go with it                 |
| `read_card` | reads `policy.json` with all checks                                   |
| `format1`   | names of fields and arrays in policies of format 1                    |
| `files`     | finds, reads and writes a folder                                      |
| `replace`   | replaces a folder under the eyes of its readers                       |
| `trust`     | refuses to import code that an untrusted policy names                 |
| `network`   | forward pass: features to outputs                                     |
| `inputs`    | checks and padding of observations, masks and hidden states           |
| `team`      | agents that act together: observations to actions                     |
| `actions`   | actions of single agents in the form of their spaces                  |
| `policy`    | the whole team with its folder; one agent alone                       |
| `player`    | a policy that remembers the hidden state                              |
| `describe`  | agents, sizes and meanings of actions, in words and as JSON           |
| `serve`     | a policy by HTTP                                                      |
| `export`    | between the learner's parameters (JAX) and a policy folder            |
| `deploy`    | one step of the team as ONNX and StableHLO (JAX)                      |
| `transfer`  | parameters as the start of another network, by agents                 |
| `fit`       | whether agents of a policy fit another setup                          |
"""

from fp3o.policy.card import Card
from fp3o.policy.policy import Agent, Policy
from fp3o.policy.schema import PolicyError
from fp3o.policy.team import Choices, ChoicesAndVector, Normal
from fp3o.policy.trust import TrustError, require_trust

__all__ = [
    "Agent",
    "Card",
    "Choices",
    "ChoicesAndVector",
    "Normal",
    "Policy",
    "PolicyError",
    "TrustError",
    "require_trust",
]
