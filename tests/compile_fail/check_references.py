#!/usr/bin/env python3
"""Checks that each accessor of the public headers which gives a reference or a view says what a temporary gives.

    check_references.py INCLUDE_FOLDER TABLE.cpp

An accessor is a member function that gives a reference, a pointer, a span or a string_view. It has a ref-qualifier
(`const&`, beside `const&&`), and a row in the table, which holds that temporaries refuse it or give a value. What needs
neither is named below, with the reason.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Without a row: what lives as long as the program, what the caller keeps, and classes that are no handles.
ALLOWED = {
    "Archive::format": "a name in the table of formats",
    "WritableArchive::format": "a name in the table of formats",
    "CropOp::name": "a constant text",
    "FlipOp::name": "a constant text",
    "LoaderStats::bottleneck": "a constant text",
    "RemoteTraffic::limit": "a constant text",
    "Sampler::kind": "a text that stays valid for ever",
    "BatchSampler::kind": "a text that stays valid for ever",
    "SamplerInterface::kind": "a text that stays valid for ever",
    "BatchSamplerInterface::kind": "a text that stays valid for ever",
    "ByteSource::name": "a class to derive from",
    "Error::what": "std::exception's",
    "Operand::tensor": "only a parameter, which refers to what it was given",
    "Operand::number": "only a parameter, which refers to what it was given",
    "Stream::native": "a handle of the driver, which belongs to a stream that others hold too",
    "Value::node_id": "tells values apart, and points to nothing",
    "Writer::impl": "private",
    "Tensor::element": "private",
    "Shape::data": "private",
    "DataLoader::known": "private",
    "DataLoader::usable": "private",
}
TYPE = r"(?:const )?(?:std::)?[\w:]+(?:<[^;(){}]*>)?(?: const)?"
ACCESSOR = re.compile(
    rf"^  (?:  )?(?:virtual |constexpr |inline )*(?P<type>{TYPE} ?[&*]|(?:std::)?span<[^;(){{}}]*>"
    r"|std::span<[^;(){}]*>|std::string_view)"
    r" ?(?P<name>operator(?:\(\)|\[\]|->|\*)|\w+)\((?P<arguments>[^()]*)\)(?P<rest>[^;{]*)"
)
CLASS = re.compile(r"^(?P<indent> *)(?:class|struct) (?P<name>\w+)(?: final)?(?: :[^;]*)? ?\{?$")


def accessors(text: str):
    """(class, name, what follows the arguments) of each member function that gives a reference or a view."""
    classes: list[tuple[int, str]] = []
    for line in text.splitlines():
        if found := CLASS.match(line):
            depth = len(found["indent"])
            classes = [(d, n) for d, n in classes if d < depth] + [(depth, found["name"])]
        elif line.startswith("}"):
            classes = []
        elif re.match(r"^  \};", line):
            classes = [(d, n) for d, n in classes if d < 2]
        if (
            classes
            and (found := ACCESSOR.match(line))
            and not re.match(r"^ *(?:friend|return|static|using|else)\b", line)
        ):
            yield "::".join(name for _, name in classes), found["name"], found["type"], found["rest"]


def main() -> int:
    headers, table = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
    problems, seen = [], set()
    for header in sorted(headers.glob("*.h")):
        if header.name.startswith("torch"):
            continue  # adapters for LibTorch, without handles of their own
        for owner, name, gives, rest in accessors(header.read_text()):
            what = f"{owner}::{name}"
            # Operators that change what they are called on give it back.
            if name in ("operator=", "operator++") or what in ALLOWED or gives.strip() == f"{owner.split('::')[-1]}&":
                seen.add(what)
                continue
            seen.add(what)
            if not re.search(r"&", rest):
                problems.append(f"{header.name}: {what} gives {gives.strip()} to temporaries too: qualify it with &")
            call = re.escape(name)
            row = rf"\(ps::{re.escape(owner)}&?, (?:\.(?:template )?{call}\b|\.{call}\(|\[)"
            if not re.search(row, table):
                problems.append(f"{header.name}: {what} has no row in {sys.argv[2]}")
    problems += [f"{what} is excused, but is not there" for what in sorted(set(ALLOWED) - seen)]
    print("\n".join(problems) or f"{len(seen)} accessors")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
