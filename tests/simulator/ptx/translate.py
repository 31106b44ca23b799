#!/usr/bin/env python3
"""Translates PTX text to C++: translate.py KERNELS.ptx OUTPUT.cpp, or --mutants LIST [--first] FOLDER OUTPUT.cpp.

Each entry becomes a function whose statements are calls of instructions.h, one for an instruction, with PTX's registers
as variables, its labels as labels and its branches as gotos. What this script does not know (a directive, an opcode, a
modifier, a register of another type than the instruction wants) ends it with the line, so that no kernel is run that
means something else than its text.

A mutant is an entry of which one line was replaced; mutants.txt says which, and mutants_test.cpp that each is noticed.
--first: the first mutant alone.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ptx_module import Module, read


def fnv1a(data: bytes) -> int:
    """The hash by which the simulated driver knows the text again (kernels.cpp)."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


HEAD = """// Made by translate.py.
#include "simulator/ptx/convert.h"
#include "simulator/ptx/kernels.h"

namespace penstock::simulator::ptx {
namespace {

template <std::size_t kSize>
std::uint64_t address_of(const std::uint8_t (&constant)[kSize]) {
  return reinterpret_cast<std::uint64_t>(&constant[0]);
}
"""


def write_constants(module: Module) -> Iterator[str]:
    yield from module.definitions
    spans = ", ".join(f"std::as_bytes(std::span({name}))" for name in module.constants)
    yield f"const std::array<std::span<const std::byte>, {len(module.constants)}> kConstants = {{{spans}}};"


def translate(source: Path) -> Iterator[str]:
    text = source.read_text()
    module = read(text, source)
    yield HEAD
    yield from write_constants(module)
    for entry in module.entries:
        yield from entry.write(entry.name, str(source))
    yield "}  // namespace"
    yield f"extern const Translation kModule_{source.stem};"
    yield f'const Translation kModule_{source.stem} = {{"{source.name}", {fnv1a(text.encode()):#x}ull, {{'
    for entry in module.entries:
        yield f'  {{"{entry.name}", "{source.name}", {entry.name}, {entry.parameter_bytes}, kConstants}},'
    yield "}};"
    yield "}  // namespace penstock::simulator::ptx"


class Mutation(NamedTuple):
    file: str
    line: int
    entry: str
    before: str
    after: str
    what: str


def read_mutations(path: Path, folder: Path) -> list[Mutation]:
    """Lines "FILE ENTRY NUMBER: BEFORE => AFTER  # WHAT": the NUMBER-th line of the entry that reads BEFORE."""
    mutations = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\S+) (\S+) (\d+): (.+?) => (.+?)  # (.+)", line)
        if match is None:
            sys.exit(f"{path}:{number}: not FILE ENTRY NUMBER: BEFORE => AFTER  # WHAT")
        lines = (folder / match[1]).read_text().splitlines()
        begin = next((i for i, text in enumerate(lines) if text.startswith(f".visible .entry {match[2]}(")), len(lines))
        places = []
        for i in range(begin, len(lines)):
            if " ".join(lines[i].split()) == match[4]:
                places.append(i)
            if lines[i] == "}":
                break
        if len(places) < int(match[3]):
            sys.exit(f"{path}:{number}: {match[2]} has {len(places)} lines {match[4]!r}; name others")
        mutations.append(Mutation(match[1], places[int(match[3]) - 1], match[2], match[4], match[5], match[6]))
    return mutations


def translate_mutants(listed: Path, folder: Path, first: bool) -> Iterator[str]:
    mutations = read_mutations(listed, folder)
    if first:
        mutations = mutations[:1]
    yield HEAD
    for i, mutation in enumerate(mutations):
        source = folder / mutation.file
        lines = source.read_text().splitlines()
        lines[mutation.line] = mutation.after
        module = read("\n".join(lines) + "\n", source)
        yield f"namespace mutant_{i} {{"
        yield from write_constants(module)
        entry = next(entry for entry in module.entries if entry.name == mutation.entry)
        yield from entry.write(entry.name, str(source))
        yield f"constexpr std::size_t kParameterBytes = {entry.parameter_bytes};"
        yield "}"
    yield "}  // namespace"
    yield "extern const std::vector<Mutant> kMutants;"
    yield "const std::vector<Mutant> kMutants = {"
    for i, mutation in enumerate(mutations):
        space = f"mutant_{i}"
        size = f"{space}::kParameterBytes"
        yield f'  {{{{"{mutation.entry}", "{mutation.file}", {space}::{mutation.entry}, {size}, {space}::kConstants}},'
        yield f'   "{mutation.file}:{mutation.line + 1}: {mutation.before} => {mutation.after} ({mutation.what})"}},'
    yield "};"
    yield "}  // namespace penstock::simulator::ptx"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=Path, metavar="LIST")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    lines = translate_mutants(given.mutants, given.source, given.first) if given.mutants else translate(given.source)
    given.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
