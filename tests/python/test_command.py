"""The command that pip installs does what the program of the C++ build does, with the same output and exit codes.

It runs inside of an interpreter, which has its own ways with signals, names of files, the locale and stdout.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(sysconfig.get_path("scripts")) / "penstock"
PROGRAM = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock"
LAUNCHER = ROOT / "python" / "command" / "launcher.py"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """What both commands run in: an array, one whose name is no UTF-8, and a file that is none."""
    path = tmp_path_factory.mktemp("command")
    np.savez(path / "a.npz", x=np.arange(6.0).reshape(2, 3), text=np.array(["é"]))
    np.save(path / "long.npy", np.arange(100_000.0))
    shutil.copy(path / "long.npy", os.fsencode(path) + b"/\xff\xe9.npy")
    (path / "foreign.npy").write_bytes(b"no array")
    return path


def both(folder, line: str, **environment: str) -> subprocess.CompletedProcess:
    """What the installed command gives for a line of the shell, in which $P is the command: the same as the program."""
    done = []
    for command in (INSTALLED, PROGRAM):
        variables = os.environ | environment | {"P": str(command)}
        done.append(subprocess.run(["bash", "-c", line], cwd=folder, env=variables, capture_output=True, timeout=60))
    ours, theirs = ((each.returncode, each.stdout, each.stderr.replace(bytes(PROGRAM), b"")) for each in done)
    assert ours == theirs
    return done[0]


def test_the_installed_command_is_a_script_of_this_interpreter():
    assert INSTALLED.read_bytes().startswith(b"#!" + os.fsencode(sys.executable))


@pytest.mark.parametrize(
    "words", ["", "help", "--help", "version", "--version", "help ls", "info a.npz", "cat a.npz x"]
)
def test_output(folder, words):
    done = both(folder, f"$P {words}")
    assert done.stderr == b"" or not words


@pytest.mark.parametrize(
    ("words", "code"), [("ls nope.npy", 1), ("info foreign.npy", 1), ("ls --nonsense", 2), ("diff nope a.npz", 2)]
)
def test_errors(folder, words, code):
    done = both(folder, f"$P {words}")
    assert done.returncode == code
    assert done.stderr


def test_names_that_are_no_utf8(folder):
    assert both(folder, r"$P cat $'\xff\xe9.npy' --slice 3:5").stdout == b"3 4\n"
    assert both(folder, r"$P ls $'\xff'", LC_ALL="C").returncode == 1


@pytest.mark.parametrize("redirection", ["< long.npy", "<&-", "</dev/null"])
def test_standard_input(folder, redirection):
    both(folder, f"$P hash - {redirection}")


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["ls long.npy", "cat long.npy", "ls nope"])
def test_output_that_goes_nowhere(folder, words, redirection):
    both(folder, f"$P {words} {redirection}")


@pytest.mark.parametrize("words", ["cat long.npy", "--help"])
def test_a_reader_that_has_enough(folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([INSTALLED, *words.split()], cwd=folder, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.parametrize("locale", ["", "LC_CTYPE=C", "LC_CTYPE=C.UTF-8", "LANG=C.UTF-8", "LC_ALL=C"])
def test_the_locale_is_the_users(folder, locale):
    """An interpreter sets LC_CTYPE where there is none, and trees and bars are drawn by it."""
    tree = both(folder, f"unset LC_ALL LC_CTYPE LANG; {locale} $P info a.npz").stdout.decode()
    assert ("\u2500" in tree) == ("UTF-8" in locale)


def test_output_is_buffered_whatever_pythons_is(folder):
    def writes(command) -> int:
        """Each read from a pipe of packets gives what one write wrote."""
        reader, writer = os.pipe2(os.O_DIRECT)
        variables = os.environ | {"PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen([command, "help", "convert"], stdout=writer, env=variables)
        os.close(writer)
        count = 0
        while os.read(reader, 1 << 16):
            count += 1
        os.close(reader)
        assert process.wait(60) == 0
        return count

    assert writes(INSTALLED) <= max(2, writes(PROGRAM))


@pytest.fixture
def waiting(folder):
    """A command that has begun, and waits for more of its standard input."""
    processes = []

    def begin(**how) -> subprocess.Popen:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen([INSTALLED, "hash", "-"], cwd=folder, **pipes, **how))
        # More than a pipe holds: when all of it is written, somebody reads.
        processes[-1].stdin.write((folder / "long.npy").read_bytes()[:-1])
        processes[-1].stdin.flush()
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it(waiting, number):
    process = waiting(preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))  # else as nohup leaves it
    process.send_signal(number)
    assert process.wait(60) == -number
    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_a_signal_that_is_ignored_stays_so(waiting, folder):
    process = waiting(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate((folder / "long.npy").read_bytes()[-1:], timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert (
        out.split()[0]
        == subprocess.run([PROGRAM, "hash", "long.npy"], cwd=folder, capture_output=True).stdout.split()[0]
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_long_command_leaves_nothing(tmp_path, number):
    files = tmp_path / "files"
    files.mkdir()
    for i in range(100):
        np.save(files / f"{i:03}.npy", np.full(250_000, i, np.float32))
    # Where the signal comes too late, on a busy machine, the next attempt begins anew.
    for attempt in range(10):
        target = tmp_path / f"shards{attempt}"
        process = subprocess.Popen([INSTALLED, "pack", files, target, "--shard-mb", "1"], stderr=subprocess.PIPE)
        while process.poll() is None and not list(tmp_path.glob("shards*.tmp")):
            time.sleep(0.001)
        process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
        if process.returncode != 0:
            break
        shutil.rmtree(target)
    assert (process.returncode, errors) == (-number, b"")
    assert os.listdir(tmp_path) == ["files"]


def launched(*options: str, path: Path | None = None) -> subprocess.CompletedProcess:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path is not None:
        variables["PYTHONPATH"] = str(path)
    command = [sys.executable, *options, LAUNCHER, "version"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)


def test_a_package_that_is_missing_or_broken_is_said(tmp_path):
    missing = launched("-I", "-S")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert (
        missing.stderr == f"penstock: {sys.executable} finds no penstock-tensors; install that with this interpreter\n"
    )
    shutil.copytree(ROOT / "python" / "penstock", tmp_path / "penstock")
    broken = launched(path=tmp_path)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert broken.stderr.startswith(f"penstock: {tmp_path / 'penstock'} has no compiled module")


def test_without_cli11_the_command_says_that_it_was_not_built(tmp_path):
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock" / "__init__.py").touch()
    sources = [LAUNCHER.with_name(name) for name in ("module.cpp", "absent.cpp")]
    includes = [f"-I{ROOT}", f"-I{sysconfig.get_path('include')}"]
    target = tmp_path / "penstock" / f"_core{SUFFIX}"
    subprocess.run(
        [os.environ.get("CXX", "g++"), "-std=c++20", "-shared", "-fPIC", *includes, *sources, "-o", target], check=True
    )
    done = launched(path=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("penstock: this package was built without the command, because CLI11 was not there.")
    assert done.stderr.count("\n") == 1
