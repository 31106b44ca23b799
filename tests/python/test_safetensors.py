"""Penstock against the safetensors library itself, in both directions."""

import json
import struct

import numpy as np
import pytest
from pt_pairs import SHAPES, example

import penstock

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors")
st = pytest.importorskip("safetensors.torch")

DTYPES = [
    "bool uint8 int8 int16 uint16 float16 bfloat16 int32 uint32 float32 complex64 float64 int64 uint64",
    "float8_e5m2 float8_e4m3fn float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz",
]
DTYPES = " ".join(DTYPES).split()


def raw(tensor):
    """The bytes of a tensor of either library, in C order."""
    if isinstance(tensor, penstock.Tensor):
        return tensor.tobytes()
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def assert_same(ours, theirs):
    assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert raw(ours) == raw(theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reads_what_safetensors_writes(tmp_path, dtype):
    state = {f"t{i}": example(dtype, shape, i) for i, shape in enumerate(SHAPES)}
    st.save_file(state, tmp_path / "x.safetensors", metadata={"format": "pt", "é": "\n"})
    archive = penstock.open(tmp_path / "x.safetensors")
    assert archive.format == "safetensors"
    assert archive.metadata == {"format": "pt", "é": "\n"}
    assert sorted(archive.keys()) == sorted(state)
    for loaded in (archive.load(), penstock.load(tmp_path / "x.safetensors", mmap=True)):
        for name, tensor in state.items():
            assert_same(loaded[name], tensor)
            assert_same(archive[name].load(), tensor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_safetensors_reads_what_is_written(tmp_path, dtype):
    state = {f"t{i}": example(dtype, shape, i) for i, shape in enumerate(SHAPES)}
    st.save_file(state, tmp_path / "theirs.safetensors")
    penstock.save(penstock.load(tmp_path / "theirs.safetensors"), tmp_path / "ours.safetensors")
    loaded = st.load_file(tmp_path / "ours.safetensors")
    assert loaded.keys() == state.keys()
    for name, tensor in state.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert raw(loaded[name]) == raw(tensor)


def test_files_are_the_same_byte_for_byte(tmp_path):
    state = {"b": example("float32", (3, 4)), "a": example("float32", (2,)), 'é"\n': example("int64", (1,))}
    state |= {d: example(d, (3,)) for d in ("bool", "bfloat16", "uint8", "float8_e4m3fn", "complex64", "float64")}
    for metadata in (None, {"key": 'va"lue\u2028'}):
        st.save_file(state, tmp_path / "theirs.safetensors", metadata=metadata)
        theirs = penstock.load(tmp_path / "theirs.safetensors")
        penstock.save(theirs, tmp_path / "ours.safetensors", metadata=metadata)
        assert (tmp_path / "ours.safetensors").read_bytes() == (tmp_path / "theirs.safetensors").read_bytes()


def test_packed_floats(tmp_path):
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4")
    packed = example("uint8", (4, 6)).view(torch.float4_e2m1fn_x2)
    st.save_file({"w": packed}, tmp_path / "x.safetensors")
    ours = penstock.load(tmp_path / "x.safetensors")["w"]
    assert ours.dtype == "float4_e2m1fn_x2"
    assert ours.shape == tuple(packed.shape)
    assert ours.tobytes() == packed.view(torch.uint8).numpy().tobytes()
    penstock.save({"w": ours}, tmp_path / "y.safetensors")
    assert (tmp_path / "y.safetensors").read_bytes() == (tmp_path / "x.safetensors").read_bytes()


def write(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HOSTILE = {
    "hole": ({"a": entry(offsets=(4, 8))}, bytes(8)),
    "overlap": ({"a": entry(), "b": entry(offsets=(2, 6))}, bytes(6)),
    "trailing": ({"a": entry()}, bytes(5)),
    "truncated": ({"a": entry()}, bytes(3)),
    "size": ({"a": entry(shape=(2,))}, bytes(4)),
    "reversed": ({"a": entry(offsets=(4, 0))}, bytes(4)),
    "negative": ({"a": entry(shape=(-1,))}, bytes(4)),
    "fraction": ({"a": entry(shape=(1.0,))}, bytes(4)),
    "huge": ({"a": entry(shape=(2**64,), offsets=(0, 0))}, b""),
    "product": ({"a": entry(shape=(2**32, 2**32, 2**32), offsets=(0, 0))}, b""),
    "metadata": ({"__metadata__": {"a": 1}}, b""),
    "bits": ({"a": entry("F4", (7,))}, bytes(4)),
    "list": ([], b""),
    "three": ({"a": entry(offsets=(0, 4, 4))}, bytes(4)),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_safetensors_refuses_is_refused(tmp_path, case):
    write(tmp_path / "x.safetensors", *HOSTILE[case])
    with pytest.raises(safetensors.SafetensorError):
        safetensors.deserialize((tmp_path / "x.safetensors").read_bytes())
    with pytest.raises(penstock.Error) as info:
        penstock.open(tmp_path / "x.safetensors")
    assert isinstance(info.value, ValueError)
    assert "x.safetensors" in str(info.value)


def test_white_space_and_unknown_fields_are_taken_as_by_safetensors(tmp_path):
    for header in (
        b" \n" + json.dumps({"a": entry()}).encode() + b"\t ",
        json.dumps({"a": entry() | {"x": [1]}}).encode(),
    ):
        write(tmp_path / "x.safetensors", header, b"abcd")
        assert len(safetensors.deserialize((tmp_path / "x.safetensors").read_bytes())) == 1
        assert penstock.load(tmp_path / "x.safetensors")["a"].tobytes() == b"abcd"


def test_random_damage_is_never_read_where_safetensors_does_not(tmp_path):
    """Penstock is the stricter of the two: what it takes, safetensors takes and reads as the same bytes."""
    rng = np.random.default_rng(3)
    state = {"a": example("float32", (2, 2)), "b": example("int8", (5,))}
    original = st.save(state, {"k": "v"})
    taken = 0
    refusals = set()
    for _ in range(1500):
        damaged = bytearray(original)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(8, len(damaged))] = rng.choice(list(b'{}[]",:0123456789abFIU \\\n\xff'))
        (tmp_path / "x").write_bytes(damaged)
        try:
            ours = penstock.load(tmp_path / "x")
        except penstock.Error:
            continue
        try:
            theirs = dict(safetensors.deserialize(bytes(damaged)))
        except safetensors.SafetensorError as error:
            refusals.add("unknown variant" in str(error))  # a type that it does not know: the others are read here
            continue
        taken += 1
        assert ours.keys() == theirs.keys()
        assert all(ours[name].tobytes() == bytes(theirs[name]["data"]) for name in theirs)
    assert taken > 0
    assert False not in refusals


def test_sharded(tmp_path):
    shards = [{"a": example("float32", (3, 4)), "b": example("int64", (2,))}, {"c": example("bfloat16", (5,))}]
    names = [f"model-0000{i + 1}-of-00002.safetensors" for i in range(2)]
    for name, shard in zip(names, shards, strict=True):
        st.save_file(shard, tmp_path / name, metadata={"format": "pt"})
    weight_map = {key: name for name, shard in zip(names, shards, strict=True) for key in shard}
    index = {"metadata": {"total_size": 74}, "weight_map": weight_map}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index, indent=2))
    archive = penstock.open(path)
    assert archive.metadata == {"format": "pt", "total_size": "74"}
    loaded = archive.load()
    for name, tensor in (shards[0] | shards[1]).items():
        assert_same(loaded[name], tensor)
    assert_same(archive["a"][1:, 2].load(), shards[0]["a"][1:, 2])

    (tmp_path / names[1]).unlink()
    with pytest.raises(FileNotFoundError, match=names[1]):
        penstock.open(path)
    index["weight_map"]["c"] = "../" + tmp_path.name + "/" + names[0]
    path.write_text(json.dumps(index))
    with pytest.raises(penstock.UnsafeError):
        penstock.open(path)


def test_shared_memory_is_refused_as_by_safetensors(tmp_path):
    base = torch.zeros(4, 4)
    with pytest.raises(RuntimeError):
        st.save_file({"a": base, "b": base[1:]}, tmp_path / "x.safetensors")
    with pytest.raises(penstock.UnsupportedError, match=r"'a' and 'b'"):
        penstock.save({"a": base, "b": base[1:]}, tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()


def test_nested_dicts_are_joined_and_other_things_named(tmp_path):
    penstock.save({"model": {"w": np.ones(3, "f4")}, "x": np.zeros(2)}, tmp_path / "x.safetensors")
    assert sorted(st.load_file(tmp_path / "x.safetensors")) == ["model.w", "x"]
    with pytest.raises(penstock.UnsupportedError, match=r"'epoch' is an integer"):
        penstock.save({"epoch": 3}, tmp_path / "x.safetensors")
    assert sorted(penstock.open(tmp_path / "x.safetensors").keys()) == ["model.w", "x"]


def test_corpus_models(corpus):
    """One model in both formats, from two training runs: the same tensors with other values."""
    theirs = st.load_file(corpus / "burn/mnist.safetensors")
    also_theirs = torch.load(corpus / "burn/mnist.pt", map_location="cpu")
    ours = penstock.load(corpus / "burn/mnist.safetensors")
    also_ours = penstock.load(corpus / "burn/mnist.pt")
    assert ours.keys() == theirs.keys() == also_ours.keys() == also_theirs.keys()
    for name in theirs:
        assert_same(ours[name], theirs[name])
        assert_same(also_ours[name], also_theirs[name])
