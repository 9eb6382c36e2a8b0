# SPDX-License-Identifier: Apache-2.0
"""The page's style sheet: light and dark, from a telephone's width to a wide screen's, and paper."""

from styles import DARK, LIGHT, PICTURE, colour_rules, octave_rules, variables

_LAYOUT = """
*{box-sizing:border-box}html{scroll-padding-top:3.2rem}
body{margin:0 auto;padding:1rem 1.2rem 4rem;max-width:1480px;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:.4rem 0 1rem}h2{font-size:1.35rem;margin:2.6rem 0 .5rem;border-top:2px solid var(--rule);padding-top:1rem}
h3{font-size:1.08rem;margin:1.5rem 0 .4rem}h4{font-size:1rem;margin:1rem 0 .2rem}p{max-width:76ch;margin:.4rem 0 .8rem}
a{color:var(--link)}small,.from,.load{color:var(--soft)}.from{font-size:.85rem}
nav{position:sticky;top:0;z-index:2;background:var(--paper);border-bottom:1px solid var(--rule);padding:.5rem 0;max-height:30vh;overflow-y:auto;font-size:.9rem}
nav a{margin-right:.9rem;text-decoration:none;white-space:nowrap;display:inline-block}
.note{background:var(--warn);border-left:4px solid #d08a00;padding:.5rem .8rem;max-width:none}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:1rem 1.2rem;margin:.6rem 0}
.grid.maps{grid-template-columns:repeat(auto-fill,minmax(min(100%,560px),1fr))}div.compared>figure{max-width:720px}
figure{margin:0;max-width:560px}.maps figure{max-width:none}figure svg{display:block;width:100%;height:auto}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,290px),1fr));gap:.9rem}
.card{background:var(--tint);border:1px solid var(--rule);border-radius:8px;padding:.7rem .9rem}
.card h3{margin:0 0 .3rem;font-size:1rem}.card h4{margin:.7rem 0 .2rem;font-size:.9rem;color:var(--soft);font-weight:600}.card p{margin:.2rem 0}
.card .take{font-size:1.12rem}.card ul{margin:.3rem 0;padding-left:1.1rem;font-size:.93rem}.card em{color:var(--soft);font-style:normal;white-space:nowrap}
.card em:before{content:"("}.card em:after{content:")"}.card .load{font-size:.82rem}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--link);padding:.15rem 0}
.wide{overflow-x:auto;max-width:100%;margin:.4rem 0 1rem}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
tbody th,thead th:first-child,.machines td,.machines th,.compared th{text-align:left;font-weight:400}thead th{color:var(--soft);font-weight:600;vertical-align:bottom}
.leaders tbody th{position:sticky;left:0;background:var(--paper);font-weight:600}.best{background:var(--best)}.warn{background:var(--warn)}.none{color:var(--soft)}
.raw{font-size:.78rem}.raw th,.raw td{padding:.1rem .5rem}.common{margin-right:1rem;white-space:nowrap}.common i{color:var(--soft);font-style:normal}
.machines td:nth-child(6){white-space:normal;min-width:16rem;max-width:60rem;font-size:.8rem}
@media(max-width:640px){nav{position:static;max-height:none}.machines thead{display:none}.machines td{display:block;border:0;white-space:normal;padding:.05rem 0}.machines tr{display:block;border-bottom:1px solid var(--rule);padding:.3rem 0}
.machines td:before{content:attr(data-name) ": ";color:var(--soft)}body{padding:.6rem .7rem 3rem;font-size:15px}h1{font-size:1.3rem}h2{font-size:1.2rem}}
@media print{body{max-width:none;padding:0;font-size:10pt}nav,.how{display:none}figure,.card,tr{break-inside:avoid}h2,h3,h4{break-after:avoid}
.grid{grid-template-columns:1fr 1fr}.grid.maps{grid-template-columns:1fr}.cards{grid-template-columns:repeat(3,1fr)}.wide{overflow:visible}.wide table{font-size:7.5pt}.wide th,.wide td{padding:.1rem .3rem}section>p{break-after:avoid}a{color:inherit;text-decoration:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""

STYLE = (
    f":root{{{variables(LIGHT)}}}{colour_rules(0)}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}{colour_rules(1)}}}"
    f"{octave_rules()}{PICTURE}{_LAYOUT}"
).replace("\n", "")
