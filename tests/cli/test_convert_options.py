"""The choices of penstock convert: parts, names, types, several files, shards, metadata. What is written is read by the
libraries whose formats they are."""

from __future__ import annotations

import collections
import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest
from test_convert import convert, safetensors

torch = pytest.importorskip("torch")
safe = pytest.importorskip("safetensors.torch")


FEW = ["encoder.0.bias", "encoder.1.bias", "decoder.10.weight", "decoder.10.bias"]


def layers() -> dict:
    made = torch.Generator().manual_seed(1)
    names = [
        f"{part}.{layer}.{kind}"
        for part in ("encoder", "decoder")
        for layer in (0, 1, 10)
        for kind in ("weight", "bias")
    ]
    return {name: torch.randn(4, 3, generator=made) for name in names}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.save(layers(), tmp_path / "model.pt")
    return tmp_path / "model.pt"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    state = {"epoch": 7, "note": "x", "model": layers(), "sizes": [torch.zeros(1), torch.ones(2)], "empty": {}}
    torch.save(state, tmp_path / "checkpoint.pt")
    return tmp_path / "checkpoint.pt"


def same(found: dict, expected: dict) -> bool:
    return found.keys() == expected.keys() and all(found[k].equal(expected[k]) for k in expected)


@pytest.mark.parametrize("target", ["out.safetensors", "out.pt", "out.npz"])
@pytest.mark.parametrize(
    ("options", "keep"),
    [
        (["--only", "encoder"], lambda n: n.startswith("encoder.")),
        (["--only", "encoder.1"], lambda n: n.startswith("encoder.1.")),
        (["--only", "*.weight"], lambda n: n.endswith(".weight")),
        (["--only", "encoder.?.bias", "--only", "decoder.10"], FEW.__contains__),
        (["--exclude", "*.bias"], lambda n: not n.endswith(".bias")),
        (["--only", "encoder", "--exclude", "encoder.0"], lambda n: n.startswith(("encoder.1.", "encoder.10."))),
        (["--only", "*[01].weight"], lambda n: n.endswith(("0.weight", "1.weight"))),
    ],
)  # fmt: skip
def test_names_choose(model, tmp_path, target, options, keep):
    convert(model, tmp_path / target, *options)
    expected = {name: tensor for name, tensor in layers().items() if keep(name)}
    if target.endswith(".npz"):
        found = {name: torch.from_numpy(array) for name, array in np.load(tmp_path / target).items()}
    else:
        found = safe.load_file(tmp_path / target) if "safe" in target else torch.load(tmp_path / target)
    assert same(found, expected)


def test_nested_content_keeps_its_shape(checkpoint, tmp_path):
    convert(checkpoint, tmp_path / "out.pt", "--exclude", "model.encoder", "--exclude", "note")
    found = torch.load(tmp_path / "out.pt")
    assert list(found) == ["epoch", "model", "sizes", "empty"]
    assert found["epoch"] == 7
    assert found["empty"] == {}
    assert same(found["model"], {k: v for k, v in layers().items() if k.startswith("decoder")})
    assert [t.tolist() for t in found["sizes"]] == [[0.0], [1.0, 1.0]]
    convert(checkpoint, tmp_path / "some.pt", "--only", "epoch", "--only", "sizes")
    found = torch.load(tmp_path / "some.pt")
    assert list(found) == ["epoch", "sizes"]


def test_a_part_and_a_choice_in_it(checkpoint, tmp_path):
    convert(checkpoint, tmp_path / "out.safetensors", "--key", "model", "--only", "decoder.0")
    expected = {k: v for k, v in layers().items() if k.startswith("decoder.0.")}
    assert same(safe.load_file(tmp_path / "out.safetensors"), expected)


def test_a_list_is_chosen_as_a_whole(checkpoint, tmp_path):
    refused = convert(checkpoint, tmp_path / "out.pt", "--only", "sizes.0", code=1).stderr
    assert "1 of 2 parts of 'sizes'" in refused
    assert not (tmp_path / "out.pt").exists()


