#!/usr/bin/env python3
"""script/release in a small clone whose builders are stand-ins: what it refuses, writes, commits, and takes back."""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROOF = "docs/design/last_full_test.txt"
CHANGELOG = "# Changelog\n\n## [0.2.0] - unreleased\n- New.\n\n## [0.1.0] - 2026-12-01\n- Old.\n"

# What builds, by its path: each writes what the true one does. Some stop where a variable says so.
STANDINS = {
    "script/bootstrap": """[ -z "${NO_NETWORK-}" ] || { echo 'pip: no network' >&2; exit 1; }""",
    "script/build": "mkdir -p build/release && echo '# cpack' >build/release/CPackConfig.cmake",
    "script/docs": """[ -z "${HANGS-}" ] || { echo started; sleep 60; }
mkdir -p build/docs/html
echo page >build/docs/html/index.html""",
    "script/wheel": """[ "$1" != --environments ] || exit 0
[ -z "${FULL_DISK-}" ] || { echo 'No space left on device' >&2; exit 1; }
v=$(sed -n 's/.*use(\\(.*\\))$/\\1/p' include/penstock/version.h)
v=${v//, /.}
mkdir -p build/wheel
for p in "$@"; do echo "$v" >"build/wheel/penstock_tensors-$v-$(basename "$p").whl"; done""",
    ".venv/bin/python": """case "$1" in
script/api_names.py) echo 'python penstock.load(path)' ;;
-c) tar -cf penstock.tar --sort=name --mtime=@0 include && mv penstock.tar ../penstock_tensors-0.2.0.tar.gz ;;
esac""",
    # In the PATH of the run.
    "bin/cpack": """mkdir -p "$6/tree/DEBIAN"
printf '%s\\n' 'Package: penstock' 'Version: 0.2.0' 'Architecture: all' 'Maintainer: A <a@b>' 'Description: x' \\
  >"$6/tree/DEBIAN/control"
dpkg-deb -b "$6/tree" "$6/penstock_0.2.0.deb"
rm -rf "$6"/tree""",
    "bin/df": "printf '%s\\n' Avail ${FREE:-99999} 99999",
    "bin/python3.11": "exit 0",
    "bin/python3.12": "exit 1",
}


class ReleaseTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("script/release", "script/lib.sh", "script/third_parties.py", "include/penstock/version.h"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name, text in STANDINS.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!/usr/bin/env bash\nset -e\n{text}\n")
            path.chmod(0o755)
        (self.root / "CHANGELOG.md").write_text(CHANGELOG)
        (self.root / ".gitignore").write_text("/build/\n/.venv\n/bin\n")
        (self.root / "docs/design").mkdir(parents=True)
        header = self.root / "include/penstock/version.h"
        header.write_text(re.sub(r"use\(\d+, \d+, \d+\)", "use(0, 1, 0)", header.read_text()))
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "All")

    def environment(self, **more: str) -> dict[str, str]:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        path = f"{self.root}/bin:{os.environ['PATH']}"
        without = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        # Interpreters of this machine are not what these tests find.
        return {**without, **who, "PATH": path, "PYENV_ROOT": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null", **more}

    def git(self, *words: str) -> str:
        asked = subprocess.run(["git", *words], cwd=self.root, env=self.environment(), capture_output=True, text=True)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return asked.stdout.strip()

    def release(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["script/release", *words],
            cwd=self.root,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def prove(self) -> None:
        """As script/test all writes it."""
        commit = self.git("rev-parse", "HEAD")
        (self.root / PROOF).write_text(f"2026-11-29  commit {commit}  x86_64, 2 cores  release asan\n")

    def refused(self, pattern: str, *words: str, **environment: str) -> None:
        before = self.git("status", "--porcelain"), self.git("rev-parse", "HEAD")
        result = self.release(*words, **environment)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, rf"\A(.*\n)?release: {pattern}.*\n\Z")
        self.assertEqual((self.git("status", "--porcelain"), self.git("rev-parse", "HEAD")), before)
        self.assertEqual(self.made(), [])

    def made(self) -> list[str]:
        dist = self.root / "build/dist"
        left = [path.name for path in (self.root / "build").glob("dist.new*")]
        return left + sorted(path.name for path in dist.iterdir()) if dist.exists() else left

    def test_versions_that_are_none(self) -> None:
        for word in ("", "1", "0.1", "v0.2.0", "0.2.0rc1", "0.2.100", "00.2.0", "0.2.0.0", "0.2.0 "):
            with self.subTest(version=word):
                self.refused(f"'{re.escape(word)}' is no version; give three numbers", word)
        self.refused("unknown option --nonsense", "0.2.0", "--nonsense")
        self.refused("one version is released at a time", "0.2.0", "0.3.0")

    def test_a_tree_with_changes(self) -> None:
        (self.root / "new.txt").write_text("x")
        self.refused(r"the tree is not clean \(new.txt\); commit", "0.2.0")

    def test_a_tag_of_that_name(self) -> None:
        self.git("tag", "v0.2.0")
        self.refused("there is a tag v0.2.0; a version is released once", "0.2.0")

    def test_a_version_that_is_released(self) -> None:
        self.refused(r"CHANGELOG.md begins with '## \[0.2.0\] - unreleased'; its newest", "0.1.0")

    def test_a_folder_that_is_there(self) -> None:
        (self.root / "build/dist/0.2.0").mkdir(parents=True)
        result = self.release("0.2.0")
        self.assertRegex(result.stderr, r"\Arelease: build/dist/0.2.0 is there; move it away.*\n\Z")

    def test_no_proof(self) -> None:
        self.refused(rf"{PROOF} names no commit, and this is \w+; run script/test all first", "0.2.0")

    def test_a_proof_of_another_commit(self) -> None:
        self.prove()
        (self.root / "source.txt").write_text("x")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Later")
        self.refused(rf"{PROOF} names \w+, and this is \w+", "0.2.0")

    def test_a_proof_that_was_committed_alone(self) -> None:
        self.prove()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Proof")
        self.assertEqual(self.release("--check", "0.2.0").returncode, 0)

    def test_a_disk_that_is_too_full(self) -> None:
        self.prove()
        self.refused(r"a release needs \d+ MiB of free disk", "0.2.0", FREE="12")

    def test_no_network(self) -> None:
        self.prove()
        self.refused("what builds a release is not all there; connect this machine", "0.2.0", NO_NETWORK="1")

    def test_no_interpreter(self) -> None:
        self.prove()
        self.refused("none of python3.12 runs here", "0.2.0", "--python", "python3.12")

    def check_artefacts(self, folder: Path) -> None:
        names = sorted(path.name for path in folder.iterdir())
        self.assertEqual(
            names,
            [
                "SHA256SUMS",
                "penstock-0.2.0.spdx.json",
                "penstock-docs-0.2.0.tar.gz",
                "penstock_0.2.0.deb",
                "penstock_tensors-0.2.0-python3.11.whl",
                "penstock_tensors-0.2.0.tar.gz",
            ],
        )
        for line in (folder / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split()
            self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), digest)

    def test_a_release(self) -> None:
        self.prove()
        result = self.release("0.2.0", "--python", "python3.11", "--python", "python3.12")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.made(), ["0.2.0"])
        self.check_artefacts(self.root / "build/dist/0.2.0")
        self.assertEqual(self.git("log", "-1", "--format=%s"), "Release 0.2.0")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertRegex((self.root / "CHANGELOG.md").read_text(), r"## \[0.2.0\] - \d{4}-\d\d-\d\d\n- New")
        self.assertIn(
            "#define PENSTOCK_VERSION_NUMBERS(use) use(0, 2, 0)\n",
            (self.root / "include/penstock/version.h").read_text(),
        )
        self.assertEqual((self.root / "tests/api/0.2.0.txt").read_text(), "python penstock.load(path)\n")
        self.assertIn("== No wheel for python3.12: not on this machine\n", result.stdout)
        commit = self.git("rev-parse", "HEAD")
        self.assertIn(f'  git tag -s v0.2.0 -m "Penstock 0.2.0" {commit}\n', result.stdout)
        self.assertIn("  twine upload build/dist/0.2.0/penstock_tensors-0.2.0*\n", result.stdout)
        self.assertNotIn("earsal", result.stdout)

    def test_a_rehearsal_says_so_and_leaves_the_tree_as_it_was(self) -> None:
        before = self.git("rev-parse", "HEAD")
        result = self.release("0.2.0", "--rehearse", "--python", "python3.11")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.made(), ["0.2.0-rehearsal"])
        self.check_artefacts(self.root / "build/dist/0.2.0-rehearsal")
        self.assertIn("== Rehearsal: no run of script/test all on this commit is known", result.stdout)
        self.assertIn("== This was a rehearsal", result.stdout)
        self.assertEqual((self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")), (before, ""))
        self.assertEqual((self.root / "CHANGELOG.md").read_text(), CHANGELOG)

    def test_the_same_bytes_twice(self) -> None:
        """Of one commit; sums are of all files."""
        sums = []
        for _ in range(2):
            result = self.release(
                "0.2.0", "--rehearse", "--python", "python3.11", GIT_COMMITTER_DATE="1796000000 +0000"
            )
            self.assertEqual(result.returncode, 0, result.stderr)
            made = self.root / "build/dist/0.2.0-rehearsal"
            sums.append((made / "SHA256SUMS").read_text())
            shutil.rmtree(made)
            (self.root / "build/docs/html/index.html").touch()
        self.assertEqual(sums[0], sums[1])

    def test_a_disk_that_fills_up_leaves_nothing(self) -> None:
        self.prove()
        status, before = self.git("status", "--porcelain"), self.git("rev-parse", "HEAD")
        result = self.release("0.2.0", "--python", "python3.11", FULL_DISK="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device", result.stderr)
        self.assertEqual(self.made(), [])
        self.assertEqual((self.git("status", "--porcelain"), self.git("rev-parse", "HEAD")), (status, before))
        self.assertEqual((self.root / "CHANGELOG.md").read_text(), CHANGELOG)

    def test_ctrl_c_leaves_nothing(self) -> None:
        self.prove()
        before = self.git("rev-parse", "HEAD")
        process = subprocess.Popen(
            ["script/release", "0.2.0", "--python", "python3.11"],
            cwd=self.root,
            env=self.environment(HANGS="1"),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert process.stdout is not None
        for line in process.stdout:
            if line == "started\n":
                break
        self.assertEqual(self.git("log", "-1", "--format=%s"), "Release 0.2.0")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(self.made(), [])
        self.assertEqual(self.git("rev-parse", "HEAD"), before)

    def test_two_at_a_time(self) -> None:
        self.prove()
        (self.root / "build/dist").mkdir(parents=True)
        with subprocess.Popen(
            ["flock", self.root / "build/release.lock", "-c", "echo held; sleep 60"],
            stdout=-1,
            text=True,
            start_new_session=True,
        ) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            try:
                self.refused("another script/release runs in this clone", "0.2.0", "--python", "python3.11")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(holder.pid, signal.SIGTERM)


class VersionTest(unittest.TestCase):
    def test_one_line_says_it(self) -> None:
        """CMake, Python's packages and the site read that of the header, and none of them has a number of its own."""
        header = (ROOT / "include/penstock/version.h").read_text()
        self.assertEqual(len(re.findall(r"use\(\d+, \d+, \d+\)", header)), 1)
        for name in ("CMakeLists.txt", "pyproject.toml", "docs/conf.py", "cmake/PenstockPackage.cmake"):
            text = (ROOT / name).read_text()
            self.assertNotRegex(text, r"VERSION \d+\.\d+\.\d+ LANGUAGES|^version = \"", name)
        for name in ("CMakeLists.txt", "pyproject.toml", "docs/conf.py"):
            self.assertIn("include/penstock/version.h", (ROOT / name).read_text(), name)


if __name__ == "__main__":
    unittest.main()
