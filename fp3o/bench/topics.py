"""Topics of `fp3o bench`: what each measures, and the function that does it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fp3o.bench.measurement import BenchSettings, Measurement
from fp3o.errors import SettingError, nearest
from fp3o.imports import load


class Topic(NamedTuple):
    """A group of measurements: one table of the page."""

    title: str
    summary: str
    function: str
    """Import path; the module is imported when the topic is measured."""

    def measure(self, settings: BenchSettings) -> Iterator[Measurement]:
        """Measure all cases, one after the other."""
        return load(f"fp3o.bench.{self.function}")(settings)


TOPICS: Mapping[str, Topic] = {
    "learning": Topic(
        "Learning",
        "one policy iteration on a synthetic rollout at the paper's sizes",
        "learning:measure_learning",
    ),
    "particles": Topic(
        "Particle tasks",
        "random actions and training, beside JaxMARL",
        "particles:measure_particles",
    ),
    "mamujoco": Topic(
        "Multi-Agent MuJoCo",
        "environment, rollouts and training, beside raw physics and gymnasium-robotics",
        "mamujoco:measure_mamujoco",
    ),
    "battles": Topic(
        "Battles",
        "SMAC-style maps: random actions and training, beside JaxMARL's SMAX",
        "battles:measure_battles",
    ),
    "workers": Topic(
        "Worker processes",
        "PettingZoo environments in worker processes, beside other wrappers",
        "workers:measure_workers",
    ),
    "devices": Topic(
        "Several devices",
        "cost of the divided program, and the share of each of several devices",
        "devices:measure_devices",
    ),
    "gru": Topic("GRU", "the GRU's kernel beside its scan, on a GPU", "gru:measure_gru"),
}
"""The topics by name, in the order of the page."""


def chosen_topics(names: Sequence[str]) -> dict[str, Topic]:
    """Topics by name, in the order of the page; all if none is named."""
    for name in names:
        if name not in TOPICS:
            raise SettingError(f"unknown topic {name!r}: {nearest(name, TOPICS)}")
    return {name: topic for name, topic in TOPICS.items() if name in names or not names}
