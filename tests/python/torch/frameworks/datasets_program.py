"""Hugging Face's datasets in our loader, alone and beside files."""

import sys
import warnings

import torch
import torch.utils.data as td
from datasets import Dataset

import penstock.torch as pt


def load(folder):
    table = Dataset.from_dict({"label": list(range(16)), "text": [f"t{i}" for i in range(16)]}).with_format("torch")
    options = {"batch_size": 4, "shuffle": True}
    both = []
    for kind in (td.DataLoader, pt.DataLoader):
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pt.NotNativeWarning)
            loader = kind(table, **options)
        both.append([(batch["label"].tolist(), batch["text"]) for batch in loader])
    assert both[0] == both[1]
    state = loader.state_dict()
    assert state is not None

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loader = pt.DataLoader(td.StackDataset(file=pt.Files(f"{folder}/*.pt"), row=table), 4)
    assert any("datasets" in str(w.message) for w in said if w.category is pt.NotNativeWarning)
    for batch in loader:
        assert batch["file"]["y"].tolist() == batch["row"]["label"].tolist()
    # A column is an array, which stands beside files natively.
    loader = pt.DataLoader(pt.Zip(file=pt.Files(f"{folder}/*.pt"), label=table["label"][:]), 4)
    assert loader.native is not None
    assert [batch["label"].tolist() for batch in loader] == [batch["file"]["y"].tolist() for batch in loader]


if __name__ == "__main__":
    {"load": load}[sys.argv[1]](sys.argv[2])
