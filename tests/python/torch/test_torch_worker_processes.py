"""penstock.torch.DataLoader(workers="processes"): batches are those of threads, and of torch's own loader."""

import gc
import multiprocessing
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
import torch.utils.data as torch_data
import torch_worker_functions as functions
from torch.utils.data._utils.collate import default_collate_fn_map
from torch_worker_pairs import DATASETS, PROCESSES, WITHOUT_TORCHS_OWN, rows, same

import penstock
import penstock.torch as pt

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="without a lock functions are called in threads"
)


@pytest.mark.filterwarnings("ignore::penstock.torch.datasets._taken_apart.NotNativeWarning")
@pytest.mark.parametrize("name", DATASETS)
def test_batches_are_those_of_threads_and_of_torch(name):
    make, given = DATASETS[name]
    options = {"batch_size": 3, "shuffle": True, **given}

    def batches(kind, **more):
        torch.manual_seed(3)
        loader = kind(make(), **options, **more)
        return list(loader) + list(loader)

    found = batches(pt.DataLoader, **PROCESSES)
    assert same(found, batches(pt.DataLoader, num_workers=2))
    assert same(found, batches(pt.DataLoader, num_workers=0, workers="processes"))
    if name not in WITHOUT_TORCHS_OWN:
        assert same(found, batches(torch_data.DataLoader, num_workers=0))


@pytest.mark.parametrize("name", ["map", "seeded", "own", "batched", "collate_fn"])
def test_goes_on_from_each_position(name):
    make, given = DATASETS[name]
    options = {"batch_size": 3, "shuffle": True, **given}
    torch.manual_seed(5)
    loader = pt.DataLoader(make(), **options, **PROCESSES)
    states, batches = [], []
    for batch in loader:
        batches.append(batch)
        states.append(loader.state_dict())
    for taken in (1, len(states) - 1):
        for more in ({"num_workers": 1, "workers": "processes"}, {"num_workers": 2}):
            again = pt.DataLoader(make(), **options, **more)
            again.load_state_dict(states[taken - 1])
            assert same(list(again), batches[taken:])


def of_threads_and_processes(dataset, **options):
    return [list(pt.DataLoader(dataset(), num_workers=1, workers=way, **options)) for way in ("threads", "processes")]


def test_rows_by_lists_of_indices():
    options = {"batch_size": None, "sampler": [[3, 1, 2], [0, 5]], "collate_fn": functions.twice}
    threads, processes = of_threads_and_processes(rows, **options)
    assert same(processes, threads)
    assert [batch.shape for batch in processes] == [(3, 2), (2, 2)]


def test_functions_of_batches_get_what_the_collation_gives(tmp_path):
    for i in range(4):
        torch.save({"x": torch.arange(i + 1.0)}, tmp_path / f"{i}.pt")

    def files():
        return pt.Files(tmp_path, "x").map(functions.is_nested, batched=True)

    expected = [{"x": torch.tensor(True)}] * 2
    assert of_threads_and_processes(files, batch_size=2, collate_fn=pt.nested()) == [expected] * 2


def test_long_doubles_are_sent():
    threads, processes = of_threads_and_processes(rows, batch_size=8, collate_fn=functions.long_doubles)
    assert same(processes, threads)


