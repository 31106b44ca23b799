"""Objects that are written: the same bytes as a file here, by one request or in parts, whole or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import client_of, every_dialect
from contents import contents, numbers, same
from fault_proxy import Fault
from refusals import TOKEN, has_no_secret, refused, within
from servers import SECRET_KEY
from written import MEGA, bytes_of, kill_in_third_part, run

import penstock
import penstock.numpy

sys.path.append(str(Path(__file__).parents[1] / "python"))
from ctrl_c import answers_ctrl_c
from waiting import comes_true

ODD = "dir ä/x=1,y+2:(3)%41&é.npy"


def value_of(rows: int):
    return {"w": numbers(rows, 64), "half": numbers(rows, 2, seed=2).astype("f2"), "none": np.zeros((0, 3), "i8")}


def here(tmp_path, value, name: str, **options) -> bytes:
    penstock.save(value, tmp_path / name, sync=False, **options)
    return (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.safetensors", "x.pt", ODD])
def test_every_format_is_the_file_that_is_written_here(server, tmp_path, name):
    value = value_of(8)["w"] if name.endswith(".npy") else value_of(8)
    penstock.save(value, f"{server.base}/written/{name}")
    assert bytes_of(server, f"written/{name}") == here(tmp_path, value, Path(name).name)


def test_a_large_object_goes_in_parts(server, tmp_path):
    value = {"w": numbers(5 * MEGA), "b": numbers(100, seed=1)}  # 20 MiB: three parts
    penstock.save(value, f"{server.base}/written/large.safetensors")
    assert bytes_of(server, "written/large.safetensors") == here(tmp_path, value, "large.safetensors")
    found = penstock.load(f"{server.base}/written/large.safetensors")
    assert np.array_equal(np.asarray(found["w"]), value["w"])


def test_an_object_is_replaced(server):
    for seed in (1, 2):
        penstock.save(numbers(100, seed=seed), f"{server.base}/written/again.npy")
        same(penstock.load(f"{server.base}/written/again.npy"), penstock.asarray(numbers(100, seed=seed)))


def test_torch_writes_what_it_writes_here(server, tmp_path):
    torch = pytest.importorskip("torch")
    import penstock.torch

    native = {"w": torch.arange(10.0), "n": 3}
    pickled = {"w": torch.arange(10.0), "counts": np.arange(5)}
    for name, value in (("native", native), ("pickled", pickled)):
        penstock.torch.save(value, f"{server.base}/written/{name}.pt")
        penstock.torch.save(value, tmp_path / f"{name}.pt")
        (tmp_path / "fetched.pt").write_bytes(bytes_of(server, f"written/{name}.pt"))
        fetched, kept = (torch.load(tmp_path / file, weights_only=False) for file in ("fetched.pt", f"{name}.pt"))
        assert torch.equal(fetched["w"], kept["w"])
        assert str(fetched) == str(kept)


def test_numpy_writes_what_it_writes_here(server, tmp_path):
    for name, array in (("native", numbers(10)), ("swapped", numbers(10).astype(">f4"))):
        penstock.numpy.save(f"{server.base}/written/{name}.npy", array)
        np.save(tmp_path / f"{name}.npy", array)
        assert bytes_of(server, f"written/{name}.npy") == (tmp_path / f"{name}.npy").read_bytes()


def test_packing_into_a_bucket(server, tmp_path):
    clips = [{"x": numbers(5, seed=number), "n": number} for number in range(40)]
    for number, clip in enumerate(clips):
        penstock.save(clip, tmp_path / f"{number:02}.pt", sync=False)
    told = penstock.pack(penstock.files(tmp_path), f"{server.base}/written/packed", shard_bytes=400)
    assert told["shards"] > 1
    dataset = penstock.packed(f"{server.base}/written/packed/")
    assert len(dataset) == 40
    same(dataset[17]["x"], penstock.asarray(clips[17]["x"]))
    with refused(penstock.InvalidArgumentError, "objects below this prefix"):
        penstock.pack(penstock.files(tmp_path), f"{server.base}/written/packed")


def test_a_prefix_of_shards_is_one_whole_packing(server):
    """One that is missing, and one of another packing in its place, are told as they are in a folder."""
    base, store = f"{server.base}/written/packing", client_of(server)
    for name, seed in (("a", 0), ("b", 1)):
        samples = penstock.dataset([{"x": numbers(25, seed=seed + i)} for i in range(12)])
        assert penstock.pack(samples, f"{base}-{name}", shard_bytes=400)["shards"] > 2
    names = [Path(entry["path"]).name for chunk in store.list("written/packing-a/") for entry in chunk]
    assert len(penstock.packed(f"{base}-a/")) == 12
    for name in set(names) - {"00001.safetensors"}:
        store.put(f"written/packing-c/{name}", bytes_of(server, f"written/packing-a/{name}"))
    with refused(penstock.NotFoundError, "missing"):
        penstock.packed(f"{base}-c/")
    store.put("written/packing-c/00001.safetensors", bytes_of(server, "written/packing-b/00001.safetensors"))
    with refused(penstock.NotFoundError, "another packing"):
        penstock.packed(f"{base}-c/")


def test_converting_to_a_url(server, command, tmp_path):
    (tmp_path / "x.npz").write_bytes(contents()["large.npz"])
    to = f"{server.base}/written/converted.safetensors"
    client_of(server).put("written/converted.safetensors", b"old")
    assert "--force" in run(command, "convert", tmp_path / "x.npz", to, code=1)
    assert bytes_of(server, "written/converted.safetensors") == b"old"
    assert to in run(command, "convert", "--force", tmp_path / "x.npz", to)
    same(penstock.load(to)["w"], penstock.load(contents()["large.npz"])["w"])
    assert "is to be converted" in run(command, "convert", "--force", to, to, code=1)


def test_shards_pages_and_pictures_of_the_command(server, command, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(contents()["large.safetensors"])
    place = f"{server.base}/written/command"
    run(command, "convert", "--shard-size", "500KB", tmp_path / "x.safetensors", f"{place}/m.safetensors")
    loaded = penstock.load(f"{place}/m.safetensors.index.json")
    same(loaded["w"], penstock.load(contents()["large.safetensors"])["w"])
    run(command, "report", tmp_path / "x.safetensors", "-o", f"{place}/page.html")
    assert bytes_of(server, "written/command/page.html").startswith(b"<!")
    run(command, "show", tmp_path / "x.safetensors", "w", "--png", f"{place}/w.png")
    assert bytes_of(server, "written/command/w.png").startswith(b"\x89PNG")
    assert "--force" in run(command, "show", tmp_path / "x.safetensors", "w", "--png", f"{place}/w.png", code=1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.npy?sig=sIgNaTuRe", "https://h/x.npy", "hf://owner/repo/x.npy"])
def test_what_cannot_be_written_to(url):
    with refused(penstock.UnsupportedError, "s3://, gs:// or az://"):
        penstock.save(numbers(3), url)
    with refused(penstock.UnsupportedError, "s3://, gs:// or az://"):
        penstock.numpy.save(url, numbers(3).astype(">f4"))


def test_what_takes_a_file_of_this_machine():
    with refused(penstock.UnsupportedError, "penstock convert"):
        penstock.open("s3://bucket/x.npy", "r+")


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://bucket/folder/"])
def test_what_names_no_object(url, proxy, settings):
    settings(AWS_ENDPOINT_URL=proxy.url)
    with refused(penstock.IsDirectoryError, "an object"):
        penstock.save(numbers(3), url, format="npy")
    with refused(penstock.IsDirectoryError, "an object"):
        penstock.Writer(url, format="npy")
    assert not proxy.requests


# Faults, in front of a store that says what it has.


SIZES = {"small": 1000, "parts": 7 * MEGA}  # floats: one request; four parts
ERROR_IN_200 = "<?xml version='1.0'?>\n<Error><Code>InternalError</Code><Message>x</Message></Error>"

PASSING = {
    "503": Fault(status=503, times=2),
    "500": Fault(status=500, after=1, times=2),
    "reset": Fault(reset=True, times=2),
    "reset later": Fault(reset=True, after=2, times=2),
    "closed without an answer": Fault(raw="", times=1),
    "hang": Fault(hang=True, times=1),
    "hang later": Fault(hang=True, after=2, times=1),
    "429 with Retry-After": Fault(status=429, headers={"retry-after": "0"}, times=1),
    "it arrived otherwise": Fault(status=400, body="<Error><Code>BadDigest</Code></Error>", times=1),
    "others write": Fault(status=409, body="<Error><Code>ConditionalRequestConflict</Code></Error>", times=1),
    "the last answer is lost": Fault(target="?uploadId=", cut=5, times=1),
    "an answer is lost": Fault(headers={"content-length": "9"}, methods=["PUT"], times=1),
    "an error in 200": Fault(status=200, target="?uploadId=", body=ERROR_IN_200, times=2),
}


@every_dialect
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_not_noticed(dialect, faulty, memory, fault, size, tmp_path, settings):
    faulty.faults = [dialect.fault(PASSING[fault])]
    if PASSING[fault].hang or "content-length" in PASSING[fault].headers:
        settings(PENSTOCK_REMOTE_TIMEOUT=2)
    value = numbers(SIZES[size])
    with within(90):
        penstock.save(value, f"{dialect.base}/x.npy")
    assert memory.objects["/bucket/x.npy"] == here(tmp_path, value, "x.npy")
    assert memory.types["/bucket/x.npy"] == "application/octet-stream"
    assert not memory.uploads


LASTING = {
    "403": (Fault(status=403, body="<Error><Code>AccessDenied</Code></Error>"), penstock.PermissionDeniedError),
    "no such bucket": (Fault(status=404, body="<Error><Code>NoSuchBucket</Code></Error>"), penstock.NotFoundError),
    "503": (Fault(status=503), penstock.InputOutputError),
    "hang": (Fault(hang=True), penstock.TimedOutError),
    "reset": (Fault(reset=True), penstock.InputOutputError),
    "not a store": (Fault(status=501), penstock.UnsupportedError),
    "no sense": (Fault(status=400, body="<Error><Code>EntityTooLarge</Code></Error>"), penstock.InputOutputError),
}


WRITING = ("PUT", "POST")


@every_dialect
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fault", LASTING)
@pytest.mark.parametrize("target", ["/bucket", "partNumber", "?uploadId"])
def test_what_lasts_is_an_error_and_leaves_nothing(dialect, faulty, memory, fault, size, target, settings):
    if size == "small" and target != "/bucket":
        pytest.skip("a small object has no parts")
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    given, kind = LASTING[fault]
    if given.hang:
        settings(PENSTOCK_REMOTE_TIMEOUT=2)
    # The request that takes parts back is let through: a store that is gone for good takes nothing back.
    faulty.faults = [dialect.fault(given, target=target, methods=WRITING)]
    with refused(kind, f"{dialect.base}/x.npy", seconds=60):
        penstock.save(numbers(SIZES[size]), f"{dialect.base}/x.npy")
    assert not memory.objects
    assert not memory.uploads


def test_an_error_in_200_that_lasts(faulty, memory, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    for body, word in ((ERROR_IN_200, "InternalError"), ("<Error><Code>InvalidPart</Code></Error>", "InvalidPart")):
        faulty.faults = [Fault(status=200, target="?uploadId", body=body, methods=WRITING)]
        with refused(penstock.InputOutputError, word, seconds=60):
            penstock.save(numbers(SIZES["parts"]), "s3://bucket/x.npy")
        assert not memory.objects
        assert not memory.uploads


@every_dialect
def test_the_page_of_a_proxy_is_no_saved_object(dialect, faulty, memory, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    page = Fault(status=200, body="<html>Please log in</html>", methods=["PUT"])
    faulty.faults = [page]
    with refused(penstock.InputOutputError, "does not say that the object is there", seconds=30):
        penstock.save(numbers(10), f"{dialect.base}/x.npy")
    assert not memory.objects


def test_an_object_whose_etag_is_left_out_of_the_answer_is_saved(faulty, memory):
    faulty.faults = [Fault(headers={"etag": None}, methods=["PUT"])]
    penstock.save(numbers(10), "s3://bucket/x.npy")
    assert len(memory.objects) == 1


def test_what_an_earlier_try_got_is_said(faulty, memory):
    """A server that gives an upload up at its end no longer knows it when it is asked again."""
    gone = "<Error><Code>NoSuchUpload</Code></Error>"
    faulty.faults = [
        Fault(status=500, target="?uploadId=", times=1, methods=["POST"]),
        Fault(status=404, target="?uploadId=", times=1, methods=["POST"], body=gone),
    ]
    with refused(penstock.InputOutputError, "NoSuchUpload", "the try before", "500", seconds=60):
        penstock.save(numbers(SIZES["parts"]), "s3://bucket/x.npy")
    assert not memory.objects
    assert not memory.uploads


def test_a_small_object_is_one_request_and_a_large_one_few(faulty, memory):
    penstock.save(numbers(1000), "s3://bucket/x.npy")
    assert [request.method for request in faulty.requests] == ["PUT"]
    faulty.forget()
    faulty.delay = 0.3  # so that requests whose bodies have come overlap
    penstock.save(numbers(7 * MEGA), "s3://bucket/x.npy")
    assert [request.method for request in faulty.requests] == ["POST", *["PUT"] * 4, "POST"]
    assert faulty.most_at_once > 1
    assert not memory.uploads


def test_what_is_sent_is_signed(faulty):
    penstock.save(numbers(1000), "s3://bucket/x.npy")
    headers = faulty.requests[0].headers
    for name in ("x-amz-checksum-crc32", "x-amz-security-token", "x-amz-content-sha256"):
        assert name in headers
        assert name in headers["authorization"]
    assert "expect" not in headers


def test_google_gets_md5_and_no_header_of_amazon(faulty, memory, settings):
    settings(PENSTOCK_GS_ENDPOINT=faulty.url, PENSTOCK_GS_ACCESS_KEY_ID="a", PENSTOCK_GS_SECRET_ACCESS_KEY="b")
    for size in SIZES.values():
        penstock.save(numbers(size), "gs://bucket/x.npy")
    assert "/bucket/x.npy" in memory.objects
    for request in faulty.requests:
        assert not [name for name in request.headers if "checksum" in name]
        assert request.method != "PUT" or "content-md5" in request.headers


@every_dialect
@pytest.mark.parametrize("size", SIZES)
def test_the_command_does_not_replace_what_others_wrote_meanwhile(dialect, faulty, memory, command, tmp_path, size):
    """The object is not there when it is looked for, and is there when it is written."""
    penstock.save(numbers(SIZES[size]), tmp_path / "x.npy")
    faulty.faults = [Fault(status=404, times=1)]
    memory.objects["/bucket/x.npz"] = b"others"
    assert "object of this name" in run(command, "convert", tmp_path / "x.npy", f"{dialect.base}/x.npz", code=1)
    assert memory.objects["/bucket/x.npz"] == b"others"
    assert not memory.uploads
    run(command, "convert", "--force", tmp_path / "x.npy", f"{dialect.base}/x.npz")
    assert memory.objects["/bucket/x.npz"] != b"others"


@every_dialect
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("force", [False, True])
def test_a_lost_answer_is_not_taken_for_somebody_elses_object(dialect, faulty, memory, command, tmp_path, size, force):
    """The next try, ours or libcurl's own, is refused, because there is an object: it is ours."""
    penstock.save(numbers(SIZES[size]), tmp_path / "x.npy")
    last = "y.npz" if size == "small" else dialect.at("?uploadId")
    faulty.faults = [Fault(lost=True, methods=WRITING, target=last, times=1)]
    options = ["--force"] if force else []
    run(command, "convert", *options, tmp_path / "x.npy", f"{dialect.base}/y.npz")
    (found,) = penstock.load(f"{dialect.base}/y.npz").values()
    assert np.array_equal(np.asarray(found), numbers(SIZES[size]))
    assert not memory.uploads


