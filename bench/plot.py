"""Draws docs/performance.svg and the table of docs/performance.md from one JSON of bench/results/, and nothing else."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import page
from show import memory, number

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "penstock"
mpl.rcParams["svg.fonttype"] = "none"  # text stays text, and the file small
from matplotlib import pyplot as plt  # noqa: E402

OURS, PEER, FLOOR, GREY = "#1565c0", "#b0bec5", "#c62828", "#546e7a"


def ratio(line: dict, which: str, form: str) -> str:
    """A ratio beside its goal, bold where the goal is not reached."""
    if f"ratio_to_{which}" not in line:
        return ""
    value, goal = line[f"ratio_to_{which}"], line["goals"][which]
    text = form.format(value)
    if goal is None:
        return text
    wanted = form.format(goal).replace(".0x", "x")
    return f"{text} / {wanted}" if value >= goal else f"**{text}** / {wanted}"


def ours(line: dict) -> str:
    unit, value, goal = line["unit"], line["penstock"]["median"], line["goals"]["value"]
    text = f"{number(value)} {unit}"
    if goal is None:
        return text
    return f"{text} / {goal:g}" if value <= goal else f"**{text}** / {goal:g}"


def peer_of(line: dict) -> str:
    if "best_peer" not in line:
        return ""
    return f"{number(line['peers'][line['best_peer']]['median'])} ({line['best_peer']})"


def memory_of(line: dict) -> str:
    if line["kind"] == "memory":
        return ""
    names = ("Penstock", line.get("best_peer"))
    return "; ".join(memory(line["memory"][name]) for name in names if name in line["memory"])


def table(report: dict) -> str:
    rows = [
        [
            line["name"],
            ours(line),
            peer_of(line),
            number(line["floor"]["median"]) if "floor" in line else "",
            ratio(line, "peer", "{:.1f}x"),
            ratio(line, "floor", "{:.2f}"),
            memory_of(line),
        ]
        for line in report["lines"]
    ]
    head = ["work", "Penstock / goal", "best peer", "floor", "to peer / goal", "to floor / goal", "peak memory"]
    return page.table_of(head, rows) + absent(report) + page.place_of(report["machine"])


def absent(report: dict) -> str:
    """Peers that could not run, each once."""
    reasons = {name: reason for line in report["lines"] for name, reason in line["unavailable"].items()}
    return "".join(page.paragraph(f"Not measured: {name}: {reason}") for name, reason in reasons.items())


def bars(axes, lines: list[dict], series: list[tuple[str, str, list[float], list[str]]]) -> None:
    """Horizontal bars in groups, one group a line; each of `series` is (label, colour, lengths, texts)."""
    height = 0.76 / len(series)
    for s, (label, colour, lengths, texts) in enumerate(series):
        at = [i + (s - (len(series) - 1) / 2) * height for i in range(len(lines))]
        axes.barh(at, lengths, height=height * 0.95, color=colour, label=label)
        for y, length, text in zip(at, lengths, texts, strict=True):
            axes.annotate(text, (length, y), (3, 0), textcoords="offset points", va="center", fontsize=8, color=GREY)
    axes.axvline(1, color=FLOOR, linewidth=1)
    axes.set_yticks(range(len(lines)), [line["name"] for line in lines])
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def draw_floor(axes, lines: list[dict]) -> None:
    mine = [line["ratio_to_floor"] for line in lines]
    # A peer's share of the floor is ours over how many times as good we are.
    peers = [line["ratio_to_floor"] / line["ratio_to_peer"] for line in lines]
    series = [
        ("Penstock", OURS, mine, [f"{value:.2f}" for value in mine]),
        ("best peer", PEER, peers, [f"{v:.2f}  {line['best_peer']}" for v, line in zip(peers, lines, strict=True)]),
    ]
    bars(axes, lines, series)
    axes.set_xlabel("fraction of the floor (a bare C loop on the same files, red line)")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    axes.set_xlim(0, 1.6 * max([1, *mine, *peers]))


def draw_peers(axes, lines: list[dict]) -> None:
    ratios = [line["ratio_to_peer"] for line in lines]
    texts = [f"{r:.1f}x  {line['best_peer']}" for r, line in zip(ratios, lines, strict=True)]
    bars(axes, lines, [("", OURS, ratios, texts)])
    axes.set_xscale("log")
    axes.set_xlim(0.5, 100 * max(ratios))
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.set_xlabel("times as good as the best peer (logarithmic)")


def draw(report: dict, path: Path) -> None:
    beside_peers = [line for line in report["lines"] if "best_peer" in line]
    above_floor = [line for line in beside_peers if "floor" in line]
    heights = [0.6 * len(above_floor) + 1, 0.32 * len(beside_peers) + 1]
    figure, (floors, peers) = plt.subplots(2, figsize=(10, sum(heights)), height_ratios=heights)
    draw_floor(floors, above_floor)
    draw_peers(peers, beside_peers)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


#: What a person asks first; the rest is on the page.
SUMMARY = {
    "10,000 .pt of 16 KB": "10,000 small .pt files",
    "10,000 .pt of 100 to 400 rows, padded": "... of different lengths, padded",
    "rows of 3 KB with labels, batches of 256, beside a loader": "rows of one .npy, shuffled",
    "state dict of 2.2 GB, .pt, fresh process": "a model of 2.2 GB, .pt",
    "state dict of 2.2 GB, .safetensors, fresh process": "a model of 2.2 GB, .safetensors",
    "state dict of 2.2 GB, .safetensors, cold cache": "... from the disk",
}


def draw_summary(report: dict, path: Path) -> None:
    lines = [{**line, "name": SUMMARY[line["name"]]} for line in report["lines"] if line["name"] in SUMMARY]
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(lines) + 1))
    draw_floor(axes, lines)
    # Behind the text, or the line would strike it out.
    for text in axes.texts:
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    options = parser.parse_args()
    report = json.loads(options.results.read_text())
    if options.results.stem == "gpu":
        page.fill("gpu", table(report))
        return
    draw(report, page.PAGE.with_suffix(".svg"))
    draw_summary(report, page.PAGE.with_name("summary.svg"))
    page.fill("figures", table(report))


if __name__ == "__main__":
    main()
