"""The command as a person or a script uses it: output, exit codes, and what bad input gets."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from terminals import read_all

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "penstock")
STAGES = ("open", "read", "decode", "collate", "copy", "send")
DIGITS = ROOT / "examples" / "data" / "digits"
COMMANDS = [
    "ls",
    "info",
    "cat",
    "show",
    "stats",
    "diff",
    "hash",
    "report",
    "verify",
    "convert",
    "pack",
    "sample",
    "bench",
    "doctor",
    "cache",
    "uploads",
    "version",
    "completion",
    "man",
    "help",
]


def run(*args: object, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def run_json(*args: object):
    return json.loads(run(*args, "--json").stdout)


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "arrays.npz"
    np.savez(path, a=np.arange(12, dtype=np.int16).reshape(3, 4), b=np.float32(2.5), empty=np.zeros((0, 3)))
    return path


def test_ls_lists_every_tensor(archive):
    listed = run_json("ls", archive)
    assert listed["format"] == "npz"
    found = {entry["name"]: (entry["dtype"], entry["shape"], entry["nbytes"]) for entry in listed["tensors"]}
    assert found == {"a": ("int16", [3, 4], 24), "b": ("float32", [], 4), "empty": ("float64", [0, 3], 0)}


def test_ls_offsets_are_where_the_bytes_lie(archive):
    entry = next(entry for entry in run_json("ls", archive)["tensors"] if entry["name"] == "a")
    content = Path(entry["file"]).read_bytes()
    payload = content[entry["offset"] : entry["offset"] + entry["nbytes"]]
    assert payload == np.arange(12, dtype="<i2").tobytes()


def test_ls_prints_a_table(archive):
    lines = run("ls", archive).stdout.splitlines()
    assert lines[0].split() == ["NAME", "DTYPE", "SHAPE", "BYTES", "OFFSET"]
    assert lines[1].split()[:2] == ["a", "int16"]


def test_ls_of_several_files_names_each(archive):
    out = run("ls", archive, DIGITS / "labels.npy").stdout
    assert f"{archive}:" in out
    assert "labels.npy:" in out
    assert len(run_json("ls", archive, DIGITS / "labels.npy")) == 2


def test_ls_goes_on_after_a_bad_file(tmp_path, archive):
    labels = DIGITS / "labels.npy"
    (tmp_path / "foreign.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    bad = [tmp_path / "missing.pt", tmp_path / "foreign.pt"]
    done = run("ls", bad[0], archive, bad[1], labels, code=1)
    assert done.stdout == run("ls", archive, labels).stdout
    told = done.stderr.splitlines()
    assert [line.startswith(f"penstock: {path}: ") for line, path in zip(told, bad, strict=True)] == [True, True]


def test_ls_keeps_the_good_files_in_json(tmp_path, archive):
    missing = tmp_path / "missing.pt"
    done = run("ls", "--json", missing, archive, code=1)
    assert done.stderr.startswith(f"penstock: {missing}: ")
    bad, good = json.loads(done.stdout)
    assert good == run_json("ls", archive)
    assert set(bad) == {"path", "error"}
    assert bad["path"] == str(missing)
    assert done.stderr == f"penstock: {bad['error']}\n"
    assert json.loads(run("ls", "--json", missing, code=1).stdout) == bad


def test_behind_a_double_dash_all_words_are_positionals(tmp_path):
    for name in ("--json", "-neg.npy", "plain.npy"):
        with (tmp_path / name).open("wb") as file:
            np.save(file, np.arange(4))
    np.savez(tmp_path / "two.npz", **{"--slice": np.arange(2), "b": np.arange(3)})

    def out(*args: str) -> str:
        return subprocess.run([PROGRAM, *args], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    plain = out("ls", "plain.npy")
    assert out("ls", "--", "--json") == plain
    assert out("ls", "plain.npy", "--", "--json") == f"plain.npy:\n{plain}\n--json:\n{plain}"
    assert out("ls", "plain.npy", "--") == plain
    listed = json.loads(out("ls", "plain.npy", "--json", "--", "-neg.npy", "--json"))
    assert [each["path"] for each in listed] == ["plain.npy", "-neg.npy", "--json"]
    assert out("cat", "two.npz", "--", "--slice") == "0 1\n"
    assert out("cat", "--slice", "1:", "two.npz", "--", "--slice") == "1\n"
    assert out("cat", "two.npz", "--slice=1:", "--", "b") == "1 2\n"


def test_info_adds_up(archive):
    facts = run_json("info", archive)
    assert facts["tensor_count"] == 3
    assert facts["tensor_bytes"] == 28
    assert facts["file_bytes"] == archive.stat().st_size
    assert facts["dtypes"] == {"float32": 1, "float64": 1, "int16": 1}
    assert "int16" in run("info", archive).stdout


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("0:2,:,1", np.s_[0:2, :, 1]),
        ("-1", np.s_[-1]),
        ("...,0", np.s_[..., 0]),
        ("::2", np.s_[::2]),
        ("1:,...,-2:", np.s_[1:, ..., -2:]),
        (":100", np.s_[:100]),
        ("2:1", np.s_[2:1]),
    ],
)
def test_cat_slices_as_python_does(tmp_path, text, index):
    array = np.arange(60, dtype=np.float64).reshape(3, 4, 5) / 7
    np.save(tmp_path / "x.npy", array)
    shown = run_json("cat", tmp_path / "x.npy", f"--slice={text}")
    expected = array[index]
    assert shown["shape"] == list(expected.shape)
    assert shown["values"] == expected.tolist()


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16", "S3", "<U4"]
)
def test_cat_prints_every_kind(tmp_path, dtype):
    array = np.array([0, 1, 2]).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    values = run_json("cat", tmp_path / "x.npy")["values"]
    if array.dtype.kind == "c":
        assert values == [[float(v.real), float(v.imag)] for v in array]
    elif array.dtype.kind == "S":
        assert values == [v.decode() for v in array]
    else:
        assert values == array.tolist()
    assert len(run("cat", tmp_path / "x.npy").stdout.split()) == 3


def test_cat_takes_an_empty_name(tmp_path):
    np.savez(tmp_path / "x.npz", **{"": np.arange(2), "b": np.arange(3)})
    assert run_json("cat", tmp_path / "x.npz", "")["values"] == [0, 1]
    assert "name one of those" in run("cat", tmp_path / "x.npz", code=1).stderr


def test_cat_writes_what_json_lacks_as_text(tmp_path):
    np.save(tmp_path / "x.npy", np.array([np.nan, np.inf, -np.inf, 1e300]))
    assert run_json("cat", tmp_path / "x.npy")["values"] == ["nan", "inf", "-inf", 1e300]
    np.save(tmp_path / "x.npy", np.copysign(np.nan, [1, -1]))
    assert run_json("cat", tmp_path / "x.npy")["values"] == ["nan", "nan"]
    assert run("cat", tmp_path / "x.npy").stdout == "nan nan\n"


def pt_with(tmp_path, pickled: bytes) -> Path:
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
        out.writestr("x/data.pkl", pickled)
        out.writestr("x/version", "3")
        out.writestr("x/data/0", b"\0" * 4)
    return tmp_path / "x.pt"


def test_cat_does_not_repeat_a_few_bytes_for_ever(tmp_path):
    storage = b"(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI1\ntQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"I0\n(I%d\nt(I0\nt\x89}tR."
    path = pt_with(tmp_path, tensor % (1 << 40))
    assert "--slice" in run("cat", path, code=1).stderr
    assert run("cat", path, "--slice", "0:2").stdout == "0 0\n"
    assert run("cat", pt_with(tmp_path, tensor % 1000)).stdout.count("0") == 1000
    header = b"{'descr': '|S0', 'fortran_order': False, 'shape': (4611686018427387904,), }".ljust(117) + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    assert "--slice" in run("cat", tmp_path / "x.npy", code=1).stderr
    assert run("cat", tmp_path / "x.npy", "--slice", "0:2").stdout == "b'' b''\n"


def test_cat_prints_rows_and_planes(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(8).reshape(2, 2, 2))
    assert run("cat", tmp_path / "x.npy").stdout == "0 1\n2 3\n\n4 5\n6 7\n"
    np.save(tmp_path / "x.npy", np.float32(0.1))
    assert run("cat", tmp_path / "x.npy").stdout == "0.1\n"


@pytest.mark.slow
def test_bench_measures_files_and_rows(tmp_path):
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full((4,), i, dtype=np.float32))
    by_file = run_json("bench", tmp_path, "--batch-size", 4, "--epochs", 2)
    assert by_file["samples"] == "files"
    by_row = run_json("bench", DIGITS / "images.npy", "--workers", 1)
    assert by_row["samples"] == "rows"
    for result in (by_file, by_row):
        ratio = result["samples_per_second"] / result["floor"]["samples_per_second"]
        assert result["ratio_to_floor"] == pytest.approx(ratio)
    for result, size in (
        (by_file, (tmp_path / "0.npy").stat().st_size),
        (by_row, np.load(DIGITS / "images.npy")[0].nbytes),
    ):
        floor = result["floor"]
        assert floor["bytes_per_second"] / floor["samples_per_second"] == pytest.approx(size)
    assert "of the floor" in run("bench", tmp_path, "--batch-size", 4).stdout


@pytest.mark.slow
def test_bench_names_the_limit_and_writes_a_trace(tmp_path):
    for i in range(40):
        np.save(tmp_path / f"{i}.npy", np.full((400,), i, dtype=np.float32))
    trace = tmp_path / "out" / "trace.json"
    assert "out/trace.json" in run("bench", tmp_path, "--trace", trace, code=1).stderr
    trace.parent.mkdir()
    result = run_json("bench", f"{tmp_path}/*.npy", "--batch-size", 4, "--trace", trace)
    assert re.match(r"\d+ % of what open\+fstat\+read\+close by \d+ threads? can do here; ", result["limit"])
    assert result["bottleneck"] in result["limit"] or result["bottleneck"] in STAGES
    reads = [e for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "read"]
    assert len(reads) == 3 * 40
    printed = run("bench", f"{tmp_path}/*.npy", "--batch-size", 4).stdout
    assert re.search(r"^limit: \d+ % of what ", printed, re.MULTILINE)


@pytest.mark.slow
def test_bench_runs_long_enough_or_says_that_it_did_not(tmp_path):
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full((4,), i, dtype=np.float32))
    result = run_json("bench", tmp_path)
    assert result["wall_seconds"] >= 1.5
    assert result["epochs"] > 3
    assert not result["too_short"]
    once = run("bench", tmp_path, "--epochs", 1).stdout
    assert "too short" in once
    assert "limit:" not in once
    assert run_json("bench", tmp_path, "--epochs", 1)["too_short"]


def test_sample_writes_what_the_documentation_reads(tmp_path):
    done = run("sample", tmp_path / "try")
    assert str(tmp_path / "try") in done.stdout
    images, labels = np.load(tmp_path / "try" / "images.npy"), np.load(tmp_path / "try" / "labels.npy")
    assert (images.shape, images.dtype, labels.shape, labels.dtype) == ((1000, 8, 8), "u1", (1000,), "i8")
    assert run_json("verify", tmp_path / "try")["files"] == 403
    entries = run_json("ls", tmp_path / "try" / "model.pt")["tensors"]
    assert [(entry["name"], entry["shape"]) for entry in entries] == [
        ("encoder.weight", [256, 64]),
        ("encoder.bias", [256]),
    ]
    assert "new folder" in run("sample", tmp_path / "try", code=1).stderr
    (tmp_path / "empty").mkdir()
    assert run_json("sample", tmp_path / "empty")["path"] == str(tmp_path / "empty")


@pytest.mark.parametrize("folder", ["new", "new/inner", "empty"])
def test_a_sample_that_cannot_be_written_leaves_nothing(tmp_path, folder):
    """model.pt is larger than files may be, and images.npy is not."""
    (tmp_path / "empty").mkdir()
    command = ["bash", "-c", 'ulimit -f 65; exec "$0" sample "$1"', PROGRAM, str(tmp_path / folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "model.pt: cannot write the file" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_bench_takes_the_mean_of_the_two_middle_epochs(tmp_path):
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full((4,), i, dtype=np.float32))
    result = run_json("bench", tmp_path, "--epochs", 2)
    assert result["samples_per_second"] == pytest.approx(2 * 8 / result["wall_seconds"])


def test_bench_speaks_of_one_as_one_and_in_one_kind_of_unit():
    once = run("bench", DIGITS / "images.npy", "--epochs", 1, "--workers", 1).stdout
    assert "(batches of 32, 1 worker, 1 epoch)" in once
    often = run("bench", DIGITS / "images.npy", "--epochs", 2, "--workers", 2).stdout
    assert "(batches of 32, 2 workers, 2 epochs)" in often
    assert re.search(r"\d [kMG]B/s", once)
    assert "iB" not in once + often


def test_bench_suggests_no_name_that_is_empty():
    assert "did you mean" not in run("bench", DIGITS / "images.npy", "--key", "x", code=1).stderr


@pytest.mark.parametrize("option", ["--batch-size", "--workers", "--epochs", "--pad-to"])
@pytest.mark.parametrize("value", ["99999999999999999999", "9223372036854775808", "-1", "1e3", "0x10", "1.5", "x", ""])
def test_bench_refuses_what_is_no_number_in_range(option, value):
    told = run("bench", DIGITS / "images.npy", option, value, code=2).stderr
    assert told.startswith(f"penstock: {option}: found '{value}', expected a whole number from ")
    assert all(len(line) < 120 for line in told.splitlines())


@pytest.mark.parametrize("option", ["--batch-size", "--epochs"])
def test_bench_refuses_none(option):
    told = run("bench", DIGITS / "images.npy", option, 0, code=2).stderr
    assert re.match(rf"penstock: {option}: found '0', expected a whole number from 1 to \d+\n", told)


def test_bench_reads_digits_as_decimal():
    assert run_json("bench", DIGITS / "images.npy", "--batch-size", "010", "--epochs", 1)["batch_size"] == 10


def test_bench_pads_only_where_padding_is_the_rule():
    for rule in ("stack", "ragged"):
        told = run("bench", DIGITS / "images.npy", "--pad-to", 4, "--collate", rule, code=2).stderr
        assert "--pad-to" in told
        assert f"--collate {rule}" in told
    run("bench", DIGITS / "images.npy", "--pad-to", 4, "--collate", "pad", "--epochs", 1)
    run("bench", DIGITS / "images.npy", "--pad-to", 4, "--epochs", 1)


def test_version():
    assert run("version").stdout.startswith("penstock ")
    assert run_json("version")["name"] == "penstock"
    assert run("--version").stdout == run("version").stdout
    assert run("--version").stdout == f"penstock {run_json('version')['version']}\n"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["nothing"],
        ["ls"],
        ["ls", "--what"],
        ["cat", "x", "--slice"],
        ["bench", "x", "--batch-size", "0"],
        ["bench", "x", "--workers", "-1"],
        ["bench", "x", "--workers", "4097"],
        ["bench", "x", "--collate", "magic"],
        ["completion", "tcsh"],
        ["help", "nothing"],
    ],
)
def test_wrong_usage_is_2(args):
    assert run(*args, code=2).stderr.startswith("penstock: ")


@pytest.mark.parametrize("text", ["x", "::0", "", "0,", "1:2:3:4", "...,...", "99999999999999999999"])
def test_wrong_slices_are_wrong_usage(text):
    """Whether or not there is a file."""
    told = run("cat", "missing.npy", "--slice", text, code=2).stderr
    assert told.startswith("penstock: --slice: the slice part ")
    assert "as in Python" in told


@pytest.mark.parametrize("args", [["--jsn"], ["missing.npy", "--jsn"], ["--jsn=1", "missing.npy"]])
def test_unknown_options_are_named(args):
    option = next(word for word in args if word.startswith("-"))
    told = run("ls", *args, code=2).stderr
    assert told.startswith(f"penstock: ls has no option '{option}'")
    assert "did you mean '--json'?" in told or "=" in option


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "name a command\n"),
        (["lss", "x"], "there is no command 'lss'; did you mean 'ls'?\n"),
        (["frob\x1b[2J"], "there is no command 'frob\\x1b[2J'\n"),
        (["--what"], "there is no option '--what'\n"),
    ],
)
def test_what_is_no_command_is_named(args, said):
    told = run(*args, code=2).stderr
    assert told.startswith(f"penstock: {said}")
    assert ", ".join(COMMANDS) in told


@pytest.mark.parametrize("args", [["--help"], *[[command, "--help"] for command in COMMANDS]])
def test_help_is_0(args):
    assert "Usage" in run(*args).stdout


def test_bad_files_are_1_and_named(tmp_path, archive):
    (tmp_path / "foreign.pt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    (tmp_path / "cut.npz").write_bytes(archive.read_bytes()[:100])
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "norows.npy", np.zeros((0, 3)))
    for args in (
        ["ls", tmp_path / "missing.pt"],
        ["ls", tmp_path / "empty"],
        ["ls", tmp_path / "foreign.pt"],
        ["info", tmp_path / "cut.npz"],
        ["cat", archive, "nothing"],
        ["cat", archive],
        ["cat", archive, "a", "--slice=9"],
        ["cat", archive, "a", "--slice=0,0,0"],
        ["bench", tmp_path / "empty"],
        ["bench", tmp_path / "norows.npy", "--rows"],
    ):
        done = run(*args, code=1)
        assert done.stdout == ""
        assert done.stderr.startswith("penstock: ")
        assert done.stderr.count("\n") == 1
        assert str(tmp_path) in done.stderr or "--slice" in str(args)


def test_arguments_cannot_write_to_the_terminal():
    assert "\x1b" not in run("cat", "a", "b", "\x1b[2J", code=2).stderr
    assert "\x1b" not in run("bench", "a", "--collate", "\x1b[2J", code=2).stderr


def test_hostile_names_cannot_write_to_the_terminal(tmp_path):
    header = json.dumps({"\x1b[2Jx\u202e\\": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    for command in ("ls", "info"):
        out = run(command, path).stdout
        assert "\x1b" not in out
        assert "\u202e" not in out
    assert run_json("ls", path)["tensors"][0]["name"] == "\x1b[2Jx\u202e\\"
    assert "\x1b" not in run("cat", path, "\x1b[2J", code=1).stderr


@pytest.mark.parametrize(
    "hidden", "\x80\x9b\u061c\u200e\u200f\u2028\u2029\u202e\u2066\u2067\u2068\u2069\ufeff\ufe0f\U000e0041"
)
def test_characters_that_deceive_are_written_out(tmp_path, hidden):
    name = f"a{hidden}b"
    header = json.dumps({name: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    told = run("ls", path).stdout + run("info", path).stdout + run("cat", path, name + name, code=1).stderr
    assert hidden not in told.replace(str(path), "")
    code = f"\\x{ord(hidden):02x}" if ord(hidden) < 0x100 else f"\\u{{{ord(hidden):04x}}}"
    assert f"a{code}b" in told


def terminal_output(args: list[str], **extra: str) -> bytes:
    """What the command writes when its output is a terminal."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **extra}
    done = subprocess.run([PROGRAM, *args], stdout=follower, stderr=follower, stdin=subprocess.DEVNULL, env=environment)
    os.close(follower)
    out = read_all(leader)
    assert done.returncode == 0
    return out


