"""`{ran} COMMAND`: a command line with what it prints, run while the site is built.

Commands run in build/docs/gallery, where `write_digits` has put the handwritten digits of examples/ as `.pt` files.
What they write into `pictures` is in docs/generated/pictures, where pages can show it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
FOLDER = ROOT / "build" / "docs" / "gallery"


def prepare() -> None:
    """The folder that the commands run in: `examples` of the repository, and the digits in files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not (FOLDER / "examples").exists():
        (FOLDER / "examples").symlink_to(ROOT / "examples")
    pictures = ROOT / "docs" / "generated" / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    if not (FOLDER / "pictures").exists():
        (FOLDER / "pictures").symlink_to(pictures)
    if not (FOLDER / "clips").exists():
        digits = ROOT / "examples" / "data" / "digits"
        command = [BUILD / "bin/write_digits", digits / "images.npy", digits / "labels.npy", FOLDER]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def printed_by(command: str) -> str:
    path = os.pathsep.join([str(BUILD / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", command], cwd=FOLDER, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed while the gallery was made:\n{done.stderr}")
    return done.stdout.rstrip("\n")


class Ran(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        prepare()
        command = self.arguments[0]
        for word in command.split():
            if (FOLDER / word).is_file():
                self.env.note_dependency(str((FOLDER / word).resolve()))
        text = f"$ {command}\n{printed_by(command)}"
        block = nodes.literal_block(text, text)
        block["language"] = "console"
        return [block]


def setup(app):
    app.add_directive("ran", Ran)
    return {"parallel_read_safe": True}
