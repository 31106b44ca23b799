"""What the command says of a file with very many tensors."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

from line import Call, Line, Program

TENSORS = 300_000
PENSTOCK = Path("build/release/bin/penstock")


def _file(root: Path) -> Path:
    """A header of 21 MB and tensors of one number."""
    path = root / "many_tensors.safetensors"
    if not path.exists():
        root.mkdir(parents=True, exist_ok=True)
        spans = ((i, [4 * i, 4 * i + 4]) for i in range(TENSORS))
        header = {f"layer.{i:06}.w": {"dtype": "F32", "shape": [1], "data_offsets": span} for i, span in spans}
        text = json.dumps(header, separators=(",", ":")).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4 * TENSORS))
    return path


def _info(path: Path) -> Call:
    command = [PENSTOCK.resolve(), "info", "--json", path]
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def lines(root: Path) -> list[Line]:
    path = _file(root)
    return [
        Line(
            name=f"info --json of {TENSORS:,} tensors",
            unit="ms",
            kind="time",
            ours=Program(partial(_info, path)),
            peers={},
            goal=1000,
        )
    ]
