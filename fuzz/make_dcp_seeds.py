"""Writes the seeds of fuzz_dcp: small checkpoints by torch, as one file each.

python fuzz/make_dcp_seeds.py        # into fuzz/corpus/dcp; needs torch
"""

import pathlib
import struct
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
from dcp_pairs import save_by_ranks

CORPUS = pathlib.Path(__file__).parent / "corpus" / "dcp"


def seed(name, state, boxes):
    with tempfile.TemporaryDirectory() as folder:
        save_by_ranks(folder, state, [boxes])
        metadata = (pathlib.Path(folder) / ".metadata").read_bytes()
        data = (pathlib.Path(folder) / "__0_0.distcp").read_bytes()
    (CORPUS / name).write_bytes(struct.pack("<I", len(metadata)) + metadata + data)


CORPUS.mkdir(exist_ok=True)
X = torch.arange(12.0).reshape(3, 4)
seed("one", {"w": X}, {"w": [((0, 0), (3, 4))]})
seed("rows", {"w": X}, {"w": [((0, 0), (1, 4)), ((1, 0), (2, 4))]})
seed("columns", {"w": X}, {"w": [((0, 1), (3, 3)), ((0, 0), (3, 1))]})
seed("objects", {"o": {"t": torch.ones(2), "n": 1}, "s": torch.tensor(1)}, {"o": [], "s": [((), ())]})
