#!/usr/bin/env python3
"""The table of script/third_parties.py names what sources include, CMake links, programs load, and built files need."""

import importlib.util
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"script/{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


table = script("third_parties")
layers = script("check_layers")
LIBRARIES = {library for part in table.PARTS for library in part.libraries}
TARGETS = {target for part in table.PARTS for target in part.targets}
BUILD_TOOLS = {"Python"}  # Python's own headers; an interpreter is what loads the module


def sources() -> list[Path]:
    return [path for folder in ("src", "cli", "python", "include") for path in (ROOT / folder).rglob("*.[ch]*")]


def cmake_files() -> list[Path]:
    folders = ("src", "cli", "python", "cmake")
    return [ROOT / "CMakeLists.txt", *(file for folder in folders for file in (ROOT / folder).rglob("CMakeLists.txt"))]


class TableTest(unittest.TestCase):
    def test_headers_that_sources_may_include(self) -> None:
        """script/check_layers.py refuses every other one."""
        of_others = {name for name in layers.THIRD_PARTY if name != "Python.h"}
        of_others |= {
            name for names in layers.ADAPTERS.values() for name in ([names] if isinstance(names, str) else names)
        }
        known = tuple(part.headers for part in table.PARTS if part.headers)
        self.assertEqual([name for name in sorted(of_others) if not name.startswith(known)], [])

    def test_what_cmake_finds_and_links(self) -> None:
        text = "\n".join(path.read_text() for path in cmake_files())
        found = set(re.findall(r"find_package\((\w+)", text)) | set(re.findall(r"\b(?!std::)\w+::[\w-]+", text))
        ours = {"Penstock", "Penstock::penstock"}
        self.assertEqual(found - TARGETS - ours - BUILD_TOOLS, set())

    def test_what_is_opened_at_run_time(self) -> None:
        text = "\n".join(path.read_text() for path in sources() if path.suffix == ".cpp")
        named = set(re.findall(r'"(lib\w+)\.so', text))
        self.assertEqual(named - LIBRARIES, set())
        self.assertLessEqual({"libcurl", "libzstd", "libcuda", "libcublas", "libcufile"}, named)

    def test_what_built_files_need(self) -> None:
        built = [ROOT / "build/release/bin/penstock", *ROOT.glob(".venv/lib/python*/site-packages/penstock/_core*.so")]
        built = [path for path in built if path.exists()]
        if not built or not shutil.which("readelf"):
            self.skipTest("nothing is built here")
        for path in built:
            shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
            needed = set(re.findall(r"NEEDED.*\[(lib\w+\+*|ld-[\w-]+)\.so", shown))
            self.assertTrue(needed)
            self.assertEqual(needed - LIBRARIES, set(), path)

    def test_licences_of_what_is_inside_travel_with_it(self) -> None:
        text = (ROOT / "THIRD_PARTY_LICENSES").read_text()
        for part in table.PARTS:
            if part.how in ("compiled in", "static"):
                self.assertIn(f"{part.name}: {part.licence}\n    Copyright (c) {part.holder}\n", text)
        self.assertIn("THIRD_PARTY_LICENSES", (ROOT / "pyproject.toml").read_text())
        self.assertIn("THIRD_PARTY_LICENSES", (ROOT / "cmake/PenstockPackage.cmake").read_text())


class DocumentTest(unittest.TestCase):
    def test_each_part_is_a_package_with_a_relation(self) -> None:
        document = table.spdx("0.1.0", 1796000000)
        self.assertEqual((document["spdxVersion"], document["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
        self.assertEqual(document["creationInfo"]["created"], "2026-11-30T00:53:20Z")
        names = {package["SPDXID"]: package for package in document["packages"]}
        self.assertEqual(len(names), len(table.PARTS) + 1)
        related = {
            end for one in document["relationships"] for end in (one["spdxElementId"], one["relatedSpdxElement"])
        }
        self.assertEqual(related - {"SPDXRef-DOCUMENT"}, set(names))
        for package in document["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for field in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "copyrightText"):
                self.assertTrue(package[field], (package["name"], field))

    def test_is_the_same_twice(self) -> None:
        self.assertEqual(table.spdx("0.1.0", 5), table.spdx("0.1.0", 5))


if __name__ == "__main__":
    unittest.main()
