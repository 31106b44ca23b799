"""What penstock.torch gives of files that change while they are open (changing_roads.py)."""

import os
import pathlib
import sys

import numpy as np
import pytest
import torch

import penstock
import penstock.numpy.safetensors as pns
import penstock.torch as pt
import penstock.torch.safetensors as pts

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from changing_roads import CHANGES, ROWS, Road, batches, check, numbers, samples


def write(path, dtype, seed, rows):
    array = torch.from_numpy(numbers(dtype, seed, rows))
    if path.suffix == ".npy":
        np.save(path, array.numpy())
    elif path.suffix == ".pt":
        torch.save({"x": array, "y": array[:, :3], "z": torch.ones(9)}, path)
    else:
        penstock.save({"x": array, "y": array[:7].clone()}, path)


def safe(read, backend, module=pts, framework="pt"):
    def opened(path):
        file = module.safe_open(path, framework, backend=backend)
        return [lambda: read(file)] * 2

    return opened


def loader(dataset, **options):
    return pt.DataLoader(dataset, batch_size=50, **options)


ROADS = [
    Road("Rows", ".npy", lambda p: samples(pt.Rows(p))),
    Road("Rows, batches", ".npy", lambda p: batches(loader(pt.Rows(p)), ROWS // 50)),
    Road("Rows, mapped by a function", ".npy", lambda p: batches(loader(pt.Rows(p).map(torch.neg)), ROWS // 50)),
    Road("Files", ".pt", lambda p: samples(pt.Files([p]))),
    Road("Files, batches", ".pt", lambda p: batches(pt.DataLoader(pt.Files([p] * 4), batch_size=2), 2)),
    Road("load", ".pt", lambda p: [lambda: pt.load(p)]),
    Road("load, mapped", ".pt", lambda p: [lambda: pt.load(p, mmap=True)]),
    Road("load_into", ".pt", lambda p: [lambda: filled(p)]),
] + [
    Road(f"{what}, {backend}, {framework}", ".safetensors", safe(read, backend, module, framework))
    for what, read in {
        "get_tensor": lambda f: f.get_tensor("x"),
        "get_tensors": lambda f: f.get_tensors(),
        "get_slice": lambda f: f.get_slice("x")[3:900],
        "get_slice, whole": lambda f: f.get_slice("x")[:],
        "get_slice, picked": lambda f: f.get_slice("x")[torch.tensor([1, 900, 3])],
    }.items()
    for backend in ("mmap", "pread")
    for module, framework in ((pts, "pt"), (pns, "np"))
    if "picked" not in what or framework == "pt"
]


def filled(path):
    target = {"x": torch.zeros(ROWS, 100), "y": torch.zeros(ROWS, 3), "z": torch.zeros(9)}
    try:
        pt.load_into(target, path)
    except RuntimeError as error:  # as torch names shapes that differ
        if isinstance(error, penstock.Error) or "size mismatch" not in str(error):
            raise
        return str(error).encode()
    return target


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("road", ROADS, ids=str)
def test_an_error_or_the_bytes_of_a_file(road, change, tmp_path):
    check(road, change, tmp_path, write)


def test_a_loader_s_later_epochs_see_the_file_as_it_is_then(tmp_path):
    path = tmp_path / "a.npy"
    write(path, "f4", 1, ROWS)
    os.utime(path, (10**9, 10**9))
    epochs = loader(pt.Rows(path), shuffle=True)
    for _ in epochs:
        pass
    write(path, "i4", 1, ROWS)
    with pytest.raises(penstock.ChangedError, match=r"a\.npy"):
        next(iter(epochs))
    assert next(iter(loader(pt.Rows(path)))).dtype == torch.int32


# Damage that load refuses, in a tensor that is not all of its record.


def damaged(path, value):
    """A byte in the middle of the first storage, between the elements of `value` or in one."""
    torch.save(value, path)
    whole = bytearray(path.read_bytes())
    archive = penstock.open(path)
    first = archive[archive.keys()[0]]
    storage = penstock._core._storage_parts(archive, 0)
    whole[(storage[3] or first.offset) + storage[0] // 2 & ~3] ^= 0x10
    path.write_bytes(whole)
    with pytest.raises(penstock.ChecksumError):
        penstock.load(path)
    return path


VIEWS = {
    "columns": lambda n: torch.rand(n, 50)[:, :3],
    "a part": lambda n: torch.rand(n * 50)[: n * 40],
    "rows of the middle": lambda n: torch.rand(n, 50)[n // 4 : n - 7],
    "transposed": lambda n: torch.rand(n, 50)[:, :30].t(),
    "every other": lambda n: torch.rand(n * 50)[::2],
    "conjugate": lambda n: torch.view_as_complex(torch.rand(n, 50, 2)).conj(),
    "negative": lambda n: torch.view_as_complex(torch.rand(n, 50, 2)).conj().imag,
    "two parts": lambda n: (lambda t: {"a": t[: n // 3], "b": t[: n // 2]})(torch.rand(n, 50)),
    "a view and a part": lambda n: (lambda t: {"a": t[:, 1:3], "b": t[n // 2 :]})(torch.rand(n, 50)),
    "all of it": lambda n: torch.rand(n, 50),
}


@pytest.mark.parametrize("rows", [30, 600, 6000], ids=["small", "medium", "large"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_whole_tensor_comes_with_its_checksum(view, rows, tmp_path):
    path = damaged(tmp_path / "a.pt", VIEWS[view](rows))
    archive = penstock.open(path)
    roads = {
        "load": lambda: archive.load(),
        "entries": lambda: [archive[name].load() for name in archive],
        "ellipsis": lambda: [archive[name][...].load() for name in archive],
        "files": lambda: penstock.files([path])[0],
        "loader": lambda: next(iter(penstock.DataLoader(penstock.files([path] * 3), batch_size=3))),
        "pt.Files": lambda: pt.Files([path])[0],
        "pt.DataLoader": lambda: next(iter(pt.DataLoader(pt.Files([path] * 3), batch_size=3))),
        "pt.load": lambda: pt.load(path),
        "pack": lambda: penstock.pack(penstock.files([path]), tmp_path / "packed"),
    }
    for name, read in roads.items():
        try:
            read()
        except penstock.ChecksumError:
            continue
        except penstock.UnsupportedError:
            assert name == "pack"  # complex numbers
            continue
        pytest.fail(f"{name} took the damage")
    assert not (tmp_path / "packed").exists()
    with penstock.open(path, verify=False) as unchecked:
        for name in unchecked:
            unchecked[name].load()


def test_load_into_checks_the_records_of_views(tmp_path):
    path = damaged(tmp_path / "a.pt", {"x": torch.rand(900, 50)[100:700]})
    with pytest.raises(penstock.ChecksumError):
        pt.load_into({"x": torch.zeros(600, 50)}, path)


def test_a_slice_of_an_entry_reads_its_bytes_alone(tmp_path):
    path = damaged(tmp_path / "a.pt", torch.rand(9000, 50))
    report = {}
    archive = penstock.open(path)
    archive[archive.keys()[0]][:10].load(report=report)
    assert report["read_bytes"] < 100_000


def test_members_of_an_npz_behind_a_long_header(tmp_path):
    path = tmp_path / "a.npz"
    fields = [(f"field_with_a_long_name_{i}", "f4") for i in range(900)]
    np.savez(path, x=np.ones(200, fields))
    whole = bytearray(path.read_bytes())
    whole[-2000] ^= 1
    path.write_bytes(whole)
    with pytest.raises(penstock.ChecksumError):
        penstock.open(path)["x"].load()
