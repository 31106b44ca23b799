#!/usr/bin/env python3
"""Assembles the device kernels' PTX text with NVIDIA's assembler where there is one, as a driver will.

tests/script/assemble_kernels_test.py

Each text for each kind of processor below that this ptxas knows. Exits 77, skipped, where no ptxas is found: on PATH
or in /usr/local/cuda*/bin.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = Path(__file__).parents[2] / "src/ops/kernels"
PROCESSORS = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]
SKIPPED = 77


def find_ptxas() -> str | None:
    folders = sorted(Path("/usr/local").glob("cuda*/bin"))
    return shutil.which("ptxas") or next((str(f / "ptxas") for f in folders if (f / "ptxas").exists()), None)


def known_processors(ptxas: str) -> list[str]:
    told = subprocess.run([ptxas, "--help"], capture_output=True, text=True, check=True).stdout
    return [processor for processor in PROCESSORS if f"'{processor}'" in told]


def main() -> int:
    ptxas = find_ptxas()
    if ptxas is None:
        print("skipped: there is no ptxas on PATH or in /usr/local/cuda*/bin")
        return SKIPPED
    processors = known_processors(ptxas)
    texts = sorted(KERNELS.glob("*.ptx"))
    wrong = 0 if processors and texts else 1
    print(f"{ptxas}: {len(texts)} texts for {', '.join(processors)}")
    with tempfile.TemporaryDirectory() as folder:
        for text in texts:
            for processor in processors:
                command = [ptxas, f"--gpu-name={processor}", str(text), "--output-file", f"{folder}/kernels"]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode != 0:
                    print(f"{text.name} for {processor}:\n{ended.stdout}{ended.stderr}")
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
