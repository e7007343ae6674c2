"""Colours of figures and page. Figures are drawn in the light ones; the page swaps in the dark."""

INK, FAINT, GRID = "#1f2328", "#656d76", "#d5dae0"
"""Text; less important text and reference lines; grid and axes."""

PALETTE = {
    "fp3o": ("#d55e00", "#f0813a"),
    "mappo": ("#0072b2", "#4aa3df"),
    "ippo": ("#56b4e9", "#9ad4f5"),
    "happo": ("#009e73", "#2fc79a"),
    "a2po": ("#cc79a7", "#e39ac3"),
    "coppo": ("#e69f00", "#f2bc45"),
    "": ("#7f5539", "#c39a7b"),
}
"""Colour of each algorithm, light and dark page: Okabe and Ito's set, safe for the colour-blind.
The last one is for rows that are not in the table."""

LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""Dashes that tell apart runs of one colour."""

SWAPS = {INK: "--ink", FAINT: "--faint", GRID: "--grid"} | {
    light: f"--{name or 'other'}" for name, (light, _) in PALETTE.items()
}
"""Colour in a figure -> the page's variable for it."""


def variables(dark: bool) -> str:
    """The palette as CSS variables."""
    return "".join(f"--{name or 'other'}:{pair[dark]};" for name, pair in PALETTE.items())
