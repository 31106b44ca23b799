"""What is said of versions and dependencies in the packages' files is what CMake and pyproject say."""

import json
import re
from pathlib import Path

import pytest

from penstock.torch import _private

ROOT = Path(__file__).resolve().parents[2]
CMAKE = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cli" / "CMakeLists.txt").read_text()
PYPROJECT = (ROOT / "pyproject.toml").read_text()
RECIPE = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
PORT = ROOT / "packaging" / "vcpkg" / "penstock"
MANIFEST = json.loads((PORT / "vcpkg.json").read_text())

VERSION = re.search(r"project\(Penstock VERSION ([0-9.]+)", CMAKE)[1]
SUMMARY = re.search(r'DESCRIPTION "([^"]+)"', CMAKE)[1]

# What CMake looks for, by the names that Debian, vcpkg and conda-forge have for it.
NAMES = {
    "Eigen3": ("libeigen3-dev", "eigen3", "eigen"),
    "ZLIB": ("zlib1g-dev", "zlib", "zlib"),
    "Libdeflate": ("libdeflate-dev", "libdeflate", "libdeflate"),
    "fmt": ("libfmt-dev", "fmt", "fmt"),
    "nlohmann_json": ("nlohmann-json3-dev", "nlohmann-json", "nlohmann_json"),
    "xxhash.h": ("libxxhash-dev", "xxhash", "xxhash"),
    "CLI11": ("libcli11-dev", "cli11", "cli11"),
}
OF_THE_SYSTEM = {"Threads"}
FOR_THE_COMMAND = {"CLI11"}


def sought() -> set[str]:
    return set(re.findall(r"find_package\((\w+)", CMAKE)) | set(re.findall(r"find_path\(\w+ (\S+) REQUIRED", CMAKE))


def names(column: int, of: set[str]) -> set[str]:
    return {NAMES[name][column] for name in of}


def recipe_list(section: str) -> list[str]:
    """The lines of a list in the recipe, which is YAML once conda has filled in its templates."""
    block = re.search(rf"^  {section}:\n((?:    - .*\n)+)", RECIPE, re.MULTILINE)[1]
    return [line.removeprefix("    - ") for line in block.splitlines()]


def test_what_cmake_looks_for_has_a_name_everywhere():
    assert sought() - OF_THE_SYSTEM == set(NAMES)


def test_debian_names_are_those_that_bootstrap_and_the_readme_tell():
    bootstrap = (ROOT / "script" / "bootstrap").read_text()
    readme = (ROOT / "README.md").read_text()
    for package in names(0, set(NAMES)):
        assert package in bootstrap
    for package in names(0, set(NAMES) - FOR_THE_COMMAND):
        assert package in readme


def test_the_debian_package_wants_what_users_of_the_library_link():
    config = (ROOT / "cmake" / "PenstockConfig.cmake.in").read_text()
    wanted = set(re.findall(r"find_dependency\((\w+)\)", config)) - OF_THE_SYSTEM
    said = re.search(r'DEVELOPMENT_PACKAGE_DEPENDS "([^"]+)"', (ROOT / "cmake" / "PenstockPackage.cmake").read_text())[
        1
    ]
    assert set(said.split(", ")) == names(0, wanted)


def test_the_port_has_the_version_and_dependencies():
    assert MANIFEST["name"] == PORT.name
    assert MANIFEST["version"] == VERSION
    assert MANIFEST["description"] == SUMMARY
    plain = [each for each in MANIFEST["dependencies"] if isinstance(each, str)]
    hosts = [each["name"] for each in MANIFEST["dependencies"] if not isinstance(each, str) and each["host"]]
    assert set(plain) == names(1, set(NAMES) - FOR_THE_COMMAND)
    assert set(MANIFEST["features"]["tools"]["dependencies"]) == names(1, FOR_THE_COMMAND)
    assert set(hosts) == {"vcpkg-cmake", "vcpkg-cmake-config"}
    assert plain == sorted(plain), "vcpkg format-manifest sorts"


def test_the_port_uses_options_and_targets_that_are_there():
    portfile = (PORT / "portfile.cmake").read_text()
    for option in set(re.findall(r"PENSTOCK_\w+", portfile)):
        assert f"option({option} " in CMAKE
    assert "PACKAGE_NAME Penstock CONFIG_PATH lib/cmake/Penstock" in portfile
    install = (ROOT / "cmake" / "PenstockInstall.cmake").read_text()
    assert 'package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Penstock"' in install
    assert "NAMESPACE Penstock::" in install
    assert "Penstock::penstock" in (PORT / "usage").read_text()
    source = re.search(r'"\$\{CURRENT_PORT_DIR\}/([./]+)"', portfile)[1]
    assert (PORT / source).resolve() == ROOT


def test_the_recipe_has_the_version_and_dependencies():
    assert f'{{% set version = "{VERSION}" %}}' in RECIPE
    assert f"  summary: {SUMMARY}\n" in RECIPE
    host = [line.partition(" ")[0] for line in recipe_list("host")]
    assert set(host) == names(2, set(NAMES)) | {"python", "pip", "scikit-build-core", "nanobind"}
    assert (ROOT / "packaging" / "conda" / re.search(r"path: (\S+)", RECIPE)[1]).resolve() == ROOT


def test_the_recipe_builds_with_what_pyproject_asks_for():
    requires = re.search(r"requires = \[(.*)\]", PYPROJECT)[1]
    for name, bounds in re.findall(r'"([\w-]+)([^"]+)"', requires):
        assert f"{name} {bounds}" in recipe_list("host")
    cmake = re.search(r'cmake.version = "([^"]+)"', PYPROJECT)[1]
    assert f"cmake {cmake}" in recipe_list("build")
    assert re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)", CMAKE)[1] == cmake.removeprefix(">=")


@pytest.mark.parametrize("text", [RECIPE, PYPROJECT], ids=["recipe", "pyproject"])
def test_names_and_licences_agree(text):
    assert re.search(r'name *[:=] *"?penstock-tensors"?\n', text)
    assert re.search(r'license *[:=] *"?Apache-2\.0"?\n', text)
    assert MANIFEST["license"] == "Apache-2.0"


def test_supported_versions_agree():
    """Of Python, torch and NumPy: in the recipe, in pyproject, in the code and on the page of what is supported."""
    support = (ROOT / "docs" / "support.md").read_text()
    oldest_python = re.search(r'requires-python = ">=3\.(\d+)"', PYPROJECT)[1]
    assert f"py<3{oldest_python}]" in RECIPE
    assert f"CPython 3.{oldest_python} and later" in support
    bounds = dict(line.split(" >=") for line in recipe_list("run_constrained"))
    torch = ".".join(map(str, _private.OLDEST))
    assert bounds == {"numpy": "1.26", "pytorch": torch}
    assert f"| {torch} and later |" in support
    assert f"| {bounds['numpy']} and later |" in support
    for version in _private.TRIED:
        assert version in support
        assert f"torch={version}" in (ROOT / "script" / "matrix").read_text()
