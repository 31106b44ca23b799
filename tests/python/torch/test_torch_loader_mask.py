"""on_error="mask": batches that keep their size and say which samples could be read, beside a plain loop over files."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest
import torch
import torch.utils.data as td
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loader_folder import same
from torch.nn.utils.rnn import pad_sequence

import penstock
import penstock.torch as pt

COUNT = 14
BAD = {3: "checksum", 4: "cut", 5: "missing", 9: "empty", 13: "cut"}
WORKERS = [0, 1, 2, 4]


class Loop:
    """What a user of torch writes: each file is tried, and the next that can be read stands in for one that cannot."""

    def __init__(self, paths):
        self.paths = paths
        self.samples = {i: sample for i, path in enumerate(paths) if (sample := self.tried(path)) is not None}

    @staticmethod
    def tried(path):
        try:
            if path.suffix == ".npy":
                return torch.from_numpy(np.load(path))
            with zipfile.ZipFile(path) as archive:  # torch.load passes over checksums
                return torch.load(path) if archive.testzip() is None else None
        except Exception:
            return None

    def placed(self, index):
        while index not in self.samples:
            index = (index + 1) % len(self.paths)
        return self.samples[index]

    def batch(self, indices, collate=td.default_collate):
        valid = torch.tensor([index in self.samples for index in indices], dtype=torch.bool)
        return collate([self.placed(index) for index in indices]), valid

    def batches(self, order, collate=td.default_collate):
        return [self.batch(indices, collate) for indices in order]


def damage(path, how, payload):
    data = bytearray(path.read_bytes())
    if how == "checksum":
        data[data.index(payload) + 5] ^= 1
        path.write_bytes(data)
    elif how == "missing":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] if how == "cut" else b"")


def paths_in(folder, suffix):
    return [folder / f"{i:03d}{suffix}" for i in range(COUNT)]


@pytest.fixture(scope="module")
def dicts(tmp_path_factory):
    """.pt files of dicts, those of BAD damaged."""
    paths = paths_in(tmp_path_factory.mktemp("dicts"), ".pt")
    for i, path in enumerate(paths):
        x = torch.full((64,), i + 0.25)
        torch.save({"x": x, "y": i, "name": f"n{i}"}, path)
        if i in BAD:
            damage(path, BAD[i], x.numpy().tobytes())
    return Loop(paths)


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """.npy files of differing lengths, those of BAD damaged, as far as the format can tell."""
    paths = paths_in(tmp_path_factory.mktemp("clips"), ".npy")
    for i, path in enumerate(paths):
        np.save(path, np.full((i % 4 + 1, 2), i, np.float32))
        if i in BAD:
            damage(path, BAD[i].replace("checksum", "cut"), b"")
    return Loop(paths)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    paths = paths_in(tmp_path_factory.mktemp("whole"), ".npy")
    for i, path in enumerate(paths):
        np.save(path, np.full(2, i))
    return Loop(paths)


def order_of(batch_size, *, shuffle=False, drop_last=False):
    """The indices of each batch, as torch's own loader draws them."""
    options = {"generator": torch.Generator().manual_seed(5), "shuffle": shuffle, "drop_last": drop_last}
    return list(td.DataLoader(range(COUNT), batch_size, collate_fn=list, **options))


def loader_of(loop, batch_size=3, **options):
    options.setdefault("generator", torch.Generator().manual_seed(5))
    return pt.DataLoader(pt.Files(loop.paths), batch_size, on_error="mask", **options)


def require_set_aside(loader, loop):
    """No more and no other than the loop could not read."""
    found = [(index, what) for index, what, why in loader.set_aside if why]
    assert found == [(index, str(path)) for index, path in enumerate(loop.paths) if index not in loop.samples]


def padded(samples):
    lengths = torch.tensor([len(sample) for sample in samples])
    return {"values": pad_sequence(samples, batch_first=True), "lengths": lengths}


def summed(samples):
    assert type(samples) is list
    return {"n": len(samples), "sum": torch.stack([sample["x"] for sample in samples]).sum(0)}


def test_the_fixtures_have_what_they_say(dicts, clips):
    for loop in (dicts, clips):
        assert sorted(set(range(COUNT)) - set(loop.samples)) == sorted(BAD)


