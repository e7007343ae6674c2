"""Partitions of bodies of many segments, `AGENTSxSEGMENTS`."""

from fp3o.errors import SettingError


def count_segments(name: str, partition: str) -> int:
    """The number of segments of a partition such as `4x2`."""
    agents, _, each = partition.partition("x")
    if not (agents.isdecimal() and each.isdecimal() and int(agents) * int(each)):
        raise SettingError(
            f"{name} needs a partition AGENTSxSEGMENTS, for example 4x2, got {partition!r}"
        )
    return int(agents) * int(each)


def segments_per_agent(partition: str) -> int:
    """The number of segments of each agent."""
    return int(partition.partition("x")[2])
