#!/usr/bin/env python3
"""Prints what programs may rely on, a line each: Python's public names with their signatures, the names of the public
C++ headers, and the command's options. script/release keeps it as tests/api/VERSION.txt.

    .venv/bin/python script/api_names.py     after script/build

What has changed since the last release has to be named in CHANGELOG.md's newest section: `unlisted`, and
tests/python/test_api.py, which asks it.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "include" / "penstock"
# What programs import; others are rooms of these. penstock.ray and penstock.dlio want their engines.
MODULES = ("penstock", "penstock.errors", "penstock.torch", "penstock.torch.safetensors", "penstock.torch.collate")
MODULES = (*MODULES, "penstock.numpy", "penstock.numpy.safetensors", "penstock.remote", "penstock.torch.dcp")
MODULES = (*MODULES, "penstock.sharing", "penstock.device", "penstock.grain", "penstock.vllm", "penstock.sglang")

TYPE = re.compile(r"^(?:class|struct|enum class) (?:\[\[.*?\]\] )?(\w+)[ ;:]")
ALIAS = re.compile(r"^using (\w+) =")
FUNCTION = re.compile(
    r"^(?:template <.*> )?(?!using|class|struct|enum|requires|template|static_assert|namespace)"
    r"[\w\[].*?[ *&]([a-z_]\w*)\("
)
# Of a class: what is called, and what is a field. Names that end in "_" are private by their form.
STARTS = r"^  (?!//|using |friend |return |static_assert|requires|explicit|class |struct |enum |template <.*>$)"
METHOD = re.compile(STARTS + r"[\w\[:][^()]*?[ *&](?!operator)([a-z]\w*[a-z0-9])\(")
FIELD = re.compile(STARTS + r"[\w:][^()]*?[ *&]([a-z]\w*[a-z0-9])(?: = .*|\{.*\})?;")
DEFINED = re.compile(r"^#define (PENSTOCK_\w+)", re.MULTILINE)


def python_names() -> set[str]:
    return {f"{module}.{name}" for module in MODULES for name in importlib.import_module(module).__all__}


def without_details(text: str) -> str:
    """A header's text outside of namespaces `detail`, and of those that are another library's."""
    detail = r"^namespace (?:penstock::)?detail(?:::\w+)? \{.*?^\}  // namespace (?:penstock::)?detail(?:::\w+)?$"
    public = re.sub(detail, "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^namespace (?!penstock\b|collate\b|sampler\b).*?^\}", "", public, flags=re.MULTILINE | re.DOTALL)


def header_names(text: str) -> set[str]:
    """Names that a header declares outside of namespaces `detail`. clang-format puts each at the start of its line.
    What is declared and not defined is another header's, or another library's."""
    lines = [line for line in without_details(text).split("\n") if not re.match(r"(class|struct) \w+;", line)]
    found = [pattern.match(line) for line in lines for pattern in (TYPE, ALIAS, FUNCTION)]
    return {match[1] for match in found if match}


def members(text: str) -> set[str]:
    """TYPE.member for what is public in the header's classes and structures, but for operators and enumerators."""
    found, of, public = set(), "", False
    for line in without_details(text).split("\n"):
        opened = TYPE.match(line)
        if opened and not line.endswith(";"):
            of, public = opened[1], line.startswith("struct")
        elif line.startswith("}"):
            of = ""
        elif re.match(r" (public|private|protected):", line):
            public = line == " public:"
        elif of and public and (member := METHOD.match(line) or FIELD.match(line)):
            found.add(f"{of}.{member[1]}")
    return found


def signature(value: object) -> str:
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def python_lines() -> Iterator[str]:
    for name in python_names():
        module, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(module), last)
        yield f"python {name}{signature(value) if callable(value) else ''}"
        if isinstance(value, type) and not issubclass(value, Exception):
            for attribute in dir(value):
                if not attribute.startswith("_") and not is_inherited(value, attribute):
                    yield f"python {name}.{attribute}{signature(getattr(value, attribute))}"


def is_inherited(kind: type, attribute: str) -> bool:
    """Whether another project's class, or one of Python's own, has it."""
    owner = next((base for base in kind.__mro__ if attribute in vars(base)), kind)
    return not owner.__module__.startswith("penstock")


def cpp_lines() -> Iterator[str]:
    for path in sorted(HEADERS.glob("*.h")):
        text = path.read_text()
        names = header_names(text) | members(text) | set(DEFINED.findall(text))
        yield from (f"c++ {path.name} {name}" for name in names)


def command_lines(words: tuple[str, ...] = ()) -> Iterator[str]:
    program = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build/release")) / "bin/penstock"
    shown = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout
    called = " ".join(("penstock", *words))
    for option in re.findall(r"^  (-\S.*?)(?:  .*)?$", shown, re.MULTILINE):
        # What excludes what follows the names, in an order of no meaning.
        yield f"command {called} {re.sub(r' (Excludes|Needs):.*', '', option)}"
    for section in re.findall(r"^Subcommands:\n((?:  .*\n)+)", shown, re.MULTILINE):
        for name in re.findall(r"^  (\w+)", section, re.MULTILINE):
            yield f"command {called} {name}"
            yield from command_lines((*words, name))


def lines() -> list[str]:
    return sorted({*python_lines(), *cpp_lines(), *command_lines()})


def name_of(line: str) -> str:
    """What a changelog calls it: without module, class and arguments; the long form of an option."""
    if line.startswith("command "):
        long = re.search(r"--[\w-]+", line)
        return long[0] if long else line.split()[-1]
    return re.split(r"[. ]", line.partition("(")[0])[-1]


def newest_section(changelog: str) -> str:
    return re.split(r"^## ", changelog, flags=re.MULTILINE)[1] if "\n## " in changelog else ""


def unlisted(old: list[str], new: list[str], changelog: str) -> list[str]:
    """The lines that came, went or changed and whose name no code of the changelog's newest section has."""
    code = " ".join(re.findall(r"`([^`]+)`", newest_section(changelog)))
    out = []
    for line in sorted({*old} ^ {*new}):
        name = name_of(line)
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", code):
            out.append(f"{'-' if line in old else '+'} {line}")
    return out


if __name__ == "__main__":
    print("\n".join(lines()))
