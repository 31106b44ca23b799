"""Datasets, samplers, collates and DataLoader: what batches hold, in which order, and how iterations end."""

import gc
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import penstock

torch = pytest.importorskip("torch")

N = 37


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """images.npy, labels.npy, N dicts as `.pt`, N clips of different length."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    np.save(folder / "images.npy", rng.integers(0, 255, (N, 4, 5), dtype="u1"))
    np.save(folder / "labels.npy", np.arange(N))
    (folder / "dicts").mkdir()
    (folder / "clips").mkdir()
    for i in range(N):
        sample = {"x": torch.full((2, 3), float(i)), "y": i, "name": f"s{i}", "pair": (torch.tensor(i), i / 2)}
        torch.save(sample, folder / "dicts" / f"{i:03}.pt")
        np.save(folder / "clips" / f"{i:03}.npy", np.arange(i % 7 + 1, dtype="f4"))
    return folder


def pairs(folder):
    return penstock.zip(penstock.rows(folder / "images.npy"), penstock.rows(folder / "labels.npy"))


def labels_of(loader):
    return [y.tolist() for _, y in loader]


# --- datasets ---


def test_rows(folder):
    images = np.load(folder / "images.npy")
    for source in (folder / "images.npy", images, penstock.load(folder / "images.npy"), torch.from_numpy(images)):
        dataset = penstock.rows(source)
        assert len(dataset) == N
        assert dataset[3].tolist() == images[3].tolist()
        assert dataset[-1].tolist() == images[-1].tolist()
    assert "images.npy" in penstock.rows(folder / "images.npy").describe(3)
    with pytest.raises(IndexError):
        penstock.rows(images)[N]
    with pytest.raises(penstock.ShapeMismatchError):
        penstock.rows(np.array(3))


def test_rows_of_one_of_several(folder, tmp_path):
    np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.arange(6).reshape(3, 2))
    assert penstock.rows(tmp_path / "x.npz", "b")[1].tolist() == [2, 3]
    assert penstock.rows(penstock.open(tmp_path / "x.npz")["a"])[2].item() == 2
    with pytest.raises(KeyError):
        penstock.rows(tmp_path / "x.npz", "c")
    with pytest.raises(ValueError, match="key"):
        penstock.rows(np.arange(3), "b")


def test_rows_of_an_array_share_its_memory():
    array = np.zeros((3, 2))
    dataset = penstock.rows(array)
    array[1] = 7
    assert dataset[1].tolist() == [7, 7]
    ref = weakref.ref(array)
    del array
    gc.collect()
    assert ref() is not None
    del dataset
    gc.collect()
    assert ref() is None


def test_an_index_of_files_is_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pattern = str(folder / "*" / "*")
    expected = [penstock.files(pattern).describe(i) for i in range(len(penstock.files(pattern)))]
    kept = tmp_path / "own.index"
    for index in (False, True, True, kept, str(kept)):
        dataset = penstock.files(pattern, index=index)
        assert [dataset.describe(i) for i in range(len(dataset))] == expected
    assert kept.is_file()
    assert [path.parent.name for path in (tmp_path / "cache").rglob("files-*.index")] == ["penstock"]
    assert len(pickle.loads(pickle.dumps(dataset))) == len(expected)
    with pytest.raises(penstock.InvalidArgumentError, match="index"):
        penstock.files(expected, index=True)
    with pytest.raises(TypeError):
        penstock.files(pattern, index=3)


def test_files(folder):
    for pattern in (folder / "dicts", f"{folder}/dicts/*.pt", sorted((folder / "dicts").iterdir())):
        dataset = penstock.files(pattern)
        assert len(dataset) == N
        sample = dataset[5]
        assert sample["x"].tolist() == [[5.0] * 3] * 2
        assert (sample["y"], sample["name"]) == (5, "s5")
        assert "005.pt" in dataset.describe(5)
    assert list(penstock.files(folder / "dicts", keys=["y", "x"])[2]) == ["y", "x"]
    assert list(penstock.files(folder / "dicts", keys="y")[2]) == ["y"]


def test_combinations(folder):
    images, labels = penstock.rows(folder / "images.npy"), penstock.rows(folder / "labels.npy")
    both = penstock.zip(images, labels)
    assert isinstance(both[4], tuple)
    assert both[4][1].item() == 4
    joined = penstock.concat(labels, labels)
    assert len(joined) == 2 * N
    assert joined[N + 1].item() == 1
    for indices in ([3, 1, 3], np.array([3, 1, 3]), (3, 1, 3)):
        chosen = penstock.subset(labels, indices)
        assert [chosen[i].item() for i in range(len(chosen))] == [3, 1, 3]
    with pytest.raises(penstock.ShapeMismatchError, match=f"{N}"):
        penstock.zip(labels, joined)
    with pytest.raises(IndexError):
        penstock.subset(labels, [N])


# --- batches ---


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_as_torch(folder, workers, drop_last):
    loader = penstock.DataLoader(pairs(folder), batch_size=8, num_workers=workers, drop_last=drop_last)
    images, labels = torch.from_numpy(np.load(folder / "images.npy")), torch.from_numpy(np.load(folder / "labels.npy"))
    peer = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images, labels), batch_size=8, drop_last=drop_last
    )
    assert len(loader) == len(peer)
    count = 0
    for (x, y), (tx, ty) in zip(loader, peer, strict=True):
        count += 1
        assert torch.equal(torch.from_dlpack(x), tx)
        assert torch.equal(torch.from_dlpack(y), ty)
    assert count == len(peer)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_shuffled_order_is_torchs(folder, seed):
    labels = penstock.rows(folder / "labels.npy")
    loader = penstock.DataLoader(labels, batch_size=8, shuffle=True, seed=seed)
    for epoch in range(3):
        generator = torch.Generator()
        generator.manual_seed(seed + epoch)
        expected = torch.randperm(N, generator=generator).tolist()
        assert [i for batch in loader for i in batch.tolist()] == expected


def test_structure_of_dicts(folder):
    batch = next(iter(penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=4)))
    assert list(batch) == ["x", "y", "name", "pair"]
    assert batch["x"].shape == (4, 2, 3)
    assert batch["y"].dtype == "int64"
    assert batch["y"].tolist() == [0, 1, 2, 3]
    assert batch["name"] == ["s0", "s1", "s2", "s3"]
    assert isinstance(batch["pair"], tuple)
    assert batch["pair"][0].tolist() == [0, 1, 2, 3]
    assert batch["pair"][1].dtype == "float64"
    assert batch["pair"][1].tolist() == [0, 0.5, 1, 1.5]


def test_padding(folder):
    clips = penstock.files(folder / "clips")
    batch = next(iter(penstock.DataLoader(clips, batch_size=4, collate=penstock.pad())))
    assert batch.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]
    cut = next(iter(penstock.DataLoader(clips, batch_size=4, collate=penstock.pad_to(2, mode="constant", value=-1))))
    assert cut.tolist() == [[0, -1], [0, 1], [0, 1], [0, 1]]
    full = next(iter(penstock.DataLoader(clips, batch_size=3, collate=penstock.pad(lengths=True, mask=True))))
    assert full["lengths"].tolist() == [1, 2, 3]
    assert full["mask"].tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert full["values"].shape == (3, 3)
    edge = next(iter(penstock.DataLoader(clips, batch_size=3, collate=penstock.pad(mode="replicate"))))
    assert edge.tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 2]]


def test_ragged(folder):
    batch = next(iter(penstock.DataLoader(penstock.files(folder / "clips"), batch_size=3, collate=penstock.ragged())))
    assert [t.tolist() for t in batch] == [[0], [0, 1], [0, 1, 2]]


def test_batches_outlive_their_loader(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=8, num_workers=2)
    x, y = next(iter(loader))
    array = x.numpy()
    expected = np.load(folder / "images.npy")[:8]
    del loader, x
    gc.collect()
    assert (array == expected).all()
    assert y.tolist() == list(range(8))


# --- samplers ---


def test_samplers():
    assert list(penstock.SequentialSampler(4)) == [0, 1, 2, 3]
    assert len(penstock.SequentialSampler(range(7))) == 7
    random = penstock.RandomSampler(10)
    assert random.order(seed=1) == [5, 6, 1, 2, 0, 8, 9, 3, 7, 4]  # torch's own golden value
    assert sorted(random) == list(range(10))
    assert len(penstock.RandomSampler(10, replacement=True, num_samples=25)) == 25
    assert list(penstock.SubsetSampler([3, 1])) == [3, 1]
    assert sorted(penstock.SubsetSampler([3, 1, 2], shuffle=True)) == [1, 2, 3]
    assert set(penstock.WeightedSampler([0, 1, 0], 5)) == {1}
    assert list(penstock.BatchSampler(penstock.SequentialSampler(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(penstock.BatchSampler(penstock.SequentialSampler(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(penstock.BatchSampler([[3], [1, 2]])) == [[3], [1, 2]]
    assert list(penstock.BatchSampler([5, 6, 7], 2)) == [[5, 6], [7]]
    with pytest.raises(ValueError, match="weights"):
        penstock.WeightedSampler([0.0], 1)


def test_distributed_sampler_as_torch():
    for shuffle in (False, True):
        for drop_last in (False, True):
            for rank in range(3):
                peer = torch.utils.data.DistributedSampler(
                    range(10), num_replicas=3, rank=rank, shuffle=shuffle, drop_last=drop_last, seed=5
                )
                ours = penstock.DistributedSampler(10, 3, rank, shuffle=shuffle, drop_last=drop_last)
                for epoch in range(2):
                    peer.set_epoch(epoch)
                    assert ours.order(seed=5, epoch=epoch) == list(peer)
    with pytest.raises(ValueError, match="rank"):
        penstock.DistributedSampler(10, 3, 3)
    split = penstock.DistributedSampler(penstock.SubsetSampler([9, 8, 7, 6]), 2, 1, shuffle=False)
    assert list(split) == [8, 6]


@pytest.mark.parametrize("workers", [0, 2])
def test_python_samplers(folder, workers):
    labels = penstock.rows(folder / "labels.npy")
    for sampler in ([5, 3, 1], (5, 3, 1), np.array([5, 3, 1]), torch.tensor([5, 3, 1]), iter([5, 3, 1])):
        loader = penstock.DataLoader(labels, batch_size=2, sampler=sampler, num_workers=workers)
        assert len(loader) == 2
        assert [b.tolist() for b in loader] == [[5, 3], [1]]
    loader = penstock.DataLoader(labels, batch_sampler=[[1, 2], [30], [0, 5, 6]], num_workers=workers)
    assert len(loader) == 3
    assert [b.tolist() for b in loader] == [[1, 2], [30], [0, 5, 6]]


class Countdown:
    """Another order at each pass; records what it is told."""

    def __init__(self, size):
        self.size = size
        self.epochs = []
        self.passes = 0

    def set_epoch(self, epoch):
        self.epochs.append(epoch)

    def __len__(self):
        return self.size

    def __iter__(self):
        self.passes += 1
        return iter([(self.size - i + self.epochs[-1]) % N for i in range(self.size)])


@pytest.mark.parametrize("workers", [0, 2])
def test_python_samplers_are_asked_once_an_epoch(folder, workers):
    sampler = Countdown(6)
    loader = penstock.DataLoader(
        penstock.rows(folder / "labels.npy"), batch_size=3, sampler=sampler, num_workers=workers
    )
    for epoch in range(3):
        assert [b.tolist() for b in loader] == [[6 + epoch, 5 + epoch, 4 + epoch], [3 + epoch, 2 + epoch, 1 + epoch]]
    assert sampler.passes <= 4
    iterator = iter(loader)
    first = next(iterator).tolist()
    del iterator
    assert next(iter(loader)).tolist() == first


@pytest.mark.parametrize("workers", [0, 2])
def test_exceptions_of_python_samplers_arrive(folder, workers):
    class Broken:
        def __len__(self):
            return 3

        def __iter__(self):
            yield 1
            raise ZeroDivisionError("from the sampler")

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=Broken(), num_workers=workers)
    with pytest.raises(ZeroDivisionError, match="from the sampler"):
        list(loader)
    with pytest.raises(ZeroDivisionError, match="division"):
        penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=(1 // 0 for _ in ["generator"]))


def test_python_samplers_of_wrong_length(folder):
    class Liar(list):
        def __len__(self):
            return 5

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=Liar([1, 2]))
    with pytest.raises(ValueError, match="5"):
        list(loader)


def test_indices_outside_the_dataset(folder):
    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), batch_size=2, sampler=[0, 1, N, 2])
    with pytest.raises(IndexError, match=str(N)):
        list(loader)


def test_torch_samplers(folder):
    labels = penstock.rows(folder / "labels.npy")
    sampler = torch.utils.data.DistributedSampler(range(N), num_replicas=2, rank=1, seed=3)
    loader = penstock.DataLoader(labels, batch_size=N, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        expected = list(sampler)
        assert next(iter(loader)).tolist() == expected
        loader.set_epoch(epoch + 1)


def test_a_sampler_that_refers_to_its_loader_is_collected(folder):
    class Sampler(list):
        loader = None

    sampler = Sampler([0, 1, 2])
    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=sampler, num_workers=1)
    sampler.loader = loader
    next(iter(loader))
    ref = weakref.ref(loader)
    del loader, sampler
    gc.collect()
    assert ref() is None


# --- epochs, resume ---


@pytest.mark.parametrize("workers", [0, 1, 2, 8])
def test_batches_do_not_depend_on_workers(folder, workers):
    reference = penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=5, shuffle=True, seed=7)
    loader = penstock.DataLoader(
        penstock.files(folder / "dicts"), batch_size=5, shuffle=True, seed=7, num_workers=workers
    )
    for _ in range(2):
        for a, b in zip(reference, loader, strict=True):
            assert a["name"] == b["name"]
            assert a["x"].equal(b["x"])


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("taken", [0, 1, 4, 8, 9])
def test_resume_in_mid_epoch(folder, before, after, taken):
    def make(workers):
        return penstock.DataLoader(pairs(folder), batch_size=5, shuffle=True, seed=3, num_workers=workers)

    whole = make(0)
    expected = labels_of(whole) + labels_of(whole)
    first = make(before)
    got = []
    while len(got) < taken:
        for _, y in first:
            got.append(y.tolist())
            if len(got) == taken:
                break
    state = first.state_dict()
    assert all(isinstance(value, int) for value in state.values())
    second = make(after)
    second.load_state_dict(state)
    got += labels_of(second)
    while len(got) < len(expected):
        got += labels_of(second)
    assert got == expected


def test_states_of_others_are_refused(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=5)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="dataset"):
        loader.load_state_dict({**state, "samples": 5})
    other = penstock.DataLoader(pairs(folder), batch_size=4)
    other.load_state_dict(state)
    with pytest.raises(ValueError, match=r"batches of 5.*batches of 4"):
        other.load_state_dict({**state, "batch": 1})
    other.load_state_dict({key: value for key, value in {**state, "batch": 1}.items() if key != "batch_size"})
    with pytest.raises(ValueError, match="'epoch'"):
        loader.load_state_dict({k: v for k, v in state.items() if k != "epoch"})
    with pytest.raises(ValueError, match="'batch'"):
        loader.load_state_dict({**state, "batch": "x"})
    with pytest.raises(TypeError):
        loader.load_state_dict([1])
    assert len(list(loader)) == len(loader)


def test_epochs(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=10, shuffle=True, num_workers=2)
    assert loader.epoch == 0
    first = labels_of(loader)
    second = labels_of(loader)
    assert first != second
    loader.set_epoch(0)
    assert loader.epoch == 0
    assert labels_of(loader) == first
    loader.set_epoch(1)
    assert labels_of(loader) == second


def test_a_broken_off_epoch_begins_again(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=10, shuffle=True, num_workers=2)
    for _, y in loader:
        first = y.tolist()
        break
    assert labels_of(loader)[0] == first


def test_one_iteration_at_a_time(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=10, num_workers=1)
    old = iter(loader)
    next(old)
    new = iter(loader)
    assert next(new)[1].tolist() == list(range(10))
    with pytest.raises(ValueError, match="iteration"):
        next(old)
    del old
    assert next(new)[1].tolist() == list(range(10, 20))
    assert [len(y) for _, y in new] == [10, 7]
    assert list(new) == []


# --- errors ---


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_belongs_to_one_batch(folder, tmp_path, workers):
    for i in range(12):
        torch.save(torch.full((2,), i), tmp_path / f"{i:02}.pt")
    (tmp_path / "05.pt").write_bytes(b"rubbish")
    loader = penstock.DataLoader(penstock.files(tmp_path), batch_size=2, num_workers=workers)
    for _ in range(2):
        got, errors = [], []
        iterator = iter(loader)
        while True:
            try:
                batch = next(iterator)
            except StopIteration:
                break
            except penstock.Error as error:
                errors.append(str(error))
            else:
                got.append(batch.tolist())
        assert [b[0][0] for b in got] == [0, 2, 6, 8, 10]
        assert len(errors) == 1
        assert "05.pt" in errors[0]
        assert "5" in errors[0]


def test_options_are_checked(folder):
    labels = penstock.rows(folder / "labels.npy")
    for options in (
        {"batch_size": 0},
        {"batch_size": -1},
        {"num_workers": -1},
        {"prefetch_factor": 0},
        {"timeout": -1},
        {"shuffle": True, "sampler": [1]},
        {"batch_sampler": [[1]], "batch_size": 4},
        {"batch_sampler": [[1]], "shuffle": True},
        {"batch_sampler": [[1]], "drop_last": True},
        {"batch_sampler": [[1]], "sampler": [1]},
        {"device": "tpu"},
    ):
        with pytest.raises(penstock.InvalidArgumentError):
            penstock.DataLoader(labels, **options)
    with pytest.raises(penstock.DTypeMismatchError, match="collate"):
        penstock.DataLoader(labels, collate=list)


def test_timeout(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(1 << 18))
    # A gigabyte takes longer than a nanosecond, whatever the machine.
    paths = [tmp_path / "x.npy"] * 512
    loader = penstock.DataLoader(penstock.files(paths), batch_size=512, num_workers=1, timeout=1e-9)
    iterator = iter(loader)
    with pytest.raises(TimeoutError, match="1e-09 seconds"):
        next(iterator)


# --- ending ---


def threads():
    return len(os.listdir("/proc/self/task"))


def settled(measure, expected):
    """Threads that were told to end may take a moment to vanish from /proc."""
    for _ in range(200):
        if measure() <= expected:
            return True
        time.sleep(0.01)
    return False


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("dataset", ["pairs", "dicts"])
def test_broken_off_loops_leak_nothing(folder, dataset):
    make = {"pairs": lambda: pairs(folder), "dicts": lambda: penstock.files(folder / "dicts")}[dataset]
    for batch in penstock.DataLoader(make(), batch_size=2, num_workers=2):
        del batch
        break
    gc.collect()
    before = threads(), descriptors()
    for _ in range(20):
        for _ in penstock.DataLoader(make(), batch_size=2, num_workers=4):
            break
    gc.collect()
    assert settled(threads, before[0])
    assert settled(descriptors, before[1])


def test_breaking_off_stops_the_workers_of_a_loader_that_stays(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=1, num_workers=4)
    for _ in loader:
        break
    made = []
    assert settled(lambda: made.append(loader.stats()["batches"]) or len(made) < 2 or made[-1] - made[-2], 0)
    made = loader.stats()["batches"]
    time.sleep(0.05)
    assert loader.stats()["batches"] == made < N
    assert len(list(loader)) == N


def test_closing(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=4, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    for call in (lambda: next(iterator), lambda: iter(loader), lambda: len(loader), loader.state_dict):
        with pytest.raises(ValueError, match="closed"):
            call()
    loader.close()
    with penstock.DataLoader(pairs(folder), batch_size=4, num_workers=2) as loader:
        next(iter(loader))
    with pytest.raises(ValueError, match="closed"):
        iter(loader)


def test_closing_from_another_thread(folder):
    class Slow(list):
        def __iter__(self):
            time.sleep(0.3)
            return super().__iter__()

    loader = penstock.DataLoader(penstock.rows(folder / "labels.npy"), sampler=Slow(range(8)), num_workers=2)
    threading.Timer(0.1, loader.close).start()

    def iterate_again_and_again():
        for _ in range(10):
            list(loader)

    with pytest.raises(penstock.Error):
        iterate_again_and_again()


def test_several_threads_share_an_iteration(folder):
    loader = penstock.DataLoader(pairs(folder), batch_size=1, num_workers=2)
    iterator = iter(loader)
    got = []

    def work():
        for _, y in iterator:
            got.append(y.item())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(got) == list(range(N))


def test_stats(folder):
    loader = penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=5, num_workers=2)
    list(loader)
    stats = loader.stats()
    assert stats["samples"] == N
    assert stats["batches"] == len(loader)
    assert stats["files_opened"] == N
    assert stats["payload_bytes"] > 0
    assert all(value >= 0 for value in stats.values() if not isinstance(value, str))
    assert stats["workers_because"] == "2 workers, as asked"
    assert str(stats).endswith(stats["limit"])
    assert json.loads(json.dumps(stats)) == pickle.loads(pickle.dumps(stats)) == stats


def test_stats_name_the_caller_that_works_longer_than_the_loader(folder):
    loader = penstock.DataLoader(penstock.files(folder / "dicts"), batch_size=5, num_workers=1)
    assert loader.stats()["bottleneck"] == "nothing"
    for _ in loader:
        time.sleep(0.1)
    stats = loader.stats()
    assert stats["bottleneck"] == "caller", stats
    assert stats["limit"].startswith("the caller is the limit: it takes "), stats


def test_attributes(folder):
    dataset = pairs(folder)
    loader = penstock.DataLoader(dataset, 5, num_workers=3, seed=9)
    assert (loader.batch_size, loader.num_workers, loader.seed, len(loader.dataset)) == (5, 3, 9, N)


def run(code, folder, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


INTERRUPTED = """
    import os, signal, sys, threading, time, penstock
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent = []

    def send():
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    class Slow(list):
        def __iter__(self):
            time.sleep(3)
            return super().__iter__()

    def stuck():
        # A batch that never comes: its worker waits for a sampler that sleeps.
        labels = penstock.rows(sys.argv[1] + "/labels.npy")
        loader = penstock.DataLoader(labels, sampler=Slow([1, 2]), num_workers={workers})
        return next(iter(loader))

    def busy():
        loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), num_workers={workers})
        while True:
            for _ in loader:
                pass

    threading.Thread(target=send).start()
    try:
        {call}()
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_in_a_loop(folder, workers):
    result = run(INTERRUPTED.format(workers=workers, call="busy"), folder)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 1.0