def test_colour_only_on_a_terminal_that_wants_it(archive):
    assert b"\x1b[1m" in terminal_output(["ls", str(archive)], NO_COLOR="")
    assert b"\x1b" not in terminal_output(["ls", str(archive)], NO_COLOR="1")
    assert b"\x1b" not in terminal_output(["ls", str(archive)], TERM="dumb")
    assert b"\x1b" not in terminal_output(["stats", str(archive)], TERM="dumb"), "nor a line that is replaced"
    assert "\x1b" not in run("ls", archive).stdout


@pytest.mark.parametrize("args", [["ls", DIGITS / "labels.npy"], ["--help"], ["ls", "--help"], ["--version"]])
def test_full_disk_is_an_error(args):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, *args], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "penstock: standard output could not be written: No space left on device\n"


COMPLETE = """
source <("$0" completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_penstock
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(words: list[str]) -> list[str]:
    """What bash offers after these words."""
    done = subprocess.run(["bash", "-c", COMPLETE, PROGRAM, *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completion_offers_what_the_help_names():
    assert set(COMMANDS) <= set(complete(["penstock", ""]))
    assert complete(["penstock", "in"]) == ["info"]
    assert complete(["penstock", "cat", "--sl"]) == ["--slice"]
    assert complete(["penstock", "completion", "z"]) == ["zsh"]
    assert complete(["penstock", "--v"]) == ["--version"]


def test_bash_completion_offers_what_an_option_takes(tmp_path, monkeypatch):
    (tmp_path / "file.npy").touch()
    monkeypatch.chdir(tmp_path)
    assert complete(["penstock", "bench", "--collate", ""]) == ["stack", "pad", "ragged"]
    assert complete(["penstock", "bench", "--collate", "ra"]) == ["ragged"]
    assert complete(["penstock", "bench", "--collate", "=", "ra"]) == ["ragged"]
    assert complete(["penstock", "bench", "--collate", "="]) == ["stack", "pad", "ragged"]
    assert complete(["penstock", "bench", "--workers", ""]) == ["auto"]
    assert complete(["penstock", "bench", "--batch-size", ""]) == []
    assert complete(["penstock", "bench", "--trace", ""]) == ["file.npy"]
    assert complete(["penstock", "bench", "--collate", "pad", ""]) == ["file.npy"]
    assert complete(["penstock", "version", ""]) == []


def test_zsh_completion_is_a_script_for_every_command():
    script = run("completion", "zsh").stdout
    assert script.startswith("#compdef penstock")
    assert all(f"'{command}:" in script for command in COMMANDS)
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n", "-c", script], check=True)


def test_fish_completion_is_a_script_for_every_command():
    script = run("completion", "fish").stdout
    assert all(f"-n __fish_use_subcommand -a {command} -d '" in script for command in COMMANDS)
    assert "__fish_seen_subcommand_from bench' -l collate -x -a 'stack pad ragged' -d '" in script
    assert "__fish_seen_subcommand_from cat' -F\n" in script
    if shutil.which("fish"):
        subprocess.run(["fish", "--no-execute"], input=script, text=True, check=True)


def test_manual_page_names_every_command_and_option():
    page = run("man").stdout
    assert page.startswith(".TH PENSTOCK 1")
    assert all(f".SS {command}\n" in page for command in COMMANDS)
    assert ".B \\-\\-slice SLICE" in page
    assert ".B \\-V, \\-\\-version\n" in page
    assert page.count("\nExamples:\n") == len(COMMANDS)
    if shutil.which("man"):
        shown = subprocess.run(["man", "--warnings=w", "-l", "-"], input=page, capture_output=True, text=True)
        assert shown.returncode == 0
        assert shown.stderr == ""


def environment_of_the_sources() -> set[str]:
    """The variables that the library and the command read."""
    sources = [path for folder in ("src", "cli") for path in (ROOT / folder).rglob("*.cpp")]
    text = "".join(path.read_text() for path in sources)
    return set(re.findall(r'(?:environment|variable|absolute)\("([A-Z_]+)"\)', text)) - {"HOME"}


def test_manual_page_names_the_environment():
    page = run("man").stdout
    environment = page[page.index(".SH ENVIRONMENT") :]
    names = environment_of_the_sources()
    assert {"PENSTOCK_GDS", "PENSTOCK_LIBCUDA", "XDG_CACHE_HOME", "NO_COLOR"} <= names
    for name in (*sorted(names), "TMPDIR"):
        assert f".B {name}\n" in environment
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.cpp"))
    named = set(re.findall(r'"((?:PENSTOCK|AWS|AZURE|HF|GOOGLE|SSL|IDENTITY)_[A-Z0-9_]+)"', sources))
    assert [name for name in sorted(named) if name not in environment] == []


def test_what_an_option_takes_is_said_in_plain_words():
    told = run("man").stdout + run("completion", "zsh").stdout + run("bench", "--help").stdout
    assert ".B \\-\\-batch\\-size N\n" in told
    assert "--batch-size N=32 " in told
    assert "]:stack|pad|ragged:(stack pad ragged)'" in told
    assert "POSITIVE" not in told
    assert "NONNEGATIVE" not in told
    assert "{stack" not in told
