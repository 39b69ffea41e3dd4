"""Sections as one HTML file that needs nothing else: no script, no link, no font from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from rag_tui.engine.evaluation.report_plots import text_of
from rag_tui.engine.evaluation.report_sections import Section
from rag_tui.engine.prompt_text import visible

_LIGHT = (
    "--bg:#fff;--fg:#1b1f24;--dim:#59636e;--line:#d1d9e0;--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;"
    "--c3:#8250df;--c4:#bf3989;--c5:#6e7781;--r1:#0550ae;--r1t:#fff;--r3:#54aeff;--r3t:#0a1929;"
    "--r10:#b6e3ff;--r10t:#0a1929;--rest:#eaf5ff;--restt:#1b1f24"
)
_DARK = (
    "--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;--c0:#58a6ff;--c1:#f0883e;"
    "--c2:#3fb950;--c3:#bc8cff;--c4:#f778ba;--c5:#8b949e;--r1:#79c0ff;--r1t:#0a1929;--r3:#388bfd;"
    "--r3t:#fff;--r10:#1f4f99;--r10t:#fff;--rest:#15305c;--restt:#e6edf3"
)
_STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
body{{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);
margin:2rem auto;max-width:75rem;padding:0 1rem}}
h1{{font-size:1.6rem;overflow-wrap:anywhere}}h2{{font-size:1.15rem;margin-top:2.2rem}}
p{{color:var(--dim);margin:.3rem 0}}.wide{{overflow-x:auto}}
table{{border-collapse:collapse;margin:.8rem 0;font-variant-numeric:tabular-nums}}
td,th{{border-bottom:1px solid var(--line);padding:.25rem .8rem .25rem 0;text-align:left;
vertical-align:top;overflow-wrap:anywhere}}
pre{{border:1px solid var(--line);padding:.8rem;overflow-x:auto}}
svg{{display:block;max-width:100%;height:auto;margin:.8rem 0}}
svg text{{font:12px system-ui,sans-serif;fill:var(--fg)}}
svg .label{{text-anchor:end}}svg .tick,svg .head,svg .cell{{text-anchor:middle}}
svg .tick,svg .axis{{fill:var(--dim)}}
svg .grid{{stroke:var(--line);fill:none}}svg .whisker{{stroke:var(--fg);stroke-width:1.5;fill:none}}
svg .chance{{stroke:var(--dim);stroke-dasharray:3 4;fill:none}}
svg .front{{stroke:var(--c1);stroke-width:1.5;fill:none}}
svg .dot{{fill:var(--bg);stroke:var(--c0);stroke-width:1.5}}
svg .dot.on{{fill:var(--c1);stroke:var(--c1)}}
{"".join(f"svg .c{i}{{fill:var(--c{i})}}svg .line.c{i}{{fill:none;stroke:var(--c{i});stroke-width:2}}" for i in range(6))}
{"".join(f"svg .rank.{k}{{fill:var(--{k})}}svg .cell.{k}{{fill:var(--{k}t)}}" for k in ("r1", "r3", "r10", "rest"))}
svg .rank.miss{{fill:none;stroke:var(--c1)}}svg .rank.absent{{fill:none;stroke:var(--line)}}
@media print{{:root{{color-scheme:light;{_LIGHT}}}body{{margin:0;max-width:none;font-size:11px}}
h2{{break-after:avoid}}tr,svg{{break-inside:avoid}}.wide{{overflow:visible}}
svg *{{print-color-adjust:exact;-webkit-print-color-adjust:exact}}}}
"""  # noqa: E501 - rules that are made stand on one line
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, sections: Iterable[Section]) -> str:
    """The whole file. The same sections give the same file."""
    name = text_of(title)
    body = "".join(map(_section, sections))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n"
        f"{body}</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<section>\n<h2>{text_of(section.title)}</h2>\n"]
    parts += [f"<p>{text_of(line)}</p>\n" for line in section.lines]
    parts += [f"{plot}\n" for plot in section.plots]
    if section.rows:
        head = "".join(f'<th scope="col">{text_of(cell)}</th>' for cell in section.head)
        rows = "".join(
            f"<tr>{''.join(f'<td>{text_of(cell)}</td>' for cell in row)}</tr>\n"
            for row in section.rows
        )
        parts.append(
            f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}'
            "</tbody>\n</table></div>\n"
        )
    if section.code:
        parts.append(f"<pre>{escape(visible(section.code))}</pre>\n")
    parts += [f"<p>{text_of(line)}</p>\n" for line in section.after]
    return "".join([*parts, "</section>\n"])
