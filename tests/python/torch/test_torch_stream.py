"""Iterable datasets: torch's own through our loader, and Penstock's streams through both."""

import pickle

import pytest
import torch
import torch.utils.data as torch_data

import penstock
import penstock.torch as pt


class Split(torch_data.IterableDataset):
    """As torch's documentation has it: each worker takes its part."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        info = torch_data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(first, self.size, step):
            yield torch.tensor([number, step]), f"clip {number}"


def numbers():
    for number in range(11):
        yield {"x": torch.full((2,), number), "name": str(number)}


def batches(loader):
    return [
        {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in batch.items()}
        if isinstance(batch, dict)
        else [part.tolist() if isinstance(part, torch.Tensor) else part for part in batch]
        for batch in loader
    ]


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("loader", [torch_data.DataLoader, pt.DataLoader], ids=["torchs", "ours"])
def test_streams_are_iterable_datasets_that_workers_share(loader, workers):
    stream = pt.Stream(penstock.stream(numbers))
    assert isinstance(stream, torch_data.IterableDataset)
    given = batches(loader(stream, batch_size=2, num_workers=workers))
    names = [name for batch in given for name in batch["name"]]
    assert sorted(names, key=int) == [str(number) for number in range(11)]
    assert given[0] == {"x": [[0, 0], [workers or 1] * 2], "name": ["0", str(workers or 1)]}


def test_shuffles_follow_seed_and_epoch_and_ranks_take_turns():
    stream = pt.Stream(penstock.stream(range(20)).shuffle(5), seed=1)
    first = list(stream)
    assert list(stream) == first
    stream.set_epoch(1)
    assert sorted(stream) == sorted(first)
    assert list(stream) != first
    parts = [list(pt.Stream(penstock.stream(range(20)).shuffle(5), ranks=(rank, 3), seed=1)) for rank in range(3)]
    assert [parts[i % 3][i // 3] for i in range(20)] == first
    with pytest.raises(ValueError, match="ranks"):
        pt.Stream(range(3), ranks=(3, 3))


def test_our_loader_takes_a_native_stream_and_a_dtype():
    loader = pt.DataLoader(penstock.stream([torch.ones(2), torch.zeros(2)]), batch_size=2, dtype=torch.float64)
    (batch,) = loader
    assert batch.dtype == torch.float64
    assert batch.tolist() == [[1, 1], [0, 0]]


def shuffled(**options):
    return pt.DataLoader(pt.Stream(penstock.stream(range(20)).shuffle(20)), batch_size=4, **options)


def test_a_stream_with_a_dtype_is_told_its_epochs():
    stream = pt.Stream(penstock.stream(range(20)).shuffle(20))
    loader = pt.DataLoader(stream, batch_size=20, dtype=torch.float16)
    (first,) = loader
    stream.set_epoch(1)
    (second,) = loader
    assert first.tolist() != second.tolist()
    assert loader.dataset.epoch == stream.epoch == 1

    class Own(pt.Stream):
        def __iter__(self):
            yield torch.ones(2)

    with pytest.raises(TypeError, match="samples of Own"):
        pt.DataLoader(Own(range(3)), dtype=torch.float16)


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_that_stay_are_told_epochs(method):
    loader = shuffled(num_workers=1, persistent_workers=True, multiprocessing_context=method)
    for epoch in (0, 2, 0):
        loader.dataset.set_epoch(epoch)
        found, alone = [batch.tolist() for batch in loader], shuffled()
        alone.dataset.set_epoch(epoch)
        assert found == [batch.tolist() for batch in alone]


def test_an_epoch_is_told_whatever_mode_the_stream_was_made_in(monkeypatch):
    def refuse(*_):
        raise RuntimeError("unable to open shared memory object")

    monkeypatch.setattr(torch.Tensor, "share_memory_", refuse)
    with torch.inference_mode():
        stream = pt.Stream(penstock.stream(range(3)))
    stream.set_epoch(2)
    assert pickle.loads(pickle.dumps(stream)).epoch == stream.epoch == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_goes_on_in_its_epoch(workers):
    loader = shuffled(num_workers=workers)
    loader.dataset.set_epoch(3)
    batches = iter(loader)
    next(batches)
    state, rest = loader.state_dict(), [batch.tolist() for batch in batches]
    other = shuffled(num_workers=workers)
    other.load_state_dict(state)
    assert [batch.tolist() for batch in other] == rest


def test_a_source_of_torch_is_a_stream():
    loader = penstock.DataLoader(penstock.stream(Split(5)), batch_size=5, num_workers=1)
    ((values, names),) = loader
    assert values.numpy().tolist() == [[number, 1] for number in range(5)]
    assert list(names) == [f"clip {number}" for number in range(5)]


class Throwing:
    """0, 1, ... 12; the eighth one raises."""

    def __init__(self):
        self.number = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.number += 1
        if self.number == 13:
            raise StopIteration
        if self.number == 7:
            raise ValueError("no sample")
        return self.number


def outcomes(batches):
    out = []
    while True:
        try:
            out.append(next(batches).tolist())
        except StopIteration:
            return out
        except ValueError:
            out.append("ValueError")


@pytest.mark.parametrize("workers", [0, 1])
def test_what_was_read_before_an_error_comes_after_it(workers):
    def made():
        return pt.DataLoader(pt.Stream(penstock.stream(Throwing)), batch_size=5, num_workers=workers)

    loader = made()
    whole = [[0, 1, 2, 3, 4], "ValueError", [5, 6, 8, 9, 10], [11, 12]]
    assert outcomes(iter(loader)) == whole
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="no sample"):
        next(batches)
    again = made()
    again.load_state_dict(loader.state_dict())
    assert outcomes(iter(again)) == outcomes(batches) == whole[2:]