@pytest.mark.parametrize("workers", WORKERS)
class TestBesideAPlainLoop:
    @pytest.mark.parametrize("drop_last", [False, True])
    @pytest.mark.parametrize("shuffle", [False, True])
    @pytest.mark.parametrize("batch_size", [1, 3, 20])
    def test_dicts_stacked(self, dicts, batch_size, shuffle, drop_last, workers):
        loader = loader_of(dicts, batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=workers)
        expected = dicts.batches(order_of(batch_size, shuffle=shuffle, drop_last=drop_last))
        same(list(loader), expected)
        assert len(loader) == len(expected)

    @pytest.mark.parametrize(
        ("rule", "reference"),
        [(pt.pad(lengths=True), padded), (pt.ragged(), list), (list, list), (padded, padded)],
        ids=["pad", "ragged", "list", "own pad"],
    )
    def test_clips_of_differing_lengths(self, clips, rule, reference, workers):
        loader = loader_of(clips, 4, collate_fn=rule, num_workers=workers)
        for _ in range(2):
            same(list(loader), clips.batches(order_of(4), reference))
        require_set_aside(loader, clips)

    def test_own_collate_fn(self, dicts, workers):
        loader = loader_of(dicts, collate_fn=summed, num_workers=workers)
        same(list(loader), dicts.batches(order_of(3), summed))

    def test_map_per_sample(self, dicts, workers):
        files = pt.Files(dicts.paths).map(lambda sample: sample["x"] * 2)
        loader = pt.DataLoader(files, 3, on_error="mask", num_workers=workers)
        double = lambda samples: td.default_collate([sample["x"] * 2 for sample in samples])  # noqa: E731
        same(list(loader), dicts.batches(order_of(3), double))
        require_set_aside(loader, dicts)

    def test_map_batched(self, dicts, workers):
        seen = []
        files = pt.Files(dicts.paths).map(lambda batch: (seen.append(type(batch)), -batch["x"])[1], batched=True)
        loader = pt.DataLoader(files, 3, on_error="mask", num_workers=workers)
        negative = lambda samples: -td.default_collate(samples)["x"]  # noqa: E731
        same(list(loader), dicts.batches(order_of(3), negative))
        assert set(seen) == {dict}

    def test_samples_without_batches(self, dicts, workers):
        pairs = list(loader_of(dicts, None, num_workers=workers))
        assert [valid for _, valid in pairs] == [index in dicts.samples for index in range(COUNT)]
        assert {type(valid) for _, valid in pairs} == {bool}
        same([sample for sample, _ in pairs], [dicts.placed(index) for index in range(COUNT)])
        doubled = pt.Files(dicts.paths).map(lambda sample: 2 * sample["y"])
        pairs = list(pt.DataLoader(doubled, None, on_error="mask", num_workers=workers))
        assert pairs == [(2 * dicts.placed(i)["y"], i in dicts.samples) for i in range(COUNT)]

    def test_lists_of_indices_without_batches(self, whole, workers):
        paths = [path.with_name("missing.npy") if i in BAD else path for i, path in enumerate(whole.paths)]
        loop, order = Loop(paths), [[0, 3, 4], [5], [13, 12]]
        same(list(loader_of(loop, None, sampler=order, num_workers=workers)), loop.batches(order, torch.stack))

    def test_batches_of_a_batch_sampler(self, dicts, workers):
        """Counted from the end, drawn twice, of bad ones alone."""
        order = [[-1, -2], [3, 3, 0, 3], [4, 5, 13], [9], [6, 7]]
        loader = pt.DataLoader(pt.Files(dicts.paths), batch_sampler=order, on_error="mask", num_workers=workers)
        expected = dicts.batches([[index % COUNT for index in indices] for indices in order])
        for _ in range(2):
            same(list(loader), expected)
        assert [valid.tolist() for _, valid in expected][2:4] == [[False] * 3, [False]]

    def test_epochs_of_persistent_workers(self, dicts, workers):
        loader = loader_of(dicts, num_workers=workers, persistent_workers=workers > 0)
        expected = dicts.batches(order_of(3))
        for _ in range(3):
            same(list(loader), expected)
        require_set_aside(loader, dicts)

    def test_where_all_are_good(self, whole, workers):
        loader = loader_of(whole, 4, num_workers=workers)
        got = list(loader)
        same(got, whole.batches(order_of(4)))
        assert all(type(pair) is tuple and pair[1].all() for pair in got)
        assert loader.set_aside == []


