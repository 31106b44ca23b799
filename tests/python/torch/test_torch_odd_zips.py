"""Zip archives that are no `.npz` and no file of torch.save, or that are in a way that no usual writer makes: what each
road of Penstock says of them, beside torch and NumPy."""

import contextlib
import io
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import penstock
import penstock.numpy as pn
import penstock.torch as pt

PROGRAM = Path(__file__).resolve().parents[3] / "build/release/bin/penstock"
Members = list[tuple[str, bytes]]


def write(path, members: Members):
    with zipfile.ZipFile(path, "w") as out:
        for name, data in members:
            out.writestr(name, data)
    return path


def torch_members(tmp_path) -> Members:
    torch.save({"w": torch.arange(4.0)}, tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def npy(array) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def roads(path):
    """Each way to read a file, by name."""
    yield "penstock.load", lambda: penstock.load(path)
    yield "penstock.open", lambda: penstock.open(path)
    yield "penstock.files", lambda: penstock.files([path])[0]
    yield "loader", lambda: list(penstock.DataLoader(penstock.files([path])))
    yield "pt.load", lambda: pt.load(path)
    yield "pt.load of memory", lambda: pt.load(io.BytesIO(path.read_bytes()))
    yield "pt.load of a file", lambda: pt.load(path.open("rb"))
    yield "pt.Files", lambda: pt.Files([path])[0]
    yield "pn.load", lambda: pn.load(path)
    yield "pn.load of memory", lambda: pn.load(io.BytesIO(path.read_bytes()))
    for command in (["verify"], ["info"], ["ls"], ["cat"]):
        yield command[0], lambda command=command: command_of(*command, path)
    yield "convert", lambda: command_of("convert", path, path.with_suffix(".safetensors"))


@contextlib.contextmanager
def subtest(road):
    """Names the road that fails."""
    try:
        yield
    except BaseException as error:
        if hasattr(error, "add_note"):
            error.add_note(f"on the road {road}")
        raise


def command_of(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise penstock.CorruptError(done.stdout + done.stderr)


FOREIGN = {
    "a document": ([("[Content_Types].xml", b"<x/>"), ("word/document.xml", b"<w/>")], "Office document"),
    "a Java archive": ([("META-INF/MANIFEST.MF", b"v"), ("a/B.class", b"\xca\xfe")], "Java archive"),
    "a Keras model": ([("metadata.json", b"{}"), ("config.json", b"{}"), ("model.weights.h5", b"x")], "Keras"),
    "a zipped folder": ([("a.txt", b"hello"), ("b/c.txt", bytes(16))], r"zip archive of other files.*a\.txt"),
    "a zipped checkpoint": ([("run/", b""), ("run/model.pt", b"PK")], r"run/model\.pt.*unpack"),
    "a pickle that is not torch's": ([("model/weights.pkl", b"\x80\x02N.")], "other files"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_other_archives_are_refused_on_every_road_as_what_they_are(tmp_path, what):
    members, said = FOREIGN[what]
    path = write(tmp_path / "x.pt", members)
    for road, read in roads(path):
        with subtest(road), pytest.raises(penstock.Error, match=said):
            read()


def repacked(members: Members, what: str) -> Members:
    match what:
        case "one folder too deep":
            return [(f"outer/{name}", data) for name, data in members]
        case "in no folder":
            return [(name.partition("/")[2], data) for name, data in members]
        case "behind a README":
            return [("README", b"hi"), *members]
        case "behind an array":
            return [("a.npy", npy(np.arange(3))), *members]
        case "behind another folder":
            return [("docs/README", b"hi"), *members]
        case "before a README":
            return [*members, ("README", b"hi")]
        case "without its pickle":
            return [(name, data) for name, data in members if not name.endswith("data.pkl")]
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("one folder too deep", "folder 'outer/good/'"),
        ("in no folder", "in no folder"),
        ("behind a README", "in no folder"),
        ("behind an array", "in no folder"),
        ("behind another folder", "not in the folder 'docs/'"),
        ("before a README", "not in the folder 'good/'"),
        ("without its pickle", r"no record 'data\.pkl'"),
    ],
)
def test_torch_archives_that_torch_does_not_read_are_refused_by_name(tmp_path, what, said):
    path = write(tmp_path / "x.pt", repacked(torch_members(tmp_path), what))
    with pytest.raises(RuntimeError):
        torch.load(path)
    for road, read in roads(path):
        with subtest(road), pytest.raises(penstock.Error, match=said):
            read()


@pytest.mark.parametrize("change", [str.upper, str.title, lambda name: name.replace("data", "DATA")])
def test_records_in_letters_of_another_case_are_read_as_torch_reads_them(tmp_path, change):
    path = write(tmp_path / "x.pt", [(change(name), data) for name, data in torch_members(tmp_path)])
    expected = torch.load(path)
    for found in (pt.load(path), pt.Files([path])[0]):
        assert torch.equal(found["w"], expected["w"])
    assert penstock.load(path)["w"].tolist() == expected["w"].tolist()
    command_of("verify", path)


def test_records_that_differ_in_the_case_of_letters_alone_are_refused(tmp_path):
    members = torch_members(tmp_path)
    path = write(
        tmp_path / "x.pt", [*members, *((n.replace("data/", "Data/"), d) for n, d in members if "data/0" in n)]
    )
    with pytest.raises(penstock.CorruptError, match="case of letters"):
        pt.load(path)


def test_files_beside_the_pickle_change_nothing(tmp_path):
    members = torch_members(tmp_path)
    for first in (("good/README", b"hi"), ("good/a.npy", npy(np.arange(3)))):
        path = write(tmp_path / "x.pt", [first, *members])
        assert torch.equal(pt.load(path)["w"], torch.load(path)["w"])
        assert torch.equal(pt.Files([path, path])[1]["w"], torch.load(path)["w"])


def test_an_archive_without_members_is_an_npz_by_its_name_alone(tmp_path):
    np.savez(tmp_path / "x.npz")
    assert penstock.load(tmp_path / "x.npz") == {} == dict(pn.load(tmp_path / "x.npz"))
    with pytest.raises(penstock.UnknownFormatError, match="without members"):
        pt.load(tmp_path / "x.npz")
    path = write(tmp_path / "x.pt", [])
    for road, read in roads(path):
        if road == "pn.load of memory":
            continue
        with subtest(road), pytest.raises(penstock.Error, match="without members"):
            read()


def test_what_lies_beside_arrays_is_bytes_as_with_numpy(tmp_path):
    path = write(tmp_path / "x.npz", [("a.npy", npy(np.arange(3))), ("readme.txt", b"hi"), ("d/", b"")])
    with np.load(path) as theirs, pn.load(path) as ours:
        assert list(ours) == list(theirs) == ["a", "readme.txt", "d/"]
        assert ours["readme.txt"] == theirs["readme.txt"] == b"hi"
        assert ours["d/"] == theirs["d/"] == b""
        assert "d/" in ours
        assert len(ours) == 3
    assert list(penstock.load(path)) == ["a", "readme.txt"]


# Bytes behind the end.


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", bytes(4096), b"\x00" * 65535, b"signature: none"], ids=len)
def test_bytes_behind_the_end_are_passed_over_as_by_torch_and_numpy(tmp_path, tail):
    torch.save({"w": torch.arange(4.0)}, tmp_path / "x.pt")
    np.savez(tmp_path / "x.npz", w=np.arange(4.0))
    for path in (tmp_path / "x.pt", tmp_path / "x.npz"):
        path.write_bytes(path.read_bytes() + tail)
        assert penstock.load(path)["w"].tolist() == [0, 1, 2, 3]
        assert penstock.files([path, path])[1]["w"].tolist() == [0, 1, 2, 3]
        done = subprocess.run([PROGRAM, "verify", path], capture_output=True, text=True, check=True)
        count = f"{len(tail):,} byte{'' if len(tail) == 1 else 's'}"
        assert f"note: {path}: {count} behind the end of the zip archive" in done.stdout
    assert torch.equal(pt.load(tmp_path / "x.pt")["w"], torch.arange(4.0))
    if len(tail) < 4000:  # torch looks no further back
        assert torch.equal(torch.load(tmp_path / "x.pt")["w"], torch.arange(4.0))
    np.testing.assert_array_equal(pn.load(tmp_path / "x.npz")["w"], np.load(tmp_path / "x.npz")["w"])


def test_more_bytes_behind_the_end_are_refused_as_by_torch_and_numpy(tmp_path):
    torch.save({"w": torch.arange(4.0)}, tmp_path / "x.pt")
    np.savez(tmp_path / "x.npz", w=np.arange(4.0))
    for path, peer in ((tmp_path / "x.pt", torch.load), (tmp_path / "x.npz", np.load)):
        path.write_bytes(path.read_bytes() + bytes(66000))
        with pytest.raises((RuntimeError, OSError, zipfile.BadZipFile)):
            peer(path)
        with pytest.raises(penstock.TruncatedError, match="no end-of-directory record"):
            penstock.load(path)
