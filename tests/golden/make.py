#!/usr/bin/env python3
"""Writes tests/golden/VERSION, what a release promises that all later ones read: states of loaders of each kind, packed
shards of each form, tar shards, and indexes of both. Made once for each minor version, by the module of that release.

    .venv/bin/python tests/golden/make.py 0.1

A folder that is there is not written over: tests/python/test_golden.py reads it with the code of today.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import kinds

HERE = Path(__file__).resolve().parent


def main(version: str) -> int:
    folder = HERE / version
    if folder.exists():
        print(f"make.py: {folder} is there, and belongs to the release that made it", file=sys.stderr)
        return 1
    (folder / "files").mkdir(parents=True)
    os.chdir(folder / "files")
    kinds.write_files(Path())
    warnings.simplefilter("ignore")  # of datasets that take torch's way
    states = {kind: kinds.state_and_rest(kind) for kind in kinds.KINDS}
    samples = {name: kinds.plain(form) for name, form in kinds.FORMS.items()}
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(content)}" for kind, content in states.items())
    (folder / "states.json").write_text(f"{{\n{lines}\n}}\n")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(content)}" for name, content in samples.items())
    (folder / "packed.json").write_text(f"{{\n{lines}\n}}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: make.py VERSION, as 0.1")
