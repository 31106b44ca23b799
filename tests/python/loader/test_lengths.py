"""Lengths from headers, and what is made by them: buckets, packed sequences, padding of several dimensions."""

import pickle
import random

import numpy as np
import pytest

import penstock


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Files of 0 to 40 tokens, all different."""
    folder = tmp_path_factory.mktemp("clips")
    rng = random.Random(3)
    first = 1
    for i in range(60):
        size = rng.randrange(41)
        np.save(folder / f"{i:03}.npy", np.arange(first, first + size, dtype="i4"))
        first += size
    return folder


def arrays_of(folder):
    return [np.load(path) for path in sorted(folder.iterdir())]


def test_lengths_are_those_of_the_arrays(clips):
    expected = [len(array) for array in arrays_of(clips)]
    dataset = penstock.files(clips)
    assert penstock.lengths(dataset) == expected
    assert penstock.lengths(dataset, -1) == expected
    pair = penstock.zip(tokens=dataset, label=penstock.rows(np.arange(60)))
    assert penstock.lengths(pair, key="tokens") == expected
    assert penstock.lengths(penstock.subset(dataset, [5, 2])) == [expected[5], expected[2]]


def test_lengths_name_what_is_wrong(clips, tmp_path):
    dataset = penstock.files(clips)
    with pytest.raises(penstock.ShapeMismatchError, match=r"sample 0 .*dimension 1"):
        penstock.lengths(dataset, dim=1)
    with pytest.raises(penstock.UnsupportedError, match="dataset below"):
        penstock.lengths(dataset.map(lambda x: x))
    named = penstock.zip(tokens=dataset)
    with pytest.raises(KeyError, match="tokens"):
        penstock.lengths(named, key="token")
    with pytest.raises(penstock.DTypeMismatchError):
        penstock.lengths([1, 2])
    (tmp_path / "ä.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': ")
    with pytest.raises(penstock.Error, match=r"ä\.npy"):
        penstock.lengths(penstock.files([tmp_path / "ä.npy"]))


@pytest.mark.parametrize("given", ["dataset", "list", "array"])
def test_buckets(clips, given):
    dataset = penstock.files(clips)
    lengths = penstock.lengths(dataset)
    source = {"dataset": dataset, "list": lengths, "array": np.array(lengths)}[given]
    sampler = penstock.length_buckets(source, [10, 20, 30], batch_size=4)
    seen = []
    for batch in sampler.batches(seed=1, epoch=2):
        assert 1 <= len(batch) <= 4
        assert len({np.searchsorted([10, 20, 30], lengths[i], side="right") for i in batch}) == 1
        seen += batch
    assert sorted(seen) == list(range(60))
    assert len(sampler) == len(sampler.batches())
    assert sampler.batches(1, 2) == sampler.batches(1, 2) != sampler.batches(1, 3)
    again = pickle.loads(pickle.dumps(sampler))
    assert again.batches(7, 1) == sampler.batches(7, 1)
    sampler.set_epoch(3)
    assert list(sampler) == sampler.batches(0, 3)


def test_buckets_by_tokens_waste_little(clips):
    dataset = penstock.files(clips)
    lengths = penstock.lengths(dataset)
    sampler = penstock.length_buckets(dataset, max_tokens=120)
    padded = 0
    loader = penstock.DataLoader(dataset, batch_sampler=sampler, collate=penstock.pad(lengths=True), num_workers=2)
    for batch in loader:
        assert batch["values"].numel() <= 120
        padded += batch["values"].numel()
    assert sum(lengths) <= padded < 1.2 * sum(lengths)


@pytest.mark.parametrize("elements", [40, 40_000])
def test_damage_of_the_payload_is_no_business_of_lengths(tmp_path, elements):
    """However large the file is: a loader that skips bad samples shall reach it."""
    for i in range(3):
        np.savez(tmp_path / f"{i}.npz", x=np.arange(elements + i))
    content = bytearray((tmp_path / "1.npz").read_bytes())
    content[300] ^= 1
    (tmp_path / "1.npz").write_bytes(content)
    dataset = penstock.files(tmp_path)
    assert penstock.lengths(dataset, key="x") == [elements, elements + 1, elements + 2]
    with pytest.raises(penstock.ChecksumError, match=r"1\.npz"):
        dataset[1]


def test_buckets_resume_and_ranks(clips):
    dataset = penstock.files(clips)
    options = {"boundaries": [15], "batch_size": 3}

    def loader():
        return penstock.DataLoader(
            dataset, batch_sampler=penstock.length_buckets(dataset, **options), collate=penstock.pad(), seed=4
        )

    first = loader()
    it = iter(first)
    next(it)
    state = first.state_dict()
    rest = [batch.tolist() for batch in it]
    second = loader()
    second.load_state_dict(state)
    assert [batch.tolist() for batch in second] == rest
    ranks = [penstock.length_buckets(dataset, **options, num_replicas=2, rank=r).batches(5, 1) for r in range(2)]
    assert len(ranks[0]) == len(ranks[1])
    assert sorted({i for rank in ranks for batch in rank for i in batch}) == list(range(60))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "neither boundaries nor max_tokens"),
        ({"boundaries": []}, "no boundary"),
        ({"boundaries": [3]}, "batch_size or max_tokens"),
        ({"boundaries": [5, 3], "batch_size": 2}, "rise"),
        ({"boundaries": [-3], "batch_size": 2}, "-3"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": 8, "too_long": "cut"}, "raise.*alone.*skip"),
        ({"max_tokens": 8, "rank": 2, "num_replicas": 2}, "rank is 2"),
        ({"max_tokens": 2}, r"sample \d+ .*npy.*too_long"),
    ],
)
def test_buckets_refuse(clips, options, match):
    with pytest.raises(ValueError, match=match):
        penstock.length_buckets(penstock.files(clips), **options)
    with pytest.raises(ValueError, match="-1"):
        penstock.length_buckets([3, -1], max_tokens=4)
    with pytest.raises(TypeError, match="iterable"):
        penstock.length_buckets(None, max_tokens=4)


def test_buckets_in_penstock_torch(clips):
    pt = pytest.importorskip("penstock.torch")
    dataset = pt.Files(clips)
    sampler = penstock.length_buckets(dataset, max_tokens=120)
    loader = pt.DataLoader(dataset, batch_sampler=sampler, collate_fn=pt.pad(lengths=True), num_workers=2)
    assert len(loader) == len(sampler)
    batches = list(loader)
    assert sorted(n for batch in batches for n in batch["lengths"].tolist()) == sorted(penstock.lengths(dataset))


@pytest.mark.parametrize("workers", [0, 2])
def test_packed_sequences_hold_every_token_once(clips, workers):
    packed = penstock.pack_sequences(penstock.files(clips), 48, value=-1)
    total = sum(len(array) for array in arrays_of(clips))
    assert len(packed) < 1.25 * total / 48
    found = []
    for batch in penstock.DataLoader(pickle.loads(pickle.dumps(packed)), batch_size=4, num_workers=workers):
        parts = [np.asarray(batch[key]) for key in ("tokens", "positions", "segments")]
        for tokens, positions, segments in zip(*parts, strict=True):
            assert tokens.dtype == np.int32
            assert (tokens[segments == 0] == -1).all()
            assert not positions[segments == 0].any()
            for number in range(1, segments.max() + 1):
                found.append(tokens[segments == number])
                assert (positions[segments == number] == np.arange(len(found[-1]))).all()
    assert sorted(map(tuple, found)) == sorted(tuple(array) for array in arrays_of(clips) if len(array))


def test_packed_sequences_refuse_cut_and_split(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1, 8))
    dataset = penstock.files(tmp_path)
    with pytest.raises(ValueError, match=r"sample 0 \(.*a\.npy\).*too_long|a\.npy"):
        penstock.pack_sequences(dataset, 3)
    assert penstock.pack_sequences(dataset, 3, "cut")[0]["tokens"].tolist() == [1, 2, 3]
    split = penstock.pack_sequences(dataset, 3, "split")
    assert [split[i]["tokens"].tolist() for i in range(3)] == [[1, 2, 3], [4, 5, 6], [7, 0, 0]]
    with pytest.raises(ValueError, match="length of rows"):
        penstock.pack_sequences(dataset, 0)
    with pytest.raises(penstock.ShapeMismatchError, match="one dimension"):
        penstock.pack_sequences(penstock.rows(np.zeros((2, 3, 4))), 8)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate"])
@pytest.mark.parametrize("sized", [False, True])
def test_padding_several_dimensions_is_numpys(tmp_path, mode, sized):
    rng = np.random.default_rng(1)
    shapes = [(2, 3, 4), (2, 5, 2), (2, 2, 7)]
    arrays = [rng.integers(0, 255, shape, dtype="u1") for shape in shapes]
    for i, array in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", array)
    options = {"mode": mode, "value": 7 if mode == "constant" else 0, "lengths": True, "mask": True}
    high, wide = (8, 9) if sized else (5, 7)
    rule = penstock.pad_to([high, wide], **options) if sized else penstock.pad(dims=[1, 2], **options)
    rule = pickle.loads(pickle.dumps(rule))
    (batch,) = penstock.DataLoader(penstock.files(tmp_path), batch_size=3, collate=rule)
    how = {"constant": {"mode": "constant", "constant_values": 7}, "replicate": {"mode": "edge"}}.get(
        mode, {"mode": "reflect"}
    )
    for i, array in enumerate(arrays):
        _, h, w = array.shape
        expected = np.pad(array, [(0, 0), (0, high - h), (0, wide - w)], **how)
        assert np.array_equal(np.asarray(batch["values"])[i], expected)
        assert batch["lengths"].tolist()[i] == [h, w]
        inside = np.zeros((high, wide), bool)
        inside[:h, :w] = True
        assert np.array_equal(np.asarray(batch["mask"])[i], inside)


def test_padding_to_sizes_names_larger_samples(tmp_path):
    for i, shape in enumerate([(4, 4), (3, 9)]):
        np.save(tmp_path / f"{i}.npy", np.zeros(shape))
    loader = penstock.DataLoader(penstock.files(tmp_path), batch_size=2, collate=penstock.pad_to([4, 8]))
    with pytest.raises(penstock.ShapeMismatchError, match=r"sample 1 .*1\.npy.*\(3, 9\).*dimension 1.*crop"):
        next(iter(loader))
    for make in (
        lambda: penstock.pad(dims=[]),
        lambda: penstock.pad(dim=1, dims=[0, 1]),
        lambda: penstock.pad_to([3, 4], dims=[0]),
        lambda: penstock.pad_to(3, dims=[0, 1]),
        lambda: penstock.pad_to([]),
        lambda: penstock.pad_to([3, -1]),
    ):
        with pytest.raises(ValueError, match=r"found|is -1"):
            make()
