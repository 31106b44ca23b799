#!/usr/bin/env python3
"""The slope that bench/growth.py prints tells linear work from more, whatever a call costs besides."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import growth

NUMBERS = [10, 32, 100, 316, 1_000, 3_162, 10_000]


class SlopeTest(unittest.TestCase):
    def slope(self, cost) -> float:
        return growth.slope([(number, cost(number)) for number in NUMBERS])

    def test_powers_are_found(self) -> None:
        for power in (0.5, 1, 1.15, 1.5, 2):
            self.assertAlmostEqual(self.slope(lambda n, p=power: 1e-6 * n**p), power, delta=0.09)

    def test_what_a_call_costs_at_least_hides_nothing(self) -> None:
        for least in (0, 1e-5, 1e-3):
            self.assertAlmostEqual(self.slope(lambda n, c=least: c + 1e-6 * n), 1, delta=0.01)
            self.assertLess(self.slope(lambda n, c=least: c + 1e-6 * n), growth.LIMIT)
            self.assertGreater(self.slope(lambda n, c=least: c + 1e-6 * n**2), 1.8)

    def test_a_quadratic_part_of_linear_work_is_found(self) -> None:
        self.assertGreater(self.slope(lambda n: 1e-6 * n + 1e-9 * n**2), growth.LIMIT)

    def test_sorting_is_linear_enough(self) -> None:
        self.assertLess(self.slope(lambda n: 1e-3 + 1e-6 * n * len(bin(n))), 1.2)

    def test_what_does_not_grow_has_no_slope(self) -> None:
        self.assertAlmostEqual(self.slope(lambda n: 1e-3), 0, delta=0.01)
        self.assertLess(self.slope(lambda n: 1e-3 + 1e-9 * n), 0.1)

    def test_one_disturbed_point_changes_little(self) -> None:
        points = [(number, 1e-6 * number) for number in NUMBERS]
        points[4] = (points[4][0], points[4][1] * 3)
        self.assertAlmostEqual(growth.slope(points), 1, delta=0.1)


class CountTest(unittest.TestCase):
    def test_three_numbers_over_two_orders_of_magnitude_are_counted(self) -> None:
        self.assertEqual(
            growth.counted_numbers([100, 215, 464, 1000, 2154, 4642, 10_000, 100_000], 10**9), [100, 1000, 10_000]
        )
        self.assertEqual(growth.counted_numbers([2, 4, 9], 10**9), [2, 9])


class MeasureTest(unittest.TestCase):
    def test_each_number_has_a_folder_and_larger_ones_may_be_left_out(self) -> None:
        seen = []

        def make(number: int, folder: Path) -> growth.Call:
            self.assertEqual(list(folder.iterdir()), [])
            seen.append(number)
            return lambda: None

        with tempfile.TemporaryDirectory() as folder:
            points = growth.measured(growth.Sweep("a/sweep of 3", [1, 10, 100], make), Path(folder), 10)
        self.assertEqual(seen, [1, 10])
        self.assertEqual([number for number, _ in points], [1, 10])


if __name__ == "__main__":
    unittest.main()
