"""Colours of figures and pages. Figures use the light variants; a page swaps in the dark ones."""

INK, FAINT, GRID = "#1f2328", "#656d76", "#d5dae0"
"""Text; secondary text and baselines; grid and axes."""

PALETTE = {
    "#d55e00": "#f0813a",
    "#0072b2": "#4aa3df",
    "#56b4e9": "#9ad4f5",
    "#009e73": "#2fc79a",
    "#cc79a7": "#e39ac3",
    "#e69f00": "#f2bc45",
    "#7f5539": "#c39a7b",
}
"""Categorical colours on a light page -> on a dark page: the set of Okabe and Ito, which readers
with colour blindness can distinguish, and brown for algorithms without a colour."""

NEUTRAL = "#7f5539"
"""Colour of an algorithm that has none."""

LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""Dashes that distinguish runs of one colour."""

VARIABLES = {INK: "--ink", FAINT: "--faint", GRID: "--grid"} | {
    colour: f"--c-{colour[1:]}" for colour in PALETTE
}
"""Colour in a figure -> variable in the style sheet of a page."""


def css_colour(colour: str) -> str:
    """A colour as CSS: a variable that follows the page's theme, or the colour itself."""
    return f"var({VARIABLES[colour]})" if colour in VARIABLES else colour


def css_variables(dark: bool) -> str:
    """The palette as CSS variables."""
    return "".join(
        f"{VARIABLES[light]}:{dim if dark else light};" for light, dim in PALETTE.items()
    )