def test_ctrl_c_while_a_batch_takes_long(tmp_path):
    """A batch that takes seconds of reading in the caller's thread is broken off, and the loader goes on after it."""
    code = """
    import os, signal, sys, threading, time, penstock
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent = []

    def send():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    loader = penstock.DataLoader(penstock.files([sys.argv[1] + "/x.npy"] * 4000), batch_size=2000, num_workers=WORKERS)
    threading.Thread(target=send).start()
    try:
        next(iter(loader))
    except KeyboardInterrupt:
        print(time.monotonic() - sent[0])
    small = penstock.DataLoader(penstock.files([sys.argv[1] + "/x.npy"] * 2), batch_size=2)
    print(next(iter(small)).shape)
    """
    np.save(tmp_path / "x.npy", np.zeros(1 << 18))
    for workers in (0, 1):
        result = run(code.replace("WORKERS", str(workers)), tmp_path)
        assert result.returncode == 0, result.stderr
        lines = result.stdout.splitlines()
        assert lines[-1] == "(2, 262144)"
        assert len(lines) == 1 or float(lines[0]) < 1.0


FORKED = """
    import os, sys, penstock
    loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except penstock.InvalidArgumentError as error:
            print(error, flush=True)
        own = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=37, num_workers=2)
        print(next(iter(own)).shape, flush=True)
        sys.exit(0)  # destroys the parent's loader, whose threads are not here
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), len(list(iterator)))
"""


