"""Uses of hostile policy folders, in a process of its own: `python policy_attempts.py`.

Every line of the input is a JSON list: a folder, the folder it was made of, and a folder for a
copy. The answer is a line of JSON with how it ended, the CPU time and the memory that it took, and
the modules that were imported.
"""

import json
import sys
import time
import traceback
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from fp3o.errors import NonFiniteError
from fp3o.policy import Policy, PolicyError, TrustError


def same(one: Policy, other: Policy) -> bool:
    """Whether two policies have the same card and the same weights, bit for bit."""
    return one.card == other.card and all(
        one.weights[name].tobytes() == array.tobytes() for name, array in other.weights.items()
    )


def used(policy: Policy) -> str:
    """Act with a policy that was loaded: how it ends."""
    spec = policy.card.spec
    try:
        actions, _ = policy.act(np.ones((spec.num_agents, spec.obs_size), np.float32))
    except NonFiniteError:
        return "loaded, outputs not finite"
    except TrustError:
        return "loaded, not trusted to act"
    assert np.isfinite(actions).all()
    return "loaded and acts"


def tried(folder: Path, original: Policy, copy: Path) -> str:
    """Load a hostile folder, act, save it and load it again: how it ends."""
    try:
        policy = Policy.load(folder)
    except PolicyError as error:
        text = str(error).replace(str(folder), "")
        assert text.isprintable() and len(text) < 500, text
        return "refused"
    assert repr(policy).isprintable() and len(repr(policy)) < 300
    if same(policy, original):
        return "loaded as it was"
    assert same(Policy.load(policy.save(copy)), policy)
    return used(policy)


def measured(folder: Path, original: Policy, copy: Path) -> dict[str, Any]:
    """An attempt with its costs; an error that is not documented is its ending."""
    modules, started = {*sys.modules}, time.process_time()
    tracemalloc.start()
    try:
        ending = tried(folder, original, copy)
    except Exception:
        ending = "error: " + traceback.format_exc()[-2000:]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    imported = sorted({*sys.modules} - modules)
    seconds = time.process_time() - started
    return {"ending": ending, "seconds": seconds, "bytes": peak, "imported": imported}


def serve() -> None:
    """Answer one line after another."""
    originals: dict[str, Policy] = {}
    for line in sys.stdin:
        folder, name, copy = json.loads(line)
        if name not in originals:
            originals[name] = Policy.load(name)
            used(originals[name])  # NumPy imports something at its first use
            originals[name].save(copy)
        answer = measured(Path(folder), originals[name], Path(copy))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
