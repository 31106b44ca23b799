#!/usr/bin/env python3
"""The layer check can fail: each rule is broken once."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "script"))

from check_layers import check_openings, check_tree


class CheckLayersTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def problems(self, path: str, line: str) -> list[str]:
        """What the check says of a tree with one file of one line."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#pragma once\n{line}\n")
        return list(check_tree(self.root))

    def assert_refused(self, path: str, line: str, reason: str) -> None:
        problems = self.problems(path, line)
        self.assertEqual(len(problems), 1, problems)
        self.assertTrue(problems[0].startswith(f"{path}:2: "), problems)
        self.assertIn(reason, problems[0])

    def test_units_that_include_each_other(self) -> None:
        self.problems("src/io/a.h", "")
        self.problems("src/io/a.cpp", '#include "io/b.h"')
        self.problems("src/io/b.h", '#include "io/c.h"')
        self.problems("src/io/table.cpp", '#include "io/a.h"')
        self.assertEqual(self.problems("src/io/c.h", ""), [])
        problems = self.problems("src/io/c.cpp", '#include "io/a.h"')
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("src/io/a -> src/io/b -> src/io/c -> src/io/a", problems[0])

    def test_downward_includes_pass(self) -> None:
        for path, line in [
            ("src/format/numpy/npy.cpp", '#include "io/read/reader.h"'),
            ("src/format/numpy/npy.cpp", '#include "penstock/tensor.h"'),
            ("src/format/numpy/npy.cpp", "#include <libdeflate.h>"),
            ("src/core/text.cpp", "#include <fmt/format.h>"),
            ("src/io/posix.cpp", "#include <sys/mman.h>"),
            ("src/device/cuda.cpp", "#include <cuda.h>"),
            ("src/io/gds/gds.cpp", "#include <cufile.h>"),
            ("cli/ls.cpp", '#include "format/format.h"'),
            ("include/penstock/tensor.h", "#include <span>"),
        ]:
            with self.subTest(path=path, line=line):
                self.assertEqual(self.problems(path, line), [])
                (self.root / path).unlink()

    def test_upward_include(self) -> None:
        self.assert_refused("src/core/text.cpp", '#include "device/backend.h"', "core may include only core")

    def test_rooms_of_a_layer(self) -> None:
        for path, line, reason in [
            ("src/io/source/file_source.cpp", '#include "io/read/reader.h"', "io/read does not come before"),
            ("src/format/pt/pickle/world.h", '#include "format/pt/zip.h"', "format/pt does not come before"),
            ("src/format/zip/reader.cpp", '#include "format/idx/idx.h"', "format/idx does not come before"),
            ("python/src/call/progress.h", '#include "loader/loader.h"', "python/loader does not come before"),
        ]:
            with self.subTest(path=path, line=line):
                self.assert_refused(path, line, reason)
                (self.root / path).unlink()
        for path, line in [
            ("src/io/read/pread_reader.cpp", '#include "io/source/source.h"'),
            ("src/format/pt/zip.cpp", '#include "format/pt/pickle/world.h"'),
            ("src/format/idx/idx.cpp", '#include "format/zip/reader.h"'),
            ("src/format/zip/reader.cpp", '#include "format/format.h"'),
            ("src/format/formats.cpp", '#include "format/zip/kind.h"'),
            ("python/src/loader/loader.cpp", '#include "call/progress.h"'),
            ("python/src/call/progress.h", '#include "bindings.h"'),
        ]:
            with self.subTest(path=path, line=line):
                self.assertEqual(self.problems(path, line), [])

    def test_the_command_knows_no_format_by_name(self) -> None:
        self.assert_refused("cli/ls.cpp", "return format::kPtFormat;", "cli may know no format by name")
        self.assertEqual(self.problems("cli/ls.cpp", '#include "format/zip/reader.h"'), [])

    def test_rooms_of_the_command(self) -> None:
        self.assert_refused("cli/json/json.h", '#include "cli/info/json_content.h"', "cli/info does not come before")
        self.assertEqual(self.problems("cli/json/json.h", '#include "cli/terminal/terminal.h"'), [])

    def test_data_knows_no_format(self) -> None:
        for line in ['#include "format/pt/pt.h"', "return format::kPtFormat;", 'if (archive.format() == "npy") {']:
            with self.subTest(line=line):
                self.assert_refused("src/data/files/files.cpp", line, "data may know no format")
        for line in ['#include "format/format.h"', '#include "format/text/utf8.h"', "archive.format() << 1;"]:
            with self.subTest(line=line):
                self.assertEqual(self.problems("src/data/files/files.cpp", line), [])

    def test_sideways_include(self) -> None:
        self.assert_refused("src/io/move/engine.cpp", '#include "ops/kernels.h"', "this is ops")

    def test_upward_include_of_a_public_header(self) -> None:
        self.assert_refused("src/io/move/engine.h", '#include "penstock/load.h"', "this is archive")

    def test_public_header_with_third_party(self) -> None:
        self.assert_refused("include/penstock/tensor.h", "#include <fmt/format.h>", "only the standard library")

    def test_public_header_with_posix(self) -> None:
        self.assert_refused("include/penstock/source.h", "#include <unistd.h>", "only the standard library")

    def test_public_header_with_a_private_one(self) -> None:
        self.assert_refused("include/penstock/load.h", '#include "format/format.h"', "only the standard library")

    def test_public_header_without_a_layer(self) -> None:
        problems = self.problems("include/penstock/mystery.h", "#include <span>")
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("add this public header", problems[0])

    def test_cuda_above_device(self) -> None:
        for header in ("cuda.h", "cuda_runtime.h", "nvrtc.h"):
            with self.subTest(header=header):
                self.assert_refused("src/ops/fill.cpp", f"#include <{header}>", "only src/device")

    def test_library_in_the_wrong_layer(self) -> None:
        self.assert_refused("src/data/files.cpp", "#include <CLI/CLI.hpp>", "data may not use this library")

    def test_unknown_header(self) -> None:
        self.assert_refused("src/core/text.cpp", "#include <boost/any.hpp>", "not a header this check knows")

    def test_the_environment_is_read_in_one_place(self) -> None:
        for call in ('std::getenv("HOME")', '::getenv ("HOME")', 'getenv("HOME")'):
            with self.subTest(call=call):
                self.assert_refused("src/io/gds/gds.cpp", f"const char* home = {call};", "core::environment")
        self.assertEqual(
            self.problems("src/io/gds/gds.cpp", 'auto home = core::environment("HOME");  // not getenv()'), []
        )

    def test_include_without_layer(self) -> None:
        self.assert_refused("src/core/text.cpp", '#include "text.h"', "layer/file.h")

    def test_source_outside_layers(self) -> None:
        self.assertEqual(len(self.problems("src/misc/a.cpp", "")), 1)

    def test_headers_without_an_opening(self) -> None:
        self.problems("src/io/a.h", "// What it is for.\n#include <string>\nint a();")
        self.problems("src/io/b.h", "#include <string>\nnamespace a {\nclass B;\n/// What it is.\nclass C {};\n}")
        self.assertEqual(list(check_openings([self.root / "src"], self.root)), [])
        self.problems("src/io/c.h", "namespace a {\nint a();  ///< late\n/// Late.\nint b();\n}")
        problems = list(check_openings([self.root / "src"], self.root))
        self.assertEqual(len(problems), 1, problems)
        self.assertTrue(problems[0].startswith("src/io/c.h: "), problems)


if __name__ == "__main__":
    unittest.main()