@pytest.mark.parametrize(("option", "pattern"), [("--only", "encodr"), ("--exclude", "x*"), ("--only", "")])
def test_a_pattern_that_matches_nothing_is_an_error(model, tmp_path, option, pattern):
    assert "no name matches" in convert(model, tmp_path / "o.pt", option, pattern, code=1).stderr


def test_nothing_left_is_an_error(model, tmp_path):
    assert "nothing is left" in convert(model, tmp_path / "o.pt", "--exclude", "*", code=1).stderr


def second(name, letter):
    """The name with its second `letter` as a capital."""
    parts = name.split(letter)
    return name if len(parts) < 3 else f"{parts[0]}{letter}{parts[1]}{letter.upper()}{letter.join(parts[2:])}"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["s/^encoder/enc/"], lambda n: n.replace("encoder", "enc", 1) if n.startswith("encoder") else n),
        (["s/e/E/g"], lambda n: n.replace("e", "E")),
        (["s/e/E/"], lambda n: n.replace("e", "E", 1)),
        (["s/WEIGHT/w/i"], lambda n: n.replace("weight", "w")),
        ([r"s/(\w+)\.(\d+)\./\2.\1./"], lambda n: ".".join([n.split(".")[1], n.split(".")[0], n.split(".")[2]])),
        (["s#^#model/#"], lambda n: "model/" + n),
        ([r"s/\./\//g"], lambda n: n.replace(".", "/")),
        (["s/encoder/[&]/"], lambda n: n.replace("encoder", "[encoder]")),
        (["s/encoder/a/", "s/^a/b/"], lambda n: n.replace("encoder", "b")),
        (["s/WEIGHT/w/I"], lambda n: n.replace("weight", "w")),
        (["s/e/E/2"], lambda n: second(n, "e")),
        (["s/e/E/2g"], lambda n: n.replace("e", "E").replace("E", "e", 1)),
        (["s·encoder·a·"], lambda n: n.replace("encoder", "a")),
    ],
)
def test_names_change_as_sed_changes_them(model, tmp_path, options, name):
    convert(model, tmp_path / "o.safetensors", *[word for text in options for word in ("--rename", text)])
    assert same(safe.load_file(tmp_path / "o.safetensors"), {name(k): v for k, v in layers().items()})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("s/./x/", {"xb", "x.w"}),
        ("s/(.)(.)/\\2\\1/", {"bé", ".日w"}),
        ("s/[é日]/_/", {"_b", "_.w"}),
        ("s/^..//g", {"w", ""}),
    ],
)
def test_a_character_of_a_name_may_have_several_bytes(tmp_path, text, names):
    safe.save_file({"éb": torch.ones(1), "日.w": torch.ones(2)}, tmp_path / "x.safetensors")
    if "" in names:
        told = convert(tmp_path / "x.safetensors", tmp_path / "o.safetensors", "--rename", text, code=1).stderr
        assert "nothing is left of the name 'éb'" in told
        return
    convert(tmp_path / "x.safetensors", tmp_path / "o.safetensors", "--rename", text)
    assert set(safe.load_file(tmp_path / "o.safetensors")) == names


def test_names_of_nested_content_become_one_dict(checkpoint, tmp_path):
    convert(checkpoint, tmp_path / "o.pt", "--rename", r"s/^model\.//", "--exclude", "sizes", "--exclude", "empty")
    found = torch.load(tmp_path / "o.pt")
    assert found.pop("epoch") == 7
    assert found.pop("note") == "x"
    assert same(found, layers())


def test_two_of_one_name_are_refused(model, tmp_path):
    refused = convert(model, tmp_path / "o.pt", "--rename", "s/encoder|decoder/x/", code=1).stderr
    assert "'encoder.0.weight' of" in refused
    assert "'decoder.0.weight' would both be called 'x.0.weight'" in refused
    assert "nothing is left of the name" in convert(model, tmp_path / "o.pt", "--rename", "s/.*//", code=1).stderr


