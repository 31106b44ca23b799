"""What penstock.load gives for files that NumPy, PyTorch and safetensors wrote."""

import collections
import os
import pickle
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest
from ctrl_c import answers_ctrl_c

import penstock


def test_npy_is_a_tensor(tmp_path):
    path = tmp_path / "x.npy"
    array = np.arange(6, dtype="f4").reshape(2, 3)
    np.save(path, array)
    for spelling in (path, str(path), os.fsencode(path)):
        t = penstock.load(spelling)
        assert isinstance(t, penstock.Tensor)
        assert (t.numpy() == array).all()
        assert not t.read_only


def test_npz_is_a_dict(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(3), b=np.array(["x", "yz"]))
    loaded = penstock.load(path)
    assert list(loaded) == ["a", "b"]
    assert loaded["a"].tolist() == [0, 1, 2]
    assert loaded["b"].tolist() == ["x", "yz"]


def test_mapping(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(1000))
    t = penstock.load(path, mmap=True)
    assert t.read_only
    assert not t.numpy().flags.writeable
    assert t.tolist() == list(range(1000))
    assert not penstock.load(path, mmap=False).read_only


def test_mapping_what_is_compressed_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(1000))
    with pytest.raises(penstock.UnsupportedError, match=r"x\.npz"):
        penstock.load(path, mmap=True)


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.arange(2_000_000, dtype="f8").reshape(1000, 2000))
    return path


def loads_of(path):
    """Every way to load all of it."""
    archive = penstock.open(path)
    return [lambda **options: penstock.load(path, **options), archive.load, archive[archive.keys()[0]].load]


def test_report_says_how(large):
    for load in loads_of(large):
        report = {"from": "before"}
        t = load(report=report)
        assert set(report) == {
            *("route", "why", "payload_bytes", "read_bytes", "depth", "depth_limit"),
            *("open_seconds", "read_seconds", "decode_seconds", "total_seconds"),
        }
        assert report["route"] in ("read", "direct")
        assert "not cached" in report["why"]
        assert report["payload_bytes"] == report["read_bytes"] == t.nbytes
        assert report["total_seconds"] > 0
        load(mmap=True, report=report)
        assert report["route"] == "map"


def test_total_of_a_load_has_the_opening_in_it(tmp_path):
    path = tmp_path / "many.npz"
    np.savez(path, **{f"a{i}": np.zeros(1) for i in range(2000)})
    report = {}
    penstock.load(path, mmap=True, report=report)
    assert report["total_seconds"] > report["open_seconds"] > 0


def test_past_the_page_cache_or_through_it_as_asked(large):
    for load in loads_of(large):
        for direct in (True, False):
            report = {}
            assert load(direct=direct, report=report).numpy()[-1, -1] == 1_999_999
            offered = "because" not in report["why"]
            assert report["route"] == ("direct" if direct and offered else "read")
            if offered:
                assert ("past" if direct else "through") + " the page cache, as asked" in report["why"]


def test_as_many_threads_as_asked(large):
    for load in loads_of(large):
        for threads in (1, 2):
            report = {}
            assert load(threads=threads, report=report).numpy()[-1, -1] == 1_999_999
            assert f" by {threads} thread" in report["why"]
        with pytest.raises(ValueError, match="threads=-1"):
            load(threads=-1)
        with pytest.raises(TypeError):
            load(threads=1.5)


def test_gds_means_nothing_on_the_host(large):
    for load in loads_of(large):
        for gds in (True, False):
            report = {}
            load(gds=gds, report=report)
            assert report["route"] in ("read", "direct")


def test_report_of_a_load_that_fails_stays_as_it_was(tmp_path):
    report = {"from": "before"}
    with pytest.raises(FileNotFoundError):
        penstock.load(tmp_path / "missing.npy", report=report)
    assert report == {"from": "before"}
    with pytest.raises(TypeError):
        penstock.load(tmp_path / "missing.npy", report=[])


torch = pytest.importorskip("torch")


def saved(tmp_path, obj, **options):
    path = tmp_path / "x.pt"
    torch.save(obj, path, **options)
    return path


def test_nested_content(tmp_path):
    content = {
        "list": [1, 2.5, "text", None, True, b"bytes", 1 + 2j],
        "tuple": (torch.arange(3), {"deep": [torch.ones(2, 2)]}),
        3: "integer key",
        ("a", 1): "tuple key",
        "set": {1, 2},
        "big": 2**200,
        "negative": -(3**100),
        "size": torch.Size([2, 3]),
        "dtype": torch.bfloat16,
        "empty": [[], (), {}, ""],
    }
    loaded = penstock.load(saved(tmp_path, content))
    assert list(loaded) == list(content)
    for key in ("list", 3, ("a", 1), "set", "big", "negative", "empty"):
        assert loaded[key] == content[key]
        assert type(loaded[key]) is type(content[key])
    assert loaded["tuple"][0].tolist() == [0, 1, 2]
    assert loaded["tuple"][1]["deep"][0].shape == (2, 2)
    assert loaded["size"] == (2, 3)
    assert loaded["dtype"] == penstock.DType("bfloat16")


