"""penstock show of several files: one picture of each, in cells of one size."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_show import NAN, PROGRAM, environment, facts, files_across, grey, on_terminal, png, png_pixels, show, text


def save(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    for name, array in arrays.items():
        np.save(folder / name, array)
    return folder


@pytest.fixture
def random():
    return np.random.default_rng(6)


@pytest.mark.parametrize("word", ["{}", "{}/*", "{}/*.npy", "{}/**"])
def test_equal_files_are_a_sheet(tmp_path, random, word) -> None:
    images = random.integers(0, 256, (7, 4, 6), dtype=np.uint8)
    save(tmp_path, {f"{i}.npy": image for i, image in enumerate(images)})
    pixels = png(word.format(tmp_path))
    across = (pixels.shape[1] + 1) // 7
    assert across in (2, 3)
    for i, image in enumerate(images):
        y, x = i // across * 5, i % across * 7
        assert np.array_equal(pixels[y : y + 4, x : x + 6], grey(image))
    assert np.array_equal(png(*(tmp_path / f"{i}.npy" for i in range(7))), pixels)
    large = png_pixels(show(word.format(tmp_path), "--png", "-").stdout)
    zoom = (large.shape[1] + 1 - across) // (6 * across)
    assert 128 < large.shape[1] <= 256
    for i, image in enumerate(images):
        y, x = i // across * (4 * zoom + 1), i % across * (6 * zoom + 1)
        assert np.array_equal(large[y : y + 4 * zoom, x : x + 6 * zoom], grey(image).repeat(zoom, 0).repeat(zoom, 1))


def test_files_of_other_sizes_have_room(tmp_path, random) -> None:
    arrays = {
        "a.npy": random.integers(0, 256, (20, 10), dtype=np.uint8),
        "b.npy": random.integers(0, 256, (3, 5), dtype=np.uint8),
        "c.npy": np.full((4, 2), np.nan),
        "d.npy": np.arange(5000),
        "e.npy": random.integers(0, 256, (3, 8, 8, 3), dtype=np.uint8),
    }
    pixels = png_pixels(show(save(tmp_path, arrays), "--png", "-").stdout)
    across = files_across(tmp_path)
    wide = (pixels.shape[1] + 1) // across - 1
    zoom, high = wide // 10, 2 * wide
    assert wide == 10 * zoom
    assert pixels.shape == ((5 + across - 1) // across * (high + 1) - 1, across * (wide + 1) - 1, 3)
    cells = [pixels[i // across * (high + 1) :, i % across * (wide + 1) :][:high, :wide] for i in range(5)]

    def enlarged(image, by):
        return image.repeat(by, 0).repeat(by, 1)

    assert np.array_equal(cells[0], enlarged(grey(arrays["a.npy"]), zoom))
    assert np.array_equal(cells[1][: 6 * zoom], enlarged(grey(arrays["b.npy"]), 2 * zoom))
    assert (cells[2].reshape(-1, 3) == NAN).all(-1).sum() >= 8 * zoom**2
    assert (np.diff(cells[3][0, :, 0].astype(int)) > 0).all()
    of_e = wide // 8
    assert np.array_equal(cells[4][: 8 * of_e, : 8 * of_e], enlarged(arrays["e.npy"][0], of_e))
    told = text(tmp_path, "--width", 100)
    assert "5 pictures of 5 files, the first picture of a tensor, as means of blocks" in told
    assert "--range=0,4999 makes them alike" in told
    assert "8 NaN" in told


@pytest.mark.parametrize("way", ["ascii", "blocks", "kitty", "sixel"])
@pytest.mark.parametrize("columns", [20, 80])
def test_lines_fit_the_terminal(tmp_path, random, way, columns) -> None:
    arrays = {f"{i}.npy": random.normal(size=(10 + 7 * (i % 5), 9 + i % 4)) for i in range(20)}
    told = text(save(tmp_path, arrays), "--as", way, variables={"COLUMNS": str(columns)})
    lines = told.splitlines()
    # A word that is longer than the line stays whole.
    assert way in ("kitty", "sixel") or not [line for line in lines if len(line) > columns and " " in line]
    caption = " ".join(lines[next(i for i, line in enumerate(lines) if line.startswith("20 pictures")) :])
    names = caption[caption.index("row 1:") :].replace(",", "").split()
    assert [name for name in names if name.endswith(".npy")] == sorted(arrays)


def test_no_more_than_a_sheet_has(tmp_path) -> None:
    save(tmp_path, {f"{i:03}.npy": np.full((2, 2), i, np.uint8) for i in range(70)})
    told = text(tmp_path)
    assert "64 pictures of 64 of 70 files, each uint8 (2, 2); choose others with a pattern" in " ".join(told.split())
    assert "063.npy" in told
    assert "064.npy" not in told
    assert len(facts(tmp_path)) == 64
    assert "choose others" not in text(f"{tmp_path}/0[0-5]?.npy", f"{tmp_path}/06[0-3].npy")


def test_named_tensors_of_each(tmp_path, random) -> None:
    a, b = random.integers(0, 256, (2, 2, 6, 6), dtype=np.uint8)
    for i in (0, 1):
        np.savez(tmp_path / f"{i}.npz", first=a[i], second=b[i], bias=np.zeros(3))
    assert np.array_equal(png(tmp_path)[:6, :6], grey(a[0]))  # the first that looks like a picture
    assert np.array_equal(png(tmp_path, "second")[:6, -6:], grey(b[1]))
    assert np.array_equal(png(tmp_path, "--only", "second")[:6, -6:], grey(b[1]))
    told = facts(tmp_path, "*s*")
    assert [(Path(each["path"]).name, each["name"]) for each in told] == [
        ("0.npz", "first"), ("0.npz", "second"), ("0.npz", "bias"),
        ("1.npz", "first"), ("1.npz", "second"), ("1.npz", "bias"),
    ]  # fmt: skip
    assert "row 1: 0.npz:first, 0.npz:second\n" in text(tmp_path, "first", "second", "--width", 100)
    assert "4 pictures of 2 files" in text(tmp_path, "first", "second")


def test_one_file_and_a_name_that_looks_like_a_file(tmp_path) -> None:
    np.savez(tmp_path / "x.npz", **{"a/b.npy": np.eye(3), "c": np.eye(4)})
    assert facts(tmp_path / "x.npz", "a/b.npy")["shape"] == [3, 3]
    assert facts(tmp_path / "x.npz", "c.npy")["shape"] == [4, 4]
    assert [each["shape"] for each in facts(tmp_path / "x.npz", "c", "--only", "a/b.npy")] == [[4, 4], [3, 3]]


def test_errors_name_their_file_and_the_rest_is_drawn(tmp_path) -> None:
    save(tmp_path, {"a.npy": np.eye(3), "scalar.npy": np.float32(2), "text.npy": np.array([["x"]]), "z.npy": np.eye(3)})
    (tmp_path / "bad.npy").write_bytes(b"no array")
    np.savez(tmp_path / "two.npz", a=np.zeros(3), b=np.zeros(3))
    with (tmp_path / "crc.npz").open("wb") as file:
        np.savez(file, a=np.arange(10_000.0).reshape(100, 100))
    content = bytearray((tmp_path / "crc.npz").read_bytes())
    content[5000] ^= 1
    (tmp_path / "crc.npz").write_bytes(content)
    done = show(tmp_path, code=1)
    told = done.stderr.decode().splitlines()
    assert [Path(line.split(": ")[1]).name for line in told] == [
        "bad.npy",
        "scalar.npy",
        "text.npy",
        "two.npz",
        "crc.npz",
    ]
    assert b"3 pictures of 3 of 7 files" in done.stdout
    found = json.loads(show(tmp_path, "--json", code=1).stdout)
    assert ["error" in each for each in found] == [False, True, True, True, True, True, False]
    assert [Path(each["path"]).name for each in found] == sorted(os.listdir(tmp_path))


def test_nothing_that_can_be_drawn(tmp_path) -> None:
    assert "no tensor files" in show(tmp_path, code=1).stderr.decode()
    assert "no file matches" in show(f"{tmp_path}/*.npy", code=1).stderr.decode()
    save(tmp_path, {"scalar.npy": np.float32(2)})
    done = show(tmp_path, "--png", tmp_path / "x.png", code=1)
    assert (done.stdout, os.listdir(tmp_path)) == (b"", ["scalar.npy"])
    assert "error" in json.loads(show(tmp_path, "--json", code=1).stdout)[0]


def test_a_sheet_in_a_file(tmp_path) -> None:
    save(tmp_path, {"a.npy": np.eye(3, dtype="u1"), "b.npy": np.eye(3, dtype="u1")})
    told = text(tmp_path, "--png", tmp_path / "x.png", "--width", 70)
    assert "row 1: a.npy, b.npy" in told
    assert png_pixels((tmp_path / "x.png").read_bytes()).shape[1] in range(40, 71)
    assert "--force" in show(tmp_path, "--png", tmp_path / "x.png", code=1).stderr.decode()
    assert "that is to be drawn" in show(tmp_path, "--png", tmp_path / "b.npy", "--force", code=1).stderr.decode()
    np.load(tmp_path / "b.npy")


def test_hostile_names_are_written_out(tmp_path) -> None:
    save(tmp_path, {"a\x1b[31m\n.npy": np.eye(3), "<script>.npy": np.eye(3), "\u202eb.npy": np.eye(3)})
    for told in (text(tmp_path), on_terminal(tmp_path, NO_COLOR="1", LANG="C")):
        assert "\x1b" not in told
        assert "\u202e" not in told
        assert "a\\x1b[31m\\n.npy" in "".join(told.split())
        assert "<script>.npy" in told


def test_a_folder_of_thousands_is_not_opened_whole(tmp_path) -> None:
    np.save(tmp_path / "0000.npy", np.eye(3))
    for i in range(1, 3000):
        os.link(tmp_path / "0000.npy", tmp_path / f"{i:04}.npy")
    line = f"strace -f -e trace=openat -o {tmp_path}/trace {PROGRAM} show {tmp_path}"
    told = subprocess.run(
        ["bash", "-c", f"command -v strace || exit 9; {line}"], capture_output=True, env=environment()
    )
    if told.returncode == 9:
        pytest.skip("strace is not installed")
    assert b"64 pictures of 64 of 3,000 files" in told.stdout
    assert (tmp_path / "trace").read_text().count(".npy") < 200
