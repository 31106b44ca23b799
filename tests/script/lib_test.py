#!/usr/bin/env python3
"""What all scripts share (script/lib.sh): bad conditions are told in one line, and Ctrl-C ends a script."""

import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "script/lib.sh"


def program(text: str) -> list[str]:
    # The library takes the project's root from where it lies, and its messages the script's name from $0.
    return ["bash", "-c", f'. "{LIBRARY}"\n{text}', "script"]


def run(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    without = {name: value for name, value in os.environ.items() if name != "CMAKE_BUILD_PARALLEL_LEVEL"}
    return subprocess.run(
        program(text), env={**without, **environment}, capture_output=True, text=True, check=False, timeout=60
    )


def end_by_interruption(text: str) -> tuple[int, str]:
    """Starts it, sends Ctrl-C to its group of processes once it has said "ready", and gives how it ended."""
    # A shell without job control has what it starts ignore SIGINT, and bash cannot take that back.
    process = subprocess.Popen(
        program(text),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line == "ready\n":
            break
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


class LibraryTest(unittest.TestCase):
    def test_jobs_are_as_many_as_processors_and_gibibytes_at_most(self) -> None:
        text = "nproc() { echo %d; }; awk() { echo %d; }; cat() { echo %s; }; jobs_here"
        for processors, gibibytes, limit, jobs in (
            (2, 8, "max", 2),
            (16, 4, "max", 4),
            (16, 64, str(3 << 30), 3),
            (1, 4, "max", 1),
            (4, 0, "max", 1),
            (8, 8, str(1 << 62), 8),
        ):
            with self.subTest(processors=processors, gibibytes=gibibytes, limit=limit):
                self.assertEqual(run(text % (processors, gibibytes, limit)).stdout, f"{jobs}\n")

    def test_jobs_that_the_user_names_stay(self) -> None:
        self.assertEqual(run('echo "$CMAKE_BUILD_PARALLEL_LEVEL"', CMAKE_BUILD_PARALLEL_LEVEL="7").stdout, "7\n")

    def test_a_disk_that_is_too_full_is_told_in_one_line(self) -> None:
        result = run('require_free 1 "this"; require_free 999999999999 "the stage"')
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^script: the stage needs 999999999999 MiB of free disk for .*\n$")

    def test_a_command_that_ends_in_its_own_way_at_an_interruption_ends_the_script(self) -> None:
        # As pytest and ninja do: they exit with a status, so that bash alone would go on with what follows.
        own_way = "bash -c 'trap \"exit 2\" INT; echo ready; while :; do sleep 0.1; done'"
        for text in (f"{own_way} || true; echo went on", f"with_heartbeat it {own_way} || true; echo went on"):
            with self.subTest(text=text):
                status, said = end_by_interruption(text)
                self.assertNotIn("went on", said)
                self.assertNotEqual(status, 0)

    def test_behind_a_command_with_a_heartbeat_an_interruption_still_ends_the_script(self) -> None:
        started = time.monotonic()
        status, said = end_by_interruption("with_heartbeat it true; echo ready; sleep 30 || true; echo went on")
        self.assertNotIn("went on", said)
        self.assertNotEqual(status, 0)
        self.assertLess(time.monotonic() - started, 25)


if __name__ == "__main__":
    unittest.main()
