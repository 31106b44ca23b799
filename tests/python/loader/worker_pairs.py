"""Datasets with functions in Python, and their batches as content that can be compared."""

import numpy as np
import worker_functions as functions

import penstock

COUNT = 11
PROCESSES = {"num_workers": 2, "workers": "processes"}


def rows(count=COUNT):
    return penstock.rows(np.arange(count * 3, dtype="float32").reshape(count, 3) // 3)


def listed(value):
    """Content that == compares, with the types of arrays."""
    if isinstance(value, penstock.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [listed(item) for item in value]
    return value


def batches(loader):
    return [listed(batch) for batch in loader]


MAPS = {
    "map": lambda data: data.map(functions.twice),
    "identity": lambda data: data.map(functions.same_memory),
    "dict": lambda data: data.map(functions.as_dict),
    "chain": lambda data: data.map(functions.in_place).map(functions.twice),
    "seeded": lambda data: data.map(functions.noisy, seeded=True),
    "seeded chain": lambda data: data.map(functions.noisy, seeded=True).map(functions.noisy, seeded=True),
    "batched": lambda data: data.map(functions.twice, batched=True),
    "batched seeded": lambda data: data.map(functions.noisy, seeded=True).map(
        functions.batch_noisy, batched=True, seeded=True
    ),
    "own": lambda data: penstock.dataset(COUNT, functions.number),
    "own mapped": lambda data: penstock.dataset(COUNT, functions.number).map(functions.twice),
    "zip": lambda data: penstock.zip(data, data.map(functions.twice)),
    "subset": lambda data: penstock.subset(data.map(functions.twice), [3, 1, 4, 1, 5]),
    "native behind": lambda data: data.map(functions.twice).scale(3.0),
}