def test_a_renaming_that_changes_no_name_is_told(tmp_path, model):
    told = convert(model, tmp_path / "o.safetensors", "--rename", "s/nobody/x/", "--rename", "s/./_/").stderr
    assert told == "penstock: --rename 's/nobody/x/': it changes no name\n"


@pytest.mark.parametrize(
    "text", ["", "s", "a/b", "s/a/b", "s/a/b/x", "s/(/b/", "y/a/b/", "s/a/b/c/d/", "s/a/b/0", "s\\a\\b\\"]
)
def test_what_is_no_renaming_is_wrong_usage(model, tmp_path, text):
    assert "--rename" in convert(model, tmp_path / "o.pt", "--rename", text, code=2).stderr


def test_a_group_that_is_not_there_is_wrong_usage(model, tmp_path):
    told = convert(model, tmp_path / "o.pt", "--rename", r"s/(e)n/\2/", code=2).stderr
    assert r"no \2 where the regular expression has 1 group" in told


@pytest.mark.parametrize(
    ("dtype", "full"), [("bf16", "bfloat16"), ("fp16", "float16"), ("half", "float16"), ("torch.float64", "float64")]
)
def test_a_dtype_has_short_names(tmp_path, dtype, full):
    safe.save_file({"x": torch.ones(3)}, tmp_path / "x.safetensors")
    convert(tmp_path / "x.safetensors", tmp_path / "o.safetensors", "--dtype", dtype)
    assert safe.load_file(tmp_path / "o.safetensors")["x"].dtype == getattr(torch, full)
    told = convert(tmp_path / "x.safetensors", tmp_path / "p.safetensors", "--dtype", "int8", code=2).stderr
    assert "float64, float32, float16, bfloat16" in told


