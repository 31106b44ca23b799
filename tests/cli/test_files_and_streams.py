"""What the commands take: standard input, folders, patterns, and names of tensors; and what they do where nobody reads
what they print."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_cli import PROGRAM, run, run_json

safetensors_numpy = pytest.importorskip("safetensors.numpy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two files with names to choose from, in a folder with a space, beside a file that holds no tensors."""
    path = tmp_path_factory.mktemp("two files")
    tensors = {f"layers.{i}.weight": np.full((i + 1, 2), i, np.float32) for i in (0, 2, 10)}
    safetensors_numpy.save_file(tensors | {"bias": np.zeros(3, np.float64)}, path / "a.safetensors")
    np.save(path / "labels.npy", np.arange(5))
    (path / "README").write_text("no tensors")
    return path


def piped(content: bytes, *args: object) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *map(str, args)], input=content, capture_output=True)


@pytest.mark.parametrize(
    "args",
    [["ls"], ["info", "--depth", "1"], ["stats"], ["cat", "bias", "--slice", ":2"], ["verify"], ["hash"]],
    ids=lambda args: args[0],
)
def test_a_pipe_is_read_as_the_file_is(folder, args):
    command, *more = args
    file = folder / "a.safetensors"
    done = piped(file.read_bytes(), command, "-", *more)
    assert (done.returncode, done.stderr) == (0, b"")
    with file.open("rb") as opened:
        by_name = subprocess.run([PROGRAM, command, "-", *more], stdin=opened, capture_output=True)
    assert by_name.returncode == 0
    named = run(command, file, *more).stdout
    assert done.stdout.decode().replace("<stdin>", "-") == named.replace(str(file), "-")


def test_pipes_are_compared_and_converted(folder, tmp_path):
    content = (folder / "a.safetensors").read_bytes()
    assert piped(content, "diff", "-", folder / "a.safetensors").returncode == 0
    assert piped(content, "diff", folder / "labels.npy", "-").returncode == 1
    assert piped(content, "convert", "-", tmp_path / "a.npz", "--only", "bias").returncode == 0
    assert list(np.load(tmp_path / "a.npz")) == ["bias"]


@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        ("</dev/null", "standard input is empty"),
        ("<&-", "standard input is closed"),
        ("< .", "Is a directory"),
        ("| tail -c 3", "format"),
    ],
    ids=["empty", "closed", "folder", "foreign"],
)
def test_standard_input_that_is_no_file_is_said(folder, redirection, said):
    line = f"{PROGRAM} info - {redirection}" if redirection[0] == "<" else f"printf abc | {PROGRAM} info -"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("penstock: <stdin>: ")
    assert said in done.stderr