def test_state_dict(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    loaded = penstock.load(saved(tmp_path, module.state_dict()))
    assert type(loaded) is collections.OrderedDict
    assert loaded._metadata == module.state_dict()._metadata
    for name, value in module.state_dict().items():
        assert torch.equal(torch.from_dlpack(loaded[name]), value)


def test_bare_tensor(tmp_path):
    source = torch.nn.Parameter(torch.arange(4.0))
    t = penstock.load(saved(tmp_path, source))
    assert isinstance(t, penstock.Tensor)
    assert t.requires_grad
    assert t.tolist() == [0, 1, 2, 3]


def test_shared_objects_stay_shared(tmp_path):
    t = torch.arange(10)
    part = [1]
    loaded = penstock.load(saved(tmp_path, {"a": t, "b": t, "view": t[2:5], "x": part, "y": part}))
    assert loaded["a"] is loaded["b"]
    assert loaded["x"] is loaded["y"]
    loaded["a"].numpy()[3] = 99
    assert loaded["view"].tolist() == [2, 99, 4]


def test_cycles(tmp_path):
    content = {"list": []}
    content["list"].append(content["list"])
    content["self"] = content
    loaded = penstock.load(saved(tmp_path, content))
    assert loaded["list"][0] is loaded["list"]
    assert loaded["self"] is loaded


def test_cycle_through_a_tuple(tmp_path):
    inner = []
    outer = (inner,)
    inner.append(outer)
    loaded = penstock.load(saved(tmp_path, [outer]))
    assert loaded[0][0][0] is loaded[0]


class Custom:
    def __init__(self):
        self.weight = torch.arange(3)


def test_unknown_objects_are_opaque(tmp_path):
    loaded = penstock.load(saved(tmp_path, {"model": Custom(), "t": torch.ones(2)}))
    opaque = loaded["model"]
    assert isinstance(opaque, penstock.Opaque)
    assert opaque.type_name.endswith("Custom")
    assert opaque.state["weight"].tolist() == [0, 1, 2]
    assert "Custom" in repr(opaque)
    assert loaded["t"].tolist() == [1, 1]
    assert any(name.endswith("Custom") for name in penstock.open(tmp_path / "x.pt").unknown_globals)


def pickled(tmp_path, payload: bytes):
    """A `.pt` around a pickle of our own."""
    path = tmp_path / "hand.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hand/data.pkl", payload)
        archive.writestr("hand/version", "3\n")
    return path


class Marker:
    def __reduce__(self):
        return os.mkdir, ("should-not-exist",)


def test_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = penstock.load(pickled(tmp_path, pickle.dumps([Marker()], 2)))
    assert isinstance(loaded[0], penstock.Opaque)
    assert loaded[0].args == ("should-not-exist",)
    assert not (tmp_path / "should-not-exist").exists()


def nested_lists(depth):
    return b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."


def test_depth_is_no_danger(tmp_path):
    """As deep as the reader allows: whatever it lets through converts and dies without overflowing the stack."""
    code = textwrap.dedent(
        """
        import sys, penstock
        try:
            value = penstock.load(sys.argv[1])
        except penstock.Error as error:
            print("refused", error.code)
        else:
            depth = 0
            node = value
            while node:
                node = node[0]
                depth += 1
            del node, value
            print("depth", depth)
        """
    )
    for depth in (10, 900, 200_000):
        path = pickled(tmp_path, nested_lists(depth))
        result = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stderr
        assert result.stdout.split()[0] in ("depth", "refused")
        if depth == 10:
            assert result.stdout == "depth 9\n"


def tuple_key(depth, shared):
    """A dict whose key is a tuple that nests `depth` times; with `shared`, twice over at each level."""
    one = b"\x86" if shared else b"\x85"
    body = b"K\x01"
    for _ in range(depth):
        body += (b"q\x00h\x00" if shared else b"") + one
    return b"\x80\x02}" + body + b"Ns."


@pytest.mark.parametrize("shared", [False, True])
def test_keys_that_hash_without_end_are_refused(tmp_path, shared):
    path = pickled(tmp_path, tuple_key(60 if shared else 100_000, shared))
    with pytest.raises(penstock.Error):
        penstock.load(path)


def test_unhashable_keys_are_refused(tmp_path):
    with pytest.raises(penstock.Error):
        penstock.load(pickled(tmp_path, b"\x80\x02}]Ns."))


def test_lone_surrogates(tmp_path):
    """Strings that are no Unicode come as Python and torch read them."""
    loaded = penstock.load(pickled(tmp_path, pickle.dumps({"k\ud800": "\udcff"}, 2)))
    assert loaded == {"k\ud800": "\udcff"}