@pytest.mark.parametrize("target", ["o.safetensors", "o.pt", "o.npz"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_become_one_type(tmp_path, target, dtype):
    if target == "o.npz" and dtype == "bfloat16":
        pytest.skip("NumPy has no bfloat16")
    to = getattr(torch, dtype)
    numbers = torch.arange(-600, 600, dtype=torch.float64).reshape(30, 40) / 7
    state = {
        "f64": numbers, "f32": numbers.float(), "f16": numbers.half(), "b16": numbers.bfloat16(),
        "i": numbers.long(), "b": numbers > 0, "c": numbers.to(torch.complex64), "t": numbers.float().T,
        "none": torch.zeros(0, 3), "big": torch.randn(3000, 1500),
    }  # fmt: skip
    if target == "o.npz":
        del state["b16"]
    torch.save(state, tmp_path / "x.pt")
    convert(tmp_path / "x.pt", tmp_path / target, "--dtype", dtype)
    expected = {k: v.to(to) if v.is_floating_point() else v for k, v in state.items()}
    if target == "o.npz":
        found = {name: torch.from_numpy(array) for name, array in np.load(tmp_path / target).items()}
    else:
        found = safe.load_file(tmp_path / target) if "safe" in target else torch.load(tmp_path / target)
    assert {k: v.dtype for k, v in found.items()} == {k: v.dtype for k, v in expected.items()}
    assert same(found, expected)


def test_tied_weights_stay_tied_in_another_type(tmp_path):
    weight = torch.randn(5, 4)
    torch.save({"a": weight, "b": weight, "v": weight[1:]}, tmp_path / "x.pt")
    convert(tmp_path / "x.pt", tmp_path / "o.pt", "--dtype", "float16")
    found = torch.load(tmp_path / "o.pt")
    assert found["a"].data_ptr() == found["b"].data_ptr()
    assert found["a"].equal(weight.half())
    assert found["v"].equal(weight.half()[1:])


def test_values_beyond_a_type_are_told(tmp_path):
    torch.save({"a": torch.tensor([1e6, 1.0, -1e6, float("inf")])}, tmp_path / "x.pt")
    told = convert(tmp_path / "x.pt", tmp_path / "o.safetensors", "--dtype", "float16").stderr
    assert "2 values beyond the range of float16 became infinite" in told
    assert safe.load_file(tmp_path / "o.safetensors")["a"].tolist() == [float("inf"), 1.0, -float("inf"), float("inf")]
    assert convert(tmp_path / "x.pt", tmp_path / "o.pt", "--dtype", "bfloat16").stderr == ""
    # The range of a byte that is an exponent alone.
    torch.save({"scale": torch.tensor([2.0**127, 1.0]).to(torch.float8_e8m0fnu)}, tmp_path / "e.pt")
    told = convert(tmp_path / "e.pt", tmp_path / "e.safetensors", "--dtype", "float16").stderr
    assert "1 value beyond the range of float16 became infinite" in told
    assert convert(tmp_path / "e.pt", tmp_path / "f.pt", "--dtype", "bfloat16").stderr == ""


def test_tensors_beside_the_items_of_a_dict_are_kept(tmp_path):
    made = collections.OrderedDict(a=torch.zeros(3), b=torch.arange(4.0))
    made.extra = torch.full((5,), 7.0)
    torch.save({"first": torch.ones(2), "model": made}, tmp_path / "x.pt")
    convert(tmp_path / "x.pt", tmp_path / "o.pt", "--exclude", "model.a", "--exclude", "first")
    found = torch.load(tmp_path / "o.pt", weights_only=False)
    assert list(found) == ["model"]
    assert found["model"]["b"].equal(made["b"])
    assert found["model"].extra.equal(made.extra)
    convert(tmp_path / "x.pt", tmp_path / "o.safetensors", "--rename", "s/model/m/")
    assert sorted(safe.load_file(tmp_path / "o.safetensors")) == ["first", "m.a", "m.b"]


def test_conversion_takes_little_memory(tmp_path):
    size = 256 << 20
    path = safetensors(tmp_path / "x.safetensors", "F32", [0], b"")
    safetensors(path, "F32", [0], b"")
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + size)

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (96 << 20, 96 << 20))

    convert(path, tmp_path / "o.safetensors", "--dtype", "bf17", code=2)
    convert(path, tmp_path / "o.safetensors", "--dtype", "bfloat16", preexec_fn=limit)
    assert (tmp_path / "o.safetensors").stat().st_size > size // 2


def test_files_are_put_together(model, tmp_path):
    safe.save_file({"head.w": torch.ones(2)}, tmp_path / "head.safetensors", metadata={"by": "x"})
    np.savez(tmp_path / "more.npz", tail=np.arange(3))
    convert(
        model, tmp_path / "o.safetensors", "--merge", tmp_path / "head.safetensors", "--merge", tmp_path / "more.npz"
    )
    found = safe.load_file(tmp_path / "o.safetensors")
    assert found.pop("tail").tolist() == [0, 1, 2]
    assert found.pop("head.w").tolist() == [1, 1]
    assert same(found, layers())
    with pytest.importorskip("safetensors").safe_open(tmp_path / "o.safetensors", "pt") as file:
        assert file.metadata() == {"by": "x"}
    refused = convert(model, tmp_path / "p.safetensors", "--merge", model, code=1).stderr
    assert "would both be called 'encoder.0.weight'" in refused
    assert not (tmp_path / "p.safetensors").exists()
    np.save(tmp_path / "bare.npy", np.arange(3))
    convert(model, tmp_path / "named.pt", "--merge", tmp_path / "bare.npy")
    found = torch.load(tmp_path / "named.pt")
    assert found.pop("bare").tolist() == [0, 1, 2]
    assert len(found) > 0
    assert "not a dict" in convert(tmp_path / "bare.npy", tmp_path / "p.pt", "--only", "x", code=1).stderr
    assert not (tmp_path / "p.pt").exists()
    head = tmp_path / "head.safetensors"
    assert "to be converted" in convert(model, head, "--merge", head, "--force", code=1).stderr


