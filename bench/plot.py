"""Draws docs/performance.svg and the table of docs/performance.md from one JSON of bench/results/, and nothing else."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import page

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "penstock"
from matplotlib import pyplot as plt  # noqa: E402


def number(value: float, unit: str) -> str:
    return f"{value:.2f}" if unit == "GB/s" else f"{value:,.0f}"


def table(report: dict) -> str:
    rows = []
    for line in report["lines"]:
        unit, peer = line["unit"], line["best_peer"]
        ours, rival, bare = line["penstock"]["median"], line["peers"][peer]["median"], line["floor"]["median"]
        rows.append(
            [
                line["name"],
                f"{number(ours, unit)} {unit}",
                f"{number(rival, unit)} ({peer})",
                number(bare, unit),
                f"{line['ratio_to_peer']:.1f}x",
                f"{line['ratio_to_floor']:.2f}",
            ]
        )
    head = ["work", "Penstock", "best peer", "floor", "to peer", "to floor"]
    return page.table_of(head, rows) + page.place_of(report["machine"])


def draw(report: dict, path: Path) -> None:
    measured = report["lines"]
    figure, axes = plt.subplots(figsize=(9, 0.75 * len(measured) + 1.2))
    for i, line in enumerate(measured):
        bare = line["floor"]["median"]
        peer = line["peers"][line["best_peer"]]["median"] / bare
        axes.barh(i - 0.19, line["ratio_to_floor"], height=0.36, color="#1565c0", label="Penstock" if i == 0 else None)
        axes.barh(i + 0.19, peer, height=0.36, color="#b0bec5", label="best peer" if i == 0 else None)
        axes.text(line["ratio_to_floor"] + 0.01, i - 0.19, f"{line['ratio_to_floor']:.2f}", va="center", fontsize=8)
        axes.text(peer + 0.01, i + 0.19, f"{peer:.2f}  {line['best_peer']}", va="center", fontsize=8, color="#546e7a")
    axes.axvline(1, color="#c62828", linewidth=1)
    axes.set_yticks(range(len(measured)), [line["name"] for line in measured])
    axes.invert_yaxis()
    axes.set_xlabel("fraction of the floor (a bare C loop on the same files, red line)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    options = parser.parse_args()
    report = json.loads(options.results.read_text())
    draw(report, page.PAGE.with_suffix(".svg"))
    page.fill("figures", table(report))


if __name__ == "__main__":
    main()
