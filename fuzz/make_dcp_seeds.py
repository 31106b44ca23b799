"""Writes the seeds of fuzz_dcp, fuzz_shards and fuzz_rank_files: small checkpoints by torch, as one file each.

python fuzz/make_dcp_seeds.py        # into fuzz/corpus; needs torch and safetensors
"""

import io
import json
import pathlib
import pickle
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


def rank_seed(name, state, tensors, version="2.0"):
    """`tensors`: by the JSON of a place its sharding, of rank 0 alone."""
    file = io.BytesIO()
    torch.save(state, file)
    paths = {
        place: [{"sharding_metadata": {"type": kind, "data": data}, "ranks": (0,)}]
        for place, (kind, data) in tensors.items()
    }
    item = {"nested_path_to_metadata": paths, "rank_to_layout_info": {0: None}}
    described = {"metadata": {"m": item}, "world_size": 1, "version": version}
    if version == "1.0":
        flat = {'["m",' + place[1:]: groups for place, groups in paths.items()}
        described = {"metadata": flat, "rank_to_layout_info_mappings": {0: {"m": None}}, "world_size": 1}
    metadata = pickle.dumps(described, protocol=4)
    (RANKS / name).write_bytes(struct.pack("<I", len(metadata)) + metadata + file.getvalue())


def mesh_of(shape, placements):
    mesh = {"device_type": "cpu", "mesh_shape": (1,) * len(placements), "mesh_data": (0,), "mesh_dim_names": None}
    data = {"global_shape": shape, "dtype": "torch.float32", "stride": [1] * len(shape), "mesh_spec": mesh}
    return "DTensorShardingMetadata", data | {"placements": placements}


def boxes_of(shape, at, inside, sizes):
    said = {"global_shape": shape, "global_offsets": at, "local_offsets": inside, "local_sizes": sizes}
    return "default_tensor_v1", said | {"dtype": "torch.float32"}


RANKS = CORPUS.with_name("rank_files")
RANKS.mkdir(exist_ok=True)
STRIDED = [{"type": "StridedShard", "dim": 0, "split_factor": 2}, {"type": "Replicate"}, {"type": "Shard", "dim": 1}]
rank_seed("mesh", {"l": [{"w": X}], "n": 3, "s": torch.tensor(1.0)}, {'["l",0,"w"]': mesh_of([3, 4], STRIDED)})
ROWS = boxes_of([3, 4], [[0, 0], [1, 0], [2, 0]], [[2, 0], [1, 0], [0, 0]], [[1, 4]] * 3)
rank_seed("boxes", {"w": X, "t": X.T, "o": {1: torch.ones(2)}}, {'["w"]': ROWS, '["o",1]': mesh_of([2], [])})
rank_seed("flat", {"w": X}, {'["w"]': ROWS}, version="1.0")
