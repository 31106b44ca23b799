"""Slices of a long array and windows over it: what NumPy's own slices give, for any source, order and process."""

import pickle

import numpy as np
import pytest

import penstock


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """A file of 1,000 tokens, all different."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.npy"
    np.save(path, np.arange(1000, dtype="u2"))
    return path


def arrays(dataset):
    return [np.asarray(dataset[i]) for i in range(len(dataset))]


def batches(dataset, **options):
    """The tokens of an epoch, batch by batch, as bytes."""
    options = {"batch_size": 8, "num_workers": 0, "seed": 3, **options}
    return [
        [np.asarray(part).tobytes() for part in as_tuple(batch)] for batch in penstock.DataLoader(dataset, **options)
    ]


def as_tuple(batch):
    return batch if isinstance(batch, tuple) else (batch,)


@pytest.mark.parametrize("mmap", [True, False])
def test_slices_are_numpys(tokens, mmap):
    starts, lengths = [5, 0, 990, 400, 7], [10, 1000, 10, 0, 3]
    dataset = penstock.rows(tokens, mmap=mmap).slices(starts, lengths)
    array = np.load(tokens)
    for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        np.testing.assert_array_equal(dataset[i], array[start : start + length])
    assert penstock.lengths(dataset) == lengths
    assert dataset.describe(0) == f"{tokens}[5:15]"


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda x: np.array(x, "i4"), lambda x: np.array(x, "u8")])
def test_the_numbers_come_as_any_array(tokens, kind):
    dataset = penstock.rows(tokens).slices(kind([3, 1]), kind([2, 4]))
    assert [array.tolist() for array in arrays(dataset)] == [[3, 4], [1, 2, 3, 4]]
    joined = penstock.rows(tokens).slices(lengths=kind([400, 600]))
    assert penstock.lengths(joined) == [400, 600]


def test_slices_are_batched_by_length(tokens):
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.integers(0, 1000, 99))
    lengths = np.diff(cuts, prepend=0, append=1000)
    dataset = penstock.rows(tokens).slices(lengths=lengths)
    sampler = penstock.length_buckets(dataset, [8, 16], batch_size=4)
    seen = []
    for batch in penstock.DataLoader(dataset, batch_sampler=sampler, collate=penstock.ragged()):
        seen += [token for item in batch for token in np.asarray(item).tolist()]
    assert sorted(seen) == list(range(1000))


def test_slices_pickle_as_their_table(tokens):
    rows = penstock.rows(tokens)
    for dataset in (rows.slices([3, 1], [2, 4]), rows.slices(lengths=[990, 10])):
        again = pickle.loads(pickle.dumps(dataset))
        assert [a.tolist() for a in arrays(again)] == [a.tolist() for a in arrays(dataset)]
    small = pickle.dumps(rows.slices(np.arange(0, 1000, 2), np.full(500, 2)))
    large = pickle.dumps(rows.slices(np.arange(0, 1000, 2), np.full(500, 1)))
    assert len(small) < len(large) - 500 * 7  # the first ones have no lengths of their own


def test_slices_outside_are_refused(tokens):
    rows = penstock.rows(tokens)
    with pytest.raises(IndexError, match="slice 1 begins at row 995 and has 6 rows"):
        rows.slices([0, 995], [1, 6])
    with pytest.raises(ValueError, match="2 starts and 1 length"):
        rows.slices([0, 1], [1])
    with pytest.raises(ValueError, match="add up to 999"):
        rows.slices(lengths=[999])
    with pytest.raises(ValueError, match="no lengths"):
        rows.slices([0])
    with pytest.raises(penstock.DTypeMismatchError):
        rows.slices([0.5], [1])
    with pytest.raises(ValueError, match=r"rows\(\)"):
        rows.cast("int64").slices([0], [1])


@pytest.mark.parametrize("mmap", [True, False])
def test_windows_are_numpys(tokens, mmap):
    array = np.load(tokens)
    views = np.lib.stride_tricks.sliding_window_view(array, 11)
    rows = penstock.rows(tokens, mmap=mmap)
    for stride in (1, 3, 11, 40):
        np.testing.assert_array_equal(arrays(rows.windows(11, stride)), views[::stride])
        pairs = rows.windows(10, stride, 1)
        assert len(pairs) == len(views[::stride])
        x, y = next(iter(penstock.DataLoader(pairs.cast("int64"), batch_size=len(pairs))))
        np.testing.assert_array_equal(x, views[::stride, :10])
        np.testing.assert_array_equal(y, views[::stride, 1:])
        assert np.asarray(x).dtype == np.int64


def test_windows_of_samples_with_dimensions():
    array = np.arange(240.0).reshape(20, 3, 4)
    windows = penstock.rows(array).windows(6, stride=2)
    np.testing.assert_array_equal(arrays(windows), [array[i : i + 6] for i in range(0, 15, 2)])


def test_the_repr_says_what_was_left_out(tokens):
    documents = penstock.rows(tokens).slices(lengths=[3, 500, 490, 7])
    assert repr(documents.windows(100)) == (
        "penstock.Dataset(9 samples; 2 of 4 slices are shorter than the 100 rows of a window and left out)"
    )
    assert repr(documents.windows(7)) == (
        "penstock.Dataset(142 samples; 1 of 4 slices is shorter than the 7 rows of a window and left out)"
    )
    assert repr(documents.windows(3)) == "penstock.Dataset(332 samples)"
    assert repr(documents.windows(100, join="ordered")) == "penstock.Dataset(10 samples)"


def over_several_arrays(rows, join):
    """Documents of the file and of two arrays in memory, one shorter than a window; a slice goes over an end."""
    parts = [np.arange(1000, 1020, dtype="u2"), np.arange(1020, 1400, dtype="u2")]
    several = rows.concat(*map(penstock.rows, parts))
    lengths = [400, 7, 600, 13, 180, 0, 200]
    return several.slices(lengths=lengths).windows(32, shift=1, join=join)


KINDS = {
    "windows": lambda rows: rows.windows(32, 16, 1),
    "apart": lambda rows: rows.slices(lengths=[300, 20, 400, 280]).windows(32, shift=1),
    "shuffled": lambda rows: rows.slices(lengths=np.full(100, 10)).windows(32, shift=1, join="shuffled"),
    "random": lambda rows: rows.random_windows(32, 40, 1),
    "several": lambda rows: over_several_arrays(rows, "shuffled"),
    "over ends": lambda rows: over_several_arrays(rows, None),
    "concatenated": lambda rows: (
        rows.slices(lengths=np.full(100, 10))
        .concat(penstock.rows(np.arange(300, dtype="u2")).slices(lengths=[299, 1]))
        .windows(32, shift=1, join="shuffled")
    ),
}


def test_windows_over_several_arrays_are_those_of_one(tokens):
    rest = np.arange(1000, 1400, dtype="u2")
    several = penstock.rows(tokens).concat(penstock.rows(rest[:300]), penstock.rows(rest[300:]))
    one = penstock.rows(np.arange(1400, dtype="u2"))
    lengths = [500, 450, 300, 50, 100]
    for join in (None, "ordered", "shuffled"):
        found = several.slices(lengths=lengths).windows(60, stride=45, shift=2, join=join)
        assert batches(found, shuffle=True) == batches(
            one.slices(lengths=lengths).windows(60, stride=45, shift=2, join=join), shuffle=True
        )
    for i, window in enumerate(np.lib.stride_tricks.sliding_window_view(np.arange(1400), 100)[::100]):
        np.testing.assert_array_equal(several.windows(100, join="ordered")[i], window)
    assert len(several.windows(300)) == 3 + 1
    np.testing.assert_array_equal(several.slices([990], [400])[0], np.arange(990, 1390))
    with pytest.raises(IndexError, match="has 411 rows, but the array has 1400"):
        several.slices([990], [411])
    with pytest.raises(penstock.DTypeMismatchError, match="int32"):
        one.concat(penstock.rows(np.arange(9, dtype="i4"))).windows(3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_samples_of_an_epoch_follow_from_seed_and_epoch(tokens, kind):
    dataset = KINDS[kind](penstock.rows(tokens))
    expected = batches(dataset, shuffle=True)
    assert batches(dataset, shuffle=True, num_workers=3) == expected
    assert batches(pickle.loads(pickle.dumps(dataset)), shuffle=True, num_workers=1) == expected
    assert batches(KINDS[kind](penstock.rows(tokens, mmap=False)), shuffle=True, num_workers=2) == expected
    ranks = [
        penstock.DataLoader(
            dataset,
            batch_size=1,
            seed=3,
            sampler=penstock.DistributedSampler(len(dataset), num_replicas=2, rank=rank, drop_last=True),
        )
        for rank in range(2)
    ]
    whole = batches(dataset, shuffle=True, batch_size=1)
    dealt = [
        [np.asarray(part).tobytes() for part in as_tuple(one)] for pair in zip(*ranks, strict=True) for one in pair
    ]
    assert dealt == whole[: len(dealt)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loader_goes_on_where_it_stood(tokens, kind):
    dataset = KINDS[kind](penstock.rows(tokens)).cast("int64")
    loader = penstock.DataLoader(dataset, batch_size=3, shuffle=True, seed=5)
    loader.set_epoch(2)
    left = iter(loader)
    for _ in range(3):
        next(left)
    state = loader.state_dict()
    expected = [np.asarray(x).tobytes() for x, _ in left]
    again = penstock.DataLoader(dataset, batch_size=3, shuffle=True, seed=5, num_workers=2)
    again.load_state_dict(state)
    assert [np.asarray(x).tobytes() for x, _ in again] == expected


@pytest.mark.parametrize("kind", ["shuffled", "random"])
def test_epochs_differ(tokens, kind):
    dataset = KINDS[kind](penstock.rows(tokens))
    loader = penstock.DataLoader(dataset, batch_size=8, seed=3)
    first, second = ([np.asarray(x).tobytes() for x, _ in loader] for _ in range(2))
    assert first != second
    assert len(first) == len(second)


@pytest.mark.parametrize("name", ["windows", "random_windows"])
def test_windows_that_cannot_be_are_refused(tokens, name):
    more = {} if name == "windows" else {"count": 5}
    make = getattr(penstock.rows(tokens), name)
    for wrong in (0, -3):
        with pytest.raises(ValueError, match=f"length of windows is {wrong}"):
            make(wrong, **more)
    with pytest.raises(ValueError, match="shift of windows is -1"):
        make(3, shift=-1, **more)
    with pytest.raises(ValueError, match="has 1000 rows, fewer than the 1001 rows of a window"):
        make(1000, shift=1, **more)
    with pytest.raises(ValueError, match="no number of rows"):
        make(1 << 62, shift=(1 << 63) - 1, **more)
    with pytest.raises(penstock.DTypeMismatchError):
        make(2.5, **more)


def test_windows_say_what_they_are_made_of(tokens):
    rows = penstock.rows(tokens)
    for wrong in ("shuffle", True, 1):
        with pytest.raises(ValueError, match='None, "ordered" or "shuffled"'):
            rows.slices(lengths=[1000]).windows(10, join=wrong)
    with pytest.raises(ValueError, match="only slices are joined"):
        rows.windows(10, join="shuffled")
    with pytest.raises(ValueError, match="stride of windows is 0"):
        rows.windows(10, 0)
    with pytest.raises(ValueError, match=r"rows\(\) or slices\(\)"):
        penstock.files(tokens.parent).windows(10)
    with pytest.raises(ValueError, match="-1"):
        rows.random_windows(10, -1)
