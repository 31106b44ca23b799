"""What the command makes of words, sizes and pipes, and what it answers where it finds nothing."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PENSTOCK = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")


def run(*words, code=0, **options):
    done = subprocess.run([PENSTOCK, *map(str, words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done


@pytest.fixture
def array(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    return tmp_path / "a.npy"


def through_fifo(path, content):
    """A FIFO into which a thread writes."""
    os.mkfifo(path)
    thread = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("command", [["cat"], ["ls"], ["info"], ["stats"], ["hash"], ["verify"], ["show"]])
def test_a_fifo_is_read_as_standard_input_is(tmp_path, array, command):
    thread = through_fifo(tmp_path / "f", array.read_bytes())
    found = run(*command, tmp_path / "f").stdout
    thread.join()
    with array.open("rb") as file:
        piped = subprocess.run([PENSTOCK, *command, "-"], input=file.read(), capture_output=True, check=True)
    shown_name = "-" if command == ["hash"] else "<stdin>"  # hash prints names that can be given again
    assert found.replace(str(tmp_path / "f"), shown_name).split() == piped.stdout.decode().split()


def test_convert_and_diff_read_fifos(tmp_path, array):
    threads = [through_fifo(tmp_path / name, array.read_bytes()) for name in "fg"]
    run("convert", tmp_path / "f", tmp_path / "o.npy")
    assert np.array_equal(np.load(tmp_path / "o.npy"), np.load(array))
    run("diff", tmp_path / "g", array)
    for thread in threads:
        thread.join()


def test_what_a_shell_substitutes(tmp_path, array):
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress(array.read_bytes()))
    script = (
        f"{PENSTOCK} diff <(gzip -dc {tmp_path}/a.npy.gz) <(cat {array}) && {PENSTOCK} cat <(cat {array}) --slice 1"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "3 4 5"


@pytest.mark.parametrize("command", ["bench", "pack"])
def test_a_list_of_files_says_that_a_fifo_is_none(tmp_path, command):
    os.mkfifo(tmp_path / "f")
    shards = [tmp_path / "o"] if command == "pack" else []
    assert "no regular file but a FIFO" in run(command, tmp_path / "f", *shards, code=1).stderr


def test_a_fifo_is_read_once(tmp_path, array):
    thread = through_fifo(tmp_path / "f", array.read_bytes())
    done = run("diff", tmp_path / "f", tmp_path / "f", code=2)
    thread.join()
    assert "named twice" in done.stderr


def test_a_folder_gives_names_to_what_has_none(tmp_path):
    (tmp_path / "x" / "sub").mkdir(parents=True)
    np.save(tmp_path / "x" / "a.npy", np.arange(3))
    np.save(tmp_path / "x" / "sub" / "b.c.npy", np.arange(4))
    np.savez(tmp_path / "x" / "d.npz", p=np.arange(2), q=np.arange(5))
    run("convert", tmp_path / "x", tmp_path / "o.npz")
    assert {k: len(v) for k, v in np.load(tmp_path / "o.npz").items()} == {"a": 3, "sub.b.c": 4, "p": 2, "q": 5}
    run("convert", tmp_path / "x", tmp_path / "s.npz", "--only", "sub")
    assert list(np.load(tmp_path / "s.npz")) == ["sub.b.c"]
    run("convert", tmp_path / "x" / "a.npy", tmp_path / "m.npz", "--merge", tmp_path / "x" / "sub" / "b.c.npy")
    assert list(np.load(tmp_path / "m.npz")) == ["a", "b.c"]
    (tmp_path / "x" / "d.npz").unlink()
    (tmp_path / "x" / "a.npy").unlink()
    run("convert", tmp_path / "x", tmp_path / "one.npz")
    assert list(np.load(tmp_path / "one.npz")) == ["sub.b.c"]
    np.savez(tmp_path / "x" / "sub.b.npz", c=np.arange(2))
    np.savez(tmp_path / "x" / "sub.npz", **{"sub.b.c": np.arange(2)})
    assert "would both be called" in run("convert", tmp_path / "x", tmp_path / "two.npz", code=1).stderr


@pytest.mark.parametrize("size", ["1.5GB", "1.5 MB", "0.5kB", "2.25KiB", "1GB"])
def test_sizes_may_have_a_point(tmp_path, array, size):
    np.savez(tmp_path / "a.npz", w=np.arange(4))
    run("convert", tmp_path / "a.npz", tmp_path / "o.safetensors", "--shard-size", size)
    done = run("convert", tmp_path / "a.npz", tmp_path / "p.safetensors", "--shard-size", "1.GB", code=2)
    assert "a size, such as" in done.stderr


def test_a_word_that_is_nearly_one_is_named(tmp_path, array):
    assert "did you mean 'diff'?" in run("help", "dif", code=2).stderr
    assert "did you mean 'chw'" in run("show", array, "--layout", "chv", code=2).stderr


def test_the_types_of_convert_complete():
    words = next(
        option["words"]
        for option in json.loads(run("help", "convert", "--json").stdout)["options"]
        if "--dtype" in option["names"]
    )
    assert words == ["float64", "float32", "float16", "bfloat16"]
    assert 'convert --dtype") words="float64 float32 float16 bfloat16"' in run("completion", "bash").stdout


JSON_COMMANDS = ["ls", "info", "cat", "show", "stats", "hash"]


@pytest.mark.parametrize("command", JSON_COMMANDS)
def test_a_file_that_cannot_be_read_is_json_too(tmp_path, command):
    path = tmp_path / "missing.npy"
    done = run(command, path, "--json", code=1)
    told = json.loads(done.stdout)
    assert set(told) == {"path", "error"}
    assert told["path"] == str(path)
    assert told["error"] in done.stderr


@pytest.mark.parametrize(
    "words", [["convert", "missing.npy", "o.npz"], ["pack", "missing", "o"], ["cat", "a.npy", "nothing"]], ids=str
)
def test_a_command_that_fails_says_so_in_json(tmp_path, array, words):
    done = run(*words, "--json", code=1, cwd=tmp_path)
    told = json.loads(done.stdout)
    assert "error" in told
    assert told["error"] in done.stderr
    assert run(*words, code=1, cwd=tmp_path).stdout == ""


def test_diff_says_in_json_what_failed(tmp_path, array):
    told = json.loads(run("diff", array, tmp_path / "missing.npy", "--json", code=2).stdout)
    assert "missing.npy" in told["error"]


@pytest.mark.parametrize("command", ["ls", "stats", "hash"])
def test_nothing_found_is_an_empty_list(tmp_path, command):
    np.savez(tmp_path / "m.npz", a=np.arange(3))
    done = run(command, tmp_path / "m.npz", "nothing", "--json", code=1)
    assert json.loads(done.stdout)["tensors"] == []
    assert "no name matches 'nothing'" in done.stderr
    assert "NAME" not in run("stats", tmp_path / "m.npz", "nothing", code=1).stdout


@pytest.mark.parametrize("command", ["ls", "info", "stats", "hash", "show"])
def test_a_folder_without_files_is_json_too(tmp_path, command):
    (tmp_path / "empty").mkdir()
    (told,) = json.loads(run(command, tmp_path / "empty", "--json", code=1).stdout)
    assert set(told) == {"path", "error"}
    assert "no tensor files" in told["error"]


def test_a_folder_without_files_is_said_beside_others(tmp_path, array):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("hello")
    done = run("verify", tmp_path / "empty", array, tmp_path / "notes", code=1).stdout
    assert done.count("no tensor files in it or below") == 2
    assert "1 file, 1 tensor" in done
    assert "all good" in run("verify", tmp_path, array).stdout
    (bad,) = json.loads(run("verify", tmp_path / "empty", "--json", code=1).stdout)["bad"]
    assert (bad["path"], bad["code"]) == (str(tmp_path / "empty"), "not_found")


def test_what_is_no_tensor_is_printed_where_it_is_all_there_is(tmp_path):
    np.save(tmp_path / "o.npy", np.array([1, "a", None], object), allow_pickle=True)
    assert "[1, 'a', None]" in run("cat", tmp_path / "o.npy").stdout
    assert json.loads(run("cat", tmp_path / "o.npy", "--json").stdout)["name"] == ""
    (tmp_path / "none.safetensors").write_bytes((8).to_bytes(8, "little") + b"{}      ")
    assert "holds nothing" in run("cat", tmp_path / "none.safetensors", code=1).stderr
    assert "nothing to draw" in run("show", tmp_path / "none.safetensors", code=1).stderr


def test_several_files_have_titles_only_where_something_follows(tmp_path, array):
    (tmp_path / "b.npy").write_bytes(array.read_bytes()[:-1])
    done = run("cat", tmp_path, code=1)
    assert done.stdout == f"{array}:\n0 1 2\n3 4 5\n"
    assert "give the command no name" in run("cat", array, "0", code=1).stderr


@pytest.mark.parametrize("slices", ["9", "0,0,0", "...,0,0,0"])
def test_a_slice_that_does_not_fit_names_the_file(array, slices):
    assert run("cat", array, "--slice", slices, code=1).stderr.startswith(f"penstock: {array}: ")


@pytest.mark.parametrize(
    "words", ["convert a.npy - --to npy", "pack a.npy -", "sample -", "bench a.npy --trace -"], ids=lambda words: words
)
def test_no_file_is_called_as_standard_output_is(tmp_path, array, words):
    assert "name a file, or ./-" in run(*words.split(), code=1, cwd=tmp_path).stderr
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize(
    "words", ["convert a.npy {}", "report a.npy -o {}", "show a.npy --png {}", "bench a.npy --html {}"]
)
def test_what_no_file_can_replace_is_said_before_force_is_tried(tmp_path, array, words):
    (tmp_path / "f.npy").mkdir()
    os.mkfifo(tmp_path / "g.npy")
    for name, said in ("f.npy", "this is a folder"), ("g.npy", "this is a device, FIFO or socket"):
        assert said in run(*words.format(name).split(), code=1, cwd=tmp_path).stderr


def test_a_trace_replaces_no_file_without_force(tmp_path, array):
    run("sample", tmp_path / "s")
    before = array.read_bytes()
    assert "--force" in run("bench", tmp_path / "s/digits", "--trace", array, "--epochs", 1, code=1).stderr
    assert array.read_bytes() == before
    run("bench", tmp_path / "s/digits", "--trace", array, "--epochs", 1, "--force")
    assert json.loads(array.read_text())["traceEvents"]


def test_words_too_many_and_too_few_are_said(array):
    assert "version takes no more words, found 'x'" in run("version", "x", code=2).stderr
    assert "there is no option '--json' in front of a command" in run("--json", "ls", array, code=2).stderr
    assert "--sort: is given more than once" in run("ls", array, "--sort", "name", "--sort", "size", code=2).stderr
    assert "--sort: expected name|size|shape|dtype behind it" in run("ls", array, "--sort", code=2).stderr


def test_a_cache_is_a_folder(array):
    assert "this is no folder" in run("cache", "--folder", array, code=1).stderr


def test_sample_leaves_nothing_behind(tmp_path):
    """Where the signal comes too late, on a busy machine, the next attempt begins anew."""
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        child = subprocess.Popen([PENSTOCK, "sample", folder], stdout=subprocess.DEVNULL)
        while child.poll() is None and not folder.exists():
            pass
        child.send_signal(signal.SIGINT)
        if child.wait() == -signal.SIGINT:
            assert not folder.exists()
            return
    pytest.fail("no attempt was interrupted")


def test_doctor_leaves_nothing_behind(tmp_path):
    """Its file has no name, so that it is gone however the process ends."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    child = subprocess.Popen(
        [PENSTOCK, "doctor", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    )
    descriptors = f"/proc/{child.pid}/fd"

    def holds_file():
        links = (os.path.join(descriptors, name) for name in os.listdir(descriptors))
        return any("penstock-doctor-" in os.readlink(link) for link in links if os.path.lexists(link))

    while child.poll() is None:
        try:
            if holds_file():
                break
        except FileNotFoundError:
            continue
    child.send_signal(signal.SIGINT)
    child.wait()
    assert os.listdir(folder) == []
    run("doctor", folder, "--json")
    assert os.listdir(folder) == []


