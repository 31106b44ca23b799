"""Datasets as classes: subclasses, pickles, keys, zips, paths, class folders; and batches read for other loaders."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT, same

import penstock
import penstock.torch as pt


class Labelled(pt.Files):
    """A class with an attribute and nothing of its own that makes samples."""

    def __init__(self, folder, label):
        super().__init__(folder, keys=["x", "y"])
        self.label = label


class Halved(pt.Rows):
    def __getitem__(self, index):
        return super().__getitem__(index) / 2


class Together(pt.Rows):
    def __getitems__(self, indices):
        return [torch.tensor(len(indices)) for _ in indices]


def test_they_are_classes(folder, tmp_path):
    files = pt.Files(folder)
    rows = pt.Rows(np.arange(6.0).reshape(3, 2))
    penstock.pack(rows.native, tmp_path / "packed")
    packed = pt.Packed(tmp_path / "packed")
    for dataset, kind in ((files, pt.Files), (rows, pt.Rows), (packed, pt.Packed), (pt.Zip(rows, rows), pt.Zip)):
        assert isinstance(dataset, kind)
        assert isinstance(dataset, pt.Dataset)
        assert isinstance(dataset, td.Dataset)
        assert repr(dataset).startswith(f"penstock.torch.{kind.__name__}(")
        again = pickle.loads(pickle.dumps(dataset))
        assert type(again) is kind
        same(again[1], dataset[1])
    mine = pickle.loads(pickle.dumps(Labelled(folder, "mine")))
    assert mine.label == "mine"
    assert mine.paths == files.paths
    assert pt.DataLoader(mine).native is not None
    same(mine[3], {"x": files[3]["x"], "y": 3})


@pytest.mark.parametrize("kind", [Halved, Together])
def test_what_a_subclass_defines_counts_everywhere(kind):
    dataset = kind(torch.arange(8.0))
    expected = [[0.0, 0.5, 1.0, 1.5], [2.0, 2.5, 3.0, 3.5]] if kind is Halved else [[4] * 4] * 2
    with pytest.warns(pt.NotNativeWarning, match=kind.__name__):
        ours = pt.DataLoader(dataset, 4)
    for loader in (ours, td.DataLoader(dataset, 4), td.DataLoader(td.Subset(dataset, range(8)), 4)):
        assert [batch.tolist() for batch in loader] == expected
    for function in (penstock.zip, penstock.rows([1.0]).concat, lambda d: penstock.subset(d, [0]), pt.Zip):
        with pytest.raises(TypeError, match=r"of its own|Python"):
            function(dataset)


def test_rows_by_key(tmp_path):
    x, y = np.arange(12.0).reshape(4, 3), np.arange(4)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    same(pt.Rows(tmp_path / "both.npz", key="x")[2], torch.from_numpy(x[2]))
    pair = pt.Rows(tmp_path / "both.npz", tmp_path / "both.npz", y, key=["x", "y", None])
    same(pair[3], (torch.from_numpy(x[3]), torch.tensor(3), torch.tensor(3)))
    with pytest.raises(ValueError, match="2 keys for 1 source"):
        pt.Rows(tmp_path / "both.npz", key=["x", "y"])
    with pytest.raises(KeyError, match="nope"):
        pt.Rows(tmp_path / "both.npz", key="nope")


@pytest.mark.parametrize("workers", [0, 2])
def test_zip_makes_tuples_and_dicts(folder, workers):
    files, labels = pt.Files(folder, keys="x"), torch.arange(COUNT)
    for dataset, theirs in (
        (pt.Zip(files, labels), td.StackDataset(files, labels)),
        (pt.Zip(image=files, label=labels), td.StackDataset(image=files, label=labels)),
        (
            pt.Zip(td.Subset(files, range(COUNT)), penstock.rows(labels)),
            td.StackDataset(files, labels),
        ),
    ):
        loader = pt.DataLoader(dataset, 8, num_workers=workers)
        assert "collated natively" in loader.explain()
        same(list(loader), list(td.DataLoader(theirs, 8)))
        same(dataset[5], theirs[5])
        same(pickle.loads(pickle.dumps(dataset))[5], theirs[5])
    mapped = pt.Zip(x=files, y=labels).map(lambda sample: sample["x"]["x"] + sample["y"])
    same(mapped[3], files[3]["x"] + 3)
    with pytest.raises(TypeError, match="part y"):
        pt.Zip(x=files, y=files.map(abs))
    with pytest.raises(penstock.ShapeMismatchError):
        pt.Zip(files, labels[1:])


def test_penstocks_functions_take_them(folder, tmp_path):
    files, rows = pt.Files(folder, keys="x"), pt.Rows(torch.arange(COUNT))
    native = penstock.zip(files, rows)
    assert native[3][1].item() == 3
    named = penstock.zip(image=files, label=rows)
    assert list(named[3]) == ["image", "label"]
    assert pickle.loads(pickle.dumps(named))[4]["label"].item() == 4
    assert len(files.native.concat(files)) == 2 * COUNT
    assert penstock.subset(files, [5]).paths == [files.paths[5]]
    assert penstock.pack(rows, tmp_path / "packed")["samples"] == COUNT
    with pytest.raises(TypeError, match="function of Python"):
        penstock.zip(files.map(abs), rows)
    with pytest.raises(penstock.InvalidArgumentError, match="names"):
        penstock.zip(files, label=rows)
    with pytest.raises(TypeError, match="expected a penstock"):
        penstock.zip(pt.Files)


def test_paths_are_those_of_files(folder):
    expected = [os.path.join(folder, f"{i:03d}.pt") for i in range(COUNT)]
    files = penstock.files(folder)
    assert files.paths == pt.Files(folder).paths == expected
    assert penstock.subset(files, [2, 1]).concat(files).paths[:3] == [expected[2], expected[1], expected[0]]
    assert not hasattr(penstock.rows(np.arange(3)), "paths")
    assert not hasattr(penstock.zip(files, files), "paths")


@pytest.fixture
def classes(tmp_path):
    for name in ("b/cat/1", "b/cat/deep/2", "b/ant/1", "b/dog/3"):
        path = tmp_path / f"{name}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(torch.tensor(len(name)), path)
    return tmp_path


def test_class_folders(classes, monkeypatch):
    whole = pt.Files(classes / "b/**/*.pt")
    for files in (whole, pt.Files(whole.paths), pickle.loads(pickle.dumps(whole))):
        assert files.classes == ["ant", "cat", "dog"]
        assert files.class_to_idx == {"ant": 0, "cat": 1, "dog": 2}
        assert files.targets == [0, 1, 1, 2]
    monkeypatch.chdir(classes / "b")
    assert pt.Files("*/*.pt").classes == ["ant", "cat", "dog"]
    assert pt.Files("cat/**/*.pt", keys=None).paths[0] == "cat/1.pt"
    with pytest.raises(ValueError, match="no class's folder"):
        _ = pt.Files("cat/*.pt").classes
    with pytest.raises(ValueError, match=r"1\.pt: the file lies in no class's folder"):
        _ = pt.Files(classes / "b/cat").targets
    batch = next(iter(pt.DataLoader(pt.Zip(x=whole, y=torch.tensor(whole.targets)), 4)))
    assert batch["y"].tolist() == [0, 1, 1, 2]


# --- batches for other loaders ---


def test_other_loaders_read_batches_of_the_same_samples(folder, tmp_path):
    rows = torch.arange(COUNT * 3.0).reshape(COUNT, 3)
    penstock.pack(pt.Rows(rows), tmp_path / "packed")
    for i in range(7):
        torch.save(torch.arange(i % 2 + 1), tmp_path / f"{i}.pt")
        torch.save({"s": torch.eye(2).to_sparse(), "n": i}, tmp_path / f"{i}.sparse.pt")
    chosen = [3, 0, 3, -1, 6]
    for dataset in (
        pt.Files(folder),
        pt.Files(folder, keys=["x", "pair"]),
        pt.Files(tmp_path / "?.pt"),
        pt.Files(tmp_path / "*.sparse.pt"),
        pt.Rows(rows),
        pt.Rows(rows, np.array([f"n{i}" for i in range(COUNT)])),
        pt.Packed(tmp_path / "packed"),
        pt.Zip(a=pt.Rows(rows), b=pt.Files(folder)),
        pt.Files(folder).map(lambda sample: (sample["x"], sample["name"])),
        pt.Dataset(penstock.rows(rows)),
    ):
        for _ in range(2):
            several = dataset.__getitems__(chosen)
            assert [str(sample) for sample in several] == [str(dataset[index]) for index in chosen]
            assert [type(sample) for sample in several] == [type(dataset[index]) for index in chosen]
        assert dataset.__getitems__([]) == []
        with pytest.raises(IndexError):
            dataset.__getitems__([0, len(dataset)])
    files = pt.Files(folder)
    same(
        list(td.DataLoader(files, 8, num_workers=2)),
        list(pt.DataLoader(files, 8)),
    )


def test_a_sample_that_is_damaged_is_named_to_other_loaders(tmp_path):
    for i in range(4):
        torch.save(torch.tensor([i]), tmp_path / f"{i}.pt")
    files = pt.Files(tmp_path)
    assert len(files.__getitems__([0, 1, 2, 3])) == 4
    (tmp_path / "2.pt").write_bytes((tmp_path / "2.pt").read_bytes()[:-30])
    with pytest.raises(penstock.Error, match=r"2\.pt"):
        files.__getitems__([0, 1, 2, 3])
    assert [sample.item() for sample in files.__getitems__([3, 0])] == [3, 0]


def test_functions_of_batches_in_other_loaders(folder):
    def function(batch):
        return {"x": batch["x"] * 2, "names": batch["name"], "pair": (batch["y"], batch["z"])}

    mapped = pt.Files(folder).map(function, batched=True)
    expected = list(pt.DataLoader(mapped, 8))
    for ours, batch in zip(td.DataLoader(mapped, 8), expected, strict=True):
        same(ours["x"], batch["x"])
        same(ours["names"], batch["names"])
        same(tuple(ours["pair"]), batch["pair"])
    total = pt.Files(folder).map(lambda batch: batch["x"].sum(), batched=True)
    with pytest.raises(TypeError, match=r"tensor of shape \(\) for a batch of 8 samples"):
        next(iter(td.DataLoader(total, 8)))


def test_what_a_loader_promised_is_said_where_others_take_it_apart(folder):
    for options, text in (({"on_error": "skip"}, "on_error='skip'"), ({"device": "cpu"}, "device='cpu'")):
        files = pt.Files(folder)
        loader = pt.DataLoader(files.map(lambda sample: sample["x"]), 8, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            list(loader)
        other = td.DataLoader(loader.dataset, batch_sampler=loader.batch_sampler, collate_fn=loader.collate_fn)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            same(list(other), list(loader))
            list(other)
        assert [text in str(warning.message) for warning in said if warning.category is pt.NotNativeWarning] == [True]


def test_several_threads_and_forks_read_batches(folder):
    import multiprocessing
    from concurrent.futures import ThreadPoolExecutor

    files = pt.Files(folder, keys="y")
    batches = [list(range(start, start + 5)) for start in range(45)]
    with ThreadPoolExecutor(4) as pool:
        for batch, got in zip(batches, pool.map(files.__getitems__, batches), strict=True):
            assert [sample["y"] for sample in got] == batch
    fork = multiprocessing.get_context("fork")
    with fork.Pool(2) as pool:
        assert [[s["y"] for s in got] for got in pool.map(files.__getitems__, batches[:6])] == batches[:6]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_a_dtype_gives_what_module_to_gives(tmp_path, dtype):
    arrays = [torch.tensor([0.0, 1.5, -2.75, 250.99]), torch.tensor([3, 257, -7, 40]), torch.tensor([True, False] * 2)]
    arrays.append(torch.tensor([1.0, 2.0 + 1j, 3.0, 4.0]))
    for i, array in enumerate(arrays):
        torch.save(array, tmp_path / f"{i}.pt")
    module = torch.nn.Module()
    for i, array in enumerate(arrays):
        module.register_buffer(f"b{i}", array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = list(module.to(dtype).buffers())
    for dataset, more in ((pt.Files(tmp_path, dtype=dtype), {}), (pt.Files(tmp_path), {"dtype": dtype})):
        for workers in (0, 2):
            for batch, buffer in zip(pt.DataLoader(dataset, 1, num_workers=workers, **more), expected, strict=True):
                same(batch[0].clone(), buffer)
    for i, array in enumerate(arrays):
        same(pt.Rows(array.reshape(2, 2), dtype=dtype)[1].clone(), expected[i][2:].clone())
    for path in sorted(tmp_path.iterdir())[3:]:
        path.unlink()
    (batch,) = pt.DataLoader(pt.Files(tmp_path, dtype="promote"), 3)
    assert batch.dtype == torch.float32
    with pytest.raises(penstock.InvalidArgumentError, match="sample 1"):
        list(pt.DataLoader(pt.Rows(torch.tensor([1, 1e5]), dtype=torch.float16, strict=True), 2))
    with pytest.raises(penstock.InvalidArgumentError, match="floating-point and complex"):
        pt.Rows(torch.tensor([1, 300]), dtype=torch.uint8)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor], ids=["list", "numpy", "torch"])
def test_a_mask_chooses_rows_as_of_a_tensor_dataset(kind):
    values = torch.arange(8).reshape(4, 2)
    rows, peer = pt.Rows(values), td.TensorDataset(values)
    for mask in ([True, False, True, True], [False] * 4):
        same(rows[kind(mask)].clone(), peer[kind(mask)][0].clone())
    with pytest.raises(IndexError):
        rows[kind([True, False])]


NESTED = {
    "x": torch.ones(2), "a.b": torch.arange(3), "a": {"b": torch.zeros(1), "c": [torch.ones(1), {"d": 7}]},
    0: torch.full((2,), 5.0), "0": torch.full((2,), 6.0), 3: "three",
}  # fmt: skip
SOUGHT = ["x", "a.b", "a.c.0", "a.c.1.d", 0, "0", 3, "3"]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("key", [*SOUGHT, SOUGHT], ids=str)
def test_keys_are_those_of_load(tmp_path, key, native):
    content = NESTED if native else {**NESTED, "set": {1}}  # which has no native form
    for i in range(3):
        torch.save(content, tmp_path / f"{i}.pt")
    files = pt.Files(tmp_path, key)
    wanted = key if isinstance(key, list) else [key]
    expected = {one: pt.load(tmp_path / "0.pt", key=one) for one in wanted}
    same(files[0], expected)
    assert list(files[0]) == wanted
    same(pickle.loads(pickle.dumps(files))[2], expected)
    for workers in (0, 2):
        batch = next(iter(pt.DataLoader(files, 3, num_workers=workers)))
        assert list(batch) == wanted
    with pytest.raises(KeyError, match=r"a\.x"):
        pt.Files(tmp_path, ["a.x"])[0]


def test_keys_that_are_integers_are_cast_by_name(tmp_path):
    torch.save([torch.arange(3), torch.ones(2)], tmp_path / "0.pt")
    sample = pt.Files(tmp_path, [0, 1], dtype=torch.float64)[0]
    assert [sample[i].dtype for i in (0, 1)] == [torch.float64] * 2


UNPICKLED = [
    name
    for name in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bfloat16", "float32")
    if hasattr(torch, name)
]


@pytest.mark.parametrize("name", UNPICKLED)
def test_rows_of_every_type_pickle(name):
    dtype = getattr(torch, name)
    bits = torch.arange(48, dtype=torch.uint8).reshape(6, 8)
    for tensor in (bits.view(dtype), bits.view(dtype)[::2]):
        back = pickle.loads(pickle.dumps(pt.Rows(tensor)))
        assert back[1].dtype == dtype
        assert torch.equal(back[1].view(torch.uint8), tensor[1].contiguous().view(torch.uint8))
        for dataset in (penstock.rows(tensor), penstock.rows([tensor, tensor])):
            back = pickle.loads(pickle.dumps(dataset))
            assert back[1].dtype == name
            assert back[1].view_bytes().tolist() == dataset[1].view_bytes().tolist()


def test_rows_go_to_spawned_workers():
    tensor = torch.arange(12, dtype=torch.int16).view(torch.uint16).reshape(6, 2)
    loader = td.DataLoader(pt.Rows(tensor), batch_size=3, num_workers=1, multiprocessing_context="spawn")
    assert torch.cat([batch.view(torch.int16) for batch in loader]).equal(tensor.view(torch.int16))


@pytest.mark.parametrize("make", [penstock.rows, pt.Rows, lambda latents: pt.Zip(torch.arange(3), latents), pt.Choice])
def test_rows_to_which_gradients_would_not_come_are_refused(make):
    latents = torch.zeros(3, 2, requires_grad=True)
    with pytest.raises(ValueError, match=r"give its detach\(\)"):
        make(latents)
    assert len(make(latents.detach())) == 3
    beside = td.StackDataset(pt.Rows(torch.arange(3)), latents)  # which is looked up
    next(iter(pt.DataLoader(beside)))[1].sum().backward()
    assert latents.grad.sum() == 2


def test_rows_that_a_file_says_require_gradients_say_so_as_its_samples_do(tmp_path):
    parameter = torch.nn.Parameter(torch.arange(12.0).reshape(4, 3))
    torch.save(parameter, tmp_path / "x.pt")
    rows = penstock.rows(tmp_path / "x.pt")
    whole = penstock.load(tmp_path / "x.pt")
    for dataset in (rows, penstock.rows(whole), penstock.rows(tmp_path / "x.pt", mmap=False)):
        assert dataset[1].requires_grad
        assert dataset.windows(2)[0].requires_grad
        assert all(batch.requires_grad for batch in penstock.DataLoader(dataset, batch_size=2))
        assert all(batch.requires_grad for batch in penstock.DataLoader(dataset, batch_size=2, shuffle=True))
    theirs = list(td.DataLoader(td.TensorDataset(torch.load(tmp_path / "x.pt")), batch_size=3))
    for dataset in (pt.Rows(tmp_path / "x.pt"), pt.Zip(pt.Rows(tmp_path / "x.pt"))):
        for ours, (batch,) in zip(pt.DataLoader(dataset, batch_size=3), theirs, strict=True):
            ours = ours if isinstance(ours, torch.Tensor) else ours[0]
            assert ours.equal(batch)
            assert ours.requires_grad == batch.requires_grad
