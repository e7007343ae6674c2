"""Style sheet of the pages, for light and dark themes and for print."""

from fp3o.reports.figures.style import css_variables

CSS = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f8fa;--ink:#1f2328;--faint:#656d76;
--grid:#d5dae0;--mark:#fff3cd;--bad:#b42318;--worse:#fdeceb;--link:#0550ae;LIGHT}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1d2127;--ink:#e6e9ec;
--faint:#9aa4ae;--grid:#3a424b;--mark:#4a3f14;--bad:#ff8d85;--worse:#3b1d1f;--link:#79b8ff;DARK}}
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
ul.note{padding-left:2rem}
.verdict{border-left:.3rem solid var(--link);padding:.1rem 0 .1rem .9rem;margin:1rem 0}
.many{columns:14rem;margin:0;padding-left:1.2rem}
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
nav{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:1.2rem 0;font-size:.9rem}
a{color:var(--link)}
img,video{display:block;max-width:100%;height:auto}
.fail{background:var(--worse);border-left:.3rem solid var(--bad);padding:.4rem 1rem .7rem;
border-radius:.4rem;margin:1rem 0}
.fail h2,.fail h3{color:var(--bad);border:0;padding:0;margin:.4rem 0}
.fail ul{padding-left:1.1rem;margin:.3rem 0}
.fail pre{background:none;padding:.1rem 0;margin:0 0 .5rem}
.fail details{border:0;padding:0;margin:0;font-size:.9rem}
.pair figure svg{max-width:34rem}
details{margin:.5rem 0;border:1px solid var(--grid);border-radius:.4rem;padding:0 .8rem}
details[open]{padding-bottom:.6rem}
summary{cursor:pointer;padding:.45rem 0}
pre,code{font:.85rem/1.5 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
pre{background:var(--card);padding:.6rem .8rem;border-radius:.4rem;white-space:pre-wrap}
#filters{position:sticky;top:0;z-index:3;background:var(--paper);max-height:45vh;overflow:auto;
padding:0 0 .4rem;border-bottom:1px solid var(--grid)}
#filters[hidden]{display:none}
#filters details{border:0;padding:0;margin:0}
#filters summary{font-size:.9rem}
#filters form{display:flex;flex-wrap:wrap;gap:.35rem 1.6rem}
fieldset{border:0;margin:0;padding:0;min-width:0;display:flex;flex-wrap:wrap;gap:.1rem .8rem;
align-items:center;font-size:.9rem}
fieldset legend{float:left;padding:0;line-height:1.8rem;margin-right:.1rem;color:var(--faint)}
fieldset label{display:inline-flex;gap:.35rem;align-items:center;min-height:1.8rem;cursor:pointer}
input[type=checkbox]{margin:0;accent-color:var(--link)}
fieldset button{border:0;background:none;padding:0 .1rem;font:inherit;color:var(--link);
cursor:pointer;text-decoration:underline}
.charts{display:grid;gap:1.6rem 1.8rem;align-items:start;margin-bottom:1.6rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr))}
.chart{min-width:0;max-width:48rem}
.chart[hidden],.charts[hidden],.curves[hidden]{display:none}
.chart>svg,.plot>svg{display:block;width:100%;height:auto;stroke-linejoin:round}
.chart h4{margin:0 0 .25rem;font-size:.95rem}
.plot{position:relative}
.plot>svg{touch-action:pan-y;cursor:crosshair;border-radius:.3rem}
.plot>svg:focus-visible,button:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.plot text{fill:var(--faint);font-size:11.5px}
.plot .right{text-anchor:end}
.plot .middle{text-anchor:middle}
.plot .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.rule{stroke:var(--grid);stroke-width:1}
.baseline{stroke:var(--faint);stroke-width:1;stroke-dasharray:5 4}
.cross{stroke:var(--faint);stroke-width:1}
.mean{fill:none;stroke:var(--hue);stroke-width:2;stroke-linejoin:round}
.seed{fill:none;stroke:var(--hue);stroke-width:.8;opacity:.5}
.seed.crowded{opacity:.3;stroke-width:.6}
.band{fill:var(--hue);opacity:.15}
.plot .dot{fill:var(--hue);stroke:var(--paper);stroke-width:1}
.dimmed .curve:not(.lit){opacity:.12}
.pointer,.plot text{pointer-events:none}
.tip{position:absolute;z-index:2;width:max-content;max-width:100%;overflow-wrap:break-word;background:var(--card);
border:1px solid var(--grid);border-radius:.4rem;padding:.35rem .6rem;font-size:.8rem;
line-height:1.35;pointer-events:none;box-shadow:0 2px 8px #0003}
.tip[hidden]{display:none}
.tip p{margin:0 0 .15rem;color:var(--faint)}
.tip table{font-size:inherit}
.tip td{border:0;padding:.05rem .5rem .05rem 0}
.tip td:nth-child(2){white-space:normal}
.tip td:last-child{text-align:right;padding-right:0}
.swatch{display:inline-flex;width:22px;flex:none}
.swatch svg{width:22px;height:8px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem .3rem;margin:.2rem 0 0;padding:0;
max-height:14rem;overflow:auto}
.legend button{display:inline-flex;gap:.4rem;align-items:center;min-height:1.9rem;border:0;
background:none;color:inherit;font:inherit;font-size:.84rem;text-align:left;cursor:pointer;
padding:.1rem .4rem;border-radius:.3rem}
.legend button:hover{background:var(--card)}
.legend button[aria-pressed=false]{color:var(--faint);text-decoration:line-through}
.legend button[aria-pressed=false] .swatch{opacity:.25}
@media (max-width:45rem){#filters{position:static;max-height:none}}
@media print{#filters,.tip,nav{display:none}
:root{--paper:#fff;--card:#f6f8fa;--ink:#000;--faint:#444;--grid:#bbb;
--mark:#fff3cd;LIGHT}body{max-width:none;font-size:11px;padding:0}
.grid{grid-template-columns:1fr 1fr}figure,tr,pre{break-inside:avoid}h2,h3{break-after:avoid}
.scroll{overflow:visible}}
""".replace("LIGHT", css_variables(dark=False)).replace("DARK", css_variables(dark=True))
"""The style sheet."""
