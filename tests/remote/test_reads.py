"""What is loaded from real servers is what is loaded from the same file here, in every way of reading."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
from conftest import every_dialect
from contents import INDEX, NAMES, contents, npy_of, numbers, same
from fault_proxy import Fault, FaultProxy, Upstream, in_thread

import penstock


@pytest.mark.parametrize("name", NAMES)
def test_every_format_loads_as_here(place, name):
    same(penstock.load(place.url(name)), penstock.load(contents()[name]))


def test_a_sharded_model_loads_as_one(place, tmp_path):
    for name in contents():
        if name.startswith("model"):
            (tmp_path / name).write_bytes(contents()[name])
    same(penstock.load(place.url(INDEX)), penstock.load(tmp_path / INDEX))


def test_slices_are_those_of_the_array(place):
    array = numbers(3000, 64)  # large.npy
    tensor = penstock.open(place.url("large.npy"))[""]
    assert tensor.shape == array.shape
    for index in (
        np.s_[5:9],
        np.s_[-1],
        np.s_[::700],
        np.s_[10:2000:3, 4:60:7],
        np.s_[:, 3],
        np.s_[100:100],
    ):
        assert np.array_equal(np.asarray(tensor[index].load()), array[index]), index


def test_reading_into_memory_that_is_there(place):
    array = numbers(3000, 64)
    target = {"w": np.zeros_like(array), "half": np.zeros((3000, 2), "f2"), "none": np.zeros((0, 3), "i8")}
    penstock.load_into(target, place.url("large.safetensors"))
    assert np.array_equal(target["w"], array)


def test_a_part_of_a_file(place):
    expected = penstock.load(contents()["large.pt"], key="model.b")
    same(penstock.load(place.url("large.pt"), key="model.b"), expected)


def test_rows_give_the_batches_of_the_array(place):
    array = numbers(3000, 64)
    loader = penstock.DataLoader(
        penstock.rows(place.url("large.npy")), batch_size=100, shuffle=True, seed=5, num_workers=2
    )
    expected = penstock.DataLoader(penstock.rows(array), batch_size=100, shuffle=True, seed=5)
    for batch, other in zip(loader, expected, strict=True):
        assert batch.equal(other)


@pytest.mark.parametrize("kind", ["slices", "windows", "apart", "ordered", "shuffled", "random"])
def test_parts_of_rows_are_those_of_the_array(place, kind):
    array = numbers(3000, 64)
    cuts = [0, 70, 71, 71, 400, 1000, 2990, 3000]
    starts, lengths = cuts[:-1], np.diff(cuts).tolist()
    make = {
        "slices": lambda rows: rows.slices(starts, lengths),
        "windows": lambda rows: rows.windows(40, 25, 1),
        "apart": lambda rows: rows.slices(starts, lengths).windows(40, shift=3),
        "ordered": lambda rows: rows.slices(starts[::-1], lengths[::-1]).windows(40, join="ordered"),
        "shuffled": lambda rows: rows.slices(starts, lengths).windows(40, shift=1, join="shuffled"),
        "random": lambda rows: rows.random_windows(40, 50),
    }[kind]
    options = {"batch_size": 8, "shuffle": True, "seed": 5, "collate": penstock.samples()}
    for behind in (lambda data: data, lambda data: data.cast("float64")):
        loader = penstock.DataLoader(behind(make(penstock.rows(place.url("large.npy")))), num_workers=2, **options)
        expected = penstock.DataLoader(behind(make(penstock.rows(array))), **options)
        for batch, other in zip(loader, expected, strict=True):
            same(batch, other)


def test_what_windows_share_is_read_once(place):
    """x and y, and windows that overlap, are other parts of the same bytes."""
    array = numbers(3000, 64)
    for stride, most in ((40, 41 / 40), (10, 1.1)):
        data = penstock.rows(place.url("large.npy")).windows(40, stride, 1)
        loader = penstock.DataLoader(data, batch_size=len(data), num_workers=0)
        ((x, y),) = loader
        assert np.array_equal(np.asarray(y)[:, :-1], np.asarray(x)[:, 1:])
        assert array.nbytes * 0.9 < loader.stats()["read_bytes"] < array.nbytes * most


def test_packed_samples(place, tmp_path):
    clips = [{"x": numbers(5, seed=number), "n": number} for number in range(40)]
    for number, clip in enumerate(clips):
        penstock.save(clip, tmp_path / f"{number:02}.pt", sync=False)
    penstock.pack(penstock.files(tmp_path), tmp_path / "packed")
    for path in (tmp_path / "packed").iterdir():
        place.put(f"packed/{path.name}", path.read_bytes())
    shards = [path.name for path in (tmp_path / "packed").glob("*.safetensors")]
    assert len(shards) == 1
    dataset = penstock.packed(place.url("packed/" if place.is_store else f"packed/{shards[0]}"))
    assert len(dataset) == 40
    for number in (0, 17, 39):
        same(dataset[number]["x"], penstock.asarray(clips[number]["x"]))


def test_files_by_their_urls(place):
    names = ["small.npy", "large.npy", "small.npy"]
    dataset = penstock.files([place.url(name) for name in names])
    assert len(dataset) == 3
    for number, name in enumerate(names):
        same(dataset[number], penstock.load(contents()[name]))


def test_a_report_names_the_route_and_no_secret(place):
    report: dict = {}
    penstock.load(place.url("large.npy"), report=report)
    assert report["route"] == "remote"
    assert report["read_bytes"] >= 3000 * 64 * 4
    for secret in place.environment.values():
        assert "SECRET" not in str(report)
        if "http" not in secret:
            assert secret not in str(report)


def run(command, *arguments):
    done = subprocess.run([command, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_the_command_says_of_a_url_what_it_says_of_the_file(place, command, tmp_path):
    path = tmp_path / "large.npz"
    path.write_bytes(contents()["large.npz"])
    url = place.url("large.npz")
    for words in (["ls"], ["info"], ["verify"], ["cat", "half"], ["stats"], ["hash"]):
        here = run(command, words[0], path, *words[1:]).replace(str(path).encode(), b"X")
        there = run(command, words[0], url, *words[1:]).replace(url.encode(), b"X")
        assert there == here, words


def test_converting_from_a_url(place, command, tmp_path):
    run(command, "convert", place.url("large.npz"), tmp_path / "out.safetensors")
    found = penstock.load(tmp_path / "out.safetensors")
    same(found["w"], penstock.load(contents()["large.npz"])["w"])


def test_128_rows_of_a_large_tensor_cost_little_more_than_their_bytes(place_of_seaweed, seaweed, settings):
    array = numbers(4000, 2048)
    place_of_seaweed.put("tall.npy", npy_of(array))
    with in_thread(FaultProxy(Upstream(seaweed.url))) as between:
        settings(**{**seaweed.environment, "AWS_ENDPOINT_URL": between.url})
        rows = penstock.open("s3://bucket/tall.npy")[""][2000:2128].load()
        assert np.array_equal(np.asarray(rows), array[2000:2128])
        assert between.sent <= 1.2 * rows.nbytes
        assert {request.method for request in between.requests} == {"GET"}


def test_a_prefix_is_listed_once_and_no_object_is_asked_for_its_size(place_of_seaweed, seaweed, settings):
    samples = [numbers(100, seed=number) for number in range(300)]
    for number, sample in enumerate(samples):
        place_of_seaweed.put(f"train/{number:03}.npy", npy_of(sample))
    place_of_seaweed.put("train/read me.txt", b"not a tensor")
    place_of_seaweed.put("train/deep/er.npy", npy_of(samples[0]))
    with in_thread(FaultProxy(Upstream(seaweed.url), delay=0.01)) as between:
        settings(**{**seaweed.environment, "AWS_ENDPOINT_URL": between.url})
        dataset = penstock.files("s3://bucket/train/*.npy")
        assert len(dataset) == 300
        listing = len(between.requests)
        assert listing == 1
        loader = penstock.DataLoader(dataset, batch_size=20, shuffle=True, seed=1, num_workers=2)
        expected = penstock.DataLoader(penstock.rows(np.stack(samples)), batch_size=20, shuffle=True, seed=1)
        for batch, other in zip(loader, expected, strict=True):
            assert batch.equal(other)
        assert len(between.requests) == listing + 300
        assert {request.method for request in between.requests} == {"GET"}
        assert between.most_at_once >= 8


def test_globs_and_folders_of_a_bucket(store):
    for name in ("a/1.npy", "a/2.npy", "a/b/3.npy", "a/note.txt", "c/4.npy"):
        store.put(f"tree/{name}", contents()["small.npy"])
    for pattern, count in (("tree/a/*.npy", 2), ("tree/a/", 2), ("tree/**/*.npy", 4), ("tree/[ac]/?.npy", 3)):
        assert len(penstock.files(f"s3://bucket/{pattern}")) == count, pattern
    with pytest.raises(penstock.Error, match="s3://bucket/tree/nothing"):
        penstock.files("s3://bucket/tree/nothing/*.npy")


def test_ls_of_a_prefix_and_of_a_bucket(store, command):
    store.put("listed/one.npy", contents()["small.npy"])
    store.put("listed/sub/two.npy", contents()["small.npy"])
    listed = run(command, "ls", "s3://bucket/listed/").decode()
    assert "one.npy" in listed
    assert "listed" in run(command, "ls", "s3://bucket/").decode()
    assert run(command, "ls", "s3://bucket/listed/", "--names").split() == [b"sub/", b"one.npy"]
    sorted_by = [command, "ls", "s3://bucket/listed/", "--sort", "size"]
    done = subprocess.run(sorted_by, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"are for tensors" in done.stderr


def test_more_objects_than_one_answer_lists(rclone, settings):
    folder = rclone.folder / "bucket" / "many"
    folder.mkdir()
    for number in range(1005):
        (folder / f"{number:04}.npy").write_bytes(b"x")
    settings(**rclone.environment)
    assert len(penstock.files("s3://bucket/many/*.npy")) == 1005


@every_dialect
def test_keys_that_look_otherwise(dialect, faulty):
    """Names between two '/' may be empty, and one may look like a pattern: it stands for itself before others."""
    keys = ["a//1.npy", "a/2.npy", "/3.npy", "b[1].npy", "b1.npy"]
    found = {
        "a//": ["a//1.npy"],
        "a//*.npy": ["a//1.npy"],
        "a/*.npy": ["a/2.npy"],
        "a/**": ["a//1.npy", "a/2.npy"],
        "/*.npy": ["/3.npy"],
        "b[1].npy": ["b[1].npy"],
        "b[1]*.npy": ["b1.npy"],
    }
    for pattern, names in found.items():
        prefix = re.split(r"[*[]", pattern)[0]
        rows = dialect.listing(f"/bucket/{key}" for key in keys if key.startswith(prefix))
        faulty.faults = [Fault(target=dialect.listed, status=200, body=rows)]
        paths = [f"{dialect.base}/{name}" for name in names]
        assert penstock.files(f"{dialect.base}/{pattern}").paths == paths, pattern


def test_google_by_hmac_keys(store, seaweed, settings):
    keys = seaweed.environment
    settings(
        PENSTOCK_GS_ENDPOINT=seaweed.url,
        PENSTOCK_GS_ACCESS_KEY_ID=keys["AWS_ACCESS_KEY_ID"],
        PENSTOCK_GS_SECRET_ACCESS_KEY=keys["AWS_SECRET_ACCESS_KEY"],
        AWS_ACCESS_KEY_ID="other",
        AWS_SECRET_ACCESS_KEY="other",
    )
    same(penstock.load("gs://bucket/small.npy"), penstock.load(contents()["small.npy"]))


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ("owner/repo/sub/x.npy", "/owner/repo/resolve/main/sub/x.npy"),
        ("owner/repo@v1.0/x.npy", "/owner/repo/resolve/v1.0/x.npy"),
        ("datasets/owner/repo/x.npy", "/datasets/owner/repo/resolve/main/x.npy"),
    ],
)
def test_hugging_face_urls(proxy, settings, given, target):
    proxy.origin.objects[target] = contents()["small.npy"]
    settings(HF_ENDPOINT=proxy.url, HF_TOKEN="hf_sEcReT")
    same(penstock.load(f"hf://{given}"), penstock.load(contents()["small.npy"]))
    assert proxy.requests[-1].headers["authorization"] == "Bearer hf_sEcReT"


def test_a_redirect_is_followed(place_of_http):
    same(penstock.load(f"{place_of_http.base}here/large.npy"), penstock.load(contents()["large.npy"]))


def test_small_objects_of_a_server_without_ranges(place_of_http):
    same(penstock.load(f"{place_of_http.base}no_ranges/small.npy"), penstock.load(contents()["small.npy"]))


@pytest.mark.parametrize("name", ["large.npy", "large.pt", "large.safetensors", "large.npz"])
def test_large_objects_of_a_server_without_ranges_come_by_one_answer(place_of_http, name):
    url = f"{place_of_http.base}no_ranges/{name}"
    report: dict = {}
    same(penstock.load(url, report=report), penstock.load(contents()[name]))
    assert report["remote_requests"] == 2  # the head, and then all of it
    same(penstock.files([url])[0], penstock.load(contents()[name]))
    assert np.asarray(penstock.files([url], raw=True)[0]).tobytes() == contents()[name]


def test_https_has_several_connections_as_http_has(place_of_https, nginx, settings):
    """By HTTP/2, all ranges would share one, whose speed the network limits."""
    settings(**place_of_https.environment)
    place_of_https.put("twenty.npy", npy_of(numbers(5_000_000)))
    penstock.load(f"{nginx.https_url}/twenty.npy")
    lines = (nginx.folder.parent / "access.log").read_text().splitlines()
    assert len({line.split()[0] for line in lines if line.endswith("/twenty.npy")}) > 1


def open_to_change(url):
    return penstock.open(url, "r+")


def load_mapped(url):
    return penstock.load(url, mmap=True)


def load_mapped_by_torch(url):
    return pytest.importorskip("penstock.torch").load(url, mmap=True)


@pytest.mark.parametrize("open_it", [open_to_change, load_mapped, load_mapped_by_torch])
def test_what_needs_a_local_file_says_so(place, open_it):
    with pytest.raises(penstock.UnsupportedError):
        open_it(place.url("large.npy"))
