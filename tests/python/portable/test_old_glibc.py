"""What stands in for a newer glibc in wheels (python/portable/old_glibc.cpp), in a shared object of its own.

script/try_release tries the whole module with an old glibc.
"""

import ctypes
import errno
import os
import platform
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PORTABLE = ROOT / "python" / "portable"
PROBE = Path(__file__).with_name("old_glibc_probe.cpp")
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
EXPORTS = (
    "inodes status_error wait_in_vain wait_for_thread standard_wait_times_out thread_id name_of_thread "
    "random_numbers_differ length finds_library missing_library"
).split()


def stand_ins(folder: Path) -> list[Path]:
    """The libraries that the module of a wheel is linked with, made as python/CMakeLists.txt makes them."""
    versions = PORTABLE / f"versions_{platform.machine()}.map"
    made = []
    for name in ("libpthread.so.0", "libdl.so.2"):
        macro = f"-DPENSTOCK_{name.partition('.')[0].upper()}"
        linked = ["-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={versions}"]
        source = PORTABLE / "old_libraries.cpp"
        subprocess.run(
            [COMPILER, "-shared", "-fPIC", macro, *linked, source, "-o", folder / name], check=True, timeout=60
        )
        made.append(folder / name)
    return made


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "exports.map").write_text("{ global: " + " ".join(f"{name};" for name in EXPORTS) + " local: *; };")
    command = [COMPILER, "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{ROOT}", PROBE, "-o", folder / "probe.so"]
    options = ["-static-libstdc++", f"-Wl,--version-script={folder}/exports.map", "-Wl,--gc-sections"]
    subprocess.run([*command, *stand_ins(folder), *options], check=True, timeout=300)
    return folder / "probe.so"


@pytest.fixture(scope="module")
def probe(library) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library))
    loaded.length.restype = ctypes.c_double
    loaded.missing_library.restype = ctypes.c_char_p
    for name in ("standard_wait_times_out", "random_numbers_differ", "finds_library"):
        getattr(loaded, name).restype = ctypes.c_bool
    return loaded


def test_nothing_of_it_wants_a_glibc_newer_than_2_27(library):
    symbols = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    versions = [int(minor) for minor in re.findall(r"@GLIBC_2\.(\d+)", symbols.stdout)]
    assert versions
    assert max(versions) <= 27, symbols.stdout


def test_an_old_glibc_is_asked_for_threads_and_libraries_where_it_has_them(library):
    # A glibc before 2.30 fails at a library that is named for a function and lacks it.
    wanted = subprocess.run(["objdump", "-p", library], capture_output=True, text=True, check=True).stdout
    named = dict(re.findall(r"required from (\S+):\n((?:    .*\n)+)", wanted))
    assert "GLIBC_2." in named["libpthread.so.0"]
    assert "GLIBC_2." in named["libdl.so.2"]
    assert not [name for name in named if name.startswith("libstdc++")]


def test_the_stand_ins_are_not_needed_to_run(library):
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "PATH" not in dynamic


def test_every_stat_is_of_the_file(probe, tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    found = (ctypes.c_uint64 * 6)()
    probe.inodes(os.fsencode(path), found)
    assert list(found) == [path.stat().st_ino] * 6


def test_stat_says_in_errno_what_is_wrong(probe, tmp_path):
    assert probe.status_error(os.fsencode(tmp_path / "absent")) == errno.ENOENT
    assert probe.status_error(os.fsencode(tmp_path)) == 0


def test_waits_end_in_time_or_by_a_signal(probe):
    million = ctypes.c_int64(1_000_000)
    assert probe.wait_in_vain(million) == errno.ETIMEDOUT
    assert probe.wait_in_vain(ctypes.c_int64(-1)) == errno.ETIMEDOUT
    assert probe.wait_for_thread() == 0
    assert probe.standard_wait_times_out(million)


def test_threads_have_their_ids_and_names(probe):
    assert probe.thread_id() == threading.get_native_id()
    name = ctypes.create_string_buffer(16)
    probe.name_of_thread(name)
    assert name.value == b"probe"


def test_numbers_are_what_the_functions_give(probe):
    assert probe.length(ctypes.c_double(3), ctypes.c_double(4)) == 5
    assert probe.random_numbers_differ()


def test_libraries_are_opened_and_what_is_wrong_is_said(probe):
    assert probe.finds_library(b"libz.so.1", b"crc32")
    assert b"libnowhere.so" in probe.missing_library(b"libnowhere.so")
