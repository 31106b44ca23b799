"""penstock bench --html: the figures of --json, and a time line of what the threads did."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_report import PROGRAM, ROWS, data_of


def bench(*args: object, code: int = 0, **environment: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [PROGRAM, "bench", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    assert done.returncode == code, (done.returncode, done.stdout[:2000], done.stderr)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "a<b>folder"
    path.mkdir()
    for i in range(20):
        np.save(path / f"{i}.npy", np.full(50, i, "f4"))
    return path


def test_figures_are_those_of_json(folder, tmp_path):
    page = tmp_path / "page.html"
    told = json.loads(bench(folder, "--epochs", 2, "--json", "--html", page).stdout)
    data = data_of(page.read_text())
    assert (data["kind"], data["path"]) == ("trace", str(folder))
    assert data["bench"] == told
    names = [lane["name"] for lane in data["lanes"]]
    assert names[0] == "caller"
    events = [data["names"][what] for lane in data["lanes"] for what in lane["events"][::4]]
    assert events.count("open") >= 2 * 20
    assert "files/s" in bench(folder, "--epochs", 1, "--html", page, "--force").stdout


@pytest.mark.parametrize("args", [[], ["--epochs", "1"], ["--rows", "--workers", "0"]], ids=str)
def test_no_trace_is_left(folder, tmp_path, args):
    place = tmp_path / "tmp"
    place.mkdir()
    path = folder / "1.npy" if "--rows" in args else folder
    done = bench(path, *args, "--html", tmp_path / "page.html", TMPDIR=str(place))
    assert f"{tmp_path}/page.html: " in done.stdout
    assert os.listdir(place) == []
    assert (tmp_path / "page.html").stat().st_size < 10_000_000
    if not args:
        assert data_of((tmp_path / "page.html").read_text())["bench"]["epochs"] > 3


def test_a_trace_that_is_asked_for_is_kept(folder, tmp_path):
    bench(folder, "--epochs", 1, "--html", tmp_path / "page.html", "--trace", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    lanes = data_of((tmp_path / "page.html").read_text())["lanes"]
    assert sum(len(lane["events"]) // 4 for lane in lanes) == sum(event["ph"] == "X" for event in events)


def test_a_page_in_a_pipe_is_all_there_is(folder):
    data_of(page := bench(folder, "--epochs", 1, "--html", "-").stdout)
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")


def test_what_is_refused(folder, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    assert "--force" in bench(folder, "--html", page, code=1).stderr
    assert page.read_text() == "old"
    bench(folder / "1.npy", "--html", folder / "1.npy", "--force", code=1)
    bench(folder, "--html", tmp_path / "missing" / "page.html", code=1)
    bench(folder, "--html", "-", "--json", code=2)
    bench(folder, "--html", page, "--trace", "s3://bucket/t.json", code=2)
    assert "one file" in bench(folder, "--html", tmp_path / "new", "--trace", tmp_path / "new", code=2).stderr
    assert "TMPDIR" in bench(folder, "--html", tmp_path / "new", code=1, TMPDIR="/no/such/folder").stderr
    (tmp_path / "empty").mkdir()
    bench(tmp_path / "empty", "--html", tmp_path / "none.html", code=1)
    assert sorted(os.listdir(tmp_path)) == ["empty", "page.html"]


def test_the_page_in_a_browser(shown, folder, tmp_path):
    bench(folder, "--epochs", 5, "--html", tmp_path / "page.html")
    page = shown(tmp_path / "page.html")
    assert page.run("document.getElementById('title').textContent") == "a<b>folder"
    told = page.run("document.querySelector('main').innerText")
    for text in ("Of the floor", "Time of the workers by stage", "Opening files", "Time line", "Where the time went"):
        assert text in told
    assert {"wait for batch", "open"} <= set(page.run(f"{ROWS}.map((row) => row.firstChild.textContent)"))
    # The time between epochs is left out: the caller's events follow one another, as long as they took.
    data = data_of((tmp_path / "page.html").read_text())
    lane = data["lanes"][0]["events"]
    spans = sorted(zip(lane[1::4], lane[2::4], strict=True))
    taken = sum(time for _, time in spans)
    shown_time = page.run(
        "(() => { const data = JSON.parse(document.getElementById('data').textContent); const lanes = lanesOf(data);"
        " leaveOutGaps(lanes); return lanes[0].events.at(-1).end; })()"
    )
    assert shown_time == pytest.approx(spans[0][0] + taken, rel=1e-3, abs=len(spans) * 0.2)
