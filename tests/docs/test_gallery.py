"""The commands of the site's gallery print something; the site's build runs them too, with torch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
PICTURES = ("batch", "augmented", "padded")
COMMANDS = re.findall(r"^```\{ran\} (.+)$", (ROOT / "docs/gallery.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery")
    digits = ROOT / "examples/data/digits"
    subprocess.run([BUILD / "bin/write_digits", digits / "images.npy", digits / "labels.npy", folder], check=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "pictures").mkdir()
    return folder


@pytest.mark.parametrize("command", [command for command in COMMANDS if "examples/torch" not in command])
def test_command_prints(command, folder):
    path = os.pathsep.join([str(BUILD / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    printed = subprocess.check_output(["sh", "-c", command], cwd=folder, env=environment, text=True)
    assert printed.strip()
    # What programs say of themselves where they are wrong.
    assert not re.search("MORE than|other batches|ANOTHER model", printed)
    if "pictures" in command:
        assert [len(re.findall("<text", (folder / f"pictures/{name}.svg").read_text())) for name in PICTURES] == [
            10
        ] * 3