FURTHER_TYPES = [
    getattr(torch, name)
    for name in ("complex32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    if hasattr(torch, name)
]


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", FURTHER_TYPES, ids=str)
def test_types_that_pickle_has_no_way_for_are_sent(dtype):
    for options in ({"batch_size": 3}, {"batch_size": 3, "collate_fn": functions.listed}, {"batch_size": None}):
        threads, processes = of_threads_and_processes(lambda: rows(7).map(functions.Cast(dtype)), **options)
        assert [repr(batch) for batch in processes] == [repr(batch) for batch in threads]
        assert len(threads) == (7 if options["batch_size"] is None else 3)


def test_nested_tensors_are_the_same_error_as_in_threads():
    for way in ("threads", "processes"):
        with pytest.raises(RuntimeError, match="nested tensors are not"):
            list(pt.DataLoader(rows(2).map(functions.nested_parts), 2, num_workers=1, workers=way))


def test_workers_that_stay_have_the_settings_of_each_iteration():
    options = {"num_workers": 1, "workers": "processes", "persistent_workers": True}
    loader = pt.DataLoader(rows(4).map(functions.default_type), 4, **options)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            assert [batch.dtype for batch in loader] == [dtype]
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_program_asks_for_a_way_to_start():
    data = rows().map(functions.twice)
    expected = list(pt.DataLoader(data, 3))
    for context in ("spawn", "forkserver", multiprocessing.get_context("spawn")):
        assert same(list(pt.DataLoader(data, 3, multiprocessing_context=context, **PROCESSES)), expected)
    with pytest.raises(ValueError, match="expected 'threads', 'processes' or 'auto'"):
        pt.DataLoader(data, 3, workers="fibres")


FORK = """
import os, sys, threading, torch, torch_worker_functions as functions, penstock.torch as pt

sys.modules["cloudpickle"] = None  # as most installations are
number, lock = 2, threading.Lock()


class Own(torch.utils.data.Dataset):
    transform = None

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return self.transform(torch.tensor(index))


if __name__ == "__main__":
    torch.ones(500, 500) @ torch.ones(500, 500)  # torch has its threads, which wait
    functions.of_program = 5
    data = pt.Rows(torch.arange(40.0).reshape(20, 2)).map(functions.with_program)
    loader = pt.DataLoader(data, 4, num_workers=2, workers="processes", multiprocessing_context="fork")
    for _ in range(2):
        batches = list(loader)
        assert {int(told) for batch in batches for told in batch[1]} == {5}, batches
        assert torch.cat([batch[0] for batch in batches]).tolist() == torch.arange(40.0).reshape(20, 2).tolist()
    loader = None
    own = Own()
    own.transform = lambda sample: sample * number
    rows = pt.Rows(torch.arange(20)).map(own.transform)
    for data in (own, rows):
        loader = pt.DataLoader(data, 4, num_workers=2, workers="processes", multiprocessing_context="fork")
        for _ in range(2):
            assert torch.cat(list(loader)).tolist() == list(range(0, 40, 2))
        loader = None
    own.lock = lock  # which does not pickle
    collate = lambda samples: torch.stack(samples) + number
    loader = pt.DataLoader(
        own, 4, num_workers=2, collate_fn=collate, workers="processes", multiprocessing_context="fork",
        worker_init_fn=lambda index: None, persistent_workers=True,
    )
    for _ in range(2):
        assert torch.cat(list(loader)).tolist() == list(range(2, 42, 2))
    print("done")
"""


def test_forks_are_of_the_program_itself(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FORK)
    env = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    done = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("persistent", [False, True])
def test_worker_init_fn_and_get_worker_info_mean_what_torchs_mean(persistent):
    loader = pt.DataLoader(
        functions.Own(), 4, worker_init_fn=functions.sets_offset, persistent_workers=persistent, **PROCESSES
    )
    for _ in range(2):
        assert torch.cat([batch[1] for batch in loader]).tolist() == list(range(1000, 1010))


def test_persistent_workers_keep_their_copies_of_the_dataset():
    def counts(persistent):
        options = {"num_workers": 1, "workers": "processes", "persistent_workers": persistent}
        loader = pt.DataLoader(functions.Counting(), 2, **options)
        return [torch.cat(list(loader)).tolist() for _ in range(2)]

    assert counts(True) == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert counts(False) == [[1, 2, 3, 4], [1, 2, 3, 4]]


def test_workers_stay_from_epoch_to_epoch():
    loader = pt.DataLoader(rows(100).map(functions.process), 5, **PROCESSES)
    pids = {pid for _ in range(3) for batch in loader for pid in batch.tolist()}
    assert os.getpid() not in pids
    assert len(pids) <= 2
    assert loader.stats()["road"] == "native"
    assert "worker processes call the dataset's functions" in loader.explain()


def test_batches_lie_in_memory_that_is_used_again():
    loader = pt.DataLoader(rows(400).map(functions.twice), 4, **PROCESSES)
    kept = list(loader)
    assert torch.cat(kept)[:, 0].tolist() == [4.0 * index for index in range(400)]
    kept[0].add_(1)  # which it may be written to
    del kept
    gc.collect()
    assert sum(int(batch.numel()) for batch in loader) == 800


def test_settings_of_the_thread_that_iterates_are_carried():
    def seen(**more):
        batch, ones = next(iter(pt.DataLoader(rows().map(functions.kinds), 2, **PROCESSES)))
        return batch[0].tolist(), ones.dtype

    assert seen() == ([True, True, False], torch.float32)
    with torch.no_grad():
        assert seen()[0] == [True, False, False]
    with torch.autocast("cpu"):
        assert seen()[0] == [True, True, True]
    torch.set_default_dtype(torch.float64)
    try:
        assert seen()[1] == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_functions_draw_follows_from_the_seed_alone():
    def drawn(workers):
        torch.manual_seed(3)
        loader = pt.DataLoader(rows().map(functions.draws), 3, shuffle=True, num_workers=workers, workers="processes")
        return [list(loader) for _ in range(2)]

    first, second = drawn(2)
    assert same(drawn(1), [first, second])
    assert not same(first, second)
    assert len({float(value) for batch in first for value in batch.frac()[:, 0]}) > 10


def test_what_cannot_be_carried_is_said():
    with torch.device("meta"), pytest.warns(UserWarning, match="DeviceContext of torch stay in this process"):
        pt.DataLoader(rows().map(functions.twice), 2, **PROCESSES)


def test_errors_name_the_sample():
    loader = pt.DataLoader(rows().map(functions.refuses_six), 2, **PROCESSES)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(KeyError, match=r"six.*sample 3") as raised:
        next(iterator)
    assert "raise KeyError" in str(raised.value.__cause__.__cause__)
    assert next(iterator).shape == (2, 2)


@pytest.mark.parametrize(
    ("function", "text"), [(functions.ends_at_six, "exit code 4"), (functions.is_killed_at_six, "SIGKILL")]
)
def test_a_worker_that_ends_is_an_error_of_its_sample(tmp_path, function, text):
    for index in range(8):
        np.save(tmp_path / f"{index}.npy", np.full(2, 2 * index, dtype="float32"))
    data = pt.Files(str(tmp_path / "*.npy")).map(function)
    iterator = iter(pt.DataLoader(data, 2, **PROCESSES))
    next(iterator)
    with pytest.raises(penstock.UserCodeError, match=rf"sample 3.*3\.npy.*{text}"):
        next(iterator)
    assert next(iterator).shape == (2, 2)
    loader = pt.DataLoader(data, 2, on_error="skip", **PROCESSES)
    assert torch.cat(list(loader))[:, 0].tolist() == [0.0, 2.0, 4.0, 8.0, 10.0, 12.0, 14.0]
    assert [(index, text in why) for index, _, why in loader.set_aside] == [(3, True)]
    valid = torch.cat([valid for _, valid in pt.DataLoader(data, 2, on_error="mask", **PROCESSES)])
    assert valid.tolist() == [True, True, True, False, True, True, True, True]


def test_a_worker_that_ends_in_its_collation_is_an_error_of_its_batch():
    iterator = iter(pt.DataLoader(rows(), 2, collate_fn=functions.ends_at_batch, **PROCESSES))
    next(iterator)
    with pytest.raises(penstock.UserCodeError, match=r"batch 1 \(samples 2, 3\).*exit code 4"):
        next(iterator)
    assert next(iterator).shape == (2, 2)


def test_on_error_leaves_files_out_that_cannot_be_read(tmp_path):
    for index in range(6):
        np.save(tmp_path / f"{index}.npy", np.full(2, index, dtype="float32"))
    (tmp_path / "3.npy").write_bytes(b"nothing")
    data = pt.Files(str(tmp_path / "*.npy")).map(functions.twice)
    loader = pt.DataLoader(data, 2, on_error="skip", **PROCESSES)
    assert torch.cat(list(loader))[:, 0].tolist() == [0.0, 2.0, 4.0, 8.0, 10.0]
    assert [index for index, _, _ in loader.set_aside] == [3]
    batches = list(pt.DataLoader(data, 2, on_error="mask", **PROCESSES))
    assert torch.cat([valid for _, valid in batches]).tolist() == [True, True, True, False, True, True]


def indices_of(batches):
    return [[int(sample[0]) // 2 for sample in batch] for batch in batches]


@pytest.mark.parametrize("brief", [True, False], ids=["in the caller's thread", "in threads"])
@pytest.mark.parametrize(
    "options", [{"num_workers": 0}, {"num_workers": 2}, PROCESSES], ids=["0", "threads", "processes"]
)
def test_on_error_is_the_same_rule_for_functions_wherever_they_are_called(options, brief):
    data = rows(20).map(functions.refuses_six if brief else functions.refuses_six_slowly)
    whole = [list(range(first, first + 4)) for first in range(0, 20, 4)]
    loader = pt.DataLoader(data, 4, on_error="skip", **options)
    for _ in range(2):
        assert indices_of(loader) == [batch if 3 not in batch else [0, 1, 2] for batch in whole]
    assert loader.set_aside == [(3, "<tensor>[3]", "sample 3 (<tensor>[3]): KeyError: 'six'")]
    loader = pt.DataLoader(data, 4, on_error="replace", **options)
    assert indices_of(loader) == [batch if 3 not in batch else [0, 1, 2, 4] for batch in whole]
    batches = list(pt.DataLoader(data, 4, on_error="mask", **options))
    assert torch.cat([valid for _, valid in batches]).tolist() == [index != 3 for index in range(20)]
    with pytest.raises(KeyError, match="six"):
        list(pt.DataLoader(data, 4, **options))
    loader = pt.DataLoader(data, 1, on_error="skip", **options)
    assert indices_of(loader) == [[index] for index in range(20) if index != 3]


@pytest.mark.parametrize(
    "options", [{"num_workers": 0}, {"num_workers": 2}, PROCESSES], ids=["0", "threads", "processes"]
)
@pytest.mark.parametrize("on_error", ["skip", "replace", "mask"])
def test_where_no_sample_can_be_made_that_is_an_error(options, on_error):
    loader = pt.DataLoader(rows(8).map(functions.refuses_all), 4, on_error=on_error, **options)
    with pytest.raises(Exception, match="none"):
        list(loader)
    loader = pt.DataLoader(rows(200).map(functions.refuses_all), 4, on_error=on_error, **options)
    with pytest.raises(Exception, match=r"outage|in a row|none"):
        list(loader)


def test_samples_without_a_native_form_are_made_in_threads(tmp_path):
    for index in range(4):
        torch.save(torch.eye(2).to_sparse(), tmp_path / f"{index}.pt")
    data = pt.Files(str(tmp_path / "*.pt")).map(functions.twice)
    loader = pt.DataLoader(data, 2, collate_fn=list, **PROCESSES)
    with pytest.warns(UserWarning, match="threads call the functions of this dataset from here on"):
        assert [sample.is_sparse for batch in loader for sample in batch] == [True] * 4
    assert len(list(loader)) == 2  # and it is said once


@pytest.mark.parametrize("of_dataset", [False, True])
def test_processes_without_workers_are_none_and_that_is_said(of_dataset):
    data, options = (rows().map(functions.twice, processes=of_dataset), {} if of_dataset else {"workers": "processes"})
    with pytest.warns(pt.NotNativeWarning, match=r"starts none with num_workers=0.*give num_workers"):
        loader = pt.DataLoader(data, 4, **options)
    assert same(list(loader), list(pt.DataLoader(rows().map(functions.twice), 4)))


def test_a_datasets_state_that_no_position_has_is_said():
    class Kept(functions.Own):
        state_dict = dict
        load_state_dict = print

    loader = pt.DataLoader(Kept(), 4, **PROCESSES)
    with pytest.warns(pt.NotNativeWarning, match="save the dataset's state beside it"):
        loader.state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loader.state_dict()["python"] is None  # it is said once


def test_a_context_that_is_set_afterwards_counts():
    loader = pt.DataLoader(rows().map(functions.process), 4, **PROCESSES)
    first = {pid for batch in loader for pid in batch.tolist()}
    loader.multiprocessing_context = "spawn"
    assert first.isdisjoint(pid for batch in loader for pid in batch.tolist())
    loader.multiprocessing_context = multiprocessing.get_context("spawn")
    loader.multiprocessing_context = None


def test_types_that_default_collate_was_taught_here_are_known_in_processes(monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, functions.summed)
    for options in ({}, {"num_workers": 1}, PROCESSES):
        assert [batch.tolist() for batch in pt.DataLoader(rows(4), 4, **options)] == [[12.0, 16.0]]


@pytest.mark.parametrize("key", ["a", ("b", 1), 0.5, None])
def test_what_a_sampler_gives_is_an_integer(key):
    with pytest.raises(TypeError, match=r"the sampler gave .*, expected integers"):
        list(pt.DataLoader(functions.Own(), sampler=[key], **PROCESSES))


def test_iterable_datasets_go_to_torchs_own_loader():
    loader = pt.DataLoader(functions.stream(), 2, num_workers=0, workers="processes")
    assert loader.stats()["road"] == "torch"
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


def test_a_lambda_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match="cannot be sent to a worker process"):
        list(pt.DataLoader(rows().map(lambda sample: sample), 2, **PROCESSES))


def test_several_iterators_at_once():
    loader = pt.DataLoader(rows(40).map(functions.twice), 4, **PROCESSES)
    pairs = list(zip(loader, loader, strict=True))
    assert len(pairs) == 10
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("data", [functions.AtOnce, lambda: torch_data.Subset(functions.AtOnce(), range(5, 18))])
@pytest.mark.parametrize("workers", ["processes", "auto"])
def test_a_dataset_is_asked_for_a_batch_where_it_has_a_way_for_that(data, workers):
    def batches(kind, **more):
        return list(kind(data(), 3, sampler=range(12), collate_fn=functions.columns_as_tensors, **more))

    assert same(batches(pt.DataLoader, num_workers=2, workers=workers), batches(torch_data.DataLoader))


def test_an_error_of_a_batch_that_is_asked_for_at_once_names_it():
    loader = pt.DataLoader(functions.AtOnce(), 3, sampler=[2, 19], collate_fn=functions.columns_as_tensors, **PROCESSES)
    with pytest.raises(KeyError, match=r"nineteen.*a batch of 2 samples that begins with sample 2"):
        next(iter(loader))


SPAWNED = """
import torch.multiprocessing, torch.utils.data
import penstock.torch as pt

class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return index * 2

def rank(number):
    print([batch.tolist() for batch in pt.DataLoader(Numbers(), 3, num_workers=1, workers="processes")])

if __name__ == "__main__":
    torch.multiprocessing.spawn(rank, nprocs=1)
"""


def test_a_class_of_the_main_module_in_a_spawned_process(tmp_path):
    """There the main module has another name, which the program's own processes do not have."""
    (tmp_path / "train.py").write_text(SPAWNED)
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "[[0, 2, 4], [6, 8, 10]]\n", done.stderr


@pytest.mark.parametrize("workers", ["threads", "processes"])
@pytest.mark.parametrize("rule", [None, pt.stack(), pt.ragged()], ids=["default", "stack", "ragged"])
def test_a_sample_that_holds_itself_is_refused_wherever_batches_are_made(workers, rule):
    dataset = pt.Rows(torch.ones(4, 2)).map(functions.holding_itself)
    with pytest.raises(penstock.LimitError, match="so often"):
        next(iter(pt.DataLoader(dataset, 2, collate_fn=rule, num_workers=1, workers=workers)))


def test_a_sample_that_holds_itself_is_refused_where_types_were_taught():
    dataset = pt.Rows(torch.ones(4, 2)).map(functions.holding_itself)
    before = dict(default_collate_fn_map)
    try:
        default_collate_fn_map[torch.Tensor] = functions.summed
        with pytest.raises(penstock.LimitError, match="so often"):
            next(iter(pt.DataLoader(dataset, 2, num_workers=1, workers="processes")))
    finally:
        default_collate_fn_map.update(before)
