"""Campaigns: many random attacks, each with a documented result; the results are counted.

A test that takes the fixture `campaign` runs in three sizes: a small one among the default tests, a
medium one in `make test-exhaustive`, and the whole one in `make campaign`. Random numbers come from
the seed that a failure prints; `CAMPAIGN_SEED` sets it. Several processes can share a campaign:
with `CAMPAIGN_PARTS=4` each of them does a quarter of the attacks.
"""

import os
import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import hypothesis
import pytest

Size = Literal["small", "medium", "whole"]
SIZES: tuple[Size, ...] = ("small", "medium", "whole")

MEDIUM = pytest.param("medium", marks=(pytest.mark.slow, pytest.mark.exhaustive))
WHOLE = pytest.param("whole", marks=pytest.mark.campaign)

not_small = pytest.mark.parametrize("campaign", [MEDIUM, WHOLE], indirect=True)
"""For a campaign that takes minutes even in its small size."""

PROPERTY = "campaign"
"""Name under which a test's report carries the results."""


class Campaign:
    """The size of a campaign, its seed, and the number of attacks by result."""

    def __init__(self, name: str, size: Size):
        self.name, self.size = name, size
        chosen = random.SystemRandom().randrange(2**32) if size == "whole" else 0
        self.seed = int(os.environ.get("CAMPAIGN_SEED", chosen))
        self.results: Counter[str] = Counter()
        self.attacks = 0

    def tries(self, small: int, medium: int, whole: int) -> int:
        """The number of attacks in this size."""
        parts = int(os.environ.get("CAMPAIGN_PARTS", 1))
        return -(-{"small": small, "medium": medium, "whole": whole}[self.size] // parts)

    def count(self, *results: str) -> None:
        """Count an attack that ended as documented, in one or more respects."""
        self.attacks += 1
        self.results.update(results)

    def attack(
        self,
        test: Callable[..., None],
        *,
        small: int,
        medium: int,
        whole: int,
        shrink: bool = True,
    ) -> None:
        """Run a Hypothesis test, a function under `@given`, with as many examples.

        Failing examples of slow tests should not be shrunk: it takes minutes.
        """
        phases = [hypothesis.Phase.generate, *[hypothesis.Phase.shrink] * shrink]
        settings = hypothesis.settings(
            max_examples=self.tries(small, medium, whole),
            deadline=None,
            database=None,
            phases=phases,
            print_blob=True,
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),  # pyright: ignore[reportArgumentType]
        )
        print(f"{self.name}: seed {self.seed}")
        with warnings.catch_warnings():
            # Threads that other tests started may draw random numbers meanwhile.
            warnings.filterwarnings("ignore", "Do not use the `random` module")
            hypothesis.seed(self.seed)(settings(test))()

    @property
    def record(self) -> dict[str, Any]:
        """The totals, for the summary and the page on reliability."""
        return {
            "name": self.name,
            "size": self.size,
            "seed": self.seed,
            "tries": self.attacks,
            "results": dict(sorted(self.results.items())),
        }


def totals_line(record: dict[str, Any]) -> str:
    """One line of the summary of a test session."""
    results = ", ".join(f"{number:,} {name}" for name, number in record["results"].items())
    head = f"{record['name']} ({record['size']}, seed {record['seed']})"
    return f"{head}: {record['tries']:,} tries: {results}"
