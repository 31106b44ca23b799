"""Functions that `Dataset.map` gives to a loader's workers."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT, same
from waiting import patient

import penstock.torch as pt


@pytest.mark.parametrize("workers", [0, 3])
def test_map(folder, workers):
    def double(sample):
        return {"x2": sample["x"] * 2, "y": sample["y"]}

    threads = set()

    def batch_sum(batch):
        threads.add(threading.current_thread().name)
        return batch["y"].sum().item()

    plain = list(pt.DataLoader(pt.Files(folder), 8))
    mapped = list(pt.DataLoader(pt.Files(folder).map(double), 8, num_workers=workers))
    assert len(mapped) == len(plain)
    for a, b in zip(mapped, plain, strict=True):
        same(a, {"x2": b["x"] * 2, "y": b["y"]})
    sums = list(pt.DataLoader(pt.Files(folder).map(batch_sum, batched=True), 8, num_workers=workers))
    assert sums == [b["y"].sum().item() for b in plain]
    assert ("MainThread" in threads) == (workers == 0)
    same(pt.Files(folder).map(double)[3], double(pt.Files(folder)[3]))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_mapped_function_names_the_sample(folder, workers):
    def fails(sample):
        if sample["y"] == 9:
            raise ValueError("odd value")
        return sample["y"]

    iterator = iter(pt.DataLoader(pt.Files(folder).map(fails), 4, num_workers=workers))
    got = [next(iterator).tolist(), next(iterator).tolist()]
    with pytest.raises(ValueError, match=r"odd value \(at sample 9: .*009\.pt\)"):
        next(iterator)
    got += [b.tolist() for b in iterator]
    assert [y for b in got for y in b] == [y for y in range(COUNT) if y not in range(8, 12)]


class TwoPartsError(Exception):
    def __init__(self, code, detail):
        super().__init__(code, detail)
        self.code = code


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_more_than_a_text_are_themselves(folder, workers):
    def fails(sample):
        raise TwoPartsError(7, "x")

    with pytest.raises(TwoPartsError) as caught:
        list(pt.DataLoader(pt.Files(folder).map(fails), num_workers=workers))
    assert caught.value.code == 7
    assert "000.pt" in "".join(getattr(caught.value, "__notes__", ["000.pt"]))


def test_a_timeout_is_for_mapped_functions_too(folder):
    go = threading.Event()

    def slow(sample):
        if sample["y"] == 2:
            go.wait(60)
        return sample["y"]

    iterator = iter(pt.DataLoader(pt.Files(folder).map(slow), timeout=0.2, num_workers=1))
    come = patient(iterator)
    assert [next(come).item() for _ in range(2)] == [0, 1]
    for _ in range(2):
        with pytest.raises(pt.LoaderTimeoutError, match=r"timed out after 0\.2 seconds"):
            next(iterator)
    go.set()
    assert next(come).item() == 2


@pytest.fixture
def numbers(tmp_path):
    np.save(tmp_path / "numbers.npy", np.arange(37))
    return pt.Rows(tmp_path / "numbers.npy")


def hundredfold(value):
    return value * 100


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("processes", [False, True])
def test_parts_of_a_mapped_dataset_are_mapped(numbers, batched, processes, workers):
    mapped = numbers.map(hundredfold, batched=batched, processes=processes)
    part = td.Subset(td.Subset(mapped, range(3, 30)), [0, 5, 7])
    loader = pt.DataLoader(part, batch_size=2, num_workers=workers)
    assert [batch.tolist() for batch in loader] == [[300, 800], [1000]]
    assert loader.native is not None
    again = pt.DataLoader(loader.dataset, batch_size=loader.batch_size, collate_fn=loader.collate_fn)
    assert [batch.tolist() for batch in again] == [[300, 800], [1000]]
    assert loader.state_dict()["batch"] == 0
    assert pt.DataLoader(part, on_error="skip").set_aside == []


def test_a_function_of_batches_has_no_samples(numbers):
    mapped = numbers.map(hundredfold, batched=True)
    for read in (
        lambda: mapped[3],
        lambda: next(iter(td.DataLoader(td.ConcatDataset([mapped, mapped])))),
        lambda: next(iter(pt.DataLoader(td.ConcatDataset([mapped, numbers.map(id, batched=True)])))),
    ):
        with pytest.raises(TypeError, match="whole batches"):
            read()


@pytest.mark.parametrize("persistent", [False, True])
def test_functions_of_batches_in_processes_that_stay(numbers, persistent):
    mapped = numbers.map(hundredfold, batched=True, processes=True)
    loader = pt.DataLoader(mapped, batch_size=30, num_workers=1, persistent_workers=persistent)
    for _ in range(2):
        assert torch.cat(list(loader)).tolist() == [100 * i for i in range(37)]
    assert loader.collate_fn is td.default_collate


def test_calls_are_under_way_while_the_loop_computes(numbers):
    made = []
    mapped = numbers.map(lambda batch: made.append(len(batch)) or batch, batched=True)
    batches = iter(pt.DataLoader(mapped, batch_size=2, num_workers=2, prefetch_factor=4))
    for _ in range(4):
        next(batches)
        time.sleep(0.05)
    deadline = time.monotonic() + 20
    while len(made) < 4 + 6 and time.monotonic() < deadline:  # of 8 that torch would have under way
        time.sleep(0.01)
    assert len(made) >= 4 + 6
    assert len(list(batches)) == 15


@pytest.mark.parametrize("workers", [0, 2])
def test_figures_name_slow_functions(numbers, workers):
    mapped = numbers.map(lambda value: time.sleep(0.01) or value)
    loader = pt.DataLoader(mapped, batch_size=4, num_workers=workers)
    for _ in loader:
        pass
    figures = loader.stats()
    assert figures["bottleneck"] == "functions"
    assert figures["function_seconds"] > 0
    assert str(figures).endswith(figures["limit"])
    assert "functions of Python's" in figures["limit"]
    plain = pt.DataLoader(numbers, batch_size=4, num_workers=workers)
    list(plain)
    assert plain.stats()["bottleneck"] != "functions"


@pytest.mark.parametrize("workers", [0, 2])
def test_mapped_loaders_draw_as_far_ahead_as_torch(numbers, workers):
    def drawn(loader_of, dataset):
        seen = []
        sampler = td.BatchSampler(SeenBy(seen, td.SequentialSampler(dataset)), 2, drop_last=False)
        options = {"num_workers": workers, "prefetch_factor": 2 if workers else None}
        batches = iter(loader_of(dataset, batch_sampler=sampler, **options))
        return [(next(batches), len(seen))[1] for _ in range(4)]

    mapped = numbers.map(hundredfold)
    assert drawn(pt.DataLoader, mapped) == drawn(td.DataLoader, mapped)


class SeenBy(td.Sampler):
    def __init__(self, seen, sampler):
        self.seen, self.sampler = seen, sampler

    def __iter__(self):
        for index in self.sampler:
            self.seen.append(index)
            yield index

    def __len__(self):
        return len(self.sampler)


def test_text_beside_numbers(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5))
    np.save(tmp_path / "names.npy", np.array([f"img{i}" for i in range(5)]))
    (numbers, names), *_ = pt.DataLoader(pt.Rows(tmp_path / "x.npy", tmp_path / "names.npy"), batch_size=3)
    assert numbers.tolist() == [0, 1, 2]
    assert names == ("img0", "img1", "img2")
    assert next(iter(pt.DataLoader(pt.Rows(tmp_path / "names.npy"), batch_size=2))) == ["img0", "img1"]