def test_a_terminal_is_not_waited_for():
    ours, theirs = pty.openpty()
    done = subprocess.run([PROGRAM, "ls", "-"], stdin=theirs, capture_output=True, text=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1
    assert "standard input is a terminal" in done.stderr


def test_standard_input_is_read_once(folder):
    done = piped((folder / "labels.npy").read_bytes(), "diff", "-", "-")
    assert done.returncode == 2
    assert b"named twice" in done.stderr


def test_a_pipe_longer_than_memory_is_refused():
    line = f"ulimit -v 200000; head -c 300M /dev/zero | {PROGRAM} ls -"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 1
    assert "that memory has room for" in done.stderr


def test_a_position_in_a_file_is_kept(folder):
    content = (folder / "labels.npy").read_bytes()
    (folder / "late.bin").write_bytes(b"12345678" + content)
    line = f'(read -r -N 8; {PROGRAM} cat -) < "{folder}/late.bin"'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    (folder / "late.bin").unlink()
    assert done.stdout == "0 1 2 3 4\n"


def names_of(*args: object) -> list[str]:
    return [line.split()[0] for line in run("ls", *args).stdout.splitlines()[1:-1]]


def test_ls_sorts_as_people_count(folder):
    file = folder / "a.safetensors"
    names = ["bias", "layers.0.weight", "layers.2.weight", "layers.10.weight"]
    assert names_of(file, "--sort", "name") == names
    assert names_of(file, "--sort", "name", "-r") == names[::-1]
    largest = names_of(file, "--sort", "size")
    assert (largest[0], largest[-1]) == (names[3], names[1])
    assert names_of(file, "--sort", "dtype")[-1] == "bias"
    assert names_of(file, "--sort", "shape")[:2] == ["bias", names[1]]
    listed = run_json("ls", file, "--sort", "name")["tensors"]
    assert [tensor["name"] for tensor in listed] == names


def test_ls_chooses_by_names(folder):
    file = folder / "a.safetensors"
    assert names_of(file, "layers.*.weight") == names_of(file, "layers") == names_of(file, "--only", "layers")
    assert len(names_of(file, "layers")) == 3
    assert run("ls", file, "layers.2", "--names").stdout == "layers.2.weight\n"
    assert [each["name"] for each in run_json("ls", file, "bias")["tensors"]] == ["bias"]
    done = run("ls", file, "layer", code=1)
    assert "no name matches 'layer'" in done.stderr
    # What looks like a file is one.
    assert "missing.npy: " in run("ls", file, "missing.npy", code=1).stderr


def test_ls_ends_with_totals_and_sizes_that_can_be_read(folder):
    file = folder / "a.safetensors"
    assert run("ls", file).stdout.splitlines()[-1] == "4 tensors, 33 elements, 144 bytes"
    assert run("ls", folder).stdout.splitlines()[-1] == "2 files, 5 tensors, 38 elements, 184 bytes"
    large = folder / "large.npy"
    np.save(large, np.zeros(1500, np.uint8))
    assert "1.5 kB" in run("ls", large).stdout
    assert "1,500" in run("ls", large, "--bytes").stdout
    large.unlink()


@pytest.mark.parametrize("command", ["ls", "info", "stats", "hash", "verify"])
def test_folders_and_patterns_are_files(folder, command):
    for word in (folder, f"{folder}/*", f"{folder.parent}/**/{folder.name}/**", f"{folder}/*.[ns]*"):
        told = run(command, word).stdout
        assert command == "verify" or ("a.safetensors" in told and "labels.npy" in told)
        assert "README" not in told
        assert command != "verify" or told.startswith("2 files, 5 tensors")
    assert "no file matches" in (done := run(command, f"{folder}/*.zzz", code=1)).stderr + done.stdout


def test_several_files_are_a_list_in_json(folder):
    for command in ("ls", "info"):
        found = run_json(command, folder)
        assert [each["format"] for each in found] == ["safetensors", "npy"]
    bad, good = json.loads(run("info", folder / "README", folder / "labels.npy", "--json", code=1).stdout)
    assert (set(bad), good["format"]) == ({"path", "error"}, "npy")


def test_stats_reads_only_what_is_named(folder):
    found = run_json("stats", folder / "a.safetensors", "layers.2", "bias")["tensors"]
    assert {each["name"]: each["mean"] for each in found} == {"layers.2.weight": 2, "bias": 0}
    assert "no NaN and no infinity in 1 tensor\n" in run("stats", "--nan", folder / "a.safetensors", "bias").stdout
    assert "no name matches" in run("stats", folder / "a.safetensors", "nope", code=1).stderr


def test_cat_prints_what_is_no_tensor(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "x.pt"
    torch.save({"epoch": 7, "name": "a\tb", "model": {"w": torch.ones(2)}, "rates": [0.5, None], "none": None}, path)
    assert run("cat", path, "epoch").stdout == "7\n"
    assert run("cat", path, "name").stdout == "a\\tb\n"
    assert run("cat", path, "none").stdout == "None\n"
    assert run("cat", path, "rates.0").stdout == "0.5\n"
    assert "float32 (2,)" in run("cat", path, "model").stdout
    assert run_json("cat", path, "rates")["structure"] == [0.5, None]
    assert run_json("cat", path, "epoch") == {"name": "epoch", "structure": 7, "shared": []}
    assert "no slices" in run("cat", path, "epoch", "--slice", "0", code=1).stderr
    assert "'model.w'" in run("cat", path, "model.x", code=1).stderr


def test_cat_and_convert_take_several_files(folder, tmp_path):
    np.savez(tmp_path / "1.npz", a=np.arange(2))
    np.savez(tmp_path / "2.npz", b=np.arange(3))
    assert run("cat", f"{tmp_path}/*.npz").stdout == f"{tmp_path}/1.npz:\n0 1\n\n{tmp_path}/2.npz:\n0 1 2\n"
    run("convert", f"{tmp_path}/*.npz", tmp_path / "both.safetensors")
    assert sorted(safetensors_numpy.load_file(tmp_path / "both.safetensors")) == ["a", "b"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> Path:
    """Two folders of distributed checkpoints, one that was not saved to its end, a file and another folder."""
    path = tmp_path_factory.mktemp("checkpoints")
    (path / "runs" / "a").mkdir(parents=True)
    for step in (1, 2):
        safetensors_numpy.save_file({"w": np.full((2, 2), step, np.float32)}, path / "w.safetensors")
        run("convert", path / "w.safetensors", f"{path}/step-{step}/")
        run("convert", path / "w.safetensors", f"{path}/runs/a/step-{step}/")
    run("convert", path / "w.safetensors", f"{path}/cut/")
    (path / "cut" / ".metadata").unlink()
    (path / "logs").mkdir()
    (path / "logs" / "log.txt").write_text("no tensors")
    return path


@pytest.mark.parametrize("command", ["ls", "info", "stats", "hash", "verify", "show"])
@pytest.mark.parametrize(
    "pattern", ["step-*", "step-?", "step-*/", "step-[12]", "step-*/*", "runs/**", "r*/a/s*", "**/step-*"]
)
def test_a_pattern_gives_checkpoints(checkpoints, command, pattern):
    found = 4 if pattern.startswith("**") else 2
    told = run(command, f"{checkpoints}/{pattern}").stdout
    if command == "verify":
        assert f"{found} tensors" in told
    elif command == "show":
        assert f"{found} pictures of {found} files" in told
    else:
        assert len({line.rpartition("step-")[2][0] for line in told.splitlines() if "step-" in line}) == 2
        assert "distcp" not in told


def test_what_a_pattern_gives_beside_checkpoints(checkpoints):
    done = run("ls", f"{checkpoints}/*", "--json", code=1)
    names = [Path(each["path"]).name for each in json.loads(done.stdout)]
    assert names == ["cut", ".metadata", ".metadata", "w.safetensors"]  # a checkpoint is told by its index
    assert "no .metadata" in done.stderr
    assert run_json("ls", f"{checkpoints}/*.safetensors")[0]["format"] == "safetensors"
    assert len(run_json("ls", f"{checkpoints}/*", "--exclude", "cut")) == 3
    assert run("cat", f"{checkpoints}/*-2", "w").stdout.endswith(":\n2 2\n2 2\n")
    assert run("diff", f"{checkpoints}/step-*", f"{checkpoints}/runs/a/*").stdout.count("1 tensor is equal") == 2
    assert "no file matches" in run("ls", f"{checkpoints}/lo*", code=1).stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_may_not_be_listed_is_told(checkpoints):
    (checkpoints / "logs").chmod(0)
    try:
        done = run("ls", f"{checkpoints}/*s*", code=1)
    finally:
        (checkpoints / "logs").chmod(0o755)
    assert "logs" in done.stderr
    assert "step-2" in done.stdout


@pytest.mark.parametrize("args", [["ls"], ["ls", "--json"], ["info"], ["stats"], ["hash"], ["show"]], ids=" ".join)
def test_a_reader_that_has_enough_is_no_error(folder, args):
    reader, writer = os.pipe()
    os.close(reader)
    for action in (signal.SIG_IGN, signal.SIG_DFL):
        done = subprocess.run(
            [PROGRAM, *args, folder],
            stdout=writer,
            stderr=subprocess.PIPE,
            preexec_fn=lambda action=action: signal.signal(signal.SIGPIPE, action),
            restore_signals=False,
        )
        assert done.stderr == b""
        assert done.returncode == (141 if action == signal.SIG_IGN else -signal.SIGPIPE)
    os.close(writer)
