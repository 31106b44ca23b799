"""Help, by any of its ways: its lines fit the terminal, and its examples run."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from test_cli import COMMANDS, PROGRAM, run


def help_of(*words: str, columns: int | str = 80) -> str:
    environment = os.environ | {"COLUMNS": str(columns)}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True, env=environment).stdout


def examples_of(command: str) -> list[str]:
    text = help_of(command, "--help")
    return [line[2:] for line in text[text.index("\nExamples:\n") :].splitlines()[2:] if line]


@pytest.mark.parametrize("columns", [20, 60, 80, 120])
@pytest.mark.parametrize("command", [*COMMANDS, None])
def test_lines_fit_the_terminal(command, columns):
    wide, narrow = (help_of(*([command] if command else []), "--help", columns=width) for width in (120, columns))
    examples = examples_of(command) if command else []
    too_long = [line for line in narrow.splitlines() if len(line) > columns and line.strip() not in examples]
    # A word that is longer than the line, such as --collate stack|pad|ragged, stays whole.
    assert [line for line in too_long if " " in line.strip()] == []
    assert narrow.split() == wide.split()


@pytest.mark.parametrize("columns", ["", "0", "x", "-3", "99999999999999999999999", "1"])
def test_odd_widths_are_widths_that_can_be_read(columns):
    assert help_of("--help", columns=columns).split() == help_of("--help").split()


def test_help_of_a_command_is_its_help():
    assert run("help", "cat").stdout == run("cat", "--help").stdout
    assert run("help").stdout == run("--help").stdout
    assert run("-V").stdout == run("--version").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_three_examples(command):
    examples = examples_of(command)
    assert len(examples) == 3
    assert all(re.search(r"\bpenstock\b", example) for example in examples)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sample")
    run("sample", path)
    return path


# Those of uploads need a store: tests/remote/test_versions.py has one.
@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("completion", "man", "doctor", "sample", "uploads")]
)
def test_examples_run(folder, command, tmp_path):
    path = {"PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}"}
    for example in examples_of(command):
        done = subprocess.run(
            ["bash", "-c", example], cwd=folder, env=os.environ | path, capture_output=True, text=True
        )
        # What differs is an answer of diff.
        assert done.returncode in ((0, 1) if command == "diff" else (0,)), (example, done.stderr)
        assert done.stderr == "" or command in ("convert", "bench"), example


def test_json_of_all_commands_is_what_their_help_says():
    commands = json.loads(help_of("help", "--json"))
    assert [command["name"] for command in commands] == list(COMMANDS)
    for command in commands:
        text = " ".join(help_of(command["name"], "--help", columns=120).split())
        assert command["summary"] in text
        assert command["examples"] == examples_of(command["name"])
        for option in command["options"]:
            assert all(name in text for name in option["names"])
            assert option["names"] or option["value"]
        assert json.loads(help_of("help", command["name"], "--json")) == command
    (only,) = (option for option in commands[0]["options"] if "--only" in option["names"])
    assert only["value"].startswith("PATTERN")
