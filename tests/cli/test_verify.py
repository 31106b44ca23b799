"""penstock verify: what is damaged is found, wherever in a file it lies, and what is sound is not called bad."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from terminals import read_all

import penstock

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
DATA_LIMIT = 256 << 20  # with room for the stacks of threads


def verify(*args: object, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([PROGRAM, "verify", *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def verify_json(*args: object, code: int = 0) -> dict:
    return json.loads(verify(*args, "--json", code=code).stdout)


def safetensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> Path:
    entries: dict = {"__metadata__": metadata} if metadata else {}
    payload = b""
    for name, array in tensors.items():
        end = len(payload) + array.nbytes
        entries[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(payload), end]}
        payload += array.tobytes()
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + payload)
    return path


def pt(path: Path, pickled: bytes, records: dict[str, bytes] | None = None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"data.pkl": b"\x80\x02" + pickled + b".", "version": b"3\n", **(records or {})}.items():
            archive.writestr(f"a/{name}", content)
    return path


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0xFF
    path.write_bytes(content)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Six sound files, one of them in a folder of its own, and others that are nobody's."""
    (tmp_path / "below" / "deep").mkdir(parents=True)
    np.save(tmp_path / "a.npy", np.arange(5))
    np.savez(tmp_path / "b.npz", x=np.arange(1000), y=np.float32(1), empty=np.zeros((0, 3)))
    np.savez_compressed(tmp_path / "c.npz", x=np.arange(1000), y=np.float32(1))
    safetensors(tmp_path / "below" / "d.safetensors", {"w": np.ones(4, "f4")}, {"k": "v"})
    pt(tmp_path / "below" / "deep" / "e.pt", b"K\x07")
    pt(tmp_path / "below" / "by_content.bin", b"K\x07")
    (tmp_path / "README.md").write_text("nothing of ours")
    (tmp_path / "config.json").write_text('{"layers": 3}')
    (tmp_path / "empty.txt").touch()
    (tmp_path / ".hidden.npy").write_bytes(b"cut")
    return tmp_path


def test_a_sound_folder_is_good(folder):
    result = verify_json(folder)
    assert result["bad"] == []
    assert result["notes"] == []
    assert result["files"] == 6
    assert result["tensors"] == 1 + 3 + 2 + 1
    ours = [path for path in folder.rglob("*") if path.suffix in {".npy", ".npz", ".safetensors", ".pt", ".bin"}]
    assert result["bytes"] == sum(path.stat().st_size for path in ours if path.name[0] != ".")
    out = verify(folder).stdout
    assert out.startswith("6 files, 7 tensors, ")
    assert out.endswith(": all good\n")
    assert verify(folder, "--quiet").stdout == ""


