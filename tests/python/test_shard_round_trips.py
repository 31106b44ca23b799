"""Samples of shards, written to a shard as they were read: by save, Writer and pack, all kinds of fields."""

import gzip
import json
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_shards import npy_of, npz_of, tar_of

import penstock

GZIP = b"\x1f\x8b"
DTYPES = ["u1", "i1", "<i2", ">i4", "i8", "f2", "f4", ">f8", "?", "c8", "u8", "M8[ns]", "S3"]


def saved(value, extension):
    with tempfile.NamedTemporaryFile(suffix=extension) as file:
        penstock.save(value, file.name, sync=False)
        return Path(file.name).read_bytes()


def ten_of(arrays):
    """What webdataset.tenbin.encode_buffer gives."""
    chunks = []
    for array in arrays:
        shape = np.array([array.ndim, *array.shape], "<i8").tobytes()
        chunks += [array.dtype.str[1:].encode().ljust(8, b"\0") + bytes(8) + shape, array.tobytes()]
    framed = (b"~TenBin~" + np.int64(len(c)).tobytes() + c + bytes(-len(c) % 64) for c in chunks)
    return b"".join(framed)


@st.composite
def arrays(draw, dtypes=DTYPES):
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    kind = np.dtype(draw(st.sampled_from(dtypes)))
    out = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 2, shape, "u1").astype(kind)
    return np.asfortranarray(out) if draw(st.booleans()) else out


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
TENSORS = ["u1", "<i2", "i8", "f4"]
KINDS = {
    "npy": arrays().map(npy_of),
    "npz": st.dictionaries(st.sampled_from("abc"), arrays(), min_size=1).map(lambda tensors: npz_of(**tensors)),
    "pt": st.lists(arrays(TENSORS), max_size=2).map(lambda found: saved({"x": found, "n": [1, 2.5, None, "t"]}, ".pt")),
    "pth": arrays(TENSORS).map(lambda array: saved(array, ".pth")),
    "safetensors": arrays(TENSORS).map(lambda array: saved({"x": np.ascontiguousarray(array)}, ".safetensors")),
    "ten": st.lists(arrays(TENSORS).map(np.ascontiguousarray), min_size=1, max_size=3).map(ten_of),
    "tb": st.lists(arrays(TENSORS).map(np.ascontiguousarray), min_size=1, max_size=3).map(ten_of),
    "cls": st.integers(-(2**63), 2**63 - 1).map(lambda number: b" %d\n" % number),
    "index": st.integers(0, 9).map(lambda number: b"+%d" % number),
    "txt": st.text(max_size=20).map(str.encode),
    "transcript": st.text(max_size=20).map(str.encode),
    "json": JSON.map(lambda value: json.dumps(value).encode()),
    "jsn": JSON.map(lambda value: json.dumps(value).encode()),
    "jpg": st.binary(max_size=40),
    "": st.binary(max_size=40),
    "ä": st.binary(max_size=40),
    "bin": st.binary(max_size=40),
}


@st.composite
def fields(draw):
    """A name and content of each field of a sample."""
    out = {}
    for kind in draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5)):
        content = draw(KINDS[kind])
        name = draw(st.sampled_from(["", "seg.", "a.b."])) + kind
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            packed = gzip.compress(content, mtime=0)
            # Bytes that look packed are taken as such, so that raw ones can be written.
            if content.startswith(GZIP) and not name.endswith(".gz"):
                continue
            name, content = name + ".gz", packed
        out[name] = content
    return out


KEYS = st.sampled_from(["a", "s/b", "../c", "/d e", "ä", "x" * 120, "f.d/g"])


def same(ours, theirs):
    """Values of shards, the dtypes and bytes of their tensors too."""
    if isinstance(theirs, penstock.Tensor):
        return (ours.dtype, ours.shape) == (
            theirs.dtype,
            theirs.shape,
        ) and ours.numpy().tobytes() == theirs.numpy().tobytes()
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def samples(path):
    dataset = penstock.shards(path, index=False)
    return [dataset[i] for i in range(len(dataset))]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shard=st.lists(st.tuples(KEYS, fields()), min_size=1, max_size=4, unique_by=lambda sample: sample[0]))
