"""The defaults that docs/settings.md and docs/remote.md list are those of the module and of the sources."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = (ROOT / "docs/settings.md").read_text()
REMOTE = (ROOT / "docs/remote.md").read_text()

# What the pages say, by the first words of the row, and what the call takes.
DEFAULTS = [
    (penstock.load, {"device": "cpu", "mmap": None, "verify": True, "direct": None, "gds": None, "threads": None}),
    (penstock.load, {"dtype": None, "strict": False}),
    (penstock.open, {"verify": True}),
    (penstock.save, {"format": None, "compress": False, "metadata": None, "sync": True}),
    (penstock.Writer, {"sync": True}),
    (penstock.pack, {"shard_bytes": 256 << 20, "verify": True}),
    (penstock.DataLoader, {"batch_size": 1, "shuffle": False, "drop_last": False, "seed": 0, "num_workers": "auto"}),
    (penstock.DataLoader, {"prefetch_factor": 2, "trace": None, "on_error": "raise", "remainder": "pad"}),
    (penstock.files, {"keys": None, "exclude": None, "raw": False, "class_folders": False, "index": False}),
    (penstock.pad, {"dim": 0, "dims": None, "mode": "zero", "value": 0.0, "lengths": False, "mask": False}),
    (penstock.length_buckets, {"shuffle": True, "drop_last": False, "rank": 0, "num_replicas": 1}),
    (penstock.length_buckets, {"dim": 0, "too_long": "raise"}),
    (penstock.pack_sequences, {"too_long": "raise", "value": 0, "cu_seqlens": False}),
    (penstock.ragged, {"cu_seqlens": False, "keys": None}),
    (penstock.Dataset.windows, {"stride": None, "shift": 0, "join": None}),
    (penstock.mix, {"end": "first", "size": None}),
    (penstock.Dataset.fields, {"missing": "error", "check": True, "raw": None}),
    (penstock.stream, {"name": "<stream>", "seekable": False}),
    (penstock.SampleStream.shuffle, {"seed": 0, "memory": None}),
]


@pytest.mark.parametrize(("call", "defaults"), DEFAULTS)
def test_arguments(call, defaults):
    parameters = inspect.signature(call).parameters
    assert {name: parameters[name].default for name in defaults} == defaults
    for name in defaults:
        assert f"`{name}" in SETTINGS, f"docs/settings.md says nothing of {name}"


def test_torchs_and_numpys_savers_do_not_flush():
    numpy = pytest.importorskip("penstock.numpy")
    assert inspect.signature(numpy.save).parameters["sync"].default is False
    torch = pytest.importorskip("penstock.torch")
    assert inspect.signature(torch.save).parameters["sync"].default is False
    dcp = pytest.importorskip("penstock.torch.dcp")
    assert inspect.signature(dcp.StorageWriter).parameters["sync_files"].default is True


def row(page: str, variable: str) -> str:
    (line,) = re.findall(rf"^\| `{variable}` \|(.*)\|$", page, re.MULTILINE)
    return line


@pytest.mark.parametrize(
    ("variable", "default"),
    [
        ("PENSTOCK_REMOTE_REQUESTS", "64"),
        ("PENSTOCK_REMOTE_TIMEOUT", "30"),
        ("PENSTOCK_REMOTE_RETRY_SECONDS", "60"),
        ("PENSTOCK_REMOTE_HEDGES", "0.05"),
    ],
)
def test_variables_of_requests(variable, default):
    source = (ROOT / "src/io/remote/settings.cpp").read_text()
    assert re.search(rf'number\("{variable}", [^,]+, [^,]+, ([\d.]+)\)', source)[1] == default
    assert row(REMOTE, variable).split("|")[-1].strip() == default


def test_variables_of_the_cache():
    header = (ROOT / "src/io/remote/cache/block_cache.h").read_text()
    value = re.search(r"kDefaultBytes\s*=\s*([\d'_a-z]+)", header)[1]
    assert re.sub(r"\D", "", value.split("U")[0]) == "50000000000"
    assert "`50GB`" in row(REMOTE, "PENSTOCK_CACHE_BYTES")
    source = (ROOT / "src/io/remote/cache/cache_settings.cpp").read_text()
    assert 'number("PENSTOCK_CACHE_TRUST_SECONDS", 0, kYear, 0)' in source


NAMED_LIBRARY = """
import penstock
penstock.save(penstock.zeros(2), "x.npy")
penstock.load("x.npy")
try:
    penstock.load("http://127.0.0.1:9/x.npy")
except penstock.Error as error:
    print(error)
"""


def test_libcurl_may_have_another_name_and_files_do_not_need_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NAMED_LIBRARY],
        env={**os.environ, "PENSTOCK_LIBCURL": "libnone.so.7"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "libnone.so.7" in done.stdout


@pytest.mark.parametrize(
    ("source", "constant", "said"),
    [
        ("include/penstock/loader.h", "memory_budget = std::uint64_t{1} << 30;", "| `memory_budget` | 1 GiB |"),
        ("include/penstock/loader.h", "prefetch_factor = 2;", "| `prefetch_factor` | 2 |"),
        ("src/device/pinned_ring.h", "kSlotBytes = std::size_t{4} << 20;", "64 by default"),
        ("src/device/pinned_ring.h", "kDefaultSlots = 16;", "64 by default"),
        ("src/format/zip/end.h", "max_entries = std::uint64_t{1} << 24;", "| 16,777,216, in a directory"),
        ("src/format/zip/end.h", "max_directory_bytes = std::uint64_t{1} << 30;", "in a directory of 1 GiB"),
        ("src/format/zip/end.h", "max_inflated_bytes = std::uint64_t{1} << 44;", "inflated 16 TiB together"),
        ("src/format/safetensors/shard_list.h", "kMaxShardListBytes = 100'000'000;", "16,384, in 100,000,000 bytes"),
        ("src/format/flat_tensors.cpp", "kMaxJoinedText = 100'000'000;", "is written | 100,000,000 bytes"),
        ("src/format/pt/pickle/pickle_vm.h", "kAlways = 250'000;", "| 250,000 and one for each two bytes"),
        ("src/data/tar/tar_parts.cpp", "kMostUnpacked = std::size_t{1} << 30;", "| 1 GiB, unpacked |"),
        ("src/data/sample/value_layout.cpp", "kMaxLeaves = 100'000;", "| 64 levels, 100,000 parts"),
    ],
)
def test_numbers_of_the_sources(source, constant, said):
    assert constant in (ROOT / source).read_text()
    assert said in SETTINGS