@pytest.mark.slow
def test_every_flipped_byte_of_a_stored_member_is_found(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(6, dtype="u1"))
    sound = path.read_bytes()
    begin = sound.index(b"\x93NUMPY")
    end = sound.index(b"PK\x01\x02")
    for offset in range(begin, end):
        path.write_bytes(sound)
        flip(path, offset)
        assert len(verify_json(path, code=1)["bad"]) == 1, offset


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_member_is_named(tmp_path, save):
    path = tmp_path / "x.npz"
    save(path, good=np.arange(3), hurt=np.arange(100_000) ** 2)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("hurt.npy")
    flip(path, info.header_offset + 200 + info.compress_size // 2)
    bad = verify_json(path, code=1)["bad"][0]
    assert bad["path"] == str(path)
    assert bad["code"] in ("checksum", "corrupt")
    assert "hurt" in bad["error"]
    line = verify(path, "--quiet", code=1).stdout
    assert line.startswith(f"bad: {path}: ")
    assert line.count("\n") == 1
    assert re.search(r"\n1 file, 0 tensors, \d+ kB: 1 bad\n$", verify(path, code=1).stdout)


def test_members_that_no_tensor_lies_in_are_checked(tmp_path):
    path = pt(tmp_path / "x.pt", b"K\x07", {".data/serialization_id": b"0123456789", "data/0": b"unused"})
    verify(path)
    flip(path, path.read_bytes().index(b"unused"))
    assert "data/0" in verify(path, code=1).stdout


def test_what_torch_wrote_without_checksums_is_good(tmp_path):
    path = pt(tmp_path / "x.pt", b"K\x07", {"data/0": b"unused"})
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        recorded = struct.pack("<I", archive.getinfo("a/data/0").CRC)
    path.write_bytes(content.replace(recorded, bytes(4)).replace(b"unused", b"UNUSED"))
    verify(path)


def test_several_bad_files_are_told_in_order_and_the_rest_is_read(folder):
    np.save(folder / "z.npy", np.arange(100))
    (folder / "z.npy").write_bytes((folder / "z.npy").read_bytes()[:200])
    (folder / "foreign.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    hostile = struct.pack("<Q", 1 << 60) + b"{}"
    (folder / "hostile.safetensors").write_bytes(hostile)
    result = verify_json(folder, folder / "missing.npy", code=1)
    assert result["files"] == 6 + 4
    found = {Path(bad["path"]).name: bad["code"] for bad in result["bad"]}
    assert list(found) == sorted(found)
    assert {"z.npy": "truncated", "foreign.pt": "unknown_format", "missing.npy": "not_found"}.items() <= found.items()
    assert set(found) == {"z.npy", "foreign.pt", "missing.npy", "hostile.safetensors"}
    assert [bad["error"].startswith(bad["path"]) for bad in result["bad"]] == [True] * 4


def test_named_files_have_to_be_ours_whatever_they_are_called(folder):
    assert "README.md" in verify(folder / "README.md", code=1).stdout
    assert verify_json(folder / "below" / "by_content.bin")["files"] == 1


def test_a_folder_without_tensor_files_is_an_error(tmp_path):
    (tmp_path / "README.md").write_text("nothing of ours")
    done = verify(tmp_path, code=1)
    assert f"bad: {tmp_path}: there are no tensor files in it or below" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_bad(folder):
    (folder / "a.npy").chmod(0)
    assert verify_json(folder, code=1)["bad"][0]["code"] == "permission"


def test_names_that_are_not_known_are_a_note(tmp_path):
    path = pt(tmp_path / "x.pt", b"cos\nsystem\nX\x04\x00\x00\x00true\x85R")
    result = verify_json(path)
    assert result["notes"] == [
        {"path": str(path), "unknown_globals": ["os.system"], "object_arrays": [], "trailing_bytes": 0}
    ]
    out = verify(path).stdout
    assert out.startswith(f"note: {path}: ")
    assert "os.system" in out
    assert verify(path, "--quiet").stdout == ""


def test_an_array_of_objects_is_read(tmp_path):
    path = tmp_path / "o.npy"
    np.save(path, np.array([{"a": 1}, None, np.ones(2)], dtype=object))
    result = verify_json(path)
    assert (result["files"], result["tensors"], result["bad"], result["notes"]) == (1, 1, [], [])
    path.write_bytes(path.read_bytes()[:-20])
    assert len(verify_json(path, code=1)["bad"]) == 1


def test_arrays_of_objects_are_checked(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, o=np.array([{"a": 1}, None], dtype=object))
    assert verify_json(path)["notes"] == []
    flip(path, path.read_bytes().index(b"PK\x01\x02") - 3)
    assert verify_json(path, code=1)["bad"][0]["code"] == "checksum"


def index(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        np.savez(tmp_path / f"{name}.npz", **{name: np.arange(100)})
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": {"one": "one.npz", "two": "two.npz"}}))
    return path


def test_shards_are_read_once(tmp_path):
    path = index(tmp_path)
    for args in ([path], [tmp_path], [tmp_path, path, tmp_path / "one.npz"]):
        result = verify_json(*args)
        assert (result["files"], result["tensors"]) == (3, 2)
    os.link(tmp_path / "one.npz", tmp_path / "again.npz")
    os.symlink("one.npz", tmp_path / "link.npz")
    assert verify_json(tmp_path)["files"] == 3


def test_a_damaged_shard_is_found_through_its_index(tmp_path):
    path = index(tmp_path)
    content = (tmp_path / "two.npz").read_bytes()
    flip(tmp_path / "two.npz", content.index(b"PK\x01\x02") - 5)
    assert [bad["path"] for bad in verify_json(path, code=1)["bad"]] == [str(tmp_path / "two.npz")]
    (tmp_path / "two.npz").unlink()
    bad = verify_json(path, code=1)["bad"][0]
    assert bad["path"] == str(path)
    assert bad["error"].startswith(str(path))
    assert "two.npz" in bad["error"]


def limited(*args: object) -> subprocess.CompletedProcess:
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))

    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, preexec_fn=limit, timeout=300)


