"""Writes pt_corpus.json: what torch finds in the `.pt` files of ../shared/corpus.

    python tests/format/data/make_pt_corpus.py CORPUS > tests/format/data/pt_corpus.json

For each file its tensors by name: dtype, shape, stride, requires_grad, and the CRC-32 of the elements in C order.
"""

import json
import pathlib
import sys
import zlib

import torch


def tensors_of(value, name=""):
    if isinstance(value, torch.Tensor):
        yield name or "tensor", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_of(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from tensors_of(item, f"{name}.{i}" if name else str(i))


def describe(tensor):
    elements = tensor.detach().contiguous().reshape(-1)
    raw = elements.view(torch.uint8).numpy().tobytes() if elements.numel() else b""
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "requires_grad": tensor.requires_grad,
        "crc32": zlib.crc32(raw),
    }


def main():
    corpus = pathlib.Path(sys.argv[1])
    files = sorted(path for pattern in ("*.pt", "*.pth") for path in corpus.rglob(pattern))
    out = {}
    for path in files:
        if path.name == "broken.pt":
            continue
        content = torch.load(path, map_location="cpu", weights_only=False)  # files of public projects, looked at before
        out[str(path.relative_to(corpus))] = {name: describe(tensor) for name, tensor in tensors_of(content)}
    print("{")
    print(",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in out.items()))
    print("}")


main()