@pytest.mark.parametrize("size", ["1", "48", "49", "100B", "0.2kB", "1 KiB", "1GB"])
def test_shards_are_those_of_a_model(model, tmp_path, size):
    convert(model, tmp_path / "m.safetensors", "--shard-size", size)
    index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(t.nbytes for t in layers().values())
    files = sorted(set(index["weight_map"].values()))
    most = {"1": 48, "48": 48, "49": 48, "100B": 96, "0.2kB": 200}.get(size, 10**9)
    assert files == [f"m-{i:05}-of-{len(files):05}.safetensors" for i in range(1, len(files) + 1)]
    found = {}
    for file in files:
        part = safe.load_file(tmp_path / file)
        assert sum(t.nbytes for t in part.values()) <= most
        assert all(index["weight_map"][name] == file for name in part)
        found |= part
    assert same(found, layers())
    convert(tmp_path / "m.safetensors.index.json", tmp_path / "back.safetensors")
    assert same(safe.load_file(tmp_path / "back.safetensors"), layers())


@pytest.mark.parametrize("size", ["", "0", "0.2", "0.2 B", ".2kB", "1.kB", "1..2kB", "-1kB", "1e3", "nan", "1kX"])
def test_what_is_no_size_is_refused(model, tmp_path, size):
    before = sorted(os.listdir(tmp_path))
    told = convert(model, tmp_path / "m.safetensors", f"--shard-size={size}", code=2).stderr
    assert "--shard-size" in told
    assert sorted(os.listdir(tmp_path)) == before


def test_shards_leave_nothing_when_one_fails(model, tmp_path):
    (tmp_path / "m-00012-of-00012.safetensors").mkdir()
    before = sorted(os.listdir(tmp_path))
    convert(model, tmp_path / "m.safetensors", "--shard-size", "48", code=1)
    assert sorted(os.listdir(tmp_path)) == before
    convert(model, tmp_path / "m.safetensors", "--shard-size", "48", "--force", code=1)
    assert sorted(os.listdir(tmp_path)) == before