@pytest.mark.slow
def test_memory_stays_low_however_large_the_file_is(tmp_path):
    size = 1 << 30
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    path = tmp_path / "sparse.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + size)
    done = limited("verify", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 file, 1 tensor, 1.1 GB: all good\n"


@pytest.mark.slow
def test_memory_stays_low_however_much_a_member_inflates(tmp_path):
    path = tmp_path / "zeros.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": (1 << 29,)})
        for _ in range(64):
            member.write(bytes(1 << 23))
    assert limited("cat", path, "x", "--slice", "0:1").returncode == 1  # which inflates all of it
    done = limited("verify", path)
    assert done.returncode == 0, done.stderr


def test_hostile_names_cannot_write_to_the_terminal(tmp_path):
    path = pt(tmp_path / "x.pt", b"c\x1b[2J\nsys\x1b[31mtem\nK\x01\x85R", {"data/\x1b[2J": b"unused"})
    assert "\x1b" not in verify(path).stdout
    flip(path, path.read_bytes().index(b"unused"))
    assert "\x1b" not in verify(path, code=1).stdout


def test_progress_is_for_terminals_alone(tmp_path):
    for i in range(70):
        np.save(tmp_path / f"{i}.npy", np.arange(i))
    assert verify(tmp_path).stderr == ""
    leader, follower = pty.openpty()
    terminal = os.environ | {"TERM": "xterm"}
    done = subprocess.run(
        [PROGRAM, "verify", tmp_path], stdout=subprocess.PIPE, stderr=follower, text=True, env=terminal
    )
    os.close(follower)
    shown = read_all(leader)
    assert re.match(rb"\rverified \d+ %; \d+ files?, 0 bad ", shown)
    assert shown.endswith(b"\r\x1b[K")
    assert done.stdout.startswith("70 files, 70 tensors, ")


@pytest.mark.parametrize("args", [[], ["--what", "x"], ["x", "--quiet", "--json"]])
def test_wrong_usage(args):
    assert verify(*args, code=2).stderr.startswith("penstock: ")


def test_bytes_behind_a_compressed_stream_are_found(tmp_path):
    path = tmp_path / "x.npz"
    plain = bytes(1000)
    packer = zlib.compressobj(wbits=-15)
    stream = packer.compress(plain) + packer.flush()
    for junk in (b"", b"junk"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", stream + junk)
        content = bytearray(path.read_bytes())
        for method in (8, content.index(b"PK\x01\x02") + 10):
            struct.pack_into("<H", content, method, zipfile.ZIP_DEFLATED)
            struct.pack_into("<I", content, method + 6, zlib.crc32(plain))
            struct.pack_into("<I", content, method + 14, len(plain))
        path.write_bytes(content)
        assert ("4 bytes follow" in verify(path, code=1 if junk else 0).stdout) == bool(junk)


def test_links_to_folders_are_followed_but_for_those_that_lead_back_up(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    np.savez(tmp_path / "there" / "x.npz", x=np.ones(3))
    os.symlink("../there", tmp_path / "here" / "link")
    os.symlink("..", tmp_path / "here" / "up")
    assert verify_json(tmp_path / "here")["files"] == 1


def test_folders_and_files_are_left_out(tmp_path):
    for name in ("a/1", "a/old/2", "b/3", "tmp1/4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / f"{name}.npy", np.ones(3))
    (tmp_path / "a/old/bad.npy").write_bytes(b"\x93NUMPY\1\0")
    assert verify_json(tmp_path, code=1)["files"] == 5
    for exclude, files in [(["old"], 3), (["a/old", "tmp*"], 2), (["bad.npy"], 4), (["a"], 2), (["/a", "bad.*"], 4)]:
        options = [part for one in exclude for part in ("--exclude", one)]
        result = verify_json(tmp_path, *options)
        assert (result["files"], result["bad"]) == (files, [])
        assert verify_json(*options, tmp_path)["files"] == files
    assert verify_json(tmp_path / "a/old/2.npy", "--exclude", "2.npy")["files"] == 1  # which is named itself
    assert "exclude" in verify(tmp_path, "--exclude", "/", code=1).stderr


@pytest.mark.parametrize("place", [0.01, 0.6, 0.99])
def test_a_large_member_is_checked_in_parts(tmp_path, place):
    path = tmp_path / "x.npz"
    np.savez(path, small=np.arange(3), large=np.arange(10_000_000), last=np.arange(4))
    assert verify_json(path)["bytes"] == path.stat().st_size
    with path.open("r+b") as file:
        file.seek(int(80_000_000 * place))
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    (bad,) = verify_json(path, code=1)["bad"]
    assert (bad["tensor"], bad["code"]) == ("large.npy", "checksum")


def test_a_checkpoint_of_empty_tensors_alone_is_good(tmp_path):
    penstock.save({"x": np.zeros((0, 3), "f4"), "y": np.zeros(0)}, f"{tmp_path}/ckpt/", sync=False)
    assert verify_json(tmp_path / "ckpt") | {"bytes": 0} == {
        "files": 2,
        "tensors": 2,
        "bytes": 0,
        "bad": [],
        "notes": [],
    }


def test_tensors_that_an_index_leaves_out_are_told(tmp_path):
    three = {name: np.ones(3, "f4") for name in ("a", "b", "c")}
    safetensors(tmp_path / "m-1.safetensors", three)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys("ab", "m-1.safetensors")}))
    for path in (index, tmp_path):
        told = verify(path, code=1).stdout
        assert "all good" not in told
        assert "where 1 tensor of its shards is: 'c'" in told
    index.write_text(json.dumps({"weight_map": dict.fromkeys("abc", "m-1.safetensors")}))
    assert "all good" in verify(tmp_path).stdout


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """Of four ranks, each tensor in several chunks."""
    return Path(shutil.copytree(ROOT / "tests" / "format" / "data" / "dcp_2x2", tmp_path / "ck"))


