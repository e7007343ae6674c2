"""Settings that are known to work, task by task: data, nothing else.

The `paper` presets hold the published hyperparameters (for the particle tasks the paper points to
MAPPO's, whose scripts are the source). Where the two cannot be followed exactly the reason stands
beside the number.
"""

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, Any]

DEMO = "mpe/simple_speaker_listener", "demo"
"""What `fp3o train` does when it is told nothing."""
