"""The arguments and attributes of penstock.torch.DataLoader, and the datasets that it hands to torch."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT, Files, same

import penstock
import penstock.torch as pt


@pytest.mark.parametrize("options", [{"num_workers": 10**6}, {"num_workers": 1, "prefetch_factor": 2**40}])
def test_options_without_bounds_are_refused(folder, options):
    with pytest.raises(penstock.InvalidArgumentError, match="must be"):
        list(pt.DataLoader(pt.Files(str(folder / "*.pt")), **options))


@pytest.mark.parametrize(
    ("budget", "error"), [(-1, ValueError), (2**64, ValueError), ("1G", TypeError), (1.5, TypeError)]
)
def test_a_budget_is_a_number_of_bytes(folder, budget, error):
    with pytest.raises(error, match=f"found memory_budget={budget!r}, expected"):
        pt.DataLoader(pt.Files(folder), memory_budget=budget)


def test_a_budget_may_be_numpys(folder):
    assert len(list(pt.DataLoader(pt.Files(folder), 8, memory_budget=np.int64(1), num_workers=1))) == -(-COUNT // 8)


def test_what_processes_do_not_have_says_why(folder):
    with pytest.raises(ValueError, match="without worker_init_fn"):
        pt.DataLoader(pt.Files(folder), num_workers=1, on_error="skip", worker_init_fn=print)


def test_a_number_of_workers_is_a_number(folder):
    with pytest.raises(TypeError, match=r"'auto'.*must be a number here"):
        pt.DataLoader(pt.Files(folder), num_workers="auto")


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"num_workers": 1, "prefetch_factor": -1},
        {"persistent_workers": True},
        {"sampler": [1], "shuffle": True},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "drop_last": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"batch_size": -2},
        {"no_such_argument": 1},
    ],
    ids=str,
)
def test_arguments_are_refused_as_torch_refuses_them(folder, options):
    errors = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        with pytest.raises((ValueError, TypeError)) as caught:
            loader_class(dataset, **options)
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[0]) == str(errors[1])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of torch's half-made iterator
def test_no_batch_ahead_of_workers_is_refused_as_by_torch(folder):
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        loader = loader_class(dataset, num_workers=1, prefetch_factor=0)
        with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
            iter(loader)


def test_attributes_stay_as_torch_has_them(folder):
    loader = pt.DataLoader(pt.Files(folder), batch_size=4)
    assert isinstance(loader, td.DataLoader)
    for name in ("batch_size", "sampler", "dataset", "drop_last"):
        with pytest.raises(ValueError, match="should not be set after"):
            setattr(loader, name, None)


def test_other_datasets_go_to_torch(folder):
    pairs = namedtuple("Pair", "a b")

    class Named(td.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return pairs(torch.tensor(index), {"k": np.float32(index)})

    theirs, ours = (list(c(Named(), batch_size=2)) for c in (td.DataLoader, pt.DataLoader))
    assert [type(b).__name__ for b in ours] == ["Pair"] * 3
    for a, b in zip(ours, theirs, strict=True):
        same(tuple(a), tuple(b))

    class Stream(td.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    same(list(pt.DataLoader(Stream(), batch_size=2)), list(td.DataLoader(Stream(), batch_size=2)))
    with pytest.raises(ValueError, match="for another one with a length workers='processes'"):
        pt.DataLoader(Named(), on_error="skip")
    assert pt.DataLoader(Named()).state_dict()["batch"] == 0


def worker_id(_):
    info = td.get_worker_info()
    return -1 if info is None else info.id


def seeded(worker):
    np.random.seed(worker)


def test_processes(folder):
    """A worker_init_fn means torch's processes, and map(processes=True) Penstock's."""
    loader = pt.DataLoader(pt.Files(folder), batch_size=30, num_workers=2, worker_init_fn=seeded, shuffle=True)
    assert loader.native is None
    assert sorted(y for b in loader for y in b["y"].tolist()) == list(range(COUNT))
    mapped = pt.Files(folder).map(worker_id, processes=True)
    assert {i for b in pt.DataLoader(mapped, 10, num_workers=2) for i in b.tolist()} <= {0, 1}
    lengths = pt.Files(folder, keys="y").map(len, batched=True, processes=True)
    assert list(pt.DataLoader(lengths, 50, num_workers=1)) == [1, 1]
    assert td.get_worker_info() is None


def test_worker_info_is_that_of_no_process(folder):
    mapped = pt.Files(folder).map(worker_id)
    assert {i for batch in pt.DataLoader(mapped, 10, num_workers=2) for i in batch.tolist()} == {-1}


def test_classes_take_the_type_of_their_samples():
    assert issubclass(pt.DataLoader[int].__origin__, td.DataLoader)
    assert issubclass(pt.Dataset[int].__origin__, td.Dataset)


def test_datasets_with_samples_of_their_own(folder):
    class Doubled(pt.Dataset):
        def __getitem__(self, index):
            return super().__getitem__(index)["y"] * 2

    class Half(pt.Dataset):
        def __len__(self):
            return super().__len__() // 2

    class Whole(pt.Dataset):
        pass

    class Mapped(pt.Mapped):
        def __getitem__(self, index):
            return -super().__getitem__(index)

    native = pt.Files(folder).native
    assert next(iter(pt.DataLoader(Doubled(native), batch_size=3))).tolist() == [0, 2, 4]
    assert next(iter(pt.DataLoader(td.Subset(Doubled(native), [5, 6]), batch_size=2))).tolist() == [10, 12]
    assert len(list(pt.DataLoader(Half(native)))) == COUNT // 2
    assert pt.DataLoader(Whole(native)).native is native
    mapped = Mapped(pt.Files(folder), lambda sample: sample["y"], batched=False, processes=False)
    assert next(iter(pt.DataLoader(mapped, batch_size=3))).tolist() == [0, -1, -2]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="memory is pinned")
def test_warnings_about_pinning_are_torchs(arrays):
    said = []
    for dataset, loader_class in zip(arrays, (td.DataLoader, pt.DataLoader), strict=True):
        with pytest.warns(UserWarning, match="pin") as caught:
            list(loader_class(dataset, pin_memory=True, pin_memory_device="cuda"))
        said.append([str(warning.message) for warning in caught])
    assert said[0] == said[1]


def test_device_and_pinning(folder):
    loader = pt.DataLoader(pt.Files(folder), 8, device="cpu", pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory") if not torch.accelerator.is_available() else pytest.warns(None):
        batch = next(iter(loader))
    assert batch["x"].device.type == "cpu"
    meta = next(iter(pt.DataLoader(pt.Files(folder), 8, device="meta")))
    assert meta["x"].device.type == meta["pair"][1][0].device.type == "meta"
    assert next(iter(pt.DataLoader(Files(folder), 8, device="meta")))["x"].device.type == "meta"


def test_a_device_that_torch_has_not_is_an_error_that_says_so(folder):
    if torch.cuda.is_available():
        pytest.skip("torch has one")
    with pytest.raises(penstock.NoDeviceError, match="torch finds no CUDA device"):
        next(iter(pt.DataLoader(pt.Files(folder), 8, device="cuda")))


def test_persistent_workers_draw_one_base_seed(folder):
    states = []
    for loader_class, dataset in ((td.DataLoader, Files(folder)), (pt.DataLoader, pt.Files(folder))):
        torch.manual_seed(3)
        loader = loader_class(dataset, 30, shuffle=True, num_workers=1, persistent_workers=True)
        orders = [[y for b in loader for y in b["y"].tolist()] for _ in range(2)]
        states.append((orders, torch.get_rng_state().tolist()))
    assert states[0] == states[1]
