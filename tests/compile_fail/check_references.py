#!/usr/bin/env python3
"""Checks what the member functions of the public headers give.

    check_references.py INCLUDE_FOLDER REFERENCES.cpp ASSIGNMENTS.cpp

One that gives a reference, a pointer, a span or a string_view has a ref-qualifier (`const&`, beside `const&&`), and a
row in the first table, which holds that temporaries refuse it or give a value. One that gives an object gives it
const, so that assigning to it does not compile, unless the class itself refuses that, which is a row of the second
table. What needs none of this is named below, with the reason.
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
# Given by value and not const: what operations compute, which programs move on; nobody takes it for a part of an
# object.
COMPUTED = {
    "Archive::load_storages": "what was read",
    "DataLoader::next": "a batch, which programs move on",
    "DataLoader::next_for": "a batch, which programs move on",
    "DataLoader::next_of": "private",
    "Error::at": "an error to throw",
    "Error::caused_by": "an error to throw",
    "Error::prefixed": "an error to throw",
    "Error::within": "an error to throw",
    "Subscript::operator()": "what the subscript gives",
    "Value::content": "private",
    "Value::find_in_dict": "private",
}
# Of the standard library, without a state that could be assigned.
STATELESS = {"std::default_sentinel_t"}
NO_TYPES = {"constexpr", "explicit", "operator", "throw"}
SCALARS = {"bool", "int", "double", "std::size_t", "std::int64_t", "std::uint64_t", "std::uint32_t", "std::uint16_t"}
SCALARS |= {"void", "ErrorCode", "Code", "Kind"}
TYPE = r"(?:const )?(?:std::)?[\w:]+(?:<[^;(){}]*>)?(?: const)?"
ACCESSOR = re.compile(
    rf"^  (?:  )?(?:virtual |constexpr |inline )*(?P<type>{TYPE} ?[&*]|(?:const )?std::span<[^;(){{}}]*>"
    r"|(?:const )?std::string_view)"
    r" ?(?P<name>operator(?:\(\)|\[\]|->|\*)|\w+)\((?P<arguments>[^()]*)\)(?P<rest>[^;{]*)"
)
CLASS = re.compile(r"^(?P<indent> *)(?:class|struct) (?P<name>\w+)(?: final)?(?: :[^;]*)? ?\{?$")


VALUE = re.compile(
    r"^  (?:  )?(?:constexpr |inline )*(?P<type>(?:const )?(?:std::|detail::)?\w+(?:<[^;(){}]*>)?)"
    r" (?P<name>operator(?:\(\)|\[\]|->|\*)|\w+)\((?P<arguments>[^()]*(?:\([^()]*\)[^()]*)*)\)(?P<rest>[^;{]*)"
)


def accessors(text: str, pattern: re.Pattern[str]):
    """(class, name, type, what follows the arguments) of each member function whose declaration fits the pattern."""
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
            and (found := pattern.match(line))
            and not re.match(r"^ *(?:friend|return|static|using|else)\b", line)
        ):
            yield "::".join(name for _, name in classes), found["name"], found["type"], found["rest"]


def given_to_assign(text: str, handles: set[str], seen: set[str]):
    """The member functions that give an object by value to which an assignment would compile."""
    for owner, name, gives, rest in accessors(text, VALUE):
        what = f"{owner}::{name}"
        by_itself = gives in handles | SCALARS | STATELESS | NO_TYPES | {"Self", "reference", "Strides", "Iterator"}
        if by_itself or gives.startswith(("const ", "detail::Given<")) or "= delete" in rest:
            continue
        seen.add(what)
        if what not in COMPUTED and what not in ALLOWED and not name.startswith("to_"):
            yield f"{what} gives {gives} by value, to which an assignment is lost: give it const"


def main() -> int:
    headers, table = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
    handles = set(re.findall(r"^ASSIGNS_TO_NAMES_ALONE\(ps::(\w+)\)", Path(sys.argv[3]).read_text(), re.MULTILINE))
    problems, seen = [], set()
    for header in sorted(headers.glob("*.h")):
        if header.name.startswith("torch"):
            continue  # adapters for LibTorch, without handles of their own
        problems += [f"{header.name}: {what}" for what in given_to_assign(header.read_text(), handles, seen)]
        for owner, name, gives, rest in accessors(header.read_text(), ACCESSOR):
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
    problems += [f"{what} is excused, but is not there" for what in sorted((set(ALLOWED) | set(COMPUTED)) - seen)]
    print("\n".join(problems) or f"{len(seen)} accessors")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
