"""Published results: the numbers printed in the paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class PaperScore(NamedTuple):
    """A score in the paper: mean or median over seeds, and standard deviation."""

    centre: float
    deviation: float


CellKey = tuple[str, str, str]
"""Task, sharing, variant."""

PaperScores = Mapping[CellKey, PaperScore]
"""Scores of the paper by cell."""

_FOUR = ("FP3O", "HAPPO", "MAPPO", "IPPO")


def _by_cell(
    names: Sequence[str], rows: Iterable[tuple[str, str, Sequence[tuple[float, float]]]]
) -> PaperScores:
    return {
        (task, sharing, name): PaperScore(*score)
        for task, sharing, scores in rows
        for name, score in zip(names, scores, strict=True)
    }


PAPER_MAMUJOCO = _by_cell(
    _FOUR,
    [
        ("mamujoco/Reacher-2x1", "full", ((-32.7, 5.8), (-33.2, 2.2), (-45.4, 11.3), (-51.5, 4.5))),
        (
            "mamujoco/Reacher-2x1",
            "partial",
            ((-34.6, 3.2), (-36.7, 4.1), (-33.4, 4.8), (-36.1, 1.9)),
        ),
        ("mamujoco/Reacher-2x1", "none", ((-26.5, 2.6), (-34.9, 4.3), (-31.4, 6.4), (-31.7, 5.4))),
        (
            "mamujoco/Ant-2x4",
            "full",
            ((2617.4, 190.9), (2296.2, 181.3), (1939.3, 52.1), (1584.8, 192.3)),
        ),
        (
            "mamujoco/Ant-2x4",
            "partial",
            ((3115.2, 145.5), (2809.5, 61.9), (2306.7, 255.4), (2026.6, 207.2)),
        ),
        (
            "mamujoco/Ant-2x4",
            "none",
            ((2793.8, 385.1), (2043.0, 187.7), (1825.4, 157.0), (1469.9, 36.1)),
        ),
        (
            "mamujoco/Walker2d-2x3",
            "full",
            ((2517.2, 393.7), (907.0, 280.8), (1684.3, 858.7), (523.4, 208.4)),
        ),
        (
            "mamujoco/Walker2d-2x3",
            "partial",
            ((3132.3, 774.6), (2717.4, 581.7), (2748.7, 734.1), (651.7, 266.0)),
        ),
        (
            "mamujoco/Walker2d-2x3",
            "none",
            ((3562.4, 666.4), (2461.8, 368.3), (2303.2, 815.9), (405.6, 107.9)),
        ),
        (
            "mamujoco/Hopper-3x1",
            "full",
            ((3514.1, 133.4), (3554.7, 118.3), (3373.3, 238.3), (2203.7, 855.0)),
        ),
        (
            "mamujoco/Hopper-3x1",
            "partial",
            ((2986.3, 617.6), (1547.0, 321.7), (2678.1, 997.8), (2486.8, 712.3)),
        ),
        (
            "mamujoco/Hopper-3x1",
            "none",
            ((3560.2, 107.7), (3597.1, 87.8), (3390.1, 225.9), (1851.4, 683.1)),
        ),
        (
            "mamujoco/HalfCheetah-6x1",
            "full",
            ((4128.3, 366.9), (4058.8, 129.7), (3170.5, 116.6), (2683.5, 431.3)),
        ),
        (
            "mamujoco/HalfCheetah-6x1",
            "partial",
            ((4879.3, 845.1), (4413.7, 840.0), (4432.6, 196.1), (4336.1, 768.7)),
        ),
        (
            "mamujoco/HalfCheetah-6x1",
            "none",
            ((4792.7, 263.9), (4408.7, 170.2), (4103.8, 233.9), (3831.3, 131.5)),
        ),
        (
            "mamujoco/ManyagentSwimmer-8x2",
            "full",
            ((419.1, 33.8), (404.9, 38.9), (409.2, 48.3), (63.6, 21.8)),
        ),
        (
            "mamujoco/ManyagentSwimmer-8x2",
            "partial",
            ((402.7, 21.7), (353.9, 15.4), (366.0, 27.0), (76.1, 2.8)),
        ),
        (
            "mamujoco/ManyagentSwimmer-8x2",
            "none",
            ((379.1, 48.3), (317.0, 12.2), (303.3, 44.0), (97.2, 42.0)),
        ),
    ],
)
"""Mean return over 32 episodes and five seeds, at ten million steps."""

PAPER_SMAC = _by_cell(
    _FOUR,
    [
        ("smac/bane_vs_bane", "full", ((100.0, 1.4), (100.0, 1.9), (100.0, 3.5), (100.0, 2.3))),
        ("smac/bane_vs_bane", "partial", ((100.0, 0.0), (65.6, 26.4), (100.0, 0.0), (100.0, 0.0))),
        ("smac/bane_vs_bane", "none", ((100.0, 0.0), (100.0, 0.0), (100.0, 0.0), (100.0, 0.0))),
        ("smac/2c_vs_64zg", "full", ((100.0, 2.5), (96.9, 2.4), (100.0, 2.5), (96.9, 2.3))),
        ("smac/2c_vs_64zg", "partial", ((100.0, 3.1), (96.9, 3.3), (100.0, 3.1), (100.0, 4.3))),
        ("smac/2c_vs_64zg", "none", ((100.0, 2.8), (100.0, 1.9), (100.0, 1.9), (100.0, 1.3))),
        ("smac/3s5z", "full", ((100.0, 3.7), (87.5, 24.7), (93.8, 3.6), (87.5, 34.0))),
        ("smac/3s5z", "partial", ((96.9, 3.9), (0.0, 31.0), (93.8, 4.6), (90.6, 6.5))),
        ("smac/3s5z", "none", ((100.0, 2.5), (90.6, 4.8), (93.8, 5.3), (96.9, 8.1))),
        ("smac/5m_vs_6m", "full", ((93.8, 6.1), (18.8, 12.8), (81.3, 10.0), (62.5, 19.1))),
        ("smac/5m_vs_6m", "partial", ((93.8, 4.2), (31.3, 15.4), (87.5, 7.7), (90.6, 11.1))),
        ("smac/5m_vs_6m", "none", ((90.6, 6.4), (68.8, 16.8), (62.5, 10.0), (62.5, 11.3))),
        ("smac/corridor", "full", ((100.0, 1.6), (96.9, 35.3), (100.0, 2.9), (96.9, 4.3))),
        ("smac/corridor", "partial", ((90.6, 9.2), (78.1, 22.7), (93.8, 10.9), (90.6, 3.6))),
        ("smac/corridor", "none", ((96.9, 7.2), (96.9, 3.0), (93.8, 7.2), (93.8, 27.2))),
        ("smac/6h_vs_8z", "full", ((90.6, 6.6), (53.1, 20.2), (87.5, 9.2), (87.5, 10.4))),
        ("smac/6h_vs_8z", "partial", ((81.3, 18.3), (9.4, 18.8), (15.6, 21.1), (46.9, 23.0))),
        ("smac/6h_vs_8z", "none", ((87.5, 15.3), (43.8, 10.2), (43.8, 15.8), (46.9, 20.5))),
    ],
)
"""Median win rate in StarCraft II in percent, five seeds."""

PAPER_MPE = _by_cell(
    ("FP3O", "HAPPO", "MAPPO", "A2PO"),
    [
        ("mpe/simple_reference", "full", ((-4.9, 4.0), (-9.8, 6.4), (-7.2, 5.6), (-9.2, 7.1))),
        ("mpe/simple_reference", "none", ((-4.6, 2.1), (-6.8, 3.5), (-6.5, 4.8), (-5.1, 2.9))),
        (
            "mpe/simple_speaker_listener",
            "full",
            ((-7.3, 8.6), (-13.7, 9.5), (-12.1, 9.0), (-12.9, 10.6)),
        ),
        (
            "mpe/simple_speaker_listener",
            "none",
            ((-4.8, 5.0), (-6.7, 5.2), (-9.1, 6.8), (-6.9, 5.7)),
        ),
    ],
)
"""Mean reward; the number of episodes, and whether it is per agent, are not stated."""

EXACT, APPROXIMATE = "clipping alone", "FP3O"

PAPER_APPROXIMATION = _by_cell(
    (EXACT, APPROXIMATE),
    [
        ("mamujoco/Reacher-2x1", "none", ((-25.9, 5.4), (-26.5, 2.6))),
        ("mamujoco/Hopper-3x1", "none", ((3623.4, 196.8), (3560.2, 107.7))),
        ("smac/3s5z", "full", ((100.0, 4.6), (100.0, 3.7))),
        # Printed as 6h_vs_8z, but FP3O's number is that of 5m_vs_6m in the main table.
        ("smac/5m_vs_6m", "full", ((90.6, 6.4), (93.8, 6.1))),
    ],
)

PAPER_MINUTES: Mapping[CellKey, float] = {
    (task, sharing, name): minutes
    for task, sharing, row in (
        ("smac/bane_vs_bane", "full", (710, 764, 697, 692)),
        ("smac/bane_vs_bane", "partial", (754, 794, 714, 714)),
        ("smac/bane_vs_bane", "none", (818, 813, 769, 766)),
        ("mamujoco/HalfCheetah-6x1", "full", (1108, 1517, 1032, 1022)),
        ("mamujoco/HalfCheetah-6x1", "partial", (1722, 1825, 1594, 1547)),
        ("mamujoco/HalfCheetah-6x1", "none", (2041, 2037, 1750, 1743)),
    )
    for name, minutes in zip(_FOUR, row, strict=True)
}
"""Wall-clock minutes of a run on the authors' machine."""

PAPER_MEBIBYTES: Mapping[CellKey, float] = {
    (task, sharing, name): memory
    for task, sharing, row in (
        ("smac/bane_vs_bane", "full", (3679, 1009, 3687, 3241)),
        ("smac/bane_vs_bane", "partial", (3013, 1001, 3011, 2901)),
        ("smac/bane_vs_bane", "none", (1082, 1081, 1081, 1059)),
        ("mamujoco/HalfCheetah-6x1", "full", (969, 879, 967, 967)),
        ("mamujoco/HalfCheetah-6x1", "partial", (948, 879, 947, 945)),
        ("mamujoco/HalfCheetah-6x1", "none", (879, 879, 879, 877)),
    )
    for name, memory in zip(_FOUR, row, strict=True)
}
"""Memory on the authors' GPU."""
