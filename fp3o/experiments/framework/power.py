"""How much a comparison could have found: sizes of differences as text."""

from collections.abc import Callable, Sequence

from fp3o.experiments.framework.cell_differences import CellDifference, Comparison, SignCounts
from fp3o.experiments.framework.paper_results import PaperScores
from fp3o.reports.phrasing import number_text, score_text, with_sign


def power_text(counted: Sequence[CellDifference]) -> str:
    """The power of the cells in which nothing was found, and where the paper's number is."""
    open_cells = [item for item in counted if item.sign == 0]
    if not open_cells:
        return ""
    text = f" There the smallest detectable difference is {sizes_text(open_cells, detectable)}"
    known = [item for item in open_cells if item.published is not None]
    if not known:
        return f"{text}."
    text += f" (published: {sizes_text(known, published)})"
    outside = sum(not item.contains(item.published or 0.0) for item in known)
    parts = [f"the published one is outside the interval in {outside} of {cells_text(len(known))}"]
    if small := sum(item.too_small for item in known):
        parts.append(f"{small} {'is' if small == 1 else 'are'} too small to judge")
    return f"{text}; {', and '.join(parts)}."


def detectable(item: CellDifference) -> float:
    """The smallest detectable difference."""
    return item.detectable


def published(item: CellDifference) -> float:
    """The size of the published difference."""
    return abs(item.published or 0.0)


def half_width(item: CellDifference) -> float:
    """Half the width of the interval."""
    return item.difference.half


def sizes_text(items: Sequence[CellDifference], size: Callable[[CellDifference], float]) -> str:
    """The smallest and the largest size of each family of tasks: their scores differ in scale."""
    families = [*dict.fromkeys(item.ours.cell.task.split("/")[0] for item in items)]
    parts = []
    for family in families:
        group = [item for item in items if item.ours.cell.task.split("/")[0] == family]
        units = {item.ours.measure.unit for item in group}
        unit = units.pop() if len(units) == 1 else ""
        name = f" ({family})" if len(families) > 1 else ""
        parts.append(f"{range_text([size(item) for item in group])}{unit}{name}")
    return ", ".join(parts)


def published_differences(comparison: Comparison, paper: PaperScores) -> list[float]:
    """The paper's differences, in all cells that it has."""
    return [
        score.centre - paper[task, sharing, comparison.theirs].centre
        for (task, sharing, variant), score in paper.items()
        if variant == comparison.ours and (task, sharing, comparison.theirs) in paper
    ]


def holm_text(counts: SignCounts) -> str:
    """Higher and lower cells after Holm's correction."""
    return f"Holm: {counts.corrected_better} and {counts.corrected_worse}"


def difference_text(item: CellDifference) -> str:
    """A difference with its cell."""
    cell, text = item.ours.cell, score_text(item.difference, item.ours.measure.unit)
    detail = f" {cell.detail}" if cell.detail else ""
    return f"{cell.task.split('/')[-1]} {cell.sharing}{detail} {with_sign(text)}"


def cells_text(count: int) -> str:
    """A number of cells."""
    return "1 cell" if count == 1 else f"{count} cells"


def range_text(values: Sequence[float]) -> str:
    """The smallest and the largest number."""
    low, high = number_text(min(values)), number_text(max(values))
    return low if low == high else f"{low} to {high}"