class TestResume:
    @pytest.mark.parametrize("workers", WORKERS)
    @pytest.mark.parametrize("mapped", [False, True])
    @pytest.mark.parametrize("taken", [0, 1, 2, 4])
    def test_goes_on_exactly(self, dicts, taken, mapped, workers):
        def make(workers):
            files = pt.Files(dicts.paths)
            files = files.map(lambda sample: sample) if mapped else files
            generator = torch.Generator().manual_seed(5)
            return pt.DataLoader(files, 3, True, on_error="mask", num_workers=workers, generator=generator)

        expected = dicts.batches(order_of(3, shuffle=True))
        loader = make(workers)
        batches = iter(loader)
        same([next(batches) for _ in range(taken)], expected[:taken])
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        same(list(batches), expected[taken:])
        following = [list(loader), list(loader)]
        for other in WORKERS:
            again = make(other)
            again.load_state_dict(state)
            same(list(again), expected[taken:])
            for epoch in following:
                same(list(again), epoch)
            require_set_aside(again, dicts)

    def test_what_was_set_aside_stays_so(self, whole, tmp_path):
        """A file that came back since would make other batches of the same epoch."""
        late = tmp_path / "late.npy"
        loop = Loop([late if i in {1, 7} else path for i, path in enumerate(whole.paths)])
        loader = loader_of(loop)
        batches = iter(loader)
        next(batches)
        next(batches)
        state = loader.state_dict()
        np.save(late, np.full(2, 100))
        again = loader_of(loop, num_workers=2)
        again.load_state_dict(state)
        rest, following = ([valid.tolist() for _, valid in again] for _ in range(2))
        assert all(all(valid) for valid in rest)  # 7 was not tried yet
        assert following[0] == [True, False, True]


