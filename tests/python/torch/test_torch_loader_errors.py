"""What a loader says of samples, files and indices that are not what they should be."""

from __future__ import annotations

import errno
import os
import resource
import time

import numpy as np
import pytest
import torch
import torch.utils.data as td
from loader_folder import COUNT, same

import penstock
import penstock.torch as pt
from penstock.torch.loader._set_aside import SetAside


def test_a_view_of_more_than_memory_holds_is_refused(tmp_path):
    torch.save(torch.tensor(1.0).expand(2**50), tmp_path / "x.pt")
    with pytest.raises(penstock.Error, match=r"x\.pt|batch") as error:
        next(iter(pt.DataLoader(pt.Files([tmp_path / "x.pt"]))))
    assert "ends before" not in str(error.value)


@pytest.mark.parametrize("workers", [0, 2])
def test_where_torch_cannot_stack_either_the_error_names_the_file(tmp_path, workers):
    for i in range(8):
        torch.save(torch.zeros(3 if i != 5 else 4), tmp_path / f"{i:03d}.pt")
    batches = iter(pt.DataLoader(pt.Files(tmp_path), batch_size=2, num_workers=workers))
    assert len(next(batches)) == len(next(batches)) == 2
    with pytest.raises(penstock.ShapeMismatchError, match=r"005\.pt"):
        next(batches)
    assert torch.equal(next(batches), torch.zeros(2, 3))


def test_indices_are_integers(folder):
    files = pt.Files(str(folder / "*.pt"))
    for sampler in ([1.9], ["3"], [None]):
        with pytest.raises(TypeError):
            list(pt.DataLoader(files, sampler=sampler))
    assert len(list(pt.DataLoader(files, sampler=[np.int64(1), torch.tensor(2), True]))) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_what_collate_fn_raises_names_its_samples(folder, workers):
    def collate(samples):
        raise KeyError(samples[0]["y"])

    iterator = iter(pt.DataLoader(pt.Files(folder), 3, num_workers=workers, collate_fn=collate))
    with pytest.raises(KeyError, match=r"a batch of 3 samples that begins with sample 0: .*000\.pt"):
        next(iterator)
    with pytest.raises(KeyError, match=r"begins with sample 3: .*003\.pt"):
        next(iterator)


class Raising:
    """Samples of which the fourth raises."""

    def __init__(self, error):
        self.error = error

    def __getitem__(self, index):
        if index == 3:
            raise self.error
        return index

    def describe(self, index):
        return f"number {index}"


