#!/usr/bin/env python3
"""script/api_names.py reads headers as they are, and wants each changed name in the changelog's newest section."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
import api_names  # noqa: E402

HEADER = """#define PENSTOCK_SIX 6
namespace penstock {
class Batch {
 public:
  explicit Batch(int size);
  std::int64_t size() const noexcept { return size_; }
  template <class T>
  T value(const std::string& key = "(a)") const;
  bool operator==(const Batch&) const;
  // A comment (of mine).
 private:
  void hidden();
  int size_ = 0;
};
struct Options {
  std::vector<int> keys = {};
  bool raw = false;
};
using Keys = std::vector<int>;
Batch first(const Options& options);
namespace detail {
void inner();
struct Inner {
  int hidden;
};
}  // namespace detail
}  // namespace penstock
"""

CHANGELOG = """# Changelog

## [0.2.0] - unreleased
- `penstock.load(path, verify=False)` reads `--only` what is named; `size` of batches is gone. Words alone: sum.

## [0.1.0] - 2026-12-01
- `sum`.
"""


class HeadersTest(unittest.TestCase):
    def test_names_and_members(self) -> None:
        self.assertEqual(api_names.header_names(HEADER), {"Batch", "Options", "Keys", "first"})
        self.assertEqual(api_names.members(HEADER), {"Batch.size", "Batch.value", "Options.keys", "Options.raw"})
        self.assertEqual(api_names.DEFINED.findall(HEADER), ["PENSTOCK_SIX"])

    def test_headers_of_ours_give_what_they_have(self) -> None:
        found = set(api_names.cpp_lines())
        for line in ("loader.h DataLoader.next", "loader.h LoaderOptions.batch_size", "load.h load", "shape.h Shape"):
            self.assertIn(f"c++ {line}", found)
        self.assertIn("c++ version.h PENSTOCK_VERSION", found)


class UnlistedTest(unittest.TestCase):
    OLD = (
        "python penstock.load(path)",
        "c++ loader.h Batch.size",
        "command penstock ls --sort name|size",
        "python penstock.sum(a)",
    )

    def test_nothing_has_changed(self) -> None:
        self.assertEqual(api_names.unlisted([*self.OLD], [*self.OLD], "# Changelog\n"), [])

    def test_changes_that_the_newest_section_names(self) -> None:
        new = [
            "python penstock.load(path, verify=True)",
            "command penstock ls --sort name|size",
            "python penstock.sum(a)",
            "command penstock ls --only PATTERN ...",
        ]
        self.assertEqual(api_names.unlisted([*self.OLD], new, CHANGELOG), [])

    def test_what_came_went_and_changed_without_a_word(self) -> None:
        new = [
            "python penstock.load(path)",
            "python penstock.sum(a, b)",
            "command penstock ls --sort name",
            "c++ loader.h Batch.sizes",
        ]
        self.assertEqual(
            api_names.unlisted([*self.OLD], new, CHANGELOG),
            [
                "+ c++ loader.h Batch.sizes",
                "+ command penstock ls --sort name",
                "- command penstock ls --sort name|size",
                "- python penstock.sum(a)",
                "+ python penstock.sum(a, b)",
            ],
        )

    def test_an_older_section_does_not_count(self) -> None:
        self.assertEqual(api_names.unlisted(["python penstock.sum(a)"], [], CHANGELOG), ["- python penstock.sum(a)"])

    def test_names(self) -> None:
        for line, name in (
            ("python penstock.torch.Rows.cast(self, a: 'x.y' = 1.5) -> 'Self'", "cast"),
            ("c++ error.h Error.code", "code"),
            ("command penstock -V,--version", "--version"),
            ("command penstock cache", "cache"),
        ):
            self.assertEqual(api_names.name_of(line), name)


if __name__ == "__main__":
    unittest.main()
