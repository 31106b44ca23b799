"""Flow charts in Mermaid as text for Graphviz.

The pages use a small part of Mermaid's language, which is read here: `id["text<br>more"]`, `a --> b`,
`a -->|text| b`, `subgraph id ["title"]` and `end`. A line of any other form is a ValueError.
"""

from __future__ import annotations

import html
import re

NODE = re.compile(r'(\w+)(?:\["(.*?)"\])?$')
ARROW = re.compile(r'\s*-->(?:\|"?(.*?)"?\|)?\s*')
SUBGRAPH = re.compile(r'subgraph (\w+) \["(.*)"\]$')
OPENING = """digraph {
  bgcolor="white"; rankdir=TB; nodesep=0.3; ranksep=0.35; compound=true
  node [shape=box, style="rounded,filled", fillcolor="#f4f7fb", color="#5b7ca8", fontname="Helvetica", fontsize=11]
  edge [color="#5b7ca8", fontname="Helvetica", fontsize=10]
"""


def label(text: str) -> str:
    first, *others = [html.escape(line) for line in text.split("<br>")]
    small = "".join(f'<BR/><FONT POINT-SIZE="9" COLOR="#555555">{line}</FONT>' for line in others)
    return f"<<B>{first}</B>{small}>"


def node(text: str, lines: list[str]) -> str:
    match = NODE.match(text.strip())
    if not match:
        raise ValueError(f'a node of a flow chart is written id["text"], not {text!r}')
    if match[2] is not None:
        lines.append(f"  {match[1]} [label={label(match[2])}]")
    return match[1]


def dot_of(chart: str) -> str:
    lines = []
    for line in map(str.strip, chart.strip().split("\n")[1:]):
        group = SUBGRAPH.match(line)
        if group:
            title = html.escape(group[2])
            looks = 'color="#b8c4d6"; fontname="Helvetica"; fontsize=11'
            lines.append(f"subgraph cluster_{group[1]} {{ label=<{title}>; {looks}")
        elif line == "end":
            lines.append("}")
        elif line:
            parts = ARROW.split(line)
            names = [node(part, lines) for part in parts[::2]]
            for begin, text, end in zip(names, parts[1::2], names[1:], strict=False):
                named = f" [label={label(text)}]" if text else ""
                lines.append(f"  {begin} -> {end}{named}")
    return OPENING + "\n".join(lines) + "\n}\n"
