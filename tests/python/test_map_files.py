"""map_files: a folder of what a function makes of each file of another."""

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from map_functions import Times, doubled, fails_at_three, named, tripled

import penstock

WAYS = [{"num_workers": 2}, {"num_workers": 2, "workers": "threads"}, {"num_workers": 0}]


@pytest.fixture
def folder(tmp_path):
    for name, values in (("a/1", 1), ("a/2", 2), ("b/3", 3)):
        path = tmp_path / "in" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.full(3, values, dtype="float32"))
    return tmp_path


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_each_file_is_written_under_its_name(folder, way):
    paths = penstock.map_files(doubled, str(folder / "in/*/*.npy"), folder / "out", **way)
    assert paths == [str(folder / "out" / name) for name in ("a/1.npy", "a/2.npy", "b/3.npy")]
    assert [np.load(path).tolist() for path in paths] == [[2.0] * 3, [4.0] * 3, [6.0] * 3]


def test_other_formats(folder):
    (path, *_) = penstock.map_files(named, [folder / "in/a/1.npy"], folder / "out", suffix=".pt", num_workers=1)
    assert penstock.load(path)["x"].tolist() == [1.0] * 3
    assert path == str(folder / "out/1.pt")


def test_the_same_call_goes_on_behind_an_error(folder):
    function = functools.partial(fails_at_three, str(folder / "there"))
    with pytest.raises(ValueError, match=r"three.*3\.npy"):
        penstock.map_files(function, str(folder / "in/*/*.npy"), folder / "out", num_workers=1)
    assert os.listdir(folder / "out/b") == []
    times = {path: path.stat().st_mtime_ns for path in (folder / "out/a").iterdir()}
    assert len(times) == 2
    (folder / "there").touch()
    paths = penstock.map_files(function, str(folder / "in/*/*.npy"), folder / "out", num_workers=1)
    assert len(paths) == 3
    assert np.load(paths[2]).tolist() == [3.0] * 3
    assert {path: path.stat().st_mtime_ns for path in (folder / "out/a").iterdir()} == times


def closed_over(factor):
    return lambda sample: sample.numpy() * factor


def made_of(text):
    """A function of this text, as it is behind an edit."""
    names = {"__name__": "edited"}
    exec(f"def edited(sample):\n  return sample.numpy() {text}", names)
    return names["edited"]


@pytest.mark.parametrize(
    ("first", "other", "named"),
    [
        (doubled, tripled, "map_functions.doubled"),
        (Times(2), Times(3), "another version of map_functions.Times"),
        (functools.partial(np.multiply, 2), functools.partial(np.multiply, 3), "another version of .*multiply"),
        (np.sqrt, np.square, "numpy.sqrt"),
        (closed_over(2), closed_over(3), "another version of .*lambda"),
        (made_of("* 2"), made_of("* 3"), "another version of edited.edited"),
        (made_of("+ (lambda: 2)()"), made_of("+ (lambda: 3)()"), "another version of edited.edited"),
    ],
    ids="names objects partials ufuncs closures code inner".split(),
)
@pytest.mark.filterwarnings("ignore:workers=")
def test_what_another_function_made_is_not_taken_for_its_own(folder, first, other, named):
    """Else a folder of old results goes into the training, and nobody is told."""
    given = folder / "in/a", folder / "out"
    (first_path, last_path) = penstock.map_files(first, *given, num_workers=0)
    before = Path(last_path).read_bytes()
    os.unlink(first_path)
    with pytest.raises(penstock.InvalidArgumentError, match=rf"2\.npy: it was made by {named}.*delete") as caught:
        penstock.map_files(other, *given, num_workers=0)
    assert Path(last_path).read_bytes() == before
    penstock.map_files(first, *given, num_workers=0)
    penstock.map_files(other, folder / "in/b", folder / "out", num_workers=0)  # of other files
    os.unlink(next(word for word in str(caught.value).split() if word.endswith(".json")))
    assert penstock.map_files(other, *given, num_workers=0) == [first_path, last_path]
    assert Path(last_path).read_bytes() == before
    for path in (first_path, last_path):
        os.unlink(path)
    penstock.map_files(other, *given, num_workers=0)
    assert Path(last_path).read_bytes() != before


def test_the_same_function_of_another_run_is_the_same(folder):
    program = """if 1:
        import functools, sys
        import penstock

        def scaled(factors, sample, names={"b", "a", "c"}):
            return sample.numpy() * factors["x"] if "a" in {"b", "a", "c"} else sample

        function = functools.partial(scaled, {"x": 2, "y": {"b", "a", "c"}})
        if __name__ == "__main__":
            penstock.map_files(function, sys.argv[1], sys.argv[2], num_workers=0, workers="threads")
    """
    for seed in "123":
        call = [sys.executable, "-c", program, str(folder / "in/a"), str(folder / "out")]
        subprocess.run(call, check=True, env={**os.environ, "PYTHONHASHSEED": seed})


