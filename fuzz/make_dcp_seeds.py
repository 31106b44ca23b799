"""Writes the seeds of fuzz_dcp and fuzz_shards: small checkpoints by torch, as one file each.

python fuzz/make_dcp_seeds.py        # into fuzz/corpus; needs torch and safetensors
"""

import json
import pathlib
import struct
import sys
import tempfile

import safetensors.torch
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


def shard(tensors, info):
    text = info if isinstance(info, str) else json.dumps({n: {"saved_offsets": at} for n, at in info.items()})
    return safetensors.torch.save(tensors, {"DCP_SHARDING_INFO": text, "DCP_VERSION": "1.0"})


def shards_seed(name, first, second):
    (SHARDS / name).write_bytes(struct.pack("<I", len(first)) + first + second)


SHARDS = CORPUS.with_name("shards")
SHARDS.mkdir(exist_ok=True)
shards_seed("rows", shard({"w": X[:1]}, {"w": [0, 0]}), shard({"w": X[1:]}, {"w": [1, 0]}))
shards_seed(
    "columns",
    shard({"w": X[:, :1].contiguous(), "s": torch.tensor(1.0)}, {"w": [0, 0], "s": []}),
    shard({"w": X[:, 1:].contiguous()}, {"w": [0, 1], "elsewhere": [7]}),
)
DEEP = '{"w": {"saved_offsets": ' + "[" * 20_000 + "]" * 20_000 + "}}"
shards_seed("deep", shard({"w": X[:1]}, DEEP), shard({"w": X[1:]}, {"w": [1, 0]}))
# What once stood for the list of the folder's shards.
LIST = b"penstock shards\0shard-00002-model-00001-of-00001.safetensors\0"
shards_seed("list", LIST, shard({"w": X}, {"w": [0, 0]}))
