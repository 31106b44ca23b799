"""penstock report of several files, and of what differs between two folders of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from test_report import (
    FIRST,
    FOUND,
    HOSTILE,
    PEAK_OF,
    PROGRAM,
    ROWS,
    data_of,
    hostile_file,
    opened,
    report,
    report_data,
)

__all__ = ["opened"]


@pytest.fixture
def folder(tmp_path) -> Path:
    """Files in folders, of three formats, one of them an index of two shards."""
    path = tmp_path / "folder"
    (path / "deep" / "er").mkdir(parents=True)
    np.save(path / "a.npy", np.arange(6.0))
    np.save(path / "b.npy", np.array([1, np.nan]))
    np.savez(path / "deep" / "c.npz", w=np.ones((4, 5), "f4"), v=np.zeros(3))
    names = {}
    for i in (1, 2):
        name = f"model-{i}.safetensors"
        save_file({f"layer.{i}": np.full(10, i, "f4")}, path / "deep" / "er" / name, metadata={"made": f"<{i}>"})
        names[f"layer.{i}"] = name
    (path / "deep" / "er" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    return path


def relative(data: dict, folder: Path) -> list[str]:
    return [str(Path(file["path"]).relative_to(folder)) for file in data["files"]]


def test_each_file_is_what_its_own_page_has(folder):
    data = report_data(folder)
    assert (data["kind"], data["path"]) == ("files", str(folder))
    assert relative(data, folder) == ["a.npy", "b.npy", "deep/c.npz", "deep/er/model.safetensors.index.json"]
    for file in data["files"]:
        single = report_data(file["path"])
        assert file == {key: value for key, value in single.items() if key not in ("kind", "penstock")}
    assert report_data(f"{folder}/**")["files"] == data["files"]
    assert relative(report_data(f"{folder}/*.npy"), folder) == ["a.npy", "b.npy"]
    assert relative(report_data(folder, "--exclude", "deep"), folder) == ["a.npy", "b.npy"]
    words = [folder / "a.npy", folder / "b.npy", f"{folder}/deep/*.npz"]
    assert (report_data(*words)["files"], report_data(*words)["path"]) == (data["files"][:3], "3 files")
    assert all(not file["values_read"] for file in report_data(folder, "--no-values")["files"])


def test_a_checkpoint_is_one_file(tmp_path):
    save_file({"w": np.ones(3)}, tmp_path / "w.safetensors")
    for name in ("step-1", "step-2"):
        subprocess.run([PROGRAM, "convert", tmp_path / "w.safetensors", f"{tmp_path}/{name}/"], check=True)
    data = report_data(f"{tmp_path}/step-*")
    assert [(file["path"], file["format"]) for file in data["files"]] == [
        (f"{tmp_path}/step-1", "dcp"), (f"{tmp_path}/step-2", "dcp")
    ]  # fmt: skip


def test_errors_name_their_file_and_the_page_has_the_rest(folder, tmp_path):
    (folder / "bad.npy").write_bytes(b"no array")
    with (folder / "crc.npz").open("wb") as file:
        np.savez(file, a=np.arange(5000))
    content = bytearray((folder / "crc.npz").read_bytes())
    content[1000] ^= 1
    (folder / "crc.npz").write_bytes(content)
    page = tmp_path / "page.html"
    done = report(folder, "-o", page, code=1)
    assert done.stdout.startswith(f"{page}: ")
    assert [Path(line.split(": ")[1]).name for line in done.stderr.splitlines()] == ["bad.npy", "crc.npz"]
    data = data_of(page.read_text())
    assert [Path(file["path"]).name for file in data["files"] if "error" in file] == ["bad.npy", "crc.npz"]
    assert len(data["files"]) == 6
    # Of a single file there is no page.
    report(folder / "bad.npy", "-o", tmp_path / "none.html", code=1)
    report(f"{folder}/*.none", "-o", tmp_path / "none.html", code=1)
    assert not (tmp_path / "none.html").exists()


def test_no_file_that_is_read_is_replaced(folder):
    for word in (folder, f"{folder}/**"):
        told = report(word, "-o", folder / "deep" / "c.npz", "--force", code=1)
        assert "to be reported on" in told.stderr
    (folder / "page.html").touch()
    assert "the file exists" in report(folder, "-o", folder / "page.html", code=1).stderr
    np.load(folder / "deep" / "c.npz")
    assert sorted(os.listdir(folder / "deep")) == ["c.npz", "er"]


def test_values_are_bounded_over_all_files(tmp_path):
    torch = pytest.importorskip("torch")
    for i in range(3):
        torch.save({"list": list(range(600)), "w": torch.ones(1)}, tmp_path / f"{i}.pt")
    files = report_data(tmp_path)["files"]
    assert [(len(file["values"]), file["values_left_out"]) for file in files] == [(600, 0), (400, 200), (0, 600)]


def test_differences_of_folders_are_those_of_diff(folder, tmp_path):
    other = tmp_path / "other"
    (other / "deep").mkdir(parents=True)
    np.save(other / "a.npy", np.arange(6.0) * 2)
    np.save(other / "b.npy", np.array([1, np.nan]))
    np.savez(other / "deep" / "c.npz", w=np.ones((4, 5), "f4"), v=np.ones(3))
    np.save(other / "more.npy", np.ones(1))
    data = report_data(folder, other)
    diff = json.loads(subprocess.run([PROGRAM, "diff", "--json", folder, other], capture_output=True).stdout)
    assert (data["kind"], data["path"], data["other"]) == ("diffs", str(folder), str(other))
    assert (data["only_in_a"], data["only_in_b"]) == (diff["only_in_a"], diff["only_in_b"])
    assert [pair["name"] for pair in data["pairs"]] == ["a.npy", "b.npy", "deep/c.npz"]
    for pair, wanted in zip(data["pairs"], diff["files"], strict=True):
        for key in ("equal", "equal_tensors", "equal_values", "differences", "different_metadata"):
            assert pair[key] == wanted[key]
    (other / "b.npy").write_bytes(b"no array")
    done = report(folder, other, "-o", tmp_path / "page.html", code=1)
    assert "b.npy: " in done.stderr
    assert [pair["name"] for pair in data_of((tmp_path / "page.html").read_text())["pairs"] if "error" in pair] == [
        "b.npy"
    ]
    # A file beside a folder is compared with the one of its name.
    assert report_data(folder / "a.npy", other)["b"]["path"] == str(other / "a.npy")
    assert "to be reported on" in report(folder, other, "-o", other / "a.npy", "--force", code=1).stderr


def test_ten_thousand_tensors_in_a_thousand_files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    tensors = {f"layers.{i}.weight": np.arange(64, dtype="f4") for i in range(10)}
    for i in range(1000):
        save_file(tensors, folder / f"{i:04}.safetensors")
    started = time.monotonic()
    command = [PROGRAM, "report", folder, "-o", tmp_path / "page.html"]
    peak = subprocess.run([sys.executable, "-c", PEAK_OF, *command], stdout=subprocess.PIPE, check=True, timeout=120)
    assert time.monotonic() - started < 60
    data = data_of((tmp_path / "page.html").read_text())
    assert sum(len(file["tensors"]) for file in data["files"]) == 10_000
    assert (tmp_path / "page.html").stat().st_size < 8_000_000
    assert int(peak.stdout) < 200_000  # in KiB


FIND = "(text) => { const s = document.querySelector('input'); s.value = text; s.dispatchEvent(new Event('input')); }"


def test_a_page_of_files(opened, folder):
    page = opened(folder)
    assert page.run(FOUND) == "6"
    assert page.run(f"{ROWS}.map((row) => row.children[1].textContent)") == [
        "a.npy", "b.npy", "deep/c.npz", "deep/c.npz", *["deep/er/model.safetensors.index.json"] * 2
    ]  # fmt: skip
    page.run(f"({FIND})('DEEP v')")
    assert page.run(f"{ROWS}.map((row) => row.firstChild.textContent)") == ["v"]
    page.run(f"({FIND})('')")
    labels = "[...document.querySelectorAll('.box')].map((box) => box.getAttribute('aria-label').split(':')[0])"
    assert sorted(page.run(labels)) == ["a.npy", "b.npy", "deep"]
    page.run("document.querySelector('.box').click()")
    assert sorted(page.run(labels)) == ["c.npz", "er/model.safetensors.index.json"]
    tiles = page.run("document.querySelector('.tiles').textContent")
    assert "Files4" in tiles
    assert "Formatnpy, npz, shard-index" in tiles
    page.run(
        "const s = document.querySelectorAll('select')[2]; s.selectedIndex = 2; s.dispatchEvent(new Event('change'))"
    )
    assert page.run(FOUND) == "1 of 6"
    page.run(f"{ROWS}[0].click()")
    assert "Fileb.npy" in page.run("document.querySelector('dialog').textContent")


def test_hostile_files_run_nothing(opened, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    hostile_file(folder / "<script>window.ran=9<\u2215script>.safetensors")
    hostile_file(folder / "<img src=x onerror=window.ran=8>.safetensors")
    (folder / '"><b>\u202e.npy').write_bytes(b"no array")
    for args in ([folder], [folder, folder]):
        done = subprocess.run([PROGRAM, "report", *args, "-o", tmp_path / "x.html", "--force"], capture_output=True)
        assert done.returncode == 1
        data_of((tmp_path / "x.html").read_text())
    (folder / '"><b>\u202e.npy').unlink()
    page = opened(folder)
    assert page.run(f"{ROWS}.length") == 2 * len(HOSTILE)
    assert "Metadata (10)" in page.run("document.querySelector('main').innerText")
    assert page.run("document.querySelectorAll('main img, main script, main b').length") == 0
    assert page.run("typeof window.ran") == "undefined"
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_files_of_about_one_size_all_have_names_and_none_is_a_sliver(opened, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(200):
        np.save(folder / f"{i:04}.npy", np.zeros(40 + i % 5, "u1"))
    page = opened(folder)
    assert page.run("document.querySelectorAll('.box').length") == 150
    assert page.run("document.querySelectorAll('.box > .label').length") == 150
    shapes = "[...document.querySelectorAll('.box')].map((box) => box.offsetWidth / box.offsetHeight)"
    assert all(0.2 < shape < 5 for shape in page.run(shapes))


def test_a_page_of_what_could_not_be_read(shown, folder, tmp_path):
    (folder / "bad<b>.npy").write_bytes(b"no array")
    report(folder, "-o", tmp_path / "page.html", code=1)
    page = shown(tmp_path / "page.html")
    assert page.run("document.querySelector('details').open")
    assert "bad<b>.npy" in page.run("document.querySelector('details').innerText")
    assert page.run(FOUND) == "6"
    for file in folder.glob("[ab].npy"):
        file.unlink()
    report(f"{folder}/*.npy", f"{folder}/*.npy", "-o", tmp_path / "page.html", "--force", code=1)
    report(f"{folder}/*", "-o", tmp_path / "page.html", "--force", code=1)
    assert shown(tmp_path / "page.html").run(FOUND) == "0"


def test_a_page_of_two_folders(opened, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    np.save(other / "a.npy", np.arange(6.0) * 2)
    np.save(other / "b.npy", np.array([1, np.nan]))
    page = opened(folder, other)
    assert page.run(FOUND) == "3"
    assert page.run(f"{ROWS}.map((row) => row.children[1].textContent)")[0] == "a.npy"
    assert page.run(FIRST) == "(the whole content)"
    page.run(f"{ROWS}[1].click()")
    assert "Filedeep/c.npz" in page.run("document.querySelector('dialog').textContent")
    assert "Pairs of files2" in page.run("document.querySelector('.tiles').textContent")