LOCATIONS = [
    "ls {}", "ls {}/*.npy", "info {}", "cat {}/0.npy", "show {} --as ascii", "stats {}", "hash {}", "verify {}",
    "diff {} {}", "report {} -o -", "convert {} {}/all.npz --force --json", "pack {} {}/packed --json",
    "sample {}/sample --json", "cache --folder {} --json",
]  # fmt: skip


@pytest.mark.parametrize("words", LOCATIONS)
def test_a_file_url_names_what_its_path_names(tmp_path, words):
    """In every command, with the blank of a name as %20."""
    told = []
    for name in "path", "url":
        folder = tmp_path / name / "two words"
        folder.mkdir(parents=True)
        for number in range(2):
            np.save(folder / f"{number}.npy", np.full((2, 3), number))
        at = str(folder) if name == "path" else f"file://{folder}".replace(" ", "%20")
        done = run(*(word.format(at) for word in words.split(" ")), cwd=tmp_path)
        told.append((done.stdout.replace(f"{tmp_path}/{name}", "").split(), sorted(os.listdir(folder))))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "words",
    ["show a.npy --png", "bench a.npy --html", "bench a.npy --trace", "bench a.npy --key", "report a.npy -o",
     "convert a.npy b.npz --part", "cache --clear", "cache --folder", "doctor", "sample", "convert a.npy"],
)  # fmt: skip
def test_an_empty_word_is_not_taken_for_none(tmp_path, array, words):
    """It is what a shell makes of a variable that is not set."""
    told = run(*words.split(), "", code=2, cwd=tmp_path).stderr
    assert "found '', expected " in told
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.parametrize("words", ["ls", "ls a.npy --what", "cat a.npy --slice x", "verify a.npy --quiet", "lss a.npy"])
def test_wrong_usage_is_json_too(tmp_path, array, words):
    done = run(*words.split(), "--json", code=2, cwd=tmp_path)
    assert list(told := json.loads(done.stdout)) == ["error"]
    assert done.stderr == f"penstock: {told['error']}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info a.npy --json --depth 1", "--depth excludes --json"),
        ("ls a.npy --names --bytes", "--bytes excludes --names"),
        ("show a.npy --png b.png --as kitty", "--as excludes --png"),
        ("bench a.npy --rows --exclude b", "--exclude: leaves out files"),
    ],
)
def test_no_option_is_passed_over(tmp_path, array, words, said):
    assert said in run(*words.split(), code=2, cwd=tmp_path).stderr