@pytest.mark.skipif(importlib.util.find_spec("cloudpickle") is not None, reason="cloudpickle sends it")
def test_a_function_that_cannot_be_sent_is_named(folder):
    with pytest.raises(TypeError, match=r"^test_map_files\.closed_over.*lambda.*cannot be sent"):
        penstock.map_files(closed_over(2), folder / "in/a", folder / "out", num_workers=1)


@pytest.mark.parametrize("left", [0, 1, 5, 9, 10, -1])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".safetensors"])
def test_a_file_that_a_power_failure_cut_is_made_anew(folder, left, suffix):
    call = {"suffix": suffix, "num_workers": 0}
    function = named if suffix == ".npz" else doubled
    paths = penstock.map_files(function, folder / "in/a", folder / "out", **call)
    content = [Path(path).read_bytes() for path in paths]
    os.truncate(paths[0], left if left >= 0 else len(content[0]) + left)
    assert penstock.map_files(function, folder / "in/a", folder / "out", **call) == paths
    assert [Path(path).read_bytes() for path in paths] == content


def test_what_the_program_put_there_stays(folder):
    (folder / "out").mkdir()
    (folder / "out/1.npy").write_text("notes, and no array at all")
    penstock.map_files(doubled, folder / "in/a", folder / "out", num_workers=0)
    assert (folder / "out/1.npy").read_text() == "notes, and no array at all"


def test_files_are_not_written_over_those_that_are_read(folder):
    """Else what is read would be taken for what was written."""
    before = {path: path.read_bytes() for path in (folder / "in/a").iterdir()}
    (folder / "link").symlink_to(folder / "in/a")
    for out in (folder / "in/a", folder / "link"):
        with pytest.raises(penstock.InvalidArgumentError, match=r"1\.npy.*are read"):
            penstock.map_files(doubled, folder / "in/a", out, num_workers=0)
    np.save(folder / "in/1.npy", np.zeros(3))
    with pytest.raises(penstock.InvalidArgumentError, match=r"a/1\.npy.*are read"):
        penstock.map_files(doubled, [folder / "in/1.npy", folder / "in/a/1.npy"], folder / "in/a", num_workers=0)
    assert {path: path.read_bytes() for path in (folder / "in/a").iterdir()} == before
    penstock.map_files(named, folder / "in/a", folder / "in/a", suffix=".pt", num_workers=0)
    assert penstock.load(folder / "in/a/2.pt")["x"].tolist() == [2.0] * 3


def test_names_stay_below_the_folder_however_paths_are_written(folder, monkeypatch):
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    np.save("4.npy", np.zeros(3))
    for number, files in enumerate((["../in/a/1.npy", "4.npy"], [folder / "in/a/1.npy", "./4.npy"])):
        paths = penstock.map_files(doubled, files, f"out{number}", num_workers=0)
        assert paths == [f"out{number}/in/a/1.npy", f"out{number}/here/4.npy"]
        assert all(map(os.path.isfile, paths))
    with pytest.raises(penstock.InvalidArgumentError, match="URLs beside files"):
        penstock.map_files(doubled, ["4.npy", "http://localhost:1/5.npy"], "out")


def test_names_that_meet_are_refused(folder):
    np.save(folder / "in/a/1.x.npy", np.zeros(1))
    (folder / "in/a/1.x.npy").rename(folder / "in/a/1.pt")
    with pytest.raises(ValueError, match=r"would be written as .*1\.npy"):
        penstock.map_files(doubled, [folder / "in/a/1.npy", folder / "in/a/1.pt"], folder / "out")


def test_an_unknown_suffix_and_no_files_are_errors(folder):
    with pytest.raises(penstock.Error):
        penstock.map_files(doubled, folder / "in/a", folder / "out", suffix=".jpg", num_workers=1)
    with pytest.raises(FileNotFoundError):
        penstock.map_files(doubled, str(folder / "none/*.npy"), folder / "out")


@pytest.mark.parametrize("out", ["s3://bucket/out", "gcs://bucket/out", "hf://me/out"])
def test_urls_are_refused_and_make_no_folder(folder, monkeypatch, out):
    monkeypatch.chdir(folder)
    with pytest.raises(penstock.UnsupportedError):
        penstock.map_files(doubled, folder / "in/**/*.npy", out)
    assert os.listdir(folder) == ["in"]
