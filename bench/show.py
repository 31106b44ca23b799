"""A line's figures as text."""

from __future__ import annotations


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def goal_of(result: dict, which: str, form: str) -> str:
    goal = result["goals"][which]
    return "" if goal is None else f" (goal {form.format(goal)})"


def memory(figures: dict) -> str:
    """The peak; pages of mapped files apart, which the kernel takes back when it needs them."""
    mapped = min(figures["mapped_mb"], figures["peak_mb"])
    own = f"{figures['peak_mb'] - mapped:,.0f} MB"
    return f"{own} + {mapped:,.0f} mapped" if mapped >= 1 else own


def show(result: dict) -> None:
    unit, taken = result["unit"], result["memory"]

    def row(name: str, figures: dict, rest: str = "") -> None:
        few, many = number(figures["min"]), number(figures["max"])
        peak = f", {memory(taken[name])}" if name in taken and result["kind"] != "memory" else ""
        print(f"    {name}: {number(figures['median'])} {unit} ({few} to {many}){peak}{rest}")

    print(result["name"])
    at_most = "{:g} " + unit
    row("Penstock", result["penstock"], goal_of(result, "value", at_most))
    for name, figures in result["peers"].items():
        best = name == result["best_peer"]
        rest = f": {result['ratio_to_peer']:.1f}x{goal_of(result, 'peer', '{:g}x')}" if best else ""
        row(name, figures, rest)
    for name, reason in result["unavailable"].items():
        print(f"    {name}: not measured: {reason}")
    if "floor" in result:
        for name, figures in result["floors"].items():
            best = name == result["floor_command"]
            rest = f": {result['ratio_to_floor']:.2f}{goal_of(result, 'floor', '{:g}')}" if best else ""
            row(f"floor ({name})", figures, rest)
    for note in result["notes"]:
        print(f"    {note}")
    print(flush=True)
