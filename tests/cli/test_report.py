"""penstock report: the page's data beside NumPy, and the page in a browser that knows nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
# Whatever a name holds is text; the first two have no place in a file name.
HOSTILE = [
    "</script><script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 2'>",
    "\"'><svg onload=window.ran=3>",
    "javascript:window.ran=4",
    "]]><!--<script>",
    "&lt;b&gt;&amp;",
    "right\u202eleft\u2066",
    "line\u2028end\u2029\r\n\tnull\x00bell\x07",
    "\u5c64.\u91cd\u307f.\U0001f600",
    "__proto__.constructor.toString",
    "long." * 3000,
    "",
    "...",
    "@DATA@ @SCRIPT@ \\u003c ${1} `",
]


def report(*args: object, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([PROGRAM, "report", *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stdout[:2000], done.stderr)
    return done


def data_of(page: str) -> dict:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert not set("<>&\u2028\u2029") & set(block)
    return json.loads(block)


def report_data(*args: object) -> dict:
    return data_of(report(*args, "-o", "-").stdout)


def by_name(data: dict) -> dict[str, dict]:
    return {tensor["name"]: tensor for tensor in data["tensors"]}


@pytest.fixture(scope="module")
def ill() -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    tensors = {
        "good": random.standard_normal((40, 50)).astype("f4"),
        "nan": np.array([1, np.nan, 2], "f4"),
        "inf": np.array([1, np.inf, -np.inf, -np.inf], "f8"),
        "both": np.array([np.nan, np.inf], "f2"),
        "zero": np.zeros((600, 2), "f4"),
        "ones": np.ones(700, "i8"),
        "large ones": np.full(3, 2**63 - 1, "u8"),
        "nearly": np.array([2**62, 2**62 + 1], "i8"),
        "one zero": np.zeros((), "f4"),
        "one": np.ones(1, "f4"),
        "denormal": np.array([1e-40, 1, 0], "f4"),
        "many denormals": np.append(np.full(2000, -3e-310), 1),
        "half": (random.standard_normal(5000) * 0.02).astype("f2"),
        "half denormal": np.array([1e-5, -2e-5, 1, 0, 0], "f2"),
        "whole": np.array([0, 1, 2], "i4"),
        "empty": np.zeros((0, 3), "f4"),
    }
    return tensors


def test_numbers_are_those_of_numpy(tmp_path, ill):
    np.savez(tmp_path / "a.npz", **ill, text=np.array(["a", "b"]))
    data = report_data(tmp_path / "a.npz")
    assert (data["kind"], data["format"], data["values_read"]) == ("file", "npz", True)
    assert data["file_bytes"] == (tmp_path / "a.npz").stat().st_size
    assert data["bytes"] == sum(array.nbytes for array in ill.values()) + 8
    assert data["elements"] == sum(array.size for array in ill.values()) + 2
    found = by_name(data)
    assert list(found) == [*ill, "text"]
    for name, array in ill.items():
        tensor = found[name]
        finite = array[np.isfinite(array)]
        assert (tensor["dtype"], tensor["shape"]) == (array.dtype.name, list(array.shape))
        assert (tensor["elements"], tensor["bytes"]) == (array.size, array.nbytes)
        assert (tensor["nan"], tensor["zeros"]) == (np.isnan(array).sum(), (array == 0).sum())
        assert (tensor["inf"], tensor["negative_inf"]) == (np.isposinf(array).sum(), np.isneginf(array).sum())
        normal = np.finfo(array.dtype).smallest_normal if array.dtype.kind == "f" else 1
        assert tensor["denormals"] == ((np.abs(finite) < normal) & (finite != 0)).sum(), name
        counts = tensor["histogram"]["counts"]
        assert sum(counts) == tensor["finite"] == finite.size
        assert len(counts) <= 32
        if finite.size:
            assert (tensor["min"], tensor["max"]) == (finite.min().item(), finite.max().item())
    assert not {"min", "marks", "histogram"} & set(found["text"])


def test_ill_tensors_are_marked(tmp_path, ill):
    np.savez(tmp_path / "a.npz", **ill)
    marks = {name: tensor["marks"] for name, tensor in by_name(report_data(tmp_path / "a.npz")).items()}
    assert {name: kinds for name, kinds in marks.items() if kinds} == {
        "nan": ["nan"],
        "inf": ["inf"],
        "both": ["nan", "inf"],
        "zero": ["zero"],
        "ones": ["constant"],
        "large ones": ["constant"],
        "denormal": ["denormal"],
        "many denormals": ["denormal"],
        "half denormal": ["denormal"],
    }


def test_denormals_of_every_float_are_those_of_torch(tmp_path):
    import torch

    dtypes = [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
    tensors = {str(dtype): torch.arange(256).to(torch.uint8).repeat(3).view(dtype) for dtype in dtypes}
    tensors["complex"] = torch.tensor([1e-40j, 1e-40, 1 + 1e-40j, 0])
    torch.save(tensors, tmp_path / "a.pt")
    found = by_name(report_data(tmp_path / "a.pt"))
    for name, tensor in tensors.items():
        values = tensor.abs().numpy() if tensor.is_complex() else tensor.double().numpy()
        normal = 1.17549435e-38 if tensor.is_complex() else torch.finfo(tensor.dtype).smallest_normal
        assert found[name]["denormals"] == ((np.abs(values) < normal) & (values != 0)).sum(), name


def test_without_values_only_headers_are_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(5000))
    content = bytearray(path.read_bytes())
    content[1000] ^= 1  # a payload whose checksum does not hold
    path.write_bytes(content)
    out = tmp_path / "page.html"
    assert "a.npz" in report(path, "-o", out, code=1).stderr
    assert not out.exists()
    data = report_data(path, "--no-values")
    assert data["values_read"] is False
    assert data["tensors"] == [{"name": "a", "dtype": "int64", "shape": [5000], "elements": 5000, "bytes": 40000}]


def test_nested_content_metadata_and_shards(tmp_path):
    import torch

    state = {"model": {"w": torch.ones(2)}, "epoch": 7, "note": "<b>", "long": "x" * 9000, "list": list(range(1500))}
    torch.save(state, tmp_path / "a.pt")
    data = report_data(tmp_path / "a.pt")
    assert [tensor["name"] for tensor in data["tensors"]] == ["model.w"]
    assert data["values"][0] == {"name": "epoch", "value": "7"}
    assert "xx...xx" in data["values"][2]["value"]
    assert (len(data["values"]), data["values_left_out"]) == (1000, 503)

    save_file({"a": np.ones(2)}, tmp_path / "1.safetensors", metadata={"<k>": "</script>"})
    assert report_data(tmp_path / "1.safetensors")["metadata"] == {"<k>": "</script>"}
    save_file({"b": np.ones(3)}, tmp_path / "2.safetensors")
    names = {"a": "1.safetensors", "b": "2.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    shards = report_data(tmp_path / "model.safetensors.index.json")["tensors"]
    assert {tensor["name"]: tensor["file"] for tensor in shards} == names


@pytest.mark.parametrize("array", [np.zeros((0, 3)), np.float32(3), np.array(["a"])], ids=["none", "scalar", "text"])
def test_single_arrays(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    (tensor,) = report_data(tmp_path / "a.npy")["tensors"]
    assert (tensor["elements"], tensor["shape"]) == (array.size, list(np.shape(array)))


def test_no_tensors_and_what_is_no_file(tmp_path):
    save_file({}, tmp_path / "none.safetensors")
    data = report_data(tmp_path / "none.safetensors")
    assert (data["tensors"], data["values_read"]) == ([], True)
    (tmp_path / "empty.pt").touch()
    (tmp_path / "folder").mkdir()
    for name in ("empty.pt", "missing.pt", "folder", "*.npy"):
        told = report(tmp_path / name, "-o", tmp_path / "page.html", code=1).stderr
        assert told.startswith("penstock: ")
    assert not (tmp_path / "page.html").exists()


def test_the_page_appears_whole_or_not_at_all(tmp_path):
    path, page = tmp_path / "a.npy", tmp_path / "page.html"
    np.save(path, np.arange(3))
    told = report(path, "-o", page).stdout
    assert told.startswith(f"{page}: ")
    whole = page.read_text()
    assert whole.startswith("<!DOCTYPE html>")
    assert whole.endswith("</html>\n")
    assert "the file exists" in report(path, "-o", page, code=1).stderr
    page.write_text("old")
    report(path, "-o", page, "--force")
    assert page.read_text() == whole
    assert "to be reported on" in report(path, "-o", path, "--force", code=1).stderr
    report(path, path, "--rtol", "1", "-o", tmp_path / "missing" / "page.html", code=1)
    report(path, code=2)
    assert "--rtol" in report(path, "--rtol", "1", "-o", "-", code=2).stderr
    report(path, path, "--no-values", "-o", "-", code=2)
    report(path, path, path, "--any-dtype", "-o", "-", code=2)
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "page.html"]


def test_difference_is_that_of_diff(tmp_path):
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(a, same=np.ones(3), values=np.arange(6.0), shape=np.ones(2), dtype=np.ones(2, "f4"), left=np.ones(1))
    np.savez(b, same=np.ones(3), values=np.arange(6.0) * 1.5, shape=np.ones(3), dtype=np.ones(2), right=np.ones(1))
    data = report_data(a, b)
    told = subprocess.run([PROGRAM, "diff", a, b, "--json"], capture_output=True, text=True)
    diff = json.loads(told.stdout)
    assert data["kind"] == "diff"
    for key in ("equal", "equal_tensors", "equal_values", "differences", "different_metadata", "rtol", "nan_equal"):
        assert data[key] == diff[key], key
    assert {place["name"]: place["difference"] for place in data["differences"]} == {
        "values": "values", "shape": "shape", "dtype": "dtype", "left": "only_in_a", "right": "only_in_b"
    }  # fmt: skip
    assert [data[side]["path"] for side in "ab"] == [str(a), str(b)]
    assert report_data(a, a)["equal"] is True
    assert len(report_data(a, b, "--rtol", "1", "--any-dtype")["differences"]) == 3


def test_hashes_of_the_policy_are_those_of_script_and_style(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    page = report(tmp_path / "a.npy", "-o", "-").stdout
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    for kind, element in (("script", "<script>"), ("style", "<style>")):
        (text,) = re.findall(f"{element}(.*?)</{kind}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def hostile_file(path: Path) -> dict[str, np.ndarray]:
    tensors = {name: np.full(i + 1, i, "f4") for i, name in enumerate(HOSTILE)}
    save_file(tensors, path, metadata={name: name for name in HOSTILE[:5]})
    return tensors


def test_hostile_names_are_kept_as_text(tmp_path):
    tensors = hostile_file(tmp_path / "a.safetensors")
    data = report_data(tmp_path / "a.safetensors")
    assert {tensor["name"] for tensor in data["tensors"]} == set(tensors)
    assert data["metadata"] == {name: name for name in HOSTILE[:5]}


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.safetensors"
    parts = ("attention.query", "attention.key", "mlp.up", "mlp.down")
    names = [f"layers.{i}.{part}.{kind}" for i in range(1250) for part in parts for kind in ("weight", "bias")]
    random = np.random.default_rng(0)
    tensors = {name: random.standard_normal((64, 4) if "weight" in name else 16).astype("f4") for name in names}
    tensors["layers.7.mlp.up.weight"][3, 1] = np.nan
    save_file(tensors, path)
    return path


# A small process in between, because a command's peak begins with the memory of the process that started it, and
# RUSAGE_CHILDREN gives the largest of all commands that a process has run.
PEAK_OF = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_ten_thousand_tensors(large, tmp_path):
    started = time.monotonic()
    command = [PROGRAM, "report", large, "-o", tmp_path / "page.html"]
    peak = subprocess.run([sys.executable, "-c", PEAK_OF, *command], stdout=subprocess.PIPE, check=True, timeout=120)
    assert time.monotonic() - started < 20  # 0.3 s where nobody else works
    data = data_of((tmp_path / "page.html").read_text())
    assert len(data["tensors"]) == 10_000
    assert [tensor["name"] for tensor in data["tensors"] if tensor["marks"]] == ["layers.7.mlp.up.weight"]
    assert (tmp_path / "page.html").stat().st_size < 8_000_000
    assert int(peak.stdout) < 200_000  # in KiB


ROWS = "[...document.querySelectorAll('.body .row')]"
FIRST = f"{ROWS}.map((row) => row.firstChild.textContent)[0]"
FOUND = "document.querySelector('.tools output').textContent"


@pytest.fixture
def opened(shown, tmp_path):
    """Opens a report in the browser."""

    def open_report(*args: object):
        report(*args, "-o", tmp_path / "page.html", "--force")
        return shown(tmp_path / "page.html")

    return open_report


def test_hostile_names_run_nothing(opened, tmp_path):
    hostile_file(tmp_path / "a.safetensors")
    page = opened(tmp_path / "a.safetensors")
    assert page.run("typeof window.ran") == "undefined"
    assert page.run("document.querySelectorAll('main img, main script, main b').length") == 0
    assert page.run(f"{ROWS}.length") == len(HOSTILE)
    shown = page.run("document.body.innerText")
    assert HOSTILE[0] in shown
    assert "\\u{202e}" in shown
    assert not set("\u202e\u2066\u2028\x00\x07") & set(shown)
    for _ in range(3):  # what a reader opens shows no more
        page.run(f"document.querySelectorAll('.box')[0].click(); {ROWS}[0].click()")
        page.run("document.querySelector('dialog').close()")
    assert page.run("typeof window.ran") == "undefined"
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_rows_are_sorted_and_filtered(opened, large):
    page = opened(large)
    assert page.run(FOUND) == "10,000"
    assert page.run(f"{ROWS}.length") < 100  # only those in sight
    find = (
        "(text) => { const s = document.querySelector('input'); s.value = text; s.dispatchEvent(new Event('input')); }"
    )
    page.run(f"({find})('layers.12. WEIGHT')")
    assert page.run(FOUND) == "4 of 10,000"
    page.run(f"({find})('')")
    heads = "[...document.querySelectorAll('.head button')]"
    page.run(f"{heads}.find((head) => head.textContent === 'Name').click()")
    assert page.run(FIRST) == "layers.0.attention.key.bias"
    page.run(f"{heads}.find((head) => head.textContent === 'NaN').click()")
    assert page.run(FIRST) == "layers.7.mlp.up.weight"
    assert page.run("document.querySelector('[aria-sort=descending]').textContent") == "NaN"
    page.run(
        "const s = document.querySelectorAll('select')[1]; s.selectedIndex = 1; s.dispatchEvent(new Event('change'))"
    )
    assert page.run(FOUND) == "1 of 10,000"
    assert page.run("document.querySelector('.badge').textContent") == "NaN"
    page.run(f"({find})('nothing of this name')")
    assert "Nothing to show" in page.run("document.querySelector('.body').textContent")


def test_keys_do_what_the_mouse_does(opened, large):
    page = opened(large)
    page.press("/", 191)
    assert page.run("document.activeElement.type") == "search"
    page.run("document.querySelector('.scroller').focus()")
    page.press("End", 35)
    assert page.run("document.querySelector('[aria-selected=true]').ariaRowIndex") == "10001"
    page.press("Home", 36)
    page.press("ArrowDown", 40)
    assert page.run("document.querySelector('[aria-selected=true]').ariaRowIndex") == "3"
    page.press("Enter", 13)
    assert page.run("document.querySelector('dialog').open")
    assert page.run("document.querySelector('dialog .histogram') !== null")
    page.press("Escape", 27)
    assert not page.run("document.querySelector('dialog').open")
    crumbs = "document.querySelector('.crumbs').children.length"
    above = page.run(crumbs)  # of "layers", in which everything lies
    page.run("document.querySelector('.box').focus()")
    focused = "document.activeElement.getAttribute('aria-label')"
    before = page.run(focused)
    page.press("ArrowRight", 39)
    assert page.run(focused) != before
    page.press("Enter", 13)
    assert page.run(crumbs) == above + 1
    page.press("Escape", 27)
    assert page.run(crumbs) == above


def test_dark_and_light(opened, ill, tmp_path):
    np.savez(tmp_path / "a.npz", **ill)
    page = opened(tmp_path / "a.npz")
    colour = "getComputedStyle(document.body).backgroundColor"
    page.emulate("dark")
    dark = page.run(colour)
    page.emulate("light")
    light = page.run(colour)
    assert dark != light
    page.run("document.getElementById('theme').click()")
    assert page.run(colour) == dark
    assert len(page.screenshot()) > 10_000


def test_differences_are_a_table(opened, tmp_path):
    np.savez(tmp_path / "a.npz", **{"<b>same": np.ones(3), "values": np.arange(6.0), "left": np.ones(1)})
    np.savez(tmp_path / "b.npz", **{"<b>same": np.ones(3), "values": np.arange(6.0) * 1.5})
    page = opened(tmp_path / "a.npz", tmp_path / "b.npz")
    assert page.run(f"{ROWS}.map((row) => row.children[1].textContent)") == ["values", "only in A"]
    assert "2.5" in page.run(f"{ROWS}[0].textContent")
    page.run(f"{ROWS}[0].click()")
    assert "[1]: 1 in A, 1.5 in B" in page.run("document.querySelector('dialog').textContent")
    opened(tmp_path / "a.npz", tmp_path / "a.npz")
    assert "equal" in page.run("document.querySelector('.tiles').textContent")


@pytest.mark.parametrize("kind", ["none", "headers"])
def test_pages_with_little_in_them(opened, tmp_path, kind):
    save_file({} if kind == "none" else {"a": np.ones(3, "f4")}, tmp_path / "a.safetensors")
    page = opened(tmp_path / "a.safetensors", *(["--no-values"] if kind == "headers" else []))
    assert page.run(FOUND) == ("0" if kind == "none" else "1")


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    np.save(folder / "rows.npy", np.ones((4000, 16), "f4"))
    command = [PROGRAM, "bench", folder / "rows.npy", "--epochs", "1", "--workers", "2", "--trace", folder / "t.json"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / "t.json"


def test_a_trace_keeps_every_event(trace):
    events = json.loads(trace.read_text())["traceEvents"]
    data = report_data(trace)
    assert data["kind"] == "trace"
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert [lane["name"] for lane in data["lanes"]] == list(threads.values())
    for (tid, name), lane in zip(threads.items(), data["lanes"], strict=True):
        wanted = [event for event in events if event["ph"] == "X" and event["tid"] == tid]
        flat = lane["events"]
        assert [data["names"][what] for what in flat[::4]] == [event["name"] for event in wanted], name
        assert flat[1::4] == pytest.approx([event["ts"] for event in wanted], abs=0.06)
        assert flat[2::4] == pytest.approx([event["dur"] for event in wanted], abs=0.06)
        assert flat[3::4] == [next(iter(event.get("args", {}).values()), -1) for event in wanted]


@pytest.mark.parametrize(
    "text", ['{"traceEvents": [', '{"traceEvents": 3}', '{"traceEvents": [1, {"ph": "X", "ts": "a"}]}']
)
def test_traces_that_are_none(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text(text)
    if text.endswith("}"):
        assert report_data(path)["lanes"] == []
    else:
        assert "is not a trace" in report(path, "-o", tmp_path / "page.html", code=1).stderr
        assert os.listdir(tmp_path) == ["t.json"]


@pytest.mark.parametrize(
    "place",
    [
        '{"traceEvents": %s}',
        '{"traceEvents": [{"ph": "X", "args": {"sample": %s}}]}',
        '{"traceEvents": [], "more": %s}',
    ],
)
def test_traces_that_nest_without_end(tmp_path, place):
    path = tmp_path / "t.json"
    path.write_text(place % ("[" * 500_000 + "]" * 500_000))
    assert "is not a trace" in report(path, "-o", tmp_path / "page.html", code=1).stderr


def test_a_trace_of_odd_numbers(tmp_path):
    events = [
        {"ph": "X", "name": "a", "pid": 1, "tid": -1, "ts": 1, "dur": 2.5, "args": {"batch": 3, "x": [{"sample": 7}]}},
        {"ph": "X", "name": "b", "pid": 1, "tid": 1, "ts": 1, "dur": -1},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": -1, "args": {"name": "reader"}},
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events, "otherData": {"dropped_events": 5}}))
    data = report_data(path)
    assert data["dropped"] == 5
    assert [(lane["name"], lane["events"]) for lane in data["lanes"]] == [("reader", [0, 1.0, 2.5, 3])]


def test_a_trace_is_a_time_line(opened, trace, tmp_path):
    page = opened(trace)
    assert {"caller", "collate"} <= set(page.run(f"{ROWS}.map((row) => row.firstChild.textContent)"))
    drawn = """(() => { const c = document.querySelector('canvas');
      const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
      return new Set(new Uint32Array(pixels.buffer)).size; })()"""
    assert page.run(drawn) > 5
    before = page.run("document.querySelector('canvas').toDataURL()")
    page.run("document.querySelector('canvas').focus()")
    page.press("+", 187)
    page.press("ArrowRight", 39)
    assert page.run("document.querySelector('canvas').toDataURL()") != before
    page.press("0", 48)
    assert page.run("document.querySelector('canvas').toDataURL()") == before

    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": HOSTILE[0]}},
        *({"name": name, "ph": "X", "pid": 1, "tid": 1, "ts": i, "dur": 1} for i, name in enumerate(HOSTILE)),
    ]
    (tmp_path / "hostile.json").write_text(json.dumps({"traceEvents": events}))
    opened(tmp_path / "hostile.json")
    assert page.run("typeof window.ran") == "undefined"
    assert page.run(f"{ROWS}.length") == len(HOSTILE)
