"""Archives that lie (hostile_tars.py): by path and by URL, as a dataset, a stream, a file, in penstock.torch and by the
command, the same samples and the same errors."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from hostile_tars import HOSTILE, Case
from servers import ROOT

import penstock

PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
every_case = pytest.mark.parametrize("name", HOSTILE)


@pytest.fixture
def lies(proxy, settings, tmp_path):
    """Where a case lies: a path and a URL."""
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=5, XDG_CACHE_HOME=tmp_path / "cache")

    def put(name: str) -> tuple[str, str]:
        content = HOSTILE[name].content
        proxy.origin.objects[f"/{name}.tar"] = content
        path = tmp_path / f"{name}.tar"
        path.write_bytes(content)
        return str(path), f"{proxy.url}/{name}.tar"

    return put


def without_quotes(text: str) -> str:
    """Without what is quoted of files here alone, as a server may have answered anything."""
    return re.sub(r" \([0-9a-f ]{20,}\)| that begins '.*?'", "", text)


class Seen:
    """What came of a case: keys and codes as the table has them, and what the errors say, without the place."""

    def __init__(self, where: str) -> None:
        self.where, self.words, self.errors = where, [], []

    def refused(self, error: penstock.Error) -> Seen:
        self.words.append(f"!{error.code}")
        self.errors.append(without_quotes(str(error).replace(self.where, "HERE")))
        return self

    def __str__(self) -> str:
        return " ".join(self.words)


def indexed(where: str, dataset: object) -> Seen:
    seen = Seen(where)
    try:
        count = len(dataset)
    except penstock.Error as error:
        return seen.refused(error)
    for i in range(count):
        try:
            seen.words.append(dataset[i]["__key__"])
        except penstock.Error as error:
            seen.refused(error)
    return seen


def streamed(where: str) -> Seen:
    seen = Seen(where)
    try:
        for sample in penstock.stream(penstock.shards(where)):
            seen.words.append(sample["__key__"])
    except penstock.Error as error:
        seen.refused(error)
    return seen


def loaded(where: str) -> Seen:
    seen = Seen(where)
    try:
        penstock.load(where)
    except penstock.Error as error:
        return seen.refused(error)
    seen.words.append("ok")
    return seen


@every_case
def test_samples_and_errors_by_path_and_url(lies, name):
    case = HOSTILE[name]
    path, url = lies(name)
    seen = {where: indexed(where, penstock.shards(where, index=False)) for where in (path, url)}
    assert str(seen[path]) == str(seen[url]) == case.indexed
    assert seen[path].errors == seen[url].errors
    seen = {where: streamed(where) for where in (path, url)}
    assert str(seen[path]) == str(seen[url]) == case.streamed
    assert seen[path].errors == seen[url].errors
    seen = {where: loaded(where) for where in (path, url)}
    assert str(seen[path]) == str(seen[url]) == case.file
    assert seen[path].errors == seen[url].errors


@every_case
def test_samples_and_errors_in_torch(lies, name):
    pt = pytest.importorskip("penstock.torch")
    path, url = lies(name)
    expected = indexed(path, penstock.shards(path, index=False))
    for where in (path, url):
        seen = indexed(where, pt.Shards(where, index=False))
        assert (str(seen), seen.errors) == (HOSTILE[name].indexed, expected.errors)


def run(*args: object) -> tuple[int, str]:
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, timeout=120, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


def has_error(output: str, where: str, error: str) -> bool:
    return error.replace("HERE", where) in without_quotes(output)


@every_case
def test_the_command_takes_a_file_as_load_does(lies, name, tmp_path):
    path, url = lies(name)
    (word, *_), (error, *_) = (seen := loaded(path)).words, [*seen.errors, ""]
    for where in (path, url):
        for command in (["ls"], ["info"], ["convert", tmp_path / f"{name}.pt", "--force"]):
            code, output = run(command[0], where, *command[1:])
            assert (code == 0) == (word == "ok"), (command, output)
            assert has_error(output, where, error), (command, output)


def test_verify_names_each_of_them(lies):
    for places in zip(*(lies(name) for name in HOSTILE), strict=True):
        code, output = run("verify", *places)
        assert code == 1
        lines = output.splitlines()
        for where, case in zip(places, HOSTILE.values(), strict=True):
            told = [line for line in lines if line.startswith(f"bad: {where}")]
            assert len(told) == (case.file != "ok"), (where, told)


def is_packed(case: Case) -> bool:
    return case.indexed != "" and "!" not in case.indexed


@every_case
def test_pack_takes_all_samples_or_says_why(lies, name, tmp_path):
    for number, where in enumerate(lies(name)):
        code, output = run("pack", where, tmp_path / f"packed{number}", "--format", "tar")
        assert (code == 0) == is_packed(HOSTILE[name]), output
        assert code == 0 or where in output or HOSTILE[name].indexed == "", output
