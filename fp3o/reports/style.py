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


CSS = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f8fa;--ink:#1f2328;--faint:#656d76;
--grid:#d5dae0;--mark:#fff3cd;--link:#0550ae;LIGHT}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1d2127;--ink:#e6e9ec;
--faint:#9aa4ae;--grid:#3a424b;--mark:#4a3f14;--link:#79b8ff;DARK}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:76rem;background:var(--paper);
color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0 .6rem}
h2{font-size:1.3rem;margin:2.6rem 0 .6rem;padding-top:.9rem;border-top:1px solid var(--grid)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
p{margin:.5rem 0;max-width:48rem}
.lead{font-size:1.15rem}
.small,figcaption,caption{color:var(--faint);font-size:.86rem;text-align:left}
.note{background:var(--mark);padding:.5rem .8rem;border-radius:.4rem;max-width:48rem}
.scroll{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.32rem .75rem .32rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--grid);white-space:nowrap}
.wrap{white-space:normal;min-width:11rem}
th{font-weight:600}
thead th{color:var(--faint);font-weight:500;vertical-align:bottom}
.r{text-align:right}
tr.faint td{color:var(--faint)}
tr.top td,tr.top th{font-weight:650}
mark{background:var(--mark);color:inherit;padding:0 .25em;border-radius:.2em}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.45em}
figure{margin:1rem 0}
figure svg{display:block;width:100%;height:auto;stroke-linejoin:round}
.grid{display:grid;gap:.5rem 1.5rem;align-items:start;
grid-template-columns:repeat(auto-fill,minmax(min(100%,27rem),1fr))}
@media (min-width:64rem){.pair{display:grid;gap:1.5rem;align-items:start;
grid-template-columns:minmax(0,max-content) minmax(24rem,1fr)}}
details{margin:.5rem 0;border:1px solid var(--grid);border-radius:.4rem;padding:0 .8rem}
details[open]{padding-bottom:.6rem}
summary{cursor:pointer;padding:.45rem 0}
pre,code{font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
pre{background:var(--card);padding:.6rem .8rem;border-radius:.4rem;white-space:pre-wrap}
@media print{:root{--paper:#fff;--card:#f6f8fa;--ink:#000;--faint:#444;--grid:#bbb;
--mark:#fff3cd;LIGHT}body{max-width:none;font-size:11px;padding:0}
.grid{grid-template-columns:1fr 1fr}figure,tr,pre{break-inside:avoid}h2,h3{break-after:avoid}
.scroll{overflow:visible}}
""".replace("LIGHT", variables(False)).replace("DARK", variables(True))
"""The page's style sheet."""