def test_samples_are_written_as_they_were_read(tmp_path, shard):
    members = [(f"{key}.{name}", content) for key, found in shard for name, content in found.items()]
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of(members))
    read = samples(path)
    assert [sample["__key__"] for sample in read] == [key for key, _ in shard]
    penstock.save(read, tmp_path / "saved.tar")
    with penstock.Writer(tmp_path / "written.tar") as writer:
        for sample in read:
            writer.add_sample(sample)
    penstock.pack(penstock.shards(path, index=False), tmp_path / "packed", format="tar")
    (packed,) = (tmp_path / "packed").glob("*.tar")
    for again in (tmp_path / "saved.tar", tmp_path / "written.tar", packed):
        assert same(samples(again), read), again
    assert (tmp_path / "saved.tar").read_bytes() == (tmp_path / "written.tar").read_bytes()
    for each in (tmp_path / "packed").iterdir():
        each.unlink()


def test_raw_bytes_are_written_as_they_were_read(tmp_path):
    members = {"a.npy.gz": gzip.compress(npy_of(np.arange(4)), mtime=0), "a.cls": b"3", "a.pkl": b"N."}
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of(members.items()))
    with penstock.Writer(tmp_path / "b.tar") as writer:
        writer.add_sample(penstock.shards(path, raw=True)[0])
    assert dict(penstock.shards(tmp_path / "b.tar", raw=True)[0]) == dict(penstock.shards(path, raw=True)[0])


@pytest.mark.parametrize(
    "sample", [{"x": np.arange(3), "y": 4}, {"y": 4}, np.arange(3000), "text", {"x" * 120: b"raw"}], ids=range(5)
)
def test_shards_are_about_as_large_as_was_asked_for(tmp_path, sample):
    """Headers and padding are most of a small sample."""
    penstock.pack(penstock.dataset([sample] * 300), tmp_path / "shards", format="tar", shard_bytes=64 << 10)
    sizes = [shard.stat().st_size for shard in sorted((tmp_path / "shards").iterdir())]
    record = 20 * 512  # archives are whole numbers of these
    assert len(sizes) > 1
    assert max(sizes) <= (64 << 10) + record
    assert min(sizes[:-1]) >= 32 << 10


def test_where_a_sample_was_read_from_is_not_written(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of([("a.cls", b"3")]))
    penstock.save([penstock.shards(path, keys=["__key__", "__url__", "cls"])[0]], tmp_path / "b.tar")
    assert samples(tmp_path / "b.tar") == [{"__key__": "a", "cls": 3}]


def test_shards_without_a_sample_are_named(tmp_path):
    stray, good = tmp_path / "stray.tar", tmp_path / "good.tar"
    stray.write_bytes(tar_of([("0001", b"1"), ("0002", b"2")]))
    good.write_bytes(tar_of([("a.cls", b"3")]))
    said = r"stray\.tar.*: the shard holds 2 members, such as '0001', and none of a sample"
    for work in (
        lambda data: len(data),
        lambda data: list(penstock.stream(data)),
        lambda data: list(penstock.DataLoader(penstock.stream(data), batch_size=2)),
        lambda data: list(penstock.DataLoader(data, batch_size=2)),
    ):
        with pytest.raises(penstock.UnsupportedError, match=said):
            work(penstock.shards(stray))
        with pytest.raises(penstock.UnsupportedError, match=f"{said}.*1 more shard is like it"):
            work(penstock.shards([stray, stray]))
        data = penstock.shards([stray, good])
        with pytest.warns(penstock.ShardWarning, match=said) as caught:
            work(data)
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(penstock.ShardWarning, match=said):
                work(penstock.shards([stray, good]))
    odd = tmp_path / os.fsdecode(b"odd\xff.tar")  # which no text in UTF-8 is
    odd.write_bytes(stray.read_bytes())
    with pytest.warns(penstock.ShardWarning, match="odd"):
        assert len(penstock.shards([odd, good])) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = tmp_path / "empty.tar"
        penstock.save([], empty)
        assert len(penstock.shards([empty, good])) == 1
        assert list(penstock.stream(penstock.shards(empty))) == []


@pytest.mark.parametrize("name", ["npy", "npz"])
def test_arrays_of_objects_say_what_can_be_written(tmp_path, name):
    ragged = np.empty(2, object)
    ragged[:] = [np.arange(2.0), np.arange(3.0)]
    content = npz_of(x=ragged) if name == "npz" else npy_of(ragged)
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of([(f"a.{name}", content)]))
    (sample,) = samples(path)
    with pytest.raises(penstock.UnsupportedError, match=r"save .*as \.pt"):
        penstock.save([sample], tmp_path / "b.tar")
    penstock.save([{"__key__": "a", "pt": sample[name]}], tmp_path / "b.tar")
    assert same(samples(tmp_path / "b.tar")[0]["pt"], sample[name])
