"""Datasets of penstock.torch with functions in Python, and what their batches have to be alike in."""

import numpy as np
import torch
import torch.utils.data as torch_data
import torch_worker_functions as functions

import penstock.torch as pt

PROCESSES = {"num_workers": 2, "workers": "processes"}


def rows(count=16):
    return pt.Rows(np.arange(count * 2, dtype="float32").reshape(count, 2))


def same(a, b):
    if isinstance(a, torch.Tensor):
        if type(a) is not type(b) or a.dtype != b.dtype or a.layout != b.layout or a.requires_grad != b.requires_grad:
            return False
        return torch.equal(a.to_dense(), b.to_dense())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


DATASETS = {
    "map": (lambda: rows().map(functions.twice), {}),
    "dict": (lambda: rows().map(functions.as_dict), {}),
    "seeded": (lambda: rows().map(functions.noisy, seeded=True), {}),
    "seeded twice": (lambda: rows().map(functions.noisy, seeded=True).map(functions.noisy, seeded=True), {}),
    "batched": (lambda: rows().map(functions.twice).map(functions.twice, batched=True), {}),
    "batched seeded": (lambda: rows().map(functions.batch_noisy, batched=True, seeded=True), {}),
    "collate_fn": (rows, {"collate_fn": functions.collated}),
    "shared": (rows, {"collate_fn": functions.shared}),
    "pad": (lambda: rows().map(functions.twice), {"collate_fn": pt.pad()}),
    "own": (functions.Own, {}),
    "list": (lambda: [(1, "a"), (2, "b"), (3, "c"), (4, "d")], {}),
    "subset": (lambda: torch_data.Subset(rows().map(functions.twice), [3, 1, 2, 9]), {}),
    "concat": (lambda: torch_data.ConcatDataset([rows().map(functions.twice), rows()]), {}),
    "stack": (lambda: torch_data.StackDataset(a=rows(10).map(functions.twice), b=functions.Own()), {}),
    "native": (rows, {}),
    "no batches": (lambda: rows().map(functions.twice), {"batch_size": None}),
    "drop_last": (lambda: rows().map(functions.twice), {"drop_last": True}),
}
WITHOUT_TORCHS_OWN = {"seeded", "seeded twice", "batched seeded", "batched", "shared"}