class Eight(td.Dataset):
    """Samples of a class of the program's, of which the fourth raises."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3:
            raise ValueError("it is gone")
        return index


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"device": "cpu"}, {"ranks": (0, 1), "remainder": "exact"}], ids=str)
def test_torchs_road_goes_on_behind_an_error(workers, options):
    """Also where batches are moved, or have masks beside them."""
    batches = iter(pt.DataLoader(Eight(), batch_size=2, num_workers=workers, **options))
    assert len(batches) == 4
    next(batches)
    with pytest.raises(ValueError, match="gone"):
        next(batches)
    rest = list(batches)
    assert [batch.tolist() for batch in (rest if "ranks" not in options else next(zip(*rest, strict=True)))] == [
        [4, 5],
        [6, 7],
    ]


class TestBadSamples:
    @pytest.fixture
    def broken(self, folder, tmp_path):
        for i in range(12):
            data = (folder / f"{i:03d}.pt").read_bytes()
            (tmp_path / f"{i:03d}.pt").write_bytes(data[: len(data) // 2] if i in {3, 4, 11} else data)
        return tmp_path

    @pytest.mark.parametrize("workers", [0, 2])
    def test_raise_names_it_and_goes_on(self, broken, workers):
        iterator = iter(pt.DataLoader(pt.Files(broken, keys="y"), 3, num_workers=workers))
        assert next(iterator)["y"].tolist() == [0, 1, 2]
        with pytest.raises(penstock.Error, match=r"003\.pt: sample 3: "):
            next(iterator)
        assert next(iterator)["y"].tolist() == [6, 7, 8]
        with pytest.raises(penstock.Error, match=r"011\.pt: sample 11: "):
            next(iterator)
        assert next(iterator, None) is None

    @pytest.mark.parametrize("workers", [0, 2])
    def test_skip_and_replace(self, broken, workers):
        for policy, expected in (
            ("skip", [[0, 1, 2], [5], [6, 7, 8], [9, 10]]),
            ("replace", [[0, 1, 2], [5, 5, 5], [6, 7, 8], [9, 10, 0]]),
        ):
            loader = pt.DataLoader(pt.Files(broken, keys="y"), 3, num_workers=workers, on_error=policy)
            for _ in range(2):
                assert [b["y"].tolist() for b in loader] == expected
            assert [(i, what.endswith(f"{i:03d}.pt")) for i, what, _ in loader.set_aside] == [
                (i, True) for i in (3, 4, 11)
            ]
            assert all("003.pt" in why or "ends" in why or "truncated" in why for _, _, why in loader.set_aside[:1])

    def test_a_batch_of_nothing_but_bad_ones_is_left_out(self, broken):
        loader = pt.DataLoader(pt.Files(broken, keys="y"), batch_sampler=[[3, 4], [1]], on_error="skip")
        assert [b["y"].tolist() for b in loader] == [[1]]

    @pytest.mark.parametrize("workers", [0, 2])
    @pytest.mark.parametrize("policy", ["skip", "replace", "mask"])
    def test_an_epoch_of_nothing_but_bad_ones_is_an_error(self, broken, policy, workers):
        only_bad = penstock.subset(penstock.files(broken), [3, 4])
        with pytest.raises(penstock.InvalidArgumentError, match=r"no sample of the epoch.*003\.pt"):
            list(pt.DataLoader(only_bad, 2, on_error=policy, num_workers=workers))

    def test_names_that_are_no_text(self, broken):
        odd = os.path.join(os.fsencode(broken), b"e\xfe.pt")
        with open(odd, "wb"):
            pass
        loader = pt.DataLoader(pt.Files(broken, keys="y"), 3, on_error="skip")
        assert len(list(loader)) == 4
        assert [os.fsencode(what) for _, what, _ in loader.set_aside][-1] == odd

    @pytest.mark.parametrize("policy", ["skip", "replace", "mask"])
    def test_what_the_process_lacks_says_nothing_of_samples(self, folder, policy):
        loader = pt.DataLoader(pt.Files(folder), 3, on_error=policy)
        expected = len(list(loader))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        held = [os.open(os.devnull, os.O_RDONLY)]
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, limits[1]))
            with pytest.raises(penstock.InputOutputError, match="open files"):
                list(pt.DataLoader(pt.Files(folder), 3, on_error=policy))
            with pytest.raises(penstock.InputOutputError, match="open files"):
                list(loader)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            os.close(held[0])
        assert loader.set_aside == []
        assert len(list(loader)) == expected

    @pytest.mark.parametrize("error", [
        OSError(errno.EMFILE, "text in any language"),
        penstock.InputOutputError("text in any language", errno=errno.ENFILE),
    ])  # fmt: skip
    def test_what_the_process_lacks_says_nothing_of_a_sample_that_is_tried(self, error):
        tried = SetAside()
        with pytest.raises(type(error)):
            tried.try_each(Raising(error), range(5))
        assert tried.listed() == []

    @pytest.mark.parametrize("kind", [ValueError, penstock.InputOutputError])
    def test_an_error_that_quotes_the_system_is_of_its_sample(self, kind):
        quoting = kind(f"the notes say: {os.strerror(errno.EMFILE)}")
        tried = SetAside()
        assert tried.try_each(Raising(quoting), range(5))
        assert tried.listed() == [(3, "number 3", str(quoting))]
        samples = penstock.dataset(5, lambda index: torch.tensor(Raising(quoting)[index]))
        loader = pt.DataLoader(samples, 2, on_error="skip")
        assert [batch.tolist() for batch in loader] == [[0, 1], [2], [4]]

    def test_samples_that_do_not_fit_together_are_still_an_error(self, tmp_path):
        for i in range(4):
            torch.save(torch.zeros(i + 1), tmp_path / f"{i}.pt")
        with pytest.raises(penstock.ShapeMismatchError, match="stack expects each tensor to be equal size"):
            list(pt.DataLoader(pt.Files(tmp_path), 2, on_error="skip"))
        with pytest.raises(ValueError, match="on_error"):
            pt.DataLoader(pt.Files(tmp_path), on_error="ignore")


class TestChangedUnderTheLoader:
    """Files that change while an epoch runs: an error that names them, or the new content; never a crash."""

    @pytest.fixture
    def files(self, tmp_path):
        for i in range(8):
            torch.save(torch.full((1000,), i), tmp_path / f"{i}.pt")
        return tmp_path

    @pytest.mark.parametrize("workers", [0, 1])
    @pytest.mark.parametrize("change", ["removed", "cut", "emptied", "other shape", "no file"])
    def test_files(self, files, change, workers):
        iterator = iter(pt.DataLoader(pt.Files(files), 2, num_workers=workers, prefetch_factor=1 if workers else None))
        assert next(iterator)[:, 0].tolist() == [0, 1]
        last = files / "7.pt"
        data = last.read_bytes()
        last.unlink()
        if change == "no file":
            last.mkdir()
        elif change == "other shape":
            torch.save(torch.zeros(3), last)
        elif change != "removed":
            last.write_bytes(data[: len(data) // 2] if change == "cut" else b"")
        assert [next(iterator)[:, 0].tolist() for _ in range(2)] == [[2, 3], [4, 5]]
        with pytest.raises((penstock.Error, OSError), match=r"7\.pt"):
            next(iterator)
        assert next(iterator, None) is None

    def test_rewritten_with_the_same_shape(self, files):
        iterator = iter(pt.DataLoader(pt.Files(files), 2))
        next(iterator)
        torch.save(torch.full((1000,), 70), files / "7.pt")
        assert [batch[:, 0].tolist() for batch in iterator][-1] == [6, 70]

    @pytest.mark.parametrize("workers", [0, 2])
    def test_mapped_rows_of_a_file_that_was_cut(self, tmp_path, workers):
        np.save(tmp_path / "x.npy", np.ones((4096, 256), np.float32))
        iterator = iter(pt.DataLoader(pt.Rows(tmp_path / "x.npy"), 8, num_workers=workers))
        assert next(iterator).sum() == 8 * 256
        os.truncate(tmp_path / "x.npy", 8192)
        with pytest.raises(penstock.Error, match=r"x\.npy"):
            list(iterator)


@pytest.mark.parametrize("index", [-COUNT - 1, COUNT])
def test_errors_say_which_index_the_sampler_gave(arrays, index):
    with pytest.raises(IndexError, match=f"asks for sample {index}, "):
        list(pt.DataLoader(arrays[1], sampler=[index]))


def test_timeout(tmp_path):
    os.mkfifo(tmp_path / "never.pt")
    loader = pt.DataLoader(pt.Files([tmp_path / "never.pt"]), num_workers=1, timeout=0.2)
    start = time.monotonic()
    with pytest.raises((pt.LoaderTimeoutError, penstock.Error)):
        next(iter(loader))
    assert time.monotonic() - start < 30
    assert issubclass(pt.LoaderTimeoutError, RuntimeError)
    assert issubclass(pt.LoaderTimeoutError, TimeoutError)


@pytest.mark.parametrize("indices", [[1.7, 2.0], "12", [None]], ids=repr)
def test_indices_of_parts_are_integers(arrays, indices):
    with pytest.raises(TypeError):
        list(pt.DataLoader(td.Subset(arrays[1], indices)))


def test_indices_of_parts_in_a_dict(arrays):
    part = td.Subset(arrays[1], {0: 4, 1: 2})
    same(list(pt.DataLoader(part)), list(td.DataLoader(part)))


def test_what_torchs_collation_was_taught_counts(arrays, monkeypatch):
    from torch.utils.data._utils.collate import default_collate_fn_map

    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, lambda batch, **_: ("taught", len(batch)))
    assert next(iter(pt.DataLoader(arrays[1], 4)))[0] == ("taught", 4)


def refuses_five(index):
    if index == 5:
        raise ValueError("five")
    return index


@pytest.mark.parametrize(
    "make", [lambda: pt.Dataset(penstock.dataset(12, refuses_five)), lambda: pt.Files(["a", "b"] * 6)]
)
def test_an_error_comes_behind_the_batches_before_it(make, tmp_path, monkeypatch):
    """Also where a function in threads is behind what fails, so that batches are taken ahead."""
    monkeypatch.chdir(tmp_path)
    torch.save(torch.zeros(1), "a")
    for _ in range(20):
        batches = iter(pt.DataLoader(make().map(lambda sample: sample), 1, num_workers=3))
        outcomes = []
        for _ in range(12):
            try:
                next(batches)
                outcomes.append(True)
            except (ValueError, FileNotFoundError):
                outcomes.append(False)
        assert outcomes in ([number != 5 for number in range(12)], [number % 2 == 0 for number in range(12)])