class TestWhatIsLeft:
    @pytest.mark.parametrize("workers", [0, 2])
    def test_nothing_that_can_be_read_is_an_error(self, dicts, workers):
        bad = [dicts.paths[index] for index in sorted(BAD)]
        for options in ({"batch_size": 2}, {"batch_size": None}, {"batch_size": 2, "collate_fn": list}):
            said = []
            for policy in ("mask", "replace"):
                with pytest.raises(penstock.InvalidArgumentError, match=r"no sample of the epoch.*003\.pt") as error:
                    list(pt.DataLoader(pt.Files(bad), on_error=policy, num_workers=workers, **options))
                said.append(str(error.value))
            assert said[0] == said[1]

    def test_one_good_sample_is_enough(self, dicts):
        bad = [dicts.paths[index] for index in sorted(BAD)]
        pairs = list(loader_of(Loop([*bad, dicts.paths[0]]), 2))
        assert [valid.tolist() for _, valid in pairs] == [[False, False], [False, False], [False, True]]
        assert [batch["y"].tolist() for batch, _ in pairs] == [[0, 0]] * 3

    @pytest.mark.parametrize("workers", [0, 2])
    def test_files_that_go_during_an_epoch(self, tmp_path, workers):
        paths = [tmp_path / f"{i}.npy" for i in range(12)]
        for i, path in enumerate(paths):
            np.save(path, np.full(1, i))
        batches = iter(loader_of(Loop(paths), 2, num_workers=workers, prefetch_factor=1 if workers else None))
        same(next(batches)[0], torch.tensor([[0], [1]]))
        paths[11].unlink()
        got = list(batches)
        assert [batch.tolist() for batch, _ in got[-2:]] == [[[8], [9]], [[10], [0]]]
        assert [valid.tolist() for _, valid in got[-2:]] == [[True, True], [True, False]]

    @pytest.mark.parametrize("mapped", [False, True])
    @pytest.mark.parametrize("workers", [0, 2])
    def test_no_batch_goes_missing_with_the_last_file(self, tmp_path, workers, mapped):
        paths = [tmp_path / f"{i}.npy" for i in range(12)]
        for i, path in enumerate(paths):
            np.save(path, np.full(1, i))
        files = pt.Files(paths).map(lambda sample: sample) if mapped else pt.Files(paths)
        factor = 1 if workers else None
        batches = iter(pt.DataLoader(files, 2, on_error="mask", num_workers=workers, prefetch_factor=factor))
        same(next(batches)[0], torch.tensor([[0], [1]]))
        for path in paths:
            path.unlink()
        outcomes = []
        while len(outcomes) < 20:
            try:
                outcomes.append(next(batches)[1].all().item())
            except StopIteration:
                break
            except penstock.InvalidArgumentError as error:
                outcomes.append("no sample of the epoch can be read" in str(error))
        assert outcomes == [True] * 5

    def test_batches_that_the_sampler_leaves_empty(self, dicts):
        loader = pt.DataLoader(pt.Files(dicts.paths), batch_sampler=[[], [3]], on_error="mask", collate_fn=len)
        same(list(loader), [(0, torch.zeros(0, dtype=torch.bool)), (1, torch.tensor([False]))])

    @pytest.mark.parametrize("workers", [0, 2])
    def test_batches_that_only_torch_stacks(self, tmp_path, workers):
        """Halfway all batches are made otherwise, those under way too."""
        paths = [tmp_path / f"{i}.pt" for i in range(12)]
        for i, path in enumerate(paths):
            torch.save({"x": torch.tensor(i, dtype=torch.int32 if i == 4 else torch.int64)}, path)
        paths[5].unlink()
        paths[10].unlink()
        loop = Loop(paths)
        same(list(loader_of(loop, num_workers=workers)), loop.batches([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]))

    @pytest.mark.parametrize("workers", [0, 2])
    def test_samples_that_only_the_dataset_makes(self, tmp_path, workers):
        paths = [tmp_path / f"{i}.pt" for i in range(8)]
        for i, path in enumerate(paths):
            torch.save({"s": {i, -1}, "y": i}, path)
        paths[3].write_bytes(b"")
        numbers = lambda samples: [sorted(sample["s"]) for sample in samples]  # noqa: E731
        loop = Loop(paths)
        assert len(loop.samples) == 7
        same(
            list(loader_of(loop, 2, collate_fn=numbers, num_workers=workers)),
            loop.batches([[0, 1], [2, 3], [4, 5], [6, 7]], numbers),
        )

    @pytest.mark.parametrize("workers", [0, 2])
    def test_a_sample_whose_function_raises_is_masked(self, dicts, workers):
        files = pt.Files(dicts.paths).map(lambda sample: 1 / sample["y"])
        loader = pt.DataLoader(files, 3, on_error="mask", num_workers=workers)
        batch, valid = next(iter(loader))
        same(batch, torch.tensor([1, 1, 1 / 2], dtype=batch.dtype))
        assert valid.tolist() == [False, True, True]
        index, what, why = loader.set_aside[0]
        assert (index, "000.pt" in what, "division by zero" in why) == (0, True, True)

    @pytest.mark.parametrize("workers", [0, 2])
    def test_errors_of_functions_of_batches_are_no_matter_of_masks(self, dicts, workers):
        files = pt.Files(dicts.paths).map(lambda batch: 1 // 0, batched=True)
        with pytest.raises(ZeroDivisionError, match=r"000\.pt"):
            next(iter(pt.DataLoader(files, 3, on_error="mask", num_workers=workers)))


class TestWhereTheMaskGoes:
    def test_to_the_device(self, dicts):
        for options in ({}, {"collate_fn": summed}, {"num_workers": 2}):
            for batch, valid in loader_of(dicts, device="meta", **options):
                assert valid.device.type == batch.get("x", batch.get("sum")).device.type == "meta"
        assert all(type(valid) is bool for _, valid in loader_of(dicts, None, device="meta"))

    def test_into_pinned_memory(self, dicts, monkeypatch):
        from penstock.torch.loader import _iteration

        monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
        monkeypatch.setattr(_iteration, "pin_memory", lambda value: ("pinned", value))
        expected = [(("pinned", batch), ("pinned", valid)) for batch, valid in dicts.batches(order_of(3))]
        same(list(loader_of(dicts, pin_memory=True)), expected)


class TestArguments:
    def test_other_words_are_told_of_it(self, dicts):
        with pytest.raises(ValueError, match=r'"raise", "skip", "replace" or "mask"'):
            pt.DataLoader(pt.Files(dicts.paths), on_error="masked")

    def test_other_datasets_have_no_masks(self, dicts):
        with pytest.raises(ValueError, match=r"on_error='mask' needs a Penstock dataset"):
            pt.DataLoader([1, 2, 3], on_error="mask")
        loader = loader_of(dicts)
        loader.worker_init_fn = print
        with pytest.raises(ValueError, match=r"on_error='mask' needs a Penstock dataset"):
            iter(loader)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bad=st.sets(st.integers(0, COUNT - 1), max_size=COUNT - 1),
    order=st.lists(st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=4), min_size=1, max_size=6),
    workers=st.tuples(st.sampled_from(WORKERS), st.sampled_from(WORKERS)),
    data=st.data(),
)
def test_whatever_is_missing_and_wherever_it_stops(whole, bad, order, workers, data):
    loop = Loop([path.with_name("missing.npy") if i in bad else path for i, path in enumerate(whole.paths)])

    def make(workers):
        return pt.DataLoader(pt.Files(loop.paths), batch_sampler=order, on_error="mask", num_workers=workers)

    expected = loop.batches(order)
    taken = data.draw(st.integers(0, len(order)))
    loader = make(workers[0])
    batches = iter(loader)
    same([next(batches) for _ in range(taken)], expected[:taken])
    again = make(workers[1])
    again.load_state_dict(loader.state_dict())
    same(list(again), expected[taken:])
    same(list(batches), expected[taken:])
    for _ in range(2):
        same(list(again), list(loader))