def test_words_about_tensors_are_not_for_traces(tmp_path):
    (tmp_path / "t.json").write_text('{"traceEvents": []}')
    for words in ["--no-values"], ["--dtype", "uint8"]:
        assert "this is a trace" in run("report", "t.json", "-o", "p.html", *words, code=1, cwd=tmp_path).stderr


@pytest.mark.parametrize("command", ["ls", "verify", "info"])
def test_a_url_without_a_bucket_is_one_of_what_is_bad(array, command):
    done = run(command, "s3://", array, "--json", code=1)
    told = json.loads(done.stdout)
    bad = told["bad"] if command == "verify" else told
    assert sum("bucket" in each.get("error", "") for each in bad) == 1
    assert (told["files"] == 2) if command == "verify" else (len(told) == 2)


def test_shards_have_names_that_json_can_hold(tmp_path, array):
    done = run("convert", array, os.fsdecode(b"\xff.safetensors"), "--shard-size", "1KB", code=1, cwd=tmp_path)
    assert "names them as text" in done.stderr
    assert os.listdir(tmp_path) == ["a.npy"]


def test_a_checkpoint_says_itself_what_it_holds(tmp_path, array):
    run("convert", array, f"{tmp_path}/ckpt/")
    words = [tmp_path / "ckpt", tmp_path / "b.npy", "--dtype", "float16", "--shape", "3"]
    assert "says itself what it holds" in run("convert", *words, code=1).stderr