@pytest.mark.parametrize("text", ["\ud800", "a\ud800\ud801b", "\ud800\\x", "\udc00\ud800\n", "\U0001f600"], ids=ascii)
def test_text_of_protocol_0(text, tmp_path):
    """Lone surrogates are escaped as other characters are."""
    assert penstock.load(pickled(tmp_path, pickle.dumps([text], 0))) == [text]


def test_integers_of_many_digits(tmp_path):
    value = 7**2500
    loaded = penstock.load(pickled(tmp_path, pickle.dumps([value, -value], 2)))
    assert loaded == [value, -value]


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "x.safetensors"
    content = {"w": torch.arange(6).reshape(2, 3).to(torch.bfloat16), "b": torch.ones(3)}
    safetensors.save_file(content, path, metadata={"note": "hello"})
    loaded = penstock.load(path)
    assert sorted(loaded) == ["b", "w"]
    assert torch.equal(torch.from_dlpack(loaded["w"]), content["w"])
    assert penstock.open(path).metadata == {"note": "hello"}


def test_wrong_checksums(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.arange(100))
    raw = bytearray(path.read_bytes())
    at = raw.find(np.arange(100).tobytes())
    raw[at + 8] ^= 1
    path.write_bytes(raw)
    with pytest.raises(penstock.ChecksumError, match=r"x\.npz"):
        penstock.load(path)
    assert penstock.load(path, verify=False)["a"].tolist()[2:] == list(range(2, 100))


@pytest.mark.slow
def test_loading_answers_ctrl_c(tmp_path):
    # Zeros that take seconds to inflate, in a file of a few megabytes.
    path = tmp_path / "big.npz"
    compressed = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with compressed as archive, archive.open("a.npy", "w", force_zip64=True) as f:
        np.lib.format.write_array_header_1_0(f, {"descr": "|u1", "fortran_order": False, "shape": (2 << 30,)})
        block = bytes(16 << 20)
        for _ in range(128):
            f.write(block)
    after = "print(penstock.open('big.npz').keys())"
    assert answers_ctrl_c(tmp_path, "", "[penstock.load('big.npz') for _ in range(20)]", after) == ["['a']"]
    samples = "samples = penstock.files(['big.npz'])"
    answers_ctrl_c(tmp_path, samples, "[samples[0] for _ in range(20)]")


def test_other_signal_handlers_run(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(1000))
    setup = "signal.signal(signal.SIGINT, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))"
    answers_ctrl_c(tmp_path, setup, "while True: penstock.load('x.npy')")


def test_threads_load_at_the_same_time(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full(100_000, i))
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda i: penstock.load(tmp_path / f"{i % 8}.npy"), range(64)))
    assert [t[-1].item() for t in loaded] == [i % 8 for i in range(64)]


def test_loads_keep_no_files_open(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3))
    before = len(os.listdir("/proc/self/fd"))
    kept = [penstock.load(tmp_path / "x.npy") for _ in range(10)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(kept) == 10


def refusal(path):
    """Why a file does not load, or nothing."""
    try:
        penstock.load(path)
    except penstock.Error as error:
        return str(error)
    return None


def test_corpus_loads_or_is_refused(corpus):
    """Every file that others wrote loads, or is refused with an error that names it."""
    paths = [p for p in corpus.rglob("*") if p.suffix in (".pt", ".pth", ".npy", ".npz", ".safetensors")]
    assert paths
    for path in paths:
        message = refusal(path)
        assert message is None or str(path) in message


@pytest.mark.parametrize("other", ["direct", "gds"])
def test_a_map_is_not_read_in_any_way(tmp_path, other):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3.0))
    calls = [
        lambda **options: penstock.load(path, **options),
        lambda **options: penstock.load(path, dtype="u1", offset=128, **options),
        lambda **options: penstock.open(path).load(**options),
        lambda **options: penstock.open(path)[""].load(**options),
        lambda **options: penstock.load_async(path, **options).result(),
    ]
    for call in calls:
        with pytest.raises(penstock.UnsupportedError, match=f"mmap and {other}"):
            call(mmap=True, **{other: True})
        assert call(mmap=True, **{other: False}).nbytes == 24
        assert call(**{other: True}).nbytes == 24


def test_negative_and_huge_numbers_of_threads_are_told(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    for threads, said in ((-1, "threads=-1, expected 0 or more"), (2**70, "threads of 71 bits, expected")):
        with pytest.raises(penstock.Error, match=said):
            penstock.load(tmp_path / "x.npy", threads=threads)
    with pytest.raises(TypeError, match=r"verify=.*numpy.*, expected True or False|verify=an object"):
        penstock.load(tmp_path / "x.npy", verify=np.True_)
