"""A file of PTX: its constants and entries (translate.py)."""

import re
import sys
from pathlib import Path

from ptx_entry import Entry, RefusedError

ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
PARAMETER = re.compile(r"\.param \.align (\d+) \.b8 (\w+)\[(\d+)\]")
BYTES = re.compile(r"\.weak \.const \.align (\d+) \.b8 (\w+)\[(\d+)\] = \{([\d, ]+)\};")
WORD = re.compile(r"\.weak \.const \.align 4 \.u32 (\w+) = (\d+);")


class Module:
    """A file of PTX: constants and entries."""

    def __init__(self) -> None:
        self.constants: dict[str, int] = {}
        self.definitions: list[str] = []
        self.entries: list[Entry] = []
        self.line = 0

    def read(self, text: str) -> None:
        entry: Entry | None = None
        inside = False
        head: list[str] = []
        for self.line, raw in enumerate(text.splitlines(), 1):
            line = raw.split("//")[0].strip()
            if not line:
                continue
            if inside and entry is not None:
                if line == "}":
                    entry.finish()
                    self.entries.append(entry)
                    entry, inside = None, False
                else:
                    entry.statement(line, self.line)
            elif entry is not None:
                inside = self.header(entry, line)
            elif started := ENTRY.fullmatch(line):
                if any(known.name == started[1] for known in self.entries):
                    raise RefusedError(f"entry {started[1]} stands here a second time")
                entry = Entry(started[1], self.constants)
            elif not self.constant(line):
                head.append(line)
        if entry is not None:
            raise RefusedError(f"the text ends within {entry.name}")
        if [re.sub(r"[\d.]+$", "", line) for line in head] != [".version ", ".target sm_", ".address_size "]:
            raise RefusedError(f"other directives than .version, .target and .address_size: {head}")
        if not self.entries:
            raise RefusedError("the text has no entry")

    def header(self, entry: Entry, line: str) -> bool:
        """Reads what stands between an entry's name and its body; true at the opening brace."""
        parameter = PARAMETER.fullmatch(line)
        if parameter is not None and not entry.parameter:
            entry.parameter, entry.parameter_bytes = parameter[2], int(parameter[3])
            return False
        if line == ")":
            return False
        if line == "{":
            return True
        raise RefusedError("an entry has one parameter, a block of bytes, and no directives")

    def constant(self, line: str) -> bool:
        block, word = BYTES.fullmatch(line), WORD.fullmatch(line)
        if block is not None:
            numbers = [int(n) for n in block[4].split(",")]
            if len(numbers) != int(block[3]) or any(n > 255 for n in numbers):
                raise RefusedError(f"{block[2]} has not the {block[3]} bytes that it declares")
            self.define(block[2], numbers, int(block[1]))
        elif word is not None:
            self.define(word[1], list(int(word[2]).to_bytes(4, "little")), 4)
        return block is not None or word is not None

    def define(self, name: str, data: list[int], align: int) -> None:
        self.constants[name] = len(data)
        self.definitions.append(
            f"alignas({align}) constexpr std::uint8_t {name}[{len(data)}] = {{{', '.join(map(str, data))}}};"
        )


def read(text: str, file: Path) -> Module:
    module = Module()
    try:
        module.read(text)
    except RefusedError as refusal:
        sys.exit(f"{file}:{module.line}: {refusal}")
    return module
