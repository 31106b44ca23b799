"""What was read by URL is read from the disk the next time: by the next load, the next epoch and the next process; and
never when the object has changed, the disk is full, or somebody has spoiled the files."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from azure_memory import ACCOUNT, KEY
from contents import NAMES, contents, npy_of, numbers, same
from fault_proxy import Fault
from refusals import TOKEN
from servers import SECRET_KEY

import penstock

ARRAY = numbers(12000, 64)  # 3 MB: three blocks


@pytest.fixture
def cache(settings, tmp_path) -> Path:
    folder = tmp_path / "cache"
    settings(PENSTOCK_CACHE=folder)
    return folder


@pytest.fixture(params=["http", "az"])
def url(request, proxy, cache, settings) -> str:
    proxy.origin.objects["/c/x.npy"] = npy_of(ARRAY)
    settings(AZURE_STORAGE_BLOB_ENDPOINT=proxy.url, AZURE_STORAGE_ACCOUNT=ACCOUNT, AZURE_STORAGE_KEY=KEY)
    return "az://c/x.npy" if request.param == "az" else f"{proxy.url}/c/x.npy"


def load(url: str) -> dict:
    """Loads the array and gives the report."""
    report: dict = {}
    assert np.array_equal(np.asarray(penstock.load(url, report=report)), ARRAY)
    return report


def blocks_of(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file() and path.name not in ("bytes", "writing"))


@pytest.mark.parametrize("name", NAMES)
def test_every_format_loads_from_the_cache_as_from_the_server(place, cache, name):
    expected = penstock.load(contents()[name])
    same(penstock.load(place.url(name)), expected)
    report: dict = {}
    same(penstock.load(place.url(name), report=report), expected)
    assert report["remote_cached_bytes"] > 0
    # rclone knows no If-None-Match, and sends the first block again.
    if "rclone" not in str(place.environment) and report["remote_received_bytes"]:
        assert report["remote_received_bytes"] <= 1 << 20


def test_a_second_load_brings_no_byte(url, proxy, cache):
    first = load(url)
    # Each byte came by URL once. The first block, which opening has kept, is read back from the cache.
    assert first["remote_received_bytes"] == len(npy_of(ARRAY))
    assert first["remote_cached_bytes"] <= 1 << 20
    sent = proxy.sent
    second = load(url)
    assert proxy.sent == sent
    assert second["remote_requests"] == 1
    assert second["remote_received_bytes"] == 0
    assert second["remote_cached_bytes"] == first["remote_received_bytes"]
    assert second["remote_limit"] == "latency"


def test_a_trusted_object_is_not_asked_for(url, proxy, settings):
    settings(PENSTOCK_CACHE_TRUST_SECONDS=60)
    load(url)
    asked = len(proxy.requests)
    assert load(url)["remote_requests"] == 0
    assert len(proxy.requests) == asked
    settings(PENSTOCK_CACHE_TRUST_SECONDS=0)
    assert load(url)["remote_requests"] == 1


PROGRAM = """
import sys, hashlib, numpy as np, penstock
print(hashlib.md5(np.asarray(penstock.load(sys.argv[1])).tobytes()).hexdigest())
"""


def other_process(url: str, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def output_of(process: subprocess.Popen) -> tuple[str, str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out, err


def test_another_process_brings_no_byte(url, proxy):
    load(url)
    sent = proxy.sent
    output_of(other_process(url))
    assert proxy.sent == sent


def test_processes_share_a_small_cache(url, proxy, settings, cache):
    settings(PENSTOCK_CACHE_BYTES="2500kB")
    outputs = {output_of(process)[0] for process in [other_process(url) for _ in range(4)]}
    assert len(outputs) == 1
    assert sum(path.stat().st_size for path in blocks_of(cache)) <= 2_500_000
    load(url)


def test_a_second_epoch_brings_no_byte(proxy, cache):
    samples = [numbers(100, seed=number) for number in range(60)]
    for number, sample in enumerate(samples):
        proxy.origin.objects[f"/{number}.npy"] = npy_of(sample)
    dataset = penstock.files([f"{proxy.url}/{number}.npy" for number in range(60)])
    loader = penstock.DataLoader(dataset, batch_size=10, shuffle=True, num_workers=2)
    for _ in loader:
        pass
    first = loader.stats()
    assert first["remote_requests"] == 60
    assert first["remote_received_bytes"] == sum(len(npy_of(sample)) for sample in samples)
    for _ in loader:
        pass
    second = loader.stats()
    assert second["remote_received_bytes"] == first["remote_received_bytes"]
    assert second["remote_cached_bytes"] == first["remote_received_bytes"]
    assert "disk cache" in str(second)


def test_counts_of_what_goes_wrong(url, proxy, settings):
    settings(PENSTOCK_CACHE="")
    proxy.faults = [Fault(status=503, times=2), Fault(reset=True, after=1, times=1)]
    report = load(url)
    assert report["remote_throttled"] == 2
    # libcurl itself asks again where a connection that it used before is reset, and tells nobody.
    assert report["remote_retries"] in {2, 3}
    assert report["remote_requests"] == report["remote_retries"] + 2
    assert report["remote_paused_seconds"] > 0
    assert report["remote_limit"] == "throttled"
    assert report["remote_first_byte_seconds"] > 0


def test_a_replaced_object_gives_its_new_bytes(url, proxy):
    load(url)
    proxy.origin.objects["/c/x.npy"] = npy_of(ARRAY + 1)
    for _ in range(2):
        assert np.array_equal(np.asarray(penstock.load(url)), ARRAY + 1)


@pytest.mark.parametrize("spoil", ["a byte", "cut", "empty", "gone", "swapped", "a FIFO", "a link", "another's"])
def test_spoiled_files_are_read_anew(url, proxy, cache, spoil):
    load(url)
    files = blocks_of(cache)
    assert len(files) == 3
    for number, path in enumerate(files):
        content = path.read_bytes()
        other = files[(number + 1) % 3].read_bytes() if spoil == "swapped" else b""
        spoiled = {
            "a byte": content[:500] + bytes([content[500] ^ 1]) + content[501:],
            "cut": content[: len(content) // 2],
            "empty": b"",
            "gone": None,
            "swapped": other,
        }.get(spoil)
        if spoil == "a FIFO":
            path.unlink()
            os.mkfifo(path)
        elif spoil == "a link":
            path.rename(path.with_suffix(".moved"))
            path.symlink_to(path.with_suffix(".moved"))
        elif spoil == "another's":
            if os.geteuid() != 0:
                pytest.skip("only root can give files away")
            os.chown(path, 65534, 65534)
        elif spoiled is None:
            path.unlink()
        else:
            path.write_bytes(spoiled)
    load(url)
    sent = proxy.sent
    load(url)
    assert proxy.sent == sent


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_full_disk_warns_once_and_nothing_fails(url, cache):
    expected, _ = output_of(other_process(url, env={**os.environ, "PENSTOCK_CACHE": ""}))
    out, err = output_of(other_process(url, preexec_fn=limit_files))
    assert out == expected
    assert err.count("PENSTOCK_CACHE") == 1
    assert blocks_of(cache) == []


def test_a_cold_load_brings_hardly_more_than_its_bytes(proxy, cache):
    """Parts of a load begin anywhere in blocks, and two threads may want one block at once."""
    content = npy_of(numbers(15_000_001))
    proxy.origin.objects["/large.npy"] = content
    for _ in range(2):
        report: dict = {}
        penstock.load(f"{proxy.url}/large.npy", report=report)
        assert report["remote_received_bytes"] + report["remote_cached_bytes"] >= len(content)
    assert proxy.sent <= 1.005 * len(content)


@pytest.mark.parametrize("size", [100, 400_000])
def test_threads_that_open_an_object_at_once_bring_it_once(proxy, cache, size):
    content = npy_of(numbers(size))
    proxy.origin.objects["/x.npy"] = content
    proxy.delay = 0.2  # so that they want it together
    together = threading.Barrier(4)

    def load_it(_: int) -> np.ndarray:
        together.wait()
        return np.asarray(penstock.load(f"{proxy.url}/x.npy"))

    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(array, numbers(size)) for array in pool.map(load_it, range(4)))
    assert proxy.sent == len(content)


def test_an_object_that_is_named_twice_is_brought_once(proxy, cache):
    content = npy_of(numbers(100))
    proxy.origin.objects["/x.npy"] = content
    loader = penstock.DataLoader(penstock.files([f"{proxy.url}/x.npy"] * 4), batch_size=4)
    assert [np.array_equal(np.asarray(row), numbers(100)) for batch in loader for row in batch] == [True] * 4
    assert proxy.sent == len(content)


@pytest.mark.parametrize(
    "folder", ["s3://bucket/cache", "file:///tmp/cache", "~nobody/cache", "~nobody", "$HOME/c", "/a/${USER}"]
)
def test_what_is_no_path_of_this_machine_is_refused(url, settings, tmp_path, monkeypatch, folder):
    """It would become a folder of that name, wherever the program happens to run."""
    monkeypatch.chdir(tmp_path)
    settings(PENSTOCK_CACHE=folder)
    with pytest.raises(penstock.InvalidArgumentError, match="PENSTOCK_CACHE"):
        penstock.load(url)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["PENSTOCK_CACHE_TRUST_SECONDS", "PENSTOCK_REMOTE_REQUESTS"])
def test_part_of_a_second_or_a_request_is_refused(url, settings, name):
    settings(**{name: "1.5"})
    with pytest.raises(penstock.InvalidArgumentError, match=f"{name} is '1.5'.*whole"):
        penstock.load(url)


def test_another_users_folder_is_not_used(url, cache, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    blocks = cache / "penstock-blocks-1"
    blocks.mkdir(parents=True)
    os.chown(blocks, 65534, 65534)
    _, err = output_of(other_process(url))
    assert "PENSTOCK_CACHE" in err
    assert blocks_of(cache) == []


def test_what_it_makes_is_its_owners_alone(url, cache):
    before = os.umask(0)
    try:
        penstock.load(url)
    finally:
        os.umask(before)
    made = [cache, *cache.rglob("*")]
    assert len(blocks_of(cache)) > 0
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}


@pytest.mark.parametrize("name", ["bytes", "writing"])
def test_a_link_in_place_of_the_ledger_is_not_followed(url, cache, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_bytes(b"1" * 30)
    (cache / "penstock-blocks-1").mkdir(parents=True)
    (cache / "penstock-blocks-1" / name).symlink_to(victim)
    _, err = output_of(other_process(url))
    assert "PENSTOCK_CACHE" in err
    assert victim.read_bytes() == b"1" * 30


def test_a_cache_without_room_for_a_block_is_refused(url, settings):
    settings(PENSTOCK_CACHE_BYTES="1MB")
    with pytest.raises(penstock.InvalidArgumentError, match="PENSTOCK_CACHE_BYTES"):
        penstock.load(url)
    settings(PENSTOCK_CACHE_BYTES="2MB")
    load(url)


def test_a_tilde_is_the_home_folder(url, settings, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    settings(PENSTOCK_CACHE="~/kept")
    load(url)
    assert len(blocks_of(tmp_path / "kept")) == 3  # HOME is tmp_path
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_secret_is_in_the_cache(proxy, settings, cache):
    proxy.origin.objects |= {"/bucket/x.npy": npy_of(ARRAY), "/x.npy?sig=HiDdEn": npy_of(ARRAY)}
    settings(
        AWS_ENDPOINT_URL=proxy.url,
        AWS_ACCESS_KEY_ID="ACCESSKEY1",
        AWS_SECRET_ACCESS_KEY=SECRET_KEY,
        AWS_SESSION_TOKEN=TOKEN,
        AWS_REGION="us-east-1",
    )
    load("s3://bucket/x.npy")
    load(f"{proxy.url}/x.npy?sig=HiDdEn")
    assert len(blocks_of(cache)) == 6
    for path in blocks_of(cache):
        for secret in (SECRET_KEY, TOKEN, "HiDdEn", "ACCESSKEY1"):
            assert secret not in path.name
            assert secret.encode() not in path.read_bytes()


def test_the_command_shows_and_empties_it(url, cache, command):
    load(url)

    def run(*words: str) -> dict:
        return json.loads(subprocess.run([command, "cache", *words, "--json"], capture_output=True, check=True).stdout)

    found = run()
    assert (found["path"], found["objects"], found["blocks"]) == (str(cache), 1, 3)
    assert found["limit"] == 50_000_000_000
    assert found["bytes"] > ARRAY.nbytes
    assert run("http://elsewhere/*")["blocks"] == 0
    assert run(url.replace("x.npy", "*"))["blocks"] == 3
    assert run(url.replace("x.npy", ""))["blocks"] == 3
    assert run("--clear", "s3://*")["blocks"] == 0
    assert run("--clear", url)["blocks"] == 3
    assert run()["objects"] == 0
    load(url)
