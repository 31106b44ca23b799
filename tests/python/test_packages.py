"""What is said of versions and dependencies in the packages' files is what CMake and pyproject say."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from penstock.torch import _private

ROOT = Path(__file__).resolve().parents[2]
CMAKE = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cli" / "CMakeLists.txt").read_text()
PYPROJECT = (ROOT / "pyproject.toml").read_text()

# What CMake looks for, by the names that Debian has for it.
NAMES = {
    "Eigen3": "libeigen3-dev",
    "ZLIB": "zlib1g-dev",
    "Libdeflate": "libdeflate-dev",
    "fmt": "libfmt-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "xxhash.h": "libxxhash-dev",
    "CLI11": "libcli11-dev",
}
OF_THE_SYSTEM = {"Threads"}
FOR_THE_COMMAND = {"CLI11"}


def sought() -> set[str]:
    return set(re.findall(r"find_package\((\w+)", CMAKE)) | set(re.findall(r"find_path\(\w+ (\S+) REQUIRED", CMAKE))


def names(of: set[str]) -> set[str]:
    return {NAMES[name] for name in of}


def test_what_cmake_looks_for_has_a_name_everywhere():
    assert sought() - OF_THE_SYSTEM == set(NAMES)


def test_debian_names_are_those_that_bootstrap_and_the_readme_tell():
    bootstrap = (ROOT / "script" / "bootstrap").read_text()
    readme = (ROOT / "README.md").read_text()
    for package in names(set(NAMES)):
        assert package in bootstrap
    for package in names(set(NAMES) - FOR_THE_COMMAND):
        assert package in readme


def test_the_debian_package_wants_what_users_of_the_library_link():
    config = (ROOT / "cmake" / "PenstockConfig.cmake.in").read_text()
    wanted = set(re.findall(r"find_dependency\((\w+)\)", config)) - OF_THE_SYSTEM
    said = re.search(r'DEVELOPMENT_PACKAGE_DEPENDS "([^"]+)"', (ROOT / "cmake" / "PenstockPackage.cmake").read_text())[
        1
    ]
    assert set(said.split(", ")) == names(wanted)


def test_the_build_asks_for_one_version_of_cmake():
    cmake = re.search(r'cmake.version = "([^"]+)"', PYPROJECT)[1]
    assert re.search(r"cmake_minimum_required\(VERSION ([0-9.]+)", CMAKE)[1] == cmake.removeprefix(">=")


def test_supported_versions_agree():
    """Of Python and torch: in pyproject, in the code and on the page of what is supported."""
    support = (ROOT / "docs" / "support.md").read_text()
    oldest_python = re.search(r'requires-python = ">=3\.(\d+)"', PYPROJECT)[1]
    assert f"CPython 3.{oldest_python} and later" in support
    assert f"| {'.'.join(map(str, _private.OLDEST))} and later |" in support
    for version in _private.TRIED:
        assert version in support
        assert f"torch={version}" in (ROOT / "script" / "matrix").read_text()


def test_the_sdist_is_the_same_twice(tmp_path):
    """In two folders, and it has neither tests nor what git keeps (script/release compares each one)."""
    pytest.importorskip("scikit_build_core")
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = "".join(f"{name}\n" for name in listed.splitlines() if (ROOT / name).exists())
    made = []
    for folder in (tmp_path / "one", tmp_path / "another" / "deeper"):
        (folder / "source").mkdir(parents=True)
        copied = ["tar", "-c", "--verbatim-files-from", "-T", "-", "-f", folder / "files.tar"]
        subprocess.run(copied, cwd=ROOT, input=files, text=True, check=True)
        subprocess.run(["tar", "-x", "-f", folder / "files.tar", "-C", folder / "source"], check=True)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1796000000", "GIT_DIR": "/nonexistent"}
        subprocess.run([sys.executable, "-c", code, ".."], cwd=folder / "source", env=environment, check=True)
        made += folder.glob("*.tar.gz")
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        rooms = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"src", "include", "cli", "python", "cmake", "THIRD_PARTY_LICENSES"} <= rooms
    assert not rooms & {"tests", "docs", ".git", ".github", "build", ".venv"}
