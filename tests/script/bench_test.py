#!/usr/bin/env python3
"""What the benchmark itself decides: which of several floors counts, what stays recorded, whether a file is cold."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import cache
import line
import measure
import run


def program() -> line.Program:
    return line.Program(make=lambda: lambda: None)


class FloorTest(unittest.TestCase):
    def report(self, kind: str) -> dict:
        floors = (line.Floor(["cold", "direct", "8", "/data/x"]), line.Floor(["cold", "cached", "2", "/data/x"]))
        one = line.Line("a line", "GB/s", program(), {}, floor=floors, kind=kind)
        programs = measure.Programs("module", one, Path())
        programs.values[line.OURS] = [2.0, 3.0, 4.0]
        return measure.report(one, programs, {floors[0].name: [1.0, 4.0, 9.0], floors[1].name: [5.0, 5.0, 2.0]})

    def test_the_best_median_of_several_counts(self) -> None:
        rate = self.report("rate")
        self.assertEqual(rate["floor_command"], "cold cached 2")
        self.assertEqual(rate["ratio_to_floor"], 3 / 5)
        self.assertEqual(set(rate["floors"]), {"cold direct 8", "cold cached 2"})
        time = self.report("time")
        self.assertEqual(time["floor_command"], "cold direct 8")
        self.assertEqual(time["ratio_to_floor"], 4 / 3)

    def test_a_line_may_have_one_or_none(self) -> None:
        floor = line.Floor(["read", "2", "/data/x"])
        self.assertEqual(line.Line("a", "s", program(), {}, floor=floor).floors, (floor,))
        self.assertEqual(line.Line("a", "s", program(), {}).floors, ())


class RecordTest(unittest.TestCase):
    def recorded(self, date: str, *, whole: bool) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "new" / "cpu.json"
            facts = {"cpu": "x", "date": "1"}
            run.record(out, facts, [{"name": "a", "of": 1}, {"name": "b", "of": 1}], {"c": "why"}, whole=True)
            lines = [{"name": "c", "of": 2}, {"name": "a", "of": 2}]
            run.record(out, {**facts, "date": date}, lines, {"d": "why"}, whole=whole)
            return json.loads(out.read_text())

    def test_a_part_replaces_its_part_of_the_same_day(self) -> None:
        now = self.recorded("1", whole=False)
        self.assertEqual([(one["name"], one["of"]) for one in now["lines"]], [("a", 2), ("b", 1), ("c", 2)])
        self.assertEqual(now["absent"], {"d": "why"})

    def test_nothing_else_is_kept(self) -> None:
        for date, whole in (("2", False), ("1", True)):
            now = self.recorded(date, whole=whole)
            self.assertEqual(now["machine"]["date"], date)
            self.assertEqual([one["name"] for one in now["lines"]], ["c", "a"])
            self.assertEqual(now["absent"], {"d": "why"})


class CacheTest(unittest.TestCase):
    def made(self, folder: str | None) -> Path:
        file = tempfile.NamedTemporaryFile(dir=folder)  # noqa: SIM115 - closed below
        self.addCleanup(file.close)
        file.write(bytes(3_000_000))
        file.flush()
        return Path(file.name)

    def test_what_was_written_is_cached_until_it_is_dropped(self) -> None:
        path = self.made(None)
        self.assertEqual(cache.cached_share(path), 1)
        try:
            cache.drop(path)
        except line.Absent as reason:
            self.skipTest(str(reason))
        self.assertLessEqual(cache.cached_share(path), cache.MOST_LEFT)

    @unittest.skipUnless(Path("/dev/shm").is_dir(), "no /dev/shm")
    def test_what_stays_is_said(self) -> None:
        path = self.made("/dev/shm")
        with self.assertRaisesRegex(line.Absent, "cannot be dropped"):
            cache.drop(path)

    def test_an_empty_file_is_cold(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            cache.drop(Path(file.name))


if __name__ == "__main__":
    unittest.main()
