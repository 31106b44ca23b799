#!/usr/bin/env python3
"""The check of counts can fail: each rule is broken once, with made-up counts."""

import copy
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from count_compare import BRK_MORE, TOLERANCE, comparable, compare
from count_tools import CannotRunError, count_calls, instructions_in, run

BUILT = {
    "compiler": "GCC 12.2.0",
    "flags": "-O3 -DNDEBUG",
    "libc": "glibc 2.36",
    "machine": "x86_64",
    "avx2": True,
}
RECORDED = {
    "built": BUILT,
    "workloads": {
        "small .pt": {"items": 256, "instructions": 1_000_000, "calls": {"open": 256, "readv": 256, "mmap": 2}},
        "listing": {"items": 2000, "instructions": 500_000, "calls": {"getdents64": 40}},
    },
}


class CompareTest(unittest.TestCase):
    def setUp(self) -> None:
        self.now = copy.deepcopy(RECORDED)
        self.pt = self.now["workloads"]["small .pt"]

    def assert_refused(self, *texts: str) -> None:
        problems = compare(RECORDED, self.now)
        self.assertEqual(len(problems), 1, problems)
        for text in (*texts, "script/bench counts --record", "find out why"):
            self.assertIn(text, problems[0])

    def test_the_same_counts_pass(self) -> None:
        self.assertEqual(compare(RECORDED, self.now), [])

    def test_fewer_pass(self) -> None:
        self.pt.update(instructions=10, calls={"open": 1})
        self.assertEqual(compare(RECORDED, self.now), [])

    def test_instructions_within_the_tolerance_pass(self) -> None:
        self.pt["instructions"] = round(1_000_000 * (1 + TOLERANCE))
        self.assertEqual(compare(RECORDED, self.now), [])

    def test_more_instructions(self) -> None:
        self.pt["instructions"] = 1_100_000
        self.assert_refused("small .pt: 4,297 instructions per item", "recorded 3,906", "1.100x", "allowed 1.05x")

    def test_one_more_call(self) -> None:
        self.pt["calls"]["open"] += 1
        self.assert_refused("small .pt: 257 calls of open for 256 items", "recorded 256", "1.004x")

    def test_a_new_call(self) -> None:
        self.pt["calls"]["fstat"] = 256
        self.assert_refused("small .pt: 256 calls of fstat", "recorded 0: new")

    def test_steps_of_the_heap_that_depend_on_the_system(self) -> None:
        self.pt["calls"]["brk"] = BRK_MORE
        self.assertEqual(compare(RECORDED, self.now), [])
        self.pt["calls"]["brk"] += 1
        self.assert_refused("small .pt: 3 calls of brk", "recorded 0: new, 2 more allowed")

    def test_other_calls_of_the_allocator_have_no_such_room(self) -> None:
        self.pt["calls"]["mmap"] += 1
        self.assert_refused("small .pt: 3 calls of mmap", "none more allowed")

    def test_a_workload_that_is_missing(self) -> None:
        del self.now["workloads"]["listing"]
        self.assert_refused("listing: recorded, but not counted now")

    def test_a_workload_that_is_new(self) -> None:
        self.now["workloads"]["rows"] = {"items": 1, "instructions": 1, "calls": {}}
        self.assert_refused("rows: counted, but not recorded")

    def test_another_number_of_items(self) -> None:
        self.pt["items"] = 512
        self.assert_refused("recorded for 256 items, now there are 512")

    def test_every_growth_is_named(self) -> None:
        self.pt["instructions"] *= 2
        self.pt["calls"].update(open=512, close=1)
        self.assertEqual(len(compare(RECORDED, self.now)), 3)


