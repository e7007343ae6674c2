"""The paper's first benchmark: Multi-Agent MuJoCo under full, partial and no sharing."""

from collections.abc import Iterator

from fp3o.plan import Plan, change, draft

PRESET = {"full": "paper", "partial": "paper-partial", "none": "paper-none"}
LONG, SHORT = 10_000_000, 2_000_000
CELLS = (
    *(("HalfCheetah-6x1", "full", name, LONG) for name in ("fp3o", "mappo")),
    *(
        ("HalfCheetah-6x1", sharing, name, SHORT)
        for sharing in ("partial", "none")
        for name in ("fp3o", "mappo", "happo")
    ),
    *(("Hopper-3x1", "none", name, SHORT) for name in ("fp3o", "mappo")),
)
"""Task, sharing, algorithm and steps of every run."""


def label(task: str, sharing: str, algorithm: str) -> str:
    """The name of a run's directory."""
    return "-".join([task.split("-")[0], sharing, algorithm])


def plans() -> Iterator[tuple[str, Plan]]:
    """The grid; five worker processes play for the five seeds."""
    for task, sharing, algorithm, steps in CELLS:
        plan = draft(f"mamujoco/{task}", PRESET[sharing])
        settings = {"algorithm": algorithm, "steps": steps, "eval_episodes": 8}
        yield label(task, sharing, algorithm), change(plan, settings)
