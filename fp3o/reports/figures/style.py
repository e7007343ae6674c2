"""Colours of figures and pages. Figures use the light variants; a page swaps in the dark ones."""

from fp3o.algorithms.table import ALGORITHMS

INK_COLOUR, FAINT_COLOUR, GRID_COLOUR = "#1f2328", "#656d76", "#d5dae0"
"""Text; secondary text and baselines; grid and axes."""

NEUTRAL = ("#7f5539", "#c39a7b")
"""Colours, on a light and a dark page, of an algorithm that has none."""

PALETTE = dict([*(row.colour for row in ALGORITHMS.values() if row.colour), NEUTRAL])
"""Categorical colours on a light page -> on a dark page: those of the algorithms, from the set of
Okabe and Ito, which readers with colour blindness can distinguish."""

LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""Dashes that distinguish runs of one colour."""

VARIABLES = {INK_COLOUR: "--ink", FAINT_COLOUR: "--faint", GRID_COLOUR: "--grid"} | {
    colour: f"--c-{colour[1:]}" for colour in PALETTE
}
"""Colour in a figure -> variable in the style sheet of a page."""


def css_colour(light: str, dark: str) -> str:
    """A pair of colours as CSS that follows the theme of the page."""
    return f"var({VARIABLES[light]})" if light in VARIABLES else f"light-dark({light},{dark})"


def css_variables(dark: bool) -> str:
    """The palette as CSS variables."""
    return "".join(
        f"{VARIABLES[light]}:{dim if dark else light};" for light, dim in PALETTE.items()
    )
