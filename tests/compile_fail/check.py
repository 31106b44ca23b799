#!/usr/bin/env python3
"""Checks that one misuse does not compile, for the right reason, and that its corrected form does.

    check.py CASE.cpp COMPILER [ARGUMENT...]

A case names the error it expects, as a regular expression over what the compiler prints, and holds both forms:

    // expect-error: use of deleted function
    #ifdef CONTROL
    ... what is right
    #else
    ... what must not compile
    #endif
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def compile_case(command: list[str]) -> tuple[bool, str]:
    """Whether it compiles, and what the compiler says, in English."""
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    return result.returncode == 0, result.stderr


def check(case: Path, compiler: list[str]) -> str | None:
    """What is wrong with the case, if anything."""
    expected = re.search(r"^// expect-error: (.+)$", case.read_text(), re.MULTILINE)
    if expected is None:
        return "it has no line '// expect-error: REGEX'"
    compiles, output = compile_case([*compiler, "-DCONTROL", str(case)])
    if not compiles:
        return f"its control does not compile:\n{output}"
    compiles, output = compile_case([*compiler, str(case)])
    if compiles:
        return "the misuse compiles"
    errors = "\n".join(line for line in output.splitlines() if "error:" in line)
    if not re.search(expected[1], errors):
        return f"it fails, but not with /{expected[1]}/:\n{output}"
    return None


def main() -> int:
    case, compiler = Path(sys.argv[1]), sys.argv[2:]
    if problem := check(case, compiler):
        print(f"{case}: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
