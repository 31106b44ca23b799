"""penstock show: the pictures that it draws, read back and compared with NumPy's answers."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import resource
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from terminals import read_all

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
NAN, INF = [255, 0, 255], [0, 255, 0]
RAMP = " .:-=+*#%@"


def environment(**variables: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "KITTY"))}
    return {**kept, "LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "", "COLORTERM": "", "COLUMNS": "80", **variables}


def show(*args: object, code: int = 0, variables: dict | None = None, **options) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [PROGRAM, "show", *map(str, args)],
        capture_output=True,
        timeout=60,
        env=environment(**(variables or {})),
        **options,
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def text(*args: object, **options) -> str:
    return show(*args, **options).stdout.decode()


def facts(*args: object) -> dict:
    return json.loads(text(*args, "--json"))


def on_terminal(*args: object, **variables: str) -> str:
    """What it writes to a terminal."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [PROGRAM, "show", *map(str, args)], stdout=theirs, stderr=theirs, env=environment(**variables)
    )
    os.close(theirs)
    out = read_all(ours)
    assert run.wait(60) == 0, out
    return out.decode().replace("\r\n", "\n")


def png_pixels(data: bytes) -> np.ndarray:
    """The pixels of a PNG of 8 bits without filters; every CRC is checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind = data[at + 4 : at + 8]
        chunks[kind] = data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(kind + chunks[kind])
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, bits, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    channels = {2: 3, 6: 4}[kind]
    assert bits == 8
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels)


def png(*args: object) -> np.ndarray:
    """The pixels of the picture before it is enlarged."""
    words = list(args)
    if "--width" not in words:
        told = json.loads(show(*words, "--png", "-", "--json").stdout)
        if isinstance(told, list):
            across = files_across(*words)
            width = max(each["width"] for each in told if each["layout"] != "strip")
        else:
            across, width = told["across"], told["width"]
        words += ["--width", across * (width + 1) - 1]
    return png_pixels(show(*words, "--png", "-").stdout)


def files_across(*args: object) -> int:
    """How many files the caption names in the first row of a sheet."""
    caption = show(*args, "--png", "-").stderr.decode()
    return caption.split("row 1:")[1].split("row 2:")[0].count(",") + 1


@pytest.mark.parametrize("shape", [(2, 2), (8, 8), (3, 200), (1, 7), (100, 3), (5, 6, 7)])
def test_a_png_of_few_elements_is_enlarged(saved, random, shape) -> None:
    path = saved(random.integers(0, 255, shape, np.uint8))
    small, large = png(path), png_pixels(show(path, "--png", "-").stdout)
    zoom = large.shape[1] // small.shape[1]
    assert zoom == max(1, min(256 // max(1, size) for size in small.shape[:2] if size > 1)) or len(shape) == 3
    assert 128 < max(large.shape[:2]) <= 256
    if len(shape) == 2:
        assert np.array_equal(large, small.repeat(zoom, 0).repeat(zoom, 1))


@pytest.fixture
def saved(tmp_path):
    def save(array, name="x.npy") -> Path:
        np.save(tmp_path / name, np.asarray(array))
        return tmp_path / name

    return save


@pytest.fixture
def random():
    return np.random.default_rng(5)


def grey(levels: np.ndarray) -> np.ndarray:
    return np.repeat(levels[..., None], 3, axis=-1)


def test_uint8_is_not_stretched(saved, random) -> None:
    image = random.integers(10, 90, (13, 21), dtype=np.uint8)
    assert np.array_equal(png(saved(image)), grey(image))
    assert np.array_equal(png(saved(np.asfortranarray(image))), grey(image))
    assert "--range=0,16 shows more" in text(saved(np.arange(17, dtype=np.uint8).repeat(2).reshape(17, 2)))
    assert "shows more" not in text(saved(np.arange(256, dtype=np.uint8).reshape(16, 16)))
    assert np.array_equal(png(saved(image > 40)), grey(np.where(image > 40, 255, 0)))


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_of_both_layouts(saved, random, channels) -> None:
    image = random.integers(0, 256, (9, 7, channels), dtype=np.uint8)
    path = saved(image)
    assert np.array_equal(png(path), image)
    assert facts(path)["layout"] == "hwc"
    planar = saved(np.ascontiguousarray(image.transpose(2, 0, 1)), "chw.npy")
    assert np.array_equal(png(planar), image)
    assert facts(planar)["layout"] == "chw"
    unit = saved(image.astype("f4") / 255, "unit.npy")
    assert np.array_equal(png(unit), image)
    assert facts(unit)["range"] == [0, 1]


def test_layout_decides(saved, random) -> None:
    array = random.integers(0, 256, (3, 6, 4), dtype=np.uint8)
    path = saved(array)
    assert np.array_equal(png(path, "--layout", "chw"), array.transpose(1, 2, 0))
    assert np.array_equal(png(path, "--layout", "hwc"), array)
    assert facts(path, "--layout", "hw")["pictures"] == 3
    assert "channels" in show(saved(array[:2]), "--layout", "chw", code=1).stderr.decode()
    assert "dimensions" in show(saved(array[0]), "--layout", "chw", code=1).stderr.decode()


@pytest.mark.parametrize("dtype", ["u2", "i4", ">u4", "i8", "u8"])
def test_integers_are_stretched(saved, random, dtype) -> None:
    array = random.integers(5, 100, (6, 5)).astype(dtype)
    low, high = int(array.min()), int(array.max())
    expected = grey(np.rint((array.astype("f8") - low) / (high - low) * 255))
    assert np.abs(png(saved(array)) - expected).max() <= 1
    assert facts(saved(array))["values"] == [low, high]


@pytest.mark.parametrize(("dtype", "start"), [("u8", 2**64 - 4), ("i8", 2**63 - 4), ("i8", 2**62)])
def test_large_integers_keep_their_differences(saved, dtype, start) -> None:
    array = np.array([[start, start + 1], [start + 2, start + 3]], dtype)
    assert np.array_equal(png(saved(array)), grey(np.array([[0, 85], [170, 255]])))
    assert facts(saved(array))["values"] == [start, start + 3]
    assert f"from {start} to {start + 3};" in text(saved(array), "--width", 200)


@pytest.mark.parametrize("dtype", ["f2", ">f4", "f8", "i1", "i8", "c8"])
def test_signed_numbers_diverge(saved, dtype) -> None:
    array = np.array([[-4, -1, 0], [1, 2, 3]]).astype(dtype)
    told = facts(saved(array))
    if dtype == "c8":
        assert (told["map"], told["range"]) == ("viridis", [0, 4])
        return
    assert (told["map"], told["range"]) == ("diverging", [-4, 4])
    pixels = png(saved(array)).astype(int)
    assert pixels[0, 2].tolist() == [247, 247, 247]
    assert pixels[0, 0].tolist() == [33, 102, 172]
    assert (pixels[1, :, 0] > pixels[1, :, 2]).all()


def test_floats_are_viridis_and_a_range_clips(saved) -> None:
    path = saved(np.array([[1.0, 9.0], [5.0, 3.0]]))
    assert facts(path)["map"] == "viridis"
    assert png(path)[0].tolist() == [[68, 1, 84], [253, 231, 37]]
    assert png(path, "--range", "4,6").tolist()[0] == [[68, 1, 84], [253, 231, 37]]
    assert png(path, "--range", "4,6")[1, 0].tolist() == [33, 145, 140]
    assert facts(path, "--range=-2,6")["range"] == [-2, 6]
    for wrong in ("1", "2,1", "1,1", "a,b", "nan,1", "1,2,3"):
        show(path, f"--range={wrong}", code=2)


def test_nan_and_infinities_have_colours_and_are_counted(saved) -> None:
    array = np.array([[np.nan, 1, np.inf], [2, 3, -np.inf]], "f4")
    pixels = png(saved(array)).tolist()
    assert pixels[0][0] == NAN
    assert pixels[0][2] == pixels[1][2] == INF
    told = facts(saved(array))
    assert (told["nan"], told["inf"], told["negative_inf"], told["range"]) == (1, 1, 1, [1, 3])
    drawn = text(saved(array), "--width", 6)
    assert drawn.splitlines()[0] == "??  !!"
    assert "1 NaN" in drawn
    nothing = facts(saved(np.full((2, 2), np.nan)))
    assert (nothing["range"], nothing["nan"]) == (None, 4)
    assert "no finite element" in text(saved(np.full((2, 2), np.nan)))


@pytest.mark.parametrize(("shape", "width"), [((90, 130), 40), ((37, 41), 13), ((2000, 11), 7)])
def test_large_arrays_are_means_of_blocks(saved, random, shape, width) -> None:
    array = random.integers(0, 256, shape, dtype=np.uint8)
    pixels = png(saved(array), "--width", width)
    high, wide = pixels.shape[:2]
    assert wide <= width
    rows = [-(-i * shape[0] // high) for i in range(high)]
    columns = [-(-i * shape[1] // wide) for i in range(wide)]
    sums = np.add.reduceat(np.add.reduceat(array.astype(float), rows, 0), columns, 1)
    counts = np.outer(np.diff([*rows, shape[0]]), np.diff([*columns, shape[1]]))
    assert np.abs(pixels[..., 0] - sums / counts).max() <= 0.5 + 1e-9


def test_a_single_nan_is_seen_in_a_large_array(saved) -> None:
    array = np.ones((500, 500), "f4")
    array[321, 123] = np.nan
    pixels = png(saved(array), "--width", 50)
    assert pixels.shape == (50, 50, 3)
    assert pixels[32, 12].tolist() == NAN
    assert (pixels == NAN).all(-1).sum() == 1


def test_a_sheet_of_pictures(saved, random) -> None:
    array = random.integers(0, 256, (5, 4, 6), dtype=np.uint8)
    told = facts(saved(array), "--png", "-")
    pixels = png(saved(array))
    across = told["across"]
    for i, image in enumerate(array):
        y, x = i // across * 5, i % across * 7
        assert np.array_equal(pixels[y : y + 4, x : x + 6], grey(image))
    colours = random.integers(0, 256, (2, 3, 8, 8), dtype=np.uint8)
    assert np.array_equal(png(saved(colours))[:8, :8], colours[0].transpose(1, 2, 0))
    many = facts(saved(np.zeros((10, 20, 5, 5), "u1")))
    assert (many["pictures"], many["shown"]) == (200, 64)
    assert "choose others with --slice" in text(saved(np.zeros((200, 5, 5), "u1")), "--width", 120)
    assert facts(saved(np.zeros((8, 8, 3, 3), "f4")))["layout"] == "hw"


@pytest.mark.parametrize("compressed", [False, True])
def test_slices(tmp_path, random, compressed) -> None:
    array = random.integers(0, 256, (3, 600, 700), dtype=np.uint8)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "x.npz", a=array)
    path = tmp_path / "x.npz"
    assert np.array_equal(png(path, "--slice", "1,::2,5:600"), grey(array[1, ::2, 5:600]))
    assert np.array_equal(png(path, "a", "--slice=-1"), grey(array[2]))
    assert np.array_equal(png(path, "--layout", "chw"), array.transpose(1, 2, 0))
    show(path, "--slice", "::-1", code=2)


def test_ascii(saved) -> None:
    ramp = np.arange(10, dtype=np.uint8)[None].repeat(2, 0) * 25 + 13
    lines = text(saved(ramp), "--width", 20).splitlines()
    assert lines[0] == lines[1] == "".join(letter * 2 for letter in RAMP)
    assert text(saved(ramp), "--width", 10).splitlines()[0] == RAMP
    assert "▓" in text(saved(ramp), "--as", "blocks")


@pytest.mark.parametrize("columns", [20, 80])
def test_lines_fit_the_terminal(saved, random, columns) -> None:
    path = saved(random.normal(size=(300, 400)).astype("f4"))
    for way in ("ascii", "blocks"):
        lines = text(path, "--as", way, variables={"COLUMNS": str(columns)}).splitlines()
        assert max(map(len, lines)) == columns
        assert len(lines) < columns
    sheet = text(saved(random.normal(size=(70, 30, 40))), variables={"COLUMNS": str(columns)})
    assert max(map(len, sheet.splitlines())) <= columns


@pytest.mark.parametrize("colours", ["truecolor", ""])
def test_half_blocks_in_colour(saved, random, colours) -> None:
    image = random.integers(0, 256, (5, 40, 3), dtype=np.uint8)
    shown = on_terminal(saved(image), COLORTERM=colours)
    lines = shown.split("\n")[:3]
    read = np.zeros((6, 40, 3), int)
    for y, line in enumerate(lines):
        ground = (None, None)
        at = 0
        for code, blocks in re.findall("\x1b\\[([0-9;]+)m(▀*)", line):
            if code != "0":
                numbers = [*map(int, code.split(";"))]
                size = 5 if colours else 3
                ground = (numbers[2:size], numbers[size + 2 :])
            for _ in blocks:
                for half in (0, 1):
                    if ground[half]:
                        read[2 * y + half, at] = ground[half] if colours else xterm(ground[half][0])
                at += 1
        assert at == 40
    assert np.abs(read[:5] - image).max() <= (0 if colours else 48)


def xterm(place: int) -> list[int]:
    if place >= 232:
        return [8 + 10 * (place - 232)] * 3
    steps = [0, 95, 135, 175, 215, 255]
    place -= 16
    return [steps[place // 36], steps[place // 6 % 6], steps[place % 6]]


def test_the_environment_decides(saved) -> None:
    path = saved(np.eye(4, dtype=np.uint8))
    assert "\x1b_G" in on_terminal(path, KITTY_WINDOW_ID="1")
    assert "\x1b_G" in on_terminal(path, TERM="xterm-kitty")
    assert "\x1bP" in on_terminal(path, TERM="foot")
    assert "▀" in on_terminal(path, TERM="tmux-256color", KITTY_WINDOW_ID="1")
    for variables in ({"NO_COLOR": "1"}, {"LANG": "C"}, {"TERM": "dumb", "KITTY_WINDOW_ID": "1"}):
        assert on_terminal(path, **variables).isascii()
    assert "\x1b" not in text(path, variables={"KITTY_WINDOW_ID": "1"})


def test_kitty(saved, random) -> None:
    image = random.integers(0, 256, (80, 90, 3), dtype=np.uint8)
    shown = text(saved(image), "--as", "kitty", "--width", 90)
    pieces = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", shown)
    assert [piece[0][-3:] for piece in pieces] == ["m=1"] * (len(pieces) - 1) + ["m=0"]
    assert max(len(piece[1]) for piece in pieces) <= 4096
    assert np.array_equal(png_pixels(base64.b64decode("".join(piece[1] for piece in pieces))), image)


def test_sixel(saved, random) -> None:
    image = random.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    shown = text(saved(image), "--as", "sixel", "--width", 30)
    body = re.search('\x1bP0;1;0q"1;1;30;20(.*)\x1b\\\\', shown)[1]
    palette, read, drawn = {}, np.zeros((24, 30, 3)), np.zeros((24, 30), int)
    colour = x = y = 0
    for place, red, green, blue, select, count, letter, other in re.findall(
        r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|([?-~$-])", body
    ):
        if place:
            palette[int(place)] = np.array([int(red), int(green), int(blue)]) * 2.55
        elif select:
            colour = int(select)
        elif other == "$":
            x = 0
        elif other == "-":
            x, y = 0, y + 6
        else:
            run = slice(x, x + int(count or 1))
            for bit in range(6):
                if ord(letter or other) - 63 >> bit & 1:
                    read[y + bit, run] = palette[colour]
                    drawn[y + bit, run] += 1
            x = run.stop
    assert (drawn[:20] == 1).all()
    assert not drawn[20:].any()
    assert np.abs(read[:20] - image).max() <= 50


def test_one_dimension_is_a_strip(saved) -> None:
    row = np.arange(100, dtype=np.uint8)
    pixels = png(saved(row))
    assert pixels.shape == (16, 100, 3)
    assert (pixels[:, :, 0] == row).all()
    assert "strip of 100 elements" in text(saved(row))
    assert facts(saved(np.arange(100000)), "--png", "-")["width"] == 4096


def test_nothing_to_draw_is_said(saved) -> None:
    assert "a scalar, which has no picture: 2.5" in text(saved(2.5))
    for shape in ((0,), (3, 0), (0, 4, 4), (2, 0, 3)):
        assert "no elements" in text(saved(np.zeros(shape)))
        assert facts(saved(np.zeros(shape)))["pictures"] == 0
        show(saved(np.zeros(shape)), "--png", "-", code=1)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ns]", "U4", "S3", "V2", "i4,f8"])
def test_what_is_no_number_is_refused(saved, dtype) -> None:
    assert "a picture is drawn from numbers" in show(saved(np.zeros((3, 3), dtype)), code=1).stderr.decode()


def test_which_tensor(tmp_path, random) -> None:
    a, b = random.integers(0, 256, (2, 6, 6), dtype=np.uint8)
    np.savez(tmp_path / "one.npz", bias=np.zeros(3), picture=a, text=np.array(["x"]))
    assert np.array_equal(png(tmp_path / "one.npz"), grey(a))
    np.savez(tmp_path / "two.npz", first=a, second=b, none=np.zeros(3))
    told = show(tmp_path / "two.npz", code=1).stderr.decode()
    assert "'first', 'second'" in told
    assert np.array_equal(png(tmp_path / "two.npz", "second"), grey(b))
    assert [each["name"] for each in json.loads(text(tmp_path / "two.npz", "*s*", "--json"))] == ["first", "second"]
    assert "takes one tensor" in show(tmp_path / "two.npz", "*s*", "--png", "-", code=1).stderr.decode()
    assert "did you mean 'first'" in show(tmp_path / "two.npz", "fist", code=1).stderr.decode()
    np.savez(tmp_path / "none.npz", a=np.zeros(3), b=np.zeros(3))
    assert "none that looks like a picture" in show(tmp_path / "none.npz", code=1).stderr.decode()
    show(tmp_path / "missing.npy", code=1)


def test_hostile_names_are_written_out(tmp_path) -> None:
    name = "a\x1b[31m\n\u202eb"
    np.savez(tmp_path / "x.npz", **{name: np.eye(3, dtype="u1"), "other\x1b": np.eye(3)})
    for told in (text(tmp_path / "x.npz", "a*"), show(tmp_path / "x.npz", code=1).stderr.decode()):
        assert "\x1b" not in told
        assert "\u202e" not in told
        assert "\\n" in told
    assert json.loads(text(tmp_path / "x.npz", "a*", "--json"))["name"] == name


@pytest.mark.parametrize("name", ["x.npz", "x.npy"])
def test_memory_is_bounded(tmp_path, name) -> None:
    array = np.zeros((4000, 30000), np.uint8)
    if name == "x.npz":
        np.savez_compressed(tmp_path / name, a=array)
    else:
        np.lib.format.open_memmap(tmp_path / name, "w+", np.uint8, array.shape).flush()  # a file with holes

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20))

    assert json.loads(show(tmp_path / name, "--json", preexec_fn=limit).stdout)["values"] == [0, 0]


def test_standard_input(saved, random) -> None:
    image = random.integers(0, 256, (5, 4), dtype=np.uint8)
    content = saved(image).read_bytes()
    assert np.array_equal(png_pixels(show("-", "--png", "-", "--width", 4, input=content).stdout), grey(image))


def test_a_png_in_a_file(saved, tmp_path) -> None:
    path = saved(np.eye(5, dtype=np.uint8))
    told = text(path, "--png", tmp_path / "out.png", "--width", 50)
    assert "grey from 0 to 255" in told
    assert png_pixels((tmp_path / "out.png").read_bytes()).shape == (50, 50, 3)
    show(path, "--png", tmp_path / "no" / "out.png", code=1)
    drawn = (tmp_path / "out.png").read_bytes()
    assert "--force" in show(path, "--png", tmp_path / "out.png", code=1).stderr.decode()
    assert (tmp_path / "out.png").read_bytes() == drawn
    text(path, "--png", tmp_path / "out.png", "--force")
    assert png_pixels((tmp_path / "out.png").read_bytes()).shape == (255, 255, 3)
    content = path.read_bytes()
    assert "that is to be drawn" in show(path, "--png", path, "--force", code=1).stderr.decode()
    assert path.read_bytes() == content
    assert "not written to a terminal" in on_terminal_fails(path, "--png", "-")


def on_terminal_fails(*args: object) -> str:
    ours, theirs = pty.openpty()
    done = subprocess.run([PROGRAM, "show", *map(str, args)], stdout=theirs, stderr=subprocess.PIPE, env=environment())
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 1
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("dtype", "elements"),
    [
        ("BF16", "80bf 003f 0000 0040"),
        ("F16", "00bc 0038 0000 0040"),
        ("F8_E4M3", "b8 30 00 40"),
        ("F8_E5M2", "bc 38 00 40"),
    ],
)
def test_small_floats(tmp_path, dtype, elements) -> None:
    content = bytes.fromhex(elements)
    header = json.dumps({"a": {"dtype": dtype, "shape": [2, 2], "data_offsets": [0, len(content)]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + content)
    assert facts(tmp_path / "x.safetensors")["values"] == [-1, 2]
    pixels = png(tmp_path / "x.safetensors")
    assert pixels[1].tolist() == [[247, 247, 247], [178, 24, 43]]
