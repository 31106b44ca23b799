#!/usr/bin/env python3
"""Files that HACKING.md, the pages of docs/design and comments in src/ name are there.

A name counts as right when a file of the repository has it as the end of its path: "io/move/plan.h" is
src/io/move/plan.h.
"""

import re
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("HACKING.md", "docs/design")
FOLDERS = ("src", "include", "cli", "python", "tests", "fuzz", "bench", "examples", "script")
NAME = re.compile(r"(?<![\w./*<{-])(?:[\w-]+/)*[\w-]+\.(?:h|cpp|py|cu)\b(?![\w/*])")
QUOTED = re.compile(r"`([^`\n]+)`")
BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"(?<!:)//(.*)")

# Files of other projects, and names that stand for any file of a kind.
FOREIGN = re.compile(r"ATen/|curl/|include/uapi/|Lib/_?[a-z_]+\.py|torch/_[a-z_]+\.py|cuda\.h")
ANY = re.compile(r"(?:.*/)?(?:x|x_[a-z]+|idx|idx_test)\.(?:h|cpp)")


def named_in_pages(root: Path) -> Iterator[tuple[str, str]]:
    """Where, and which file, for each name in backticks; blocks of code are not read."""
    for page in PAGES:
        for path in sorted((root / page).rglob("*.md")) if (root / page).is_dir() else [root / page]:
            if not path.exists():
                continue
            for quoted in QUOTED.findall(BLOCK.sub("", path.read_text())):
                for name in NAME.findall(quoted):
                    yield path.relative_to(root).as_posix(), name


def named_in_comments(root: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if comment := COMMENT.search(line):
                for name in NAME.findall(comment[1]):
                    yield f"{path.relative_to(root).as_posix()}:{number}", name


def problems(root: Path) -> list[str]:
    files = [f"/{path.relative_to(root).as_posix()}" for folder in FOLDERS for path in (root / folder).rglob("*.*")]
    endings = {file[at:] for file in files for at, letter in enumerate(file) if letter == "/"}
    named = [*named_in_pages(root), *named_in_comments(root)]
    return [
        f"{where}: there is no {name}"
        for where, name in named
        if f"/{name}" not in endings and not FOREIGN.match(name) and not ANY.fullmatch(name)
    ]


class NamedFilesTest(unittest.TestCase):
    def test_all_are_there(self) -> None:
        self.assertEqual(problems(ROOT), [])

    def test_names_are_found(self) -> None:
        self.assertGreater(len(list(named_in_pages(ROOT))), 100)
        self.assertGreater(len(list(named_in_comments(ROOT))), 50)

    def test_a_file_that_is_gone_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path, text in [
                (
                    "HACKING.md",
                    "`src/io/plan.h` and `io/plan.h` are there, `src/io/x.cpp` is any, `io/gone.h` is not.\n",
                ),
                ("docs/design/roads.md", "| `RangeReader` in `io/read/plan.h` |\n```\n`a/b.h`\n```\n"),
                ("src/io/plan.h", "// threads.cpp uses it, plan.h does not; see https://host/other.h.\n"),
            ]:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            wrong = ["HACKING.md: there is no io/gone.h", "docs/design/roads.md: there is no io/read/plan.h"]
            self.assertEqual(problems(root), [*wrong, "src/io/plan.h:1: there is no threads.cpp"])


if __name__ == "__main__":
    unittest.main()
