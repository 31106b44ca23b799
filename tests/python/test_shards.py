"""penstock.shards: samples in tar shards, compared with tarfile, and with webdataset where it is installed."""

import gzip
import io
import json
import math
import os
import pickle
import random
import string
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest
from ctrl_c import answers_ctrl_c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock

FORMATS = {"pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT, "ustar": tarfile.USTAR_FORMAT}


def npy_of(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz_of(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def tar_of(members, form="pax", **options):
    """The bytes of an archive with these (name, content) or TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=FORMATS[form], **options) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            name, content = member
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1.25 if form == "pax" else 1
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def numbered(first, count):
    for i in range(first, first + count):
        yield f"{i:04}.npy", npy_of(np.full(4, i))
        yield f"{i:04}.cls", b"%d\n" % i
        yield f"{i:04}.json", json.dumps({"n": [i, None]}).encode()


def write(path, content):
    path.write_bytes(content)
    return str(path)


@pytest.fixture
def three(tmp_path):
    """Shards of 5, 3 and 9 samples, numbered through."""
    first = 0
    for number, count in enumerate([5, 3, 9]):
        write(tmp_path / f"t-{number:03}.tar", tar_of(numbered(first, count), list(FORMATS)[number]))
        first += count
    return str(tmp_path / "t-{000..002}.tar")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Indexes are kept in a folder of the test's."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "penstock"


def numbers(loader):
    return [int(n) for batch in loader for n in np.asarray(batch["cls"])]


def test_samples_are_dicts_by_field(tmp_path):
    path = write(
        tmp_path / "a.tar",
        tar_of(
            [
                ("s/a.npy", npy_of(np.arange(6.0).reshape(2, 3))),
                ("s/a.mask.npz", npz_of(m=np.ones(2, "u1"))),
                ("s/a.cls", b"3"),
                ("s/a.txt", "hä\n".encode()),
                ("s/a.JSON", b'{"b": [NaN, 1, "x"], "a": {}}'),
                ("s/a.jpg", b"\xff\xd8"),
            ]
        ),
    )
    sample = penstock.shards(path)[0]
    assert list(sample) == ["__key__", "npy", "mask.npz", "cls", "txt", "json", "jpg"]
    assert sample["__key__"] == "s/a"
    assert np.array_equal(np.asarray(sample["npy"]), np.arange(6.0).reshape(2, 3))
    assert np.array_equal(np.asarray(sample["mask.npz"]["m"]), [1, 1])
    assert (sample["cls"], sample["txt"], sample["jpg"]) == (3, "hä\n", b"\xff\xd8")
    assert math.isnan(sample["json"]["b"][0])
    assert list(sample["json"]) == ["b", "a"]


def samples_by_tarfile(path):
    """What the rules of WebDataset make of what tarfile reads: (key, {field: bytes})."""
    out = []
    with tarfile.open(path, errors="surrogateescape", encoding="utf-8") as tar:
        for member in tar:
            folder, slash, file = member.name.rpartition("/")
            stem, dot, field = file.partition(".")
            if not member.isreg() or not dot or not stem or (len(stem) > 4 and stem[:2] == stem[-2:] == "__"):
                continue
            key = folder + slash + stem
            if not out or out[-1][0] != key:
                out.append((key, {}))
            out[-1][1][field.lower()] = tar.extractfile(member).read()
    return out


NAME = st.text(st.sampled_from("ab_-äÖ漢 .😀'\\"), min_size=1, max_size=12) | st.text("xy/", min_size=90, max_size=290)


@st.composite
def trees(draw):
    """Members in the order of an archive, of which no field comes twice in a sample."""
    members, last, fields = [], None, set()
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["file", "file", "file", "folder", "meta"]))
        if kind == "folder":
            folder = tarfile.TarInfo(draw(st.sampled_from(["f", "f.d/g"])))
            folder.type = tarfile.DIRTYPE
            members.append(folder)
            continue
        if kind == "meta":
            members.append(("__info__.json", b"{"))
            continue
        name = draw(NAME).strip("/").replace("//", "/") or "n"
        folder, slash, file = name.rpartition("/")
        stem = folder + slash + (file.partition(".")[0] or "n")
        if last is not None and draw(st.booleans()):
            stem = last
        if stem != last:
            last, fields = stem, set()
        field = draw(st.sampled_from(["bin", "a.bin", "x.y.Z", "", "ä"]))
        if field.lower() in fields:
            continue
        fields.add(field.lower())
        members.append((f"{stem}.{field}", draw(st.binary(max_size=1200))))
    return members


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(members=trees(), form=st.sampled_from(list(FORMATS)))
def test_members_are_those_of_tarfile(tmp_path, members, form):
    try:
        content = tar_of(members, form)
    except ValueError:  # ustar has no name that long
        return
    path = write(tmp_path / "a.tar", content)
    expected = samples_by_tarfile(path)
    dataset = penstock.shards(path, raw=True, index=False)
    if members and not expected:
        for count in (len, lambda data: list(penstock.stream(data))):
            with pytest.raises(penstock.UnsupportedError, match="none of a sample"):
                count(dataset)
        return
    found = [(s.pop("__key__"), s) for s in (dict(dataset[i]) for i in range(len(dataset)))]
    assert found == expected
    assert [(s.pop("__key__"), s) for s in map(dict, penstock.stream(dataset))] == expected


DTYPES = ["u1", "i1", "<i2", ">i4", "i8", "f2", "f4", ">f8", "?", "c8", "u8"]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), big=st.booleans())
def test_arrays_of_every_dtype_and_shape(tmp_path, seed, big):
    rng = np.random.default_rng(seed)
    arrays = []
    for _ in range(rng.integers(1, 6)):
        shape = tuple(rng.integers(0, 5, rng.integers(0, 4)))
        if big and rng.integers(3) == 0:
            shape = (150_000,)
        array = rng.integers(0, 2, shape).astype(rng.choice(DTYPES))
        arrays.append(np.asfortranarray(array) if rng.integers(2) else array)
    path = write(tmp_path / "a.tar", tar_of([(f"{i}.npy", npy_of(a)) for i, a in enumerate(arrays)]))
    for keys in (None, "npy", ["npy", "__key__"]):
        dataset = penstock.shards(path, keys, index=False)
        assert len(dataset) == len(arrays)
        for i in rng.permutation(len(arrays)):
            found = np.asarray(dataset[int(i)]["npy"])
            assert (found.shape, found.dtype) == (arrays[i].shape, arrays[i].dtype.newbyteorder("="))
            assert found.tobytes() == arrays[i].astype(found.dtype).tobytes()


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_sample_once_in_an_epoch(three, workers, shuffle):
    dataset = penstock.shards(three, keys=["npy", "cls"])
    assert len(dataset) == 17
    loader = penstock.DataLoader(dataset, batch_size=4, shuffle=shuffle, num_workers=workers, seed=3)
    orders = []
    for _ in range(2):
        orders.append([])
        for batch in loader:
            assert np.array_equal(np.asarray(batch["npy"])[:, 0], np.asarray(batch["cls"]))
            orders[-1] += np.asarray(batch["cls"]).tolist()
    assert sorted(orders[0]) == list(range(17))
    assert (orders[0] == list(range(17))) != shuffle
    assert (orders[0] == orders[1]) != shuffle


@pytest.mark.parametrize("taken", range(5))
def test_a_resumed_loader_goes_on_where_it_was(three, taken):
    def made():
        return penstock.DataLoader(penstock.shards(three, ["cls"]), batch_size=4, shuffle=True, num_workers=1, seed=5)

    whole = numbers(made())
    loader = made()
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    again = made()
    again.load_state_dict(state)
    assert numbers(again) == whole[4 * taken :]


def test_a_dataset_can_be_pickled(three):
    dataset = penstock.shards(three, keys=["cls", "__url__"], index=False)
    again = pickle.loads(pickle.dumps(dataset))
    assert [again[i]["cls"] for i in range(17)] == list(range(17))
    assert again[5]["__url__"].endswith("t-001.tar")
    mapped = pickle.loads(pickle.dumps(dataset.filter(is_even)))
    assert numbers(penstock.DataLoader(mapped, batch_size=3, num_workers=0)) == list(range(0, 17, 2))


def is_even(sample):
    return sample["cls"] % 2 == 0


def test_ways_to_name_shards(three, tmp_path):
    folder = str(tmp_path)
    for given_ in (
        folder,
        f"{folder}/*.tar",
        f"{folder}/t-000.tar::{folder}/t-00{{1,2}}.tar",
        three,
        tmp_path,
        [tmp_path / "t-000.tar", f"{folder}/t-{{001..002}}.tar"],
    ):
        dataset = penstock.shards(given_, "cls")
        assert [dataset[i]["cls"] for i in range(len(dataset))] == list(range(17))
    wids = {"wids_version": 1, "shardlist": [{"url": "t-002.tar", "nsamples": 9}, {"url": "t-000.tar"}]}
    path = write(tmp_path / "list.json", json.dumps(wids).encode())
    assert len(penstock.shards(path)) == 14
    for url in ("../t-000.tar", "/etc/passwd", "a/../../t-000.tar"):
        wids["shardlist"][0]["url"] = url
        write(tmp_path / "list.json", json.dumps(wids).encode())
        with pytest.raises(penstock.UnsafeError, match="neither a URL nor"):
            penstock.shards(path)
    wids["shardlist"][0] = {"url": "t-002.tar", "nsamples": 8}
    write(tmp_path / "list.json", json.dumps(wids).encode())
    with pytest.raises(penstock.CorruptError, match=r"says 8 samples.*has 9"):
        len(penstock.shards(path))
    for wrong in ([], str(tmp_path / "none-*.tar"), ""):
        with pytest.raises(penstock.NotFoundError):
            len(penstock.shards(wrong))
    with pytest.raises(penstock.UnsafeError):
        penstock.shards("pipe:cat a.tar")


def test_other_fields_are_not_read(tmp_path):
    members = []
    for i in range(40):
        members += [(f"{i}.cls", b"1"), (f"{i}.jpg", os.urandom(100_000))]
    path = write(tmp_path / "a.tar", tar_of(members))

    def read(keys):
        loader = penstock.DataLoader(penstock.shards(path, keys), batch_size=8, num_workers=0)
        for _ in loader:
            pass
        return loader.stats()["read_bytes"]

    assert read(["cls"]) < 40 * 8192
    assert read(["jpg"]) >= 40 * 100_000


def test_an_index_is_kept_and_found_stale(three, tmp_path, cache):
    assert len(penstock.shards(three)) == 17
    assert len(list(cache.iterdir())) == 1
    index = tmp_path / "my.index"
    assert len(penstock.shards(three, index=index)) == 17
    before = index.read_bytes()
    assert len(penstock.shards(three, index=index)) == 17
    assert index.read_bytes() == before
    write(tmp_path / "t-001.tar", tar_of(numbered(5, 30)))
    assert len(penstock.shards(three, index=index)) == 44
    index.write_bytes(before[:-20])
    assert len(penstock.shards(three, index=index)) == 44
    index.write_bytes(b"notes of mine")
    with pytest.raises(penstock.Error, match="not an index"):
        len(penstock.shards(three, index=index))


@pytest.mark.parametrize("made", [penstock.shards, penstock.files], ids=["shards", "files"])
def test_an_index_has_a_file_of_its_own(three, tmp_path, cache, made):
    pattern = f"{tmp_path}/*.tar"
    len(made(pattern, index=f"file://{tmp_path}/by_url.index"))
    len(made(pattern, index=bytes(tmp_path / "by_bytes.index")))
    assert (tmp_path / "by_url.index").read_bytes() == (tmp_path / "by_bytes.index").read_bytes()
    with pytest.raises(ValueError, match="index='' names no file"):
        made(pattern, index="")
    assert not cache.exists() or not list(cache.iterdir())


def test_without_an_index_nothing_is_kept(three, cache):
    assert len(penstock.shards(three, index=False)) == 17
    assert not cache.exists() or not list(cache.iterdir())


def begins_of(path):
    """What Energon writes: where each sample begins, and where the last one ends."""
    begins, key = [], None
    with tarfile.open(path) as tar:
        for member in tar:
            if member.name.partition(".")[0] != key:
                begins.append(member.offset)
            key = member.name.partition(".")[0]
            end = member.offset_data + -(-member.size // 512) * 512
    return [*begins, end]


@pytest.mark.parametrize("batch", [1, 4])
def test_an_index_beside_a_shard_that_is_wrong_is_told(three, tmp_path, batch):
    path = tmp_path / "t-002.tar"
    right = begins_of(path)
    with tarfile.open(path) as tar:
        within = tar.getmembers()[7].offset  # the second member of the third sample
    wrong = {
        "one too many": (sorted([*right, within]), {2, 3}),
        "one missing": (right[:4] + right[5:], {3}),
        "at no header": ([*right[:3], right[3] + 512, *right[4:]], {2, 3, 4}),  # 4 may begin anywhere, too
        "right": (right, set()),
    }
    for what, (numbers_, bad) in wrong.items():
        (tmp_path / "t-002.tar.idx").write_bytes(np.array(numbers_, "<u8").tobytes())
        for _ in range(2):  # such an index is not kept
            dataset = penstock.shards(path, keys=["cls"])
            assert len(dataset) == len(numbers_) - 1, what
            loader = penstock.DataLoader(dataset, batch_size=batch, num_workers=0, on_error="skip")
            assert len(numbers(loader)) == len(dataset) - len(bad), what
            assert {index for index, _, _ in loader.set_aside} == bad, what
        dataset = penstock.shards(path, keys=["cls"])
        for i in sorted(bad, reverse=True):
            with pytest.raises(penstock.ChangedError, match=r"t-002\.tar.*\.idx"):
                dataset[i]
    for useless in ([*right[:-1], right[-1] + 512], [*right, 1 << 40], right[::-1], right[1:], right[:-1], []):
        (tmp_path / "t-002.tar.idx").write_bytes(np.array(useless, "<u8").tobytes())
        dataset = penstock.shards(path, keys=["cls"])
        assert numbers(penstock.DataLoader(dataset, batch_size=batch)) == list(range(8, 17))


def test_errors_name_shard_key_and_member(tmp_path):
    link = tarfile.TarInfo("d.npy")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path = write(
        tmp_path / "bad.tar",
        tar_of(
            [
                ("a.npy", b"no array"),
                ("b.cls", b"cat"),
                ("c.pkl", pickle.dumps(1)),
                link,
                ("e.json", b"{"),
                ("f.npy", npy_of(np.arange(3))),
            ]
        ),
    )
    dataset = penstock.shards(path)
    kinds = [
        penstock.Error,
        penstock.CorruptError,
        penstock.UnsafeError,
        penstock.UnsupportedError,
        penstock.CorruptError,
    ]
    for i, kind in enumerate(kinds):
        with pytest.raises(kind) as found:
            dataset[i]
        assert "bad.tar" in str(found.value)
        assert f"{'abcde'[i]}." in str(found.value)
    assert np.asarray(dataset[5]["npy"]).tolist() == [0, 1, 2]
    with pytest.raises(penstock.KeyNotFoundError, match=r"'f'.*no field 'cls'.*'npy'"):
        penstock.shards(path, keys=["cls"])[5]
    loader = penstock.DataLoader(dataset, batch_size=2, num_workers=1, on_error="skip")
    assert [np.asarray(b["npy"]).tolist() for b in loader] == [[[0, 1, 2]]]
    assert len(loader.set_aside) == 5


def test_a_rewritten_shard_is_told(tmp_path):
    path = tmp_path / "a.tar"
    write(path, tar_of(numbered(0, 4)))
    dataset = penstock.shards(str(path))
    assert dataset[1]["cls"] == 1
    write(path, tar_of(numbered(7, 4)))
    for i in range(4):
        with pytest.raises(penstock.ChangedError, match=r"a\.tar"):
            dataset[i]
    assert penstock.shards(str(path))[0]["cls"] == 7


def test_streams_read_compressed_shards_and_pipes(three, tmp_path):
    stream = penstock.stream(penstock.shards(three))
    assert [s["cls"] for s in stream] == list(range(17))
    write(tmp_path / "z.tar.gz", gzip.compress(tar_of(numbered(17, 3))))
    zipped = penstock.shards([three, tmp_path / "z.tar.gz"], keys=["cls"])
    assert [s["cls"] for s in penstock.stream(zipped)] == list(range(20))
    with pytest.raises(penstock.UnsupportedError, match="stream"):
        len(zipped)
    code = "import penstock; print([s['cls'] for s in penstock.stream(penstock.shards('-'))])"
    for content in (tar_of(numbered(0, 30)), gzip.compress(tar_of(numbered(0, 30)))):
        done = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, timeout=60)
        assert done.stdout.decode().strip() == str(list(range(30))), done.stderr.decode()


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_reads_a_fifo_once(three, tmp_path, packed):
    content = tar_of(numbered(17, 40))
    fifo = tmp_path / "f.tar"
    os.mkfifo(fifo)
    stream = penstock.stream(penstock.shards([three, fifo], keys=["cls"]).map(class_of))
    writer = threading.Thread(target=fifo.write_bytes, args=[gzip.compress(content) if packed else content])
    writer.start()
    assert [int(n) for batch in penstock.DataLoader(stream, batch_size=5) for n in batch] == list(range(57))
    writer.join()
    with pytest.raises(penstock.Error, match="once"):
        list(stream)
    for dataset in (penstock.shards(fifo), penstock.shards("-")):
        with pytest.raises(penstock.UnsupportedError, match=r"pipe.*stream"):
            len(dataset)


def class_of(sample):
    return sample["cls"]


@pytest.mark.parametrize("window", [None, 6])
def test_a_stream_goes_on_in_the_middle(three, window):
    def made():
        stream = penstock.stream(penstock.shards(three, keys=["cls"]))
        return penstock.DataLoader(stream.shuffle(window, seed=3) if window else stream, batch_size=4, num_workers=1)

    whole = numbers(made())
    assert sorted(whole) == list(range(17))
    for taken in range(5):
        loader = made()
        iterator = iter(loader)
        for _ in range(taken):
            next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
        again = made()
        again.load_state_dict(state)
        assert numbers(again) == whole[4 * taken :]


def test_an_index_of_a_long_shard_answers_ctrl_c(tmp_path):
    """A header for each of a million members."""
    block = tar_of([("0.bin", b"")], "gnu")[:512]
    with open(tmp_path / "long.tar", "wb") as out:
        for _ in range(64):
            out.write(block * 16384)
    setup = "data = penstock.shards('long.tar', index=False)"
    answers_ctrl_c(tmp_path, setup, "[len(penstock.shards('long.tar', index=False)) for _ in range(1000)]")


def test_peculiar_arguments_are_refused(three):
    for wrong in (3, None, [3], b"x\0y"):
        with pytest.raises((TypeError, ValueError, penstock.Error)):
            len(penstock.shards(wrong))
    with pytest.raises((TypeError, penstock.Error)):
        penstock.shards(three, keys=[3.5])
    with pytest.raises(TypeError):
        penstock.shards(three, raw="yes")


WORDS = ["a", "b{", "}", "x-", "{0..3}", "{08..11}", "{a,b}", "{a,{b,c}}", "{,z}", "{q}", "{7..7}", "{x{0..1},y}"]


def test_braces_are_those_of_braceexpand(tmp_path):
    braceexpand = pytest.importorskip("braceexpand").braceexpand
    rng = random.Random(1)
    for _ in range(60):
        text = "".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4)))
        try:
            expected = list(braceexpand(text))
        except ValueError:
            continue
        if len(expected) > 200:
            continue
        folder = tmp_path / "".join(rng.choices(string.ascii_letters, k=12))
        folder.mkdir()
        for name in set(expected):
            write(folder / (name + ".tar"), tar_of([("k.cls", b"1")]))
        dataset = penstock.shards(f"{folder}/{text}.tar", keys=["__url__"], index=False)
        assert [dataset[i]["__url__"] for i in range(len(dataset))] == [f"{folder}/{n}.tar" for n in expected]


@pytest.fixture
def webdataset():
    return pytest.importorskip("webdataset")


def same(ours, theirs):
    if isinstance(theirs, np.ndarray):
        ours = np.asarray(ours)
        return ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list) and any(isinstance(x, np.ndarray) for x in theirs):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("seed", range(6))
def test_shards_of_webdataset_are_read_as_webdataset_does(tmp_path, webdataset, seed):
    rng = random.Random(seed)
    pattern = str(tmp_path / "w-%03d.tar")
    with webdataset.ShardWriter(pattern, maxcount=7, verbose=0) as writer:
        for i in range(20):
            fields = {
                "npy": np.random.default_rng(i).random((rng.randint(1, 3), 4)).astype("f4"),
                "seg.npy": np.arange(i),
                "cls": rng.randint(-9, 10**6),
                "txt": rng.choice(["täxt", "", "a\nb"]),
                "json": {"a": [1, 2.5, None, True], "b": {"ü": "x"}},
                "jpg_": None,
                "bin": os.urandom(rng.randint(0, 900)),
            }
            del fields["jpg_"]
            names = rng.sample(sorted(fields), rng.randint(1, len(fields)))
            folder = rng.choice(["", "deep/er/", "d.ot/", "x" * 120 + "/"])
            writer.write({"__key__": f"{folder}k{i:05}", **{name: fields[name] for name in names}})
    urls = str(tmp_path / "w-{000..002}.tar")
    theirs = list(webdataset.WebDataset(urls, shardshuffle=False, empty_check=False).decode())
    dataset = penstock.shards(urls)
    assert len(dataset) == len(theirs) == 20
    for mine in ([dataset[i] for i in range(20)], list(penstock.stream(dataset))):
        for ours, their in zip(mine, theirs, strict=True):
            their = {k: v for k, v in their.items() if k not in ("__url__", "__local_path__")}
            assert same(ours, their), their["__key__"]
    for packed in (gzip.compress(b"12"), gzip.compress(b"1") + gzip.compress(b"2")):
        (tmp_path / "g.tar").write_bytes(
            tar_of(
                [
                    ("__meta__/a.cls", b"1"),
                    ("a.cls.gz", packed),
                    ("a.npy.gz", gzip.compress(npy_of(np.arange(5)))),
                    ("a.json.gz", gzip.compress(b'{"x": [1]}')),
                    ("a.txt.gz", gzip.compress("ä".encode())),
                    ("a.bin.gz", gzip.compress(b"\xff" * 70_000)),
                    ("d/__meta__/b.cls", b"3"),
                ]
            )
        )
        (first, second) = webdataset.WebDataset(str(tmp_path / "g.tar"), shardshuffle=False).decode()
        mine = penstock.shards(tmp_path / "g.tar")
        assert len(mine) == 2
        for ours, their in ((mine[0], first), (mine[1], second)):
            assert same(ours, {k: v for k, v in their.items() if k not in ("__url__", "__local_path__")})
    members = []
    for i, kind in enumerate(("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u8")):
        shaped = np.arange(6 + i).astype(kind).reshape(2, -1) if i % 2 == 0 else np.zeros((0, i), kind)
        encoded = webdataset.tenbin.encode_buffer
        members += [(f"{i}.ten", encoded([shaped, np.ones(9)])), (f"{i}.big.tb", encoded([np.full(100_000, i, kind)]))]
        members += [(f"{i}z.ten.gz", gzip.compress(encoded([np.ones(9), shaped])))]
    (tmp_path / "t.tar").write_bytes(tar_of(members))
    theirs = list(webdataset.WebDataset(str(tmp_path / "t.tar"), shardshuffle=False).decode())
    dataset = penstock.shards(tmp_path / "t.tar")
    for mine in ([dataset[i] for i in range(len(dataset))], list(penstock.stream(dataset))):
        for ours, their in zip(mine, theirs, strict=True):
            assert same(ours, {k: v for k, v in their.items() if k not in ("__url__", "__local_path__")}), their
    penstock.save([dataset[i] for i in range(0, 20, 2)], tmp_path / "again.tar")
    again = webdataset.WebDataset(str(tmp_path / "again.tar"), shardshuffle=False).decode()
    for their, first in zip(again, theirs[::2], strict=True):
        assert list(map(bytes, their["ten"])) == list(map(bytes, first["ten"]))
        assert same(list(their["big.tb"]), list(first["big.tb"]))
    raw = list(webdataset.WebDataset(urls, shardshuffle=False, empty_check=False))
    bytes_of = penstock.shards(urls, raw=True)
    for i, their in enumerate(raw):
        assert dict(bytes_of[i]) == {k: v for k, v in their.items() if k not in ("__url__", "__local_path__")}