def content_of(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_shards_that_fail_leave_those_of_an_earlier_index(model, tmp_path):
    (tmp_path / "out").mkdir()
    to = (tmp_path / "out" / "m.safetensors", "--shard-size", "48")
    index = tmp_path / "out" / "m.safetensors.index.json"
    convert(model, *to)
    before = content_of(tmp_path / "out")
    other = {name: tensor + 1 for name, tensor in layers().items()}
    torch.save(other, tmp_path / "other.pt")
    raw = bytearray((tmp_path / "other.pt").read_bytes())
    last = list(other)[-1]
    raw[raw.rfind(other[last].numpy().tobytes())] ^= 1
    (tmp_path / "damaged.pt").write_bytes(raw)
    convert(tmp_path / "damaged.pt", *to, "--force", code=1)
    assert content_of(tmp_path / "out") == before
    for turn in range(3):
        source, expected = ((tmp_path / "other.pt", other), (model, layers()))[turn % 2]
        convert(source, *to, "--force")
        convert(index, tmp_path / "back.safetensors", "--force")
        assert same(safe.load_file(tmp_path / "back.safetensors"), expected)
        assert len(os.listdir(tmp_path / "out")) == len(before)
    convert(index, *to, "--force", code=1)


def test_shards_of_tied_tensors_and_other_formats_are_refused(tmp_path):
    weight = torch.randn(4)
    torch.save({"a": weight, "b": weight}, tmp_path / "x.pt")
    assert "share memory" in convert(tmp_path / "x.pt", tmp_path / "o.safetensors", "--shard-size", "1", code=1).stderr
    assert "--shard-size" in convert(tmp_path / "x.pt", tmp_path / "o.pt", "--shard-size", "1", code=1).stderr


def test_metadata_are_added(tmp_path):
    safe.save_file({"a": torch.ones(2)}, tmp_path / "x.safetensors", metadata={"by": "x", "kept": "y"})
    convert(tmp_path / "x.safetensors", tmp_path / "o.safetensors", "--metadata", "by=z=1", "--metadata", "empty=")
    with pytest.importorskip("safetensors").safe_open(tmp_path / "o.safetensors", "pt") as file:
        assert file.metadata() == {"by": "z=1", "kept": "y", "empty": ""}
    assert (
        "hold no metadata" in convert(tmp_path / "x.safetensors", tmp_path / "o.pt", "--metadata", "a=b", code=1).stderr
    )
    assert "KEY=TEXT" in convert(tmp_path / "x.safetensors", tmp_path / "o.pt", "--metadata", "a", code=2).stderr
    twice = ("--metadata", "a=1", "--metadata", "a=2")
    told = convert(tmp_path / "x.safetensors", tmp_path / "t.safetensors", *twice, code=2).stderr
    assert "--metadata: 'a' is given twice" in told


def test_damage_is_found_whatever_is_chosen(model, tmp_path):
    raw = bytearray(model.read_bytes())
    at = raw.find(layers()["encoder.0.weight"].numpy().tobytes())
    raw[at + 5] ^= 1
    model.write_bytes(raw)
    for options in (["--only", "encoder.0"], ["--dtype", "float16"], ["--shard-size", "1GB"], ["--rename", "s/a/b/"]):
        convert(model, tmp_path / "o.safetensors", *options, code=1)
        assert os.listdir(tmp_path) == ["model.pt"]


def optimizer_state() -> dict:
    state = {i: {"exp_avg": torch.full((3,), float(i)), "step": torch.tensor(5.0)} for i in (0, 10)}
    return {"optimizer": {"state": state, "param_groups": [{"lr": 0.1, "params": [0, 10]}]}}


def test_integer_keys_become_text_where_that_is_asked_for(tmp_path):
    torch.save(optimizer_state(), tmp_path / "x.pt")
    only = ("--only", "optimizer.state")
    assert "integer" in convert(tmp_path / "x.pt", tmp_path / "no.safetensors", *only, code=1).stderr
    convert(tmp_path / "x.pt", tmp_path / "x.safetensors", *only, "--text-keys")
    found = safe.load_file(tmp_path / "x.safetensors")
    assert sorted(found) == [f"optimizer.state.{i}.{k}" for i in (0, 10) for k in ("exp_avg", "step")]
    assert found["optimizer.state.10.exp_avg"].tolist() == [10.0] * 3
    convert(tmp_path / "x.pt", tmp_path / "y.pt", "--text-keys")
    kept = torch.load(tmp_path / "y.pt")["optimizer"]
    assert list(kept["state"]) == ["0", "10"]
    assert kept["param_groups"] == [{"lr": 0.1, "params": [0, 10]}]


def test_keys_that_would_become_one_are_refused(tmp_path):
    torch.save({"s": {1: torch.ones(1), "1": torch.zeros(1)}}, tmp_path / "x.pt")
    told = convert(tmp_path / "x.pt", tmp_path / "x.safetensors", "--text-keys", code=1).stderr
    assert "'s' has the key 1 as an integer and as text" in told


@pytest.mark.parametrize("target", ["out.pt", "out.safetensors"])
@pytest.mark.parametrize("choice", [["--only", "good"], ["--exclude", "hurt"], ["--key", "good"]], ids=" ".join)
def test_only_what_is_taken_is_checked(tmp_path, target, choice):
    path = tmp_path / "x.pt"
    torch.save({"good": {"w": torch.ones(1000)}, "hurt": {"w": torch.full((1000,), 2.0)}}, path)
    content = path.read_bytes()
    path.write_bytes(content.replace(torch.full((1000,), 2.0).numpy().tobytes()[:40], bytes(40), 1))
    convert(path, tmp_path / target, *choice)
    assert "CRC-32" in convert(path, tmp_path / f"no-{target}", "--only", "hurt", code=1).stderr
    assert "CRC-32" in convert(path, tmp_path / f"no-{target}", code=1).stderr
