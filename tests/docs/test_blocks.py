"""Every code block of the README and of the site's pages for users, run as it stands.

A Python block whose first line is a comment with a file's name (`# train.py`) is that file, for the console blocks of
its page. One that imports a framework (`FRAMEWORKS`) finds it in build/frameworks, one that imports an engine
(`ENGINES`) is run in build/engines; both are skipped by name without it.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\w+\.py)\n")
IMPORT = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)

GUIDE, HOW_TO = (
    tuple(f"docs/{folder}/{page.name}" for page in sorted((ROOT / "docs" / folder).glob("*.md")))
    for folder in ("guide", "howto")
)
PAGES = ("README.md", "docs/guide.md", *GUIDE, "docs/from-cpp.md", "docs/coming-from-pytorch.md", "docs/start.md")
PAGES = (*PAGES, *HOW_TO)
FRAMEWORKS = {"accelerate", "datasets", "monai", "pytorch_lightning", "transformers"}
ENGINES = {"ray", "grain", "dask"}
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
}


def fenced(page: str) -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / page).read_text())


def blocks(language: str, pages: tuple[str, ...] = PAGES) -> list:
    """The blocks of a language, without those that are files of their pages."""
    return [
        pytest.param(code, id=f"{Path(page).stem}-{number}")
        for page in pages
        for number, (written_in, code) in enumerate(fenced(page))
        if written_in == language and not NAMED.match(code)
    ]


def console_blocks() -> list:
    """Each console block with the files of its page."""
    found = []
    for page in PAGES:
        files = {NAMED.match(code)[1]: code for _, code in fenced(page) if NAMED.match(code)}
        found += [pytest.param(block.values[0], files, id=block.id) for block in blocks("console", (page,))]
    return found


def paths_for(code: str) -> list[str]:
    """Where the frameworks that a block imports are; skips the test where they are nowhere."""
    wanted = FRAMEWORKS.intersection(IMPORT.findall(code))
    folders = [str(path) for path in (ROOT / "build/frameworks").glob("lib/python*/site-packages")]
    missing = [name for name in sorted(wanted) if importlib.machinery.PathFinder.find_spec(name, folders) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not in build/frameworks (script/bootstrap --tests puts it there)")
    return folders if wanted else []


def engine_python(wanted: set[str]) -> str:
    """The interpreter that has the engines; skips the test where one of them is missing."""
    python = ROOT / "build/engines/bin/python"
    code = f"import importlib.util, sys; sys.exit(any(not importlib.util.find_spec(name) for name in {wanted}))"
    if not python.exists() or subprocess.run([python, "-c", code], check=False).returncode != 0:
        pytest.skip(f"{', '.join(sorted(wanted))} not in build/engines (script/bootstrap --engines puts it there)")
    return str(python)


@pytest.fixture
def data(tmp_path) -> Path:
    """The folder that the blocks speak of. Each block gets its own, because none may need what another wrote."""
    folder = tmp_path / "try"
    subprocess.run([BUILD / "bin" / "penstock", "sample", folder], check=True)
    return folder


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(BUILD / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, **QUIET, "PATH": path}


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def torch_blocks():
    """A function that runs a block beside a torch that is imported already."""
    command = [sys.executable, Path(__file__).with_name("torch_blocks.py")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, env=environment(), text=True) as server:

        def run_block(code: str, folder: Path, paths: list[str]) -> None:
            print(json.dumps({"code": code, "folder": str(folder), "paths": paths}), file=server.stdin, flush=True)
            answer = json.loads(server.stdout.readline())
            assert answer["status"] == 0, answer["complained"]

        yield run_block
        server.stdin.close()


@pytest.mark.parametrize("code", blocks("python", (*PAGES, "docs/devices.md", "docs/distributed.md")))
def test_python(code, data, request):
    if wanted := ENGINES.intersection(IMPORT.findall(code)):
        run([engine_python(wanted), "-c", code], data)
    elif "torch" in code or FRAMEWORKS.intersection(IMPORT.findall(code)):
        paths = paths_for(code)
        request.getfixturevalue("torch_blocks")(code, data, paths)
    elif "__main__" in code:  # worker processes import the program's file
        (data / "program.py").write_text(code)
        run([sys.executable, "program.py"], data)
    else:
        run([sys.executable, "-c", code], data)


@pytest.mark.parametrize(("code", "files"), console_blocks())
def test_console(code, files, data):
    for name, content in files.items():
        (data / name).write_text(content)
    for line in code.splitlines():
        assert run(["sh", "-c", line.removeprefix("$ ")], data).strip()


@pytest.fixture(scope="session")
def compiler(tmp_path_factory) -> list[str]:
    """A C++ compiler that has parsed the headers already, because that takes most of the time of a small program."""
    command = [os.environ.get("CXX", "c++"), "-std=c++20"]
    parsed = tmp_path_factory.mktemp("parsed")
    (parsed / "penstock").mkdir()
    header, target = ROOT / "include" / "penstock" / "penstock.h", parsed / "penstock" / "penstock.h.gch"
    run([*command, "-x", "c++-header", f"-I{ROOT / 'include'}", str(header), "-o", str(target)], parsed)
    return [*command, f"-I{parsed}", f"-I{ROOT / 'include'}"]


@pytest.mark.parametrize("code", blocks("cpp"))
def test_cpp(code, data, compiler):
    source, program = data / "block.cpp", data / "block"
    source.write_text(code)
    libraries = [str(BUILD / "src" / "libpenstock.a"), "-lz", "-ldeflate", "-pthread"]
    run([*compiler, str(source), "-o", str(program), *libraries], data)
    printed = run([str(program)], data)
    assert printed.strip()
    for said in re.findall(r"// prints (.+)", code):
        assert said in printed
    if "model.entries()" in code:
        assert "encoder.weight float32(256, 64)" in printed


@pytest.mark.parametrize("page", PAGES)
def test_each_file_of_a_page_is_run_there(page):
    commands = "".join(code for language, code in fenced(page) if language == "console")
    assert [name for _, code in fenced(page) for name in NAMED.findall(code[:80]) if name not in commands] == []


def test_resumed_order_is_the_same(data):
    """The guide prints True for its own claim."""
    code = next(param.values[0] for param in blocks("python") if "load_state_dict(json" in param.values[0])
    assert run([sys.executable, "-c", code], data).strip() == "True"