def test_a_pair_that_cannot_be_compared_says_which_file(tmp_path, array):
    told = json.loads(run("diff", array, tmp_path / "missing.npy", "--json", code=2).stdout)
    assert told["path"] == str(tmp_path / "missing.npy")


def test_bench_has_no_floor_for_what_comes_by_url(tmp_path, array):
    """Opening a URL as a file fails at once, which looks like a floor out of reach."""
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/a.npy"
        told = json.loads(run("bench", url, "--epochs", 1, "--json").stdout)
        printed = run("bench", url, "--epochs", 1, "--html", tmp_path / "p.html").stdout
        server.shutdown()
    assert (told["floor"], told["ratio_to_floor"]) == (None, None)
    assert "of what" not in told["limit"]
    assert "floor        none" in printed
    assert "of the floor" not in printed


def limited(limits, *words):
    line = f'ulimit {limits} && exec "$0" "$@"'
    return subprocess.run(["bash", "-c", line, PENSTOCK, *map(str, words)], capture_output=True, text=True, check=False)


def test_memory_that_runs_out_is_said_in_words(tmp_path):
    header = json.dumps(
        {f"layers.{i}": {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i in range(200_000)}
    ).encode()
    (tmp_path / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(200_000))
    done = limited("-v 60000", "ls", tmp_path / "m.safetensors")
    assert done.returncode == 1
    assert "memory" in done.stderr
    assert "std::" not in done.stderr


def test_what_is_written_needs_no_thread(tmp_path, array):
    """Threads have stacks of the size that the limit on stacks has, for which there are no addresses here."""
    done = limited("-s 4000000 -v 2000000", "convert", array, tmp_path / "b.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert np.array_equal(np.load(tmp_path / "b.npz")["arr_0"], np.load(array))
