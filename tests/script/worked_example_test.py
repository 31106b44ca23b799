#!/usr/bin/env python3
"""The worked example of HACKING.md does what it says: it is applied, compiled, linked with the library and run.

worked_example_test.py BUILD COMPILER
"""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD, COMPILER = Path(sys.argv[1]), sys.argv[2]


def code_blocks() -> list[str]:
    example = (ROOT / "HACKING.md").read_text().split("## Worked example")[1].split("\n## ")[0]
    return re.findall(r"```cpp\n(.*?)```", example, re.DOTALL)


def replace_once(text: str, pattern: str, replacement: str) -> str:
    result, count = re.subn(pattern, replacement, text, count=1, flags=re.DOTALL)
    assert count == 1, f"nothing matches {pattern}"
    return result


def run(command: list[str]) -> None:
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}{result.stderr}"


class WorkedExampleTest(unittest.TestCase):
    def test_the_change_compiles_and_its_test_passes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            (work / "format").mkdir()
            header = (ROOT / "src/format/rows.h").read_text()
            table = (ROOT / "src/format/formats.cpp").read_text()
            source, test, fuzzer = code_blocks()
            for name, text in {
                "format/rows.h": replace_once(
                    header, r"\nextern const Format", "\nextern const Format kIdxFormat;\nextern const Format"
                ),
                "formats.cpp": replace_once(table, r"(kFormats\{[^}]*)\}", r"\1, kIdxFormat}"),
                "idx.cpp": source,
                "idx_test.cpp": test,
                "fuzz_idx.cpp": fuzzer,
                "seed.idx": "\0\0\b\1\0\0\0\1a",
            }.items():
                (work / name).write_text(text)
            flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY", "-Dfmt=penstock_fmt"]
            flags += [f"-I{work}", "-Isrc", "-Iinclude", "-Itests", "-Ifuzz"]
            # Where the library compiles the sources of a room as one, its object has all of them.
            joined = BUILD / "src/CMakeFiles/penstock_format.dir/Unity/unity_src_format_0_cxx.cxx"
            room = joined.read_text() if joined.exists() else f'#include "{ROOT}/src/format/formats.cpp"\n'
            (work / "room.cpp").write_text(room.replace(f"{ROOT}/src/format/formats.cpp", f"{work}/formats.cpp"))
            ours = [str(work / "idx.cpp"), str(work / "room.cpp")]
            # The library comes last: of its own object nothing is wanted any more.
            library = [f"{BUILD}/src/libpenstock.a", "-l:libdeflate.a", "-lz", "-lpthread"]

            tests = [str(work / "idx_test.cpp"), *ours, "-lgtest_main", "-lgtest", *library]
            run([COMPILER, *flags, "-o", str(work / "test_idx"), *tests])
            run([str(work / "test_idx")])
            support = [f"fuzz/support/{name}.cpp" for name in ("fuzz_format", "replay_main", "require")]
            fuzz = [str(work / "fuzz_idx.cpp"), *support]
            run([COMPILER, *flags, "-o", str(work / "fuzz_idx"), *fuzz, *ours, *library])
            run([str(work / "fuzz_idx"), str(work / "seed.idx")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