class OtherBuildTest(unittest.TestCase):
    """Another compiler or C library: only what the kernel is asked for is compared."""

    def setUp(self) -> None:
        self.now = copy.deepcopy(RECORDED)
        self.now["built"]["compiler"] = "GCC 13.3.0"
        self.pt = self.now["workloads"]["small .pt"]

    def test_the_reason_is_named(self) -> None:
        self.assertEqual(comparable(BUILT, self.now["built"]), "recorded with compiler GCC 12.2.0, this is GCC 13.3.0")
        self.assertEqual(comparable(BUILT, BUILT), "")

    def test_instructions_are_not_compared(self) -> None:
        self.pt["instructions"] *= 2
        self.assertEqual(compare(RECORDED, self.now), [])

    def test_calls_are(self) -> None:
        self.pt["calls"]["readv"] += 1
        self.assertEqual(len(compare(RECORDED, self.now)), 1)

    def test_but_not_those_of_the_allocator(self) -> None:
        self.pt["calls"].update(mmap=20, munmap=20)
        self.assertEqual(compare(RECORDED, self.now), [])


class OneToolTest(unittest.TestCase):
    """What one tool alone counted is compared."""

    def setUp(self) -> None:
        self.now = copy.deepcopy(RECORDED)

    def test_without_valgrind(self) -> None:
        for counts in self.now["workloads"].values():
            del counts["instructions"]
        self.assertEqual(compare(RECORDED, self.now), [])
        self.now["workloads"]["listing"]["calls"]["getdents64"] += 1
        self.assertEqual(len(compare(RECORDED, self.now)), 1)

    def test_without_strace(self) -> None:
        for counts in self.now["workloads"].values():
            del counts["calls"]
        self.assertEqual(compare(RECORDED, self.now), [])
        self.now["workloads"]["listing"]["instructions"] *= 2
        self.assertEqual(len(compare(RECORDED, self.now)), 1)


class ToolsTest(unittest.TestCase):
    def test_calls_between_the_marks(self) -> None:
        trace = """
10 openat(AT_FDCWD, "before", O_RDONLY) = 3
10 write(-1, "counts: begin", 13) = -1 EBADF (Bad file descriptor)
10 openat(AT_FDCWD, "data/pt", O_RDONLY) = 3
10 newfstatat(3, "", {st_mode=S_IFREG|0644, st_size=8}, AT_EMPTY_PATH) = 0
10 fstat(3, {st_mode=S_IFREG|0644, st_size=8}) = 0
10 openat(AT_FDCWD, "/sys/fs/cgroup/cpu.max", O_RDONLY) = 5
10 read(5, "max 100000", 4096) = 10
10 close(5) = 0
11 readv(3,  <unfinished ...>
10 close(3) = 0
11 <... readv resumed>[{iov_base="PK", iov_len=2}], 1) = 2
10 clock_gettime(CLOCK_MONOTONIC, {tv_sec=1, tv_nsec=0}) = 0
10 clock_gettime(CLOCK_THREAD_CPUTIME_ID, {tv_sec=1, tv_nsec=0}) = 0
10 openat(AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY|O_CLOEXEC) = 4
10 read(4, "1 2 3", 96) = 5
10 close(4) = 0
10 close(4) = 0
--- SIGCHLD {si_signo=SIGCHLD} ---
10 write(-1, "counts: end", 11) = -1 EBADF (Bad file descriptor)
10 openat(AT_FDCWD, "after", O_RDONLY) = 3
"""
        expected = {"clock_gettime": 1, "close": 2, "open": 1, "readv": 1, "stat": 2}
        self.assertEqual(count_calls(trace.splitlines()), expected)

    def test_the_sum_of_a_profile(self) -> None:
        self.assertEqual(instructions_in("events: Ir\nsummary: 1234\n\nfn=(1) a\n"), 1234)
        with self.assertRaises(CannotRunError):
            instructions_in("events: Ir\n")

    def test_a_program_that_fails_is_named_with_its_last_words(self) -> None:
        with self.assertRaisesRegex(CannotRunError, "^sh: Operation not permitted$"):
            run(["/bin/sh", "-c", "echo first >&2; echo Operation not permitted >&2; exit 1"])


if __name__ == "__main__":
    unittest.main()