@every_dialect
def test_shards_that_fail_take_the_others_along(dialect, faulty, memory, command, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(contents()["large.safetensors"])
    faulty.faults = [Fault(status=403, target="index.json", methods=WRITING)]
    run(
        command, "convert", "--shard-size", "500KB", tmp_path / "x.safetensors", f"{dialect.base}/m.safetensors", code=1
    )
    assert not memory.objects


@every_dialect
def test_packing_that_fails_leaves_nothing(dialect, faulty, memory, tmp_path):
    for number in range(40):
        penstock.save({"x": numbers(5, seed=number)}, tmp_path / f"{number:02}.pt", sync=False)
    empty = Fault(status=200, target=dialect.listed, body=dialect.empty)
    for query in ("partNumber", "?uploadId"):
        target = f"00002.safetensors?{dialect.at(query).lstrip('?')}"
        faulty.faults = [empty, Fault(status=403, target=target, methods=WRITING)]
        with refused(penstock.PermissionDeniedError, "00002.safetensors"):
            penstock.pack(penstock.files(tmp_path), f"{dialect.base}/packed", shard_bytes=200)
        assert not memory.objects
        assert not memory.uploads


SLOW_SAVE = "penstock.save(np.zeros(16 << 20, 'f4'), '{}/x.npy')"


@every_dialect
def test_a_process_that_is_killed_leaves_no_object(dialect, faulty, memory):
    kill_in_third_part(faulty, f"import numpy as np, penstock; {SLOW_SAVE.format(dialect.base)}", dialect)
    assert not memory.objects


@every_dialect
def test_ctrl_c_takes_the_parts_back(dialect, faulty, memory, tmp_path):
    faulty.faults = [Fault(hang=True, target=dialect.at("partNumber=3"))]
    answers_ctrl_c(tmp_path, "import numpy as np", SLOW_SAVE.format(dialect.base))
    assert [request for request in faulty.requests if dialect.part in request.target]
    assert not memory.objects
    assert comes_true(lambda: not memory.uploads)  # the server may still be at what the program sent last


MEASURED = """
import numpy as np, penstock
array = np.zeros(64 << 20, "f4")
array[:] = 1
penstock.save(array[:10], "s3://bucket/first.npy")
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
before = peak()
penstock.save(array, "s3://bucket/x.npy")
print((peak() - before) >> 10)
"""


def test_memory_is_bounded(faulty):
    """256 MiB by parts of 8 MiB, of which nine are in memory."""
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 120


def test_no_error_has_a_secret(faulty, settings):
    body = f"<Error><Code>AccessDenied</Code><Message>{SECRET_KEY} {TOKEN}</Message></Error>"
    faulty.faults = [Fault(status=403, body=body)]
    with pytest.raises(penstock.PermissionDeniedError, match="may write") as failed:
        penstock.save(numbers(10), "s3://bucket/x.npy")
    has_no_secret(failed.value)
    assert not re.search("Signature|Credential", str(failed.value))
