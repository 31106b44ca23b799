#!/usr/bin/env python3
"""Compares our declarations of NVIDIA's interfaces with its headers, of CUDA 12 and 13 where they are in build/cuda.

tests/script/nvidia_headers_test.py

The comparisons are static assertions in the tests below, which are compiled here against each set of headers. Exits 77,
skipped, where there is none (script/cuda_packages brings them).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "build/cuda"
COMPARED = {
    "cuda.h": "tests/device/cuda/driver_api_test.cpp",
    "cublas_v2.h": "tests/device/cuda/cublas_api_test.cpp",
    "cufile.h": "tests/io/gds/gds_api_test.cpp",
}
SKIPPED = 77


def compile_against(include: Path, header: str, test: str) -> str:
    """What the compiler finds wrong, or "". The header is included first, so that the test cannot pass it by."""
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-isystem", str(include)]
    command += [f"-I{ROOT / folder}" for folder in ("include", "src", "tests")]
    command += ["-include", header, str(ROOT / test)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stderr if ended.returncode != 0 else ""


def main() -> int:
    compared = wrong = 0
    for include in sorted(HEADERS.glob("cu*/include")):
        for header, test in COMPARED.items():
            if not (include / header).exists():
                print(f"not compared: {include.parent.name} has no {header}")
                continue
            compared += 1
            found = compile_against(include, header, test)
            if found:
                wrong += 1
            print(f"{include.parent.name}: {header} {'differs:' if found else 'agrees'}\n{found}".rstrip())
    if compared == 0:
        print("skipped: there are no headers of NVIDIA's in build/cuda (script/cuda_packages)")
        return SKIPPED
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
