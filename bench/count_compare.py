"""When counts have grown: bench/counts.py's rules, apart from how the counts are taken."""

from __future__ import annotations

#: Instructions may grow so much. The same program gives the same count to a few in a thousand; what a change elsewhere
#: moves by inlining differently stays below this.
TOLERANCE = 0.05

#: Asked for by the C library's allocator, so that they are compared with those of the same one only.
OF_ALLOCATOR = {"brk", "mmap", "mremap", "munmap", "madvise", "mprotect"}

#: The heap's end moves in steps of 128 KiB, and whether a workload crosses one more of them depends on where its heap
#: begins and in which order a folder lists its files: the same program asked once more in another system.
BRK_MORE = 2

ADVICE = (
    "find out why (docs/design/tools.md, Debugging), or, where the growth is meant, record anew with "
    "`script/bench counts --record` and say why in the commit"
)


def per_item(count: int, items: int) -> str:
    each = count / items
    return f"{each:,.0f}" if each >= 100 else f"{each:.3g}"


def comparable(recorded: dict, now: dict) -> str:
    """Why instructions cannot be compared between these builds; nothing when they can."""
    for what in ("machine", "compiler", "flags", "libc", "avx2"):
        if recorded.get(what) != now.get(what):
            return f"recorded with {what} {recorded.get(what)}, this is {now.get(what)}"
    return ""


def compare(recorded: dict, now: dict) -> list[str]:
    """What has grown since the counts were recorded, in words; nothing when all is well."""
    same_build = not comparable(recorded["built"], now["built"])
    problems = []
    for name in recorded["workloads"].keys() - now["workloads"].keys():
        problems.append(f"{name}: recorded, but not counted now; {ADVICE}")
    for name, counts in now["workloads"].items():
        before = recorded["workloads"].get(name)
        if before is None:
            problems.append(f"{name}: counted, but not recorded; {ADVICE}")
        elif before["items"] != counts["items"]:
            problems.append(f"{name}: recorded for {before['items']} items, now there are {counts['items']}; {ADVICE}")
        else:
            problems += _calls_grown(name, before, counts, same_build)
            problems += _instructions_grown(name, before, counts) if same_build else []
    return problems


def _instructions_grown(name: str, before: dict, counts: dict) -> list[str]:
    if "instructions" not in before or "instructions" not in counts:
        return []
    ratio = counts["instructions"] / before["instructions"]
    if ratio <= 1 + TOLERANCE:
        return []
    was, now = (per_item(c["instructions"], c["items"]) for c in (before, counts))
    return [f"{name}: {now} instructions per item, recorded {was}: {ratio:.3f}x, allowed {1 + TOLERANCE:g}x; {ADVICE}"]


def _calls_grown(name: str, before: dict, counts: dict, same_build: bool) -> list[str]:
    if "calls" not in before or "calls" not in counts:
        return []
    out = []
    for call, count in sorted(counts["calls"].items()):
        was = before["calls"].get(call, 0)
        allowed = was + (BRK_MORE if call == "brk" else 0)
        if count <= allowed or (call in OF_ALLOCATOR and not same_build):
            continue
        ratio = f"{count / was:.3f}x" if was else "new"
        out.append(
            f"{name}: {count} calls of {call} for {counts['items']} items, recorded {was}: {ratio}, "
            f"{allowed - was or 'none'} more allowed; {ADVICE}"
        )
    return out