def test_forked_children_neither_hang_nor_use_the_parents_loader(folder):
    result = run(FORKED, folder)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "fork" in lines[0]
    assert lines[1:] == ["(37,)", "0 18"]


EXITS = """
    import sys, threading, penstock
    loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=1, num_workers=4)
    iterator = iter(loader)
    next(iterator)
    {then}
"""


@pytest.mark.parametrize(
    "then", ["pass", "sys.exit(3)", "sys.keep = loader, iterator", "cycle = [iterator]; cycle.append(cycle)"]
)
def test_exit_with_a_running_loader(folder, then):
    result = run(EXITS.format(then=then), folder)
    assert result.returncode == (3 if "exit" in then else 0)
    assert result.stderr == ""


def test_multiprocessing_workers_inherit_no_trouble(folder):
    code = """
    import multiprocessing, sys, penstock
    loader = penstock.DataLoader(penstock.rows(sys.argv[1] + "/labels.npy"), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    def work(i):
        return penstock.load(sys.argv[1] + "/labels.npy")[i].item()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(5)))
    print(len(list(iterator)))
    """
    result = run(code, folder)
    assert result.stdout.splitlines() == ["[0, 1, 2, 3, 4]", "18"], result.stderr


def test_padding_values_are_exact_or_refused(folder):
    for value in (2**53 + 1, 2**64 - 1, -(2**63) - 1):
        with pytest.raises(penstock.InvalidArgumentError, match="no float64"):
            penstock.pad(mode="constant", value=value)
    penstock.pad(mode="constant", value=2**60)
    with pytest.raises(TypeError):
        penstock.pad(mode="constant", value="1")
