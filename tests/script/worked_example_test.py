#!/usr/bin/env python3
"""The worked examples of HACKING.md and docs/design/writing.md do what they say: each is applied, compiled, linked with
the library and run.

worked_example_test.py BUILD COMPILER
"""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BUILD, COMPILER = Path(sys.argv[1]), sys.argv[2]
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY", "-Dfmt=penstock_fmt"]
LIBRARY = [f"{BUILD}/src/libpenstock.a", "-l:libdeflate.a", "-lz", "-lpthread", "-ldl"]

WRITES_IDX = r"""
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/save.h"

using namespace penstock;

int main(int, char** argv) {
  for (const Tensor& tensor : {Tensor::of<float>({1, -2, 3e30F}), Tensor::of<std::uint8_t>({7, 8}),
                               Tensor::zeros({3, 0, 2}, DType::int16)}) {
    save(tensor, argv[1]);
    if (open(argv[1]).format() != "idx" || !Tensor::identical(load(argv[1]).as_tensor(), tensor)) return 1;
  }
  for (const Value& value : {Value(Tensor::of<std::int64_t>({1})), Value::list({Value(1)})}) {
    try {
      save(value, argv[1]);
      return 2;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported || error.path() != argv[1]) return 3;
    }
  }
}
"""

BLOCK = re.compile(r"```(?:cpp|python)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"\*\*\d\. `([^`]+)`\*\*")
PLACE = re.compile(r"([Bb]ehind|[Ii]n place of) `([^`]+)`:\s*$")


class Example(NamedTuple):
    """The files as the example leaves them, by their paths, and the text of its test."""

    files: dict[str, str]
    test: str


def section(title: str) -> str:
    return (ROOT / "HACKING.md").read_text().split(f"## Worked example: {title}")[1].split("\n## ")[0]


def replace_once(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times where it is to stand once"
    return text.replace(old, new)


def applied(title: str) -> Example:
    """Each block of code goes where the words before it say."""
    files: dict[str, str] = {}
    test, path, end = "", "", 0
    text = section(title)
    for block in BLOCK.finditer(text):
        words, code = text[end : block.start()], block[1]
        end = block.end()
        named = FILE.findall(words)
        path = named[-1] if named else path
        place = PLACE.search(words)
        if place is None:
            test = code
            continue
        before = files.get(path) or (ROOT / path).read_text()
        if place[1].lower() == "behind":
            line = re.search(rf"^.*{re.escape(place[2])}.*$", before, re.MULTILINE)
            assert line is not None, f"{path} has no {place[2]!r}"
            files[path] = replace_once(before, line[0] + "\n", line[0] + "\n" + code)
        else:
            files[path] = replace_once(before, place[2], code.rstrip("\n"))
    return Example(files, test)


def run(command: list[str]) -> None:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}{result.stderr}"


def room_with(work: Path, room: str, changed: dict[str, str]) -> list[str]:
    """The sources of a room as the library compiles them, where some of them are changed ones in `work`."""
    joined = sorted((BUILD / "src/CMakeFiles").glob(f"*/Unity/unity_src_{room.replace('/', '_')}_[0-9]*_cxx.cxx"))
    if not joined:  # each source is compiled alone
        return [str(work / path) for path in changed if path.startswith(f"src/{room}/") and path.endswith(".cpp")]
    out = []
    for number, source in enumerate(joined):
        text = source.read_text()
        for path in changed:
            text = text.replace(f'"{ROOT}/{path}"', f'"{work / path}"')
        out.append(str(work / f"room{number}.cpp"))
        Path(out[-1]).write_text(text)
    return out


def binding_flags() -> list[str] | None:
    """What the module's sources are compiled with, if nanobind is there."""
    found = sorted((ROOT / ".venv").glob("lib/python*/site-packages/nanobind/include"))
    python = sysconfig.get_path("include")
    if not found or not os.path.exists(f"{python}/Python.h"):
        return None
    return ["-Ipython/src", "-isystem", str(found[0]), "-isystem", python]


class WorkedExampleTest(unittest.TestCase):
    def check(self, title: str, room: str) -> None:
        example = applied(title)
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            for path, text in example.files.items():
                (work / path).parent.mkdir(parents=True, exist_ok=True)
                (work / path).write_text(text)
                if path.endswith(".py"):
                    ast.parse(text)
            (work / "example_test.cpp").write_text(example.test)
            flags = [*FLAGS, f"-I{work}/include", f"-I{work}/src", "-Isrc", "-Iinclude", "-Itests"]
            ours = [str(work / "example_test.cpp"), *room_with(work, room, example.files)]
            # The library comes last. Its own objects of the room are wanted only by its other rooms, by names in which
            # the list of all transforms stands; of what both define, ours is taken.
            both = "-Wl,--allow-multiple-definition"
            run([COMPILER, *flags, both, "-o", str(work / "test"), *ours, "-lgtest_main", "-lgtest", *LIBRARY])
            run([str(work / "test")])
            bindings = binding_flags()
            for path in example.files:
                if path.startswith("python/src/") and bindings is not None:
                    run([COMPILER, *flags, "-fsyntax-only", "-Wno-error", *bindings, str(work / path)])

    def test_an_option_of_the_loader(self) -> None:
        self.check("add an option of the loader", "data/loader")

    def test_a_transform(self) -> None:
        self.check("add a transform", "data/transform")

    def test_a_format(self) -> None:
        source, test, fuzzer = BLOCK.findall(section("add a format"))
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            ours, flags = self.idx(work, source)
            (work / "idx_test.cpp").write_text(test)
            (work / "fuzz_idx.cpp").write_text(fuzzer)
            (work / "seed.idx").write_text("\0\0\b\1\0\0\0\1a")
            tests = [str(work / "idx_test.cpp"), *ours, "-lgtest_main", "-lgtest", *LIBRARY]
            run([COMPILER, *flags, "-o", str(work / "test_idx"), *tests])
            run([str(work / "test_idx")])
            support = [f"fuzz/support/{name}.cpp" for name in ("fuzz_format", "replay_main", "require")]
            fuzz = [str(work / "fuzz_idx.cpp"), *support]
            run([COMPILER, *flags, "-o", str(work / "fuzz_idx"), *fuzz, *ours, *LIBRARY])
            run([str(work / "fuzz_idx"), str(work / "seed.idx")])

    def test_a_format_that_writes(self) -> None:
        """docs/design/writing.md: what is written comes back, and what has no place is refused."""
        source = BLOCK.findall(section("add a format"))[0]
        (write,) = BLOCK.findall((ROOT / "docs/design/writing.md").read_text())
        source = replace_once(source, "}  // namespace\n\nconstinit", f"{write}\n}}  // namespace\n\nconstinit")
        source = replace_once(source, ".write = nullptr", ".write = write")
        source = replace_once(source, "= fingerprint}", "= fingerprint, .is_one_tensor = true}")
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            ours, flags = self.idx(work, source)
            (work / "write_idx.cpp").write_text(WRITES_IDX)
            run([COMPILER, *flags, "-o", str(work / "write_idx"), str(work / "write_idx.cpp"), *ours, *LIBRARY])
            run([str(work / "write_idx"), str(work / "a.idx")])

    def idx(self, work: Path, source: str) -> tuple[list[str], list[str]]:
        """The library's sources with that format in its table, and what they are compiled with."""
        (work / "src/format").mkdir(parents=True)
        (work / "format").mkdir()
        header = (ROOT / "src/format/rows.h").read_text()
        table = (ROOT / "src/format/formats.cpp").read_text()
        table, count = re.subn(r"(kFormats\{[^}]*)\}", r"\1, kIdxFormat}", table, count=1)
        self.assertEqual(count, 1)
        table_path = "src/format/formats.cpp"
        header = header.replace("\nextern const Format", "\nextern const Format kIdxFormat;\nextern const Format", 1)
        (work / "format/rows.h").write_text(header)
        (work / table_path).write_text(table)
        (work / "idx.cpp").write_text(source)
        ours = [str(work / "idx.cpp"), *room_with(work, "format", {table_path: table})]
        return ours, [*FLAGS, f"-I{work}", "-Isrc", "-Iinclude", "-Itests", "-Ifuzz"]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