def damage_payloads(path: Path) -> None:
    """Flips a byte in the elements of each stream of that file."""
    content = path.read_bytes()
    for record in re.finditer(rb"PK\x03\x04.{26}archive/data/0", content, re.DOTALL):
        begin = record.start()
        flip(path, begin + 30 + sum(struct.unpack("<HH", content[begin + 26 : begin + 30])) + 5)


@pytest.mark.parametrize(
    "args", [["stats"], ["hash", "--content"], ["hash"], ["show", "p"], ["report", "-o", "page.html"]]
)
def test_damage_in_a_chunk_is_noticed_by_all_that_read_it(checkpoint, tmp_path, args):
    command = [PROGRAM, args[0], str(checkpoint), *args[1:]]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120).returncode == 0
    (tmp_path / "page.html").unlink(missing_ok=True)
    shutil.copytree(checkpoint, tmp_path / "sound")
    damage_payloads(checkpoint / "__3_0.distcp")
    assert "__3_0.distcp" in verify(checkpoint, code=1).stdout
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "checksum" in done.stderr.lower() or "CRC" in done.stderr, done.stderr
    compared = subprocess.run([PROGRAM, "diff", tmp_path / "sound", checkpoint], capture_output=True, timeout=120)
    assert compared.returncode == 2


@pytest.mark.slow
def test_a_file_that_ends_in_the_stream_of_an_empty_chunk(tmp_path):
    """A rank that has nothing of a tensor may write a stream for it all the same."""
    torch = pytest.importorskip("torch")
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from dcp_pairs import save_by_ranks

    x = torch.arange(12.0).reshape(3, 4)
    save_by_ranks(tmp_path, {"w": x}, [{"w": [((0, 0), (3, 4))]}, {"w": [((3, 0), (0, 4))]}])
    assert "all good" in verify(tmp_path).stdout
    last = tmp_path / "__1_0.distcp"
    last.write_bytes(last.read_bytes()[:-1])
    assert penstock.load(tmp_path)["w"].tolist() == x.tolist()
    assert "it was cut" in verify(tmp_path, code=1).stdout


@pytest.mark.parametrize("first", [0, 1])
def test_a_part_that_the_names_of_others_tell_of_is_missed(tmp_path, first):
    for i in range(3):
        np.save(tmp_path / f"part-{i + first}-of-3.npy", np.arange(4))
    assert "all good" in verify(tmp_path).stdout
    (tmp_path / f"part-{1 + first}-of-3.npy").unlink()
    assert f"'part-{1 + first}-of-3.npy' is missing" in verify(tmp_path, code=1).stdout
    assert "all good" in verify(f"{tmp_path}/part-*").stdout
