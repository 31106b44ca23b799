#!/usr/bin/env python3
"""Draws docs/terminal.svg: what the command prints on a terminal, for the first screen of README and the site.

    script/terminal_picture.py [--check]      after script/build; --check says whether the picture is that of today

Each command is run on a pseudo-terminal in a folder of `penstock sample`, and its letters and colours are drawn as they
came. Nothing is written by hand, so the picture cannot promise what the command does not print.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/terminal.svg"
COMMANDS = (
    "penstock ls model.pt",
    "penstock cat model.pt encoder.weight --slice 0:2,:4",
    "penstock stats model.pt",
    "penstock show images.npy --slice 0:4 --range 0,16 --width 72 --as blocks",
)
# A letter and a line, in units of the picture; colours of letters, as 31 to 36 and 91 to 96 call them.
WIDE, HIGH, MARGIN = 8.4, 19, 16
HUES = ("#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9")
COLOURS = {30 + number: hue for number, hue in enumerate(HUES)}
FRONT, BACK = "#d8dee9", "#1f2430"


@dataclass(frozen=True)
class Look:
    front: str = ""
    back: str = ""
    bold: bool = False
    dim: bool = False


def said(command: str, folder: Path, program: Path) -> str:
    """What it prints on a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
    }
    done = subprocess.Popen(
        ["sh", "-c", f"stty cols 100 <&1; {command}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    out = b""
    with contextlib.suppress(OSError):  # EIO is how a terminal ends
        while part := os.read(ours, 65536):
            out += part
    os.close(ours)
    if done.wait() != 0:
        raise SystemExit(f"terminal_picture.py: {command} failed; run script/build first")
    return out.decode().replace("\r\n", "\n")


def coloured(numbers: list[int], look: Look) -> Look:
    """The look behind an escape sequence ESC [ NUMBERS m."""
    rest = [*numbers] or [0]
    while rest:
        number = rest.pop(0)
        if number == 0:
            look = Look()
        elif number in (1, 2):
            look = replace(look, bold=look.bold or number == 1, dim=look.dim or number == 2)
        elif number in (38, 48) and rest[:1] == [2]:
            colour = "#{:02x}{:02x}{:02x}".format(*rest[1:4])
            look = replace(look, front=colour) if number == 38 else replace(look, back=colour)
            rest = rest[4:]
        elif number in (39, 49):
            look = replace(look, front="") if number == 39 else replace(look, back="")
        elif number % 60 in COLOURS:
            look = replace(look, front=COLOURS[number % 60])
    return look


def runs(line: str, look: Look) -> tuple[list[tuple[str, Look]], Look]:
    """The line in pieces of one look each, and the look behind it."""
    out = []
    for text, sequence in re.findall(r"([^\x1b]*)(?:\x1b\[([0-9;]*)m|$)", line):
        if text:
            out.append((text, look))
        if sequence:
            look = coloured([int(number or 0) for number in sequence.split(";")], look)
    return out, look


def texts(session: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", session)


def drawn(session: str) -> str:
    lines = session.rstrip("\n").split("\n")
    columns = max(len(texts(line)) for line in lines)
    width, height = round(columns * WIDE + 2 * MARGIN), len(lines) * HIGH + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>Penstock's command on a terminal</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/>',
        f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="{FRONT}">',
    ]
    look = Look()
    for number, line in enumerate(lines):
        pieces, look = runs(line, look)
        at, below = 0, MARGIN + number * HIGH
        for text, of in pieces:
            left, wide = MARGIN + at * WIDE, len(text) * WIDE
            at += len(text)
            if of.back:
                out.append(f'<rect x="{left:.1f}" y="{below}" width="{wide:.1f}" height="{HIGH}" fill="{of.back}"/>')
            more = (
                (f' fill="{of.front}"' if of.front else "")
                + (' font-weight="bold"' if of.bold else "")
                + (' opacity="0.6"' if of.dim else "")
            )
            if set(text) == {"▀"}:  # the upper half of a letter's place, which fonts draw with gaps
                out.append(f'<rect x="{left:.1f}" y="{below}" width="{wide:.1f}" height="{HIGH / 2}"{more}/>')
            elif text.strip():
                place = f'x="{left:.1f}" y="{below + 14}" textLength="{wide:.1f}" xml:space="preserve"'
                out.append(f"<text {place}{more}>{escape(text)}</text>")
    return "\n".join([*out, "</g>", "</svg>", ""])


def picture() -> str:
    program = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build/release")) / "bin/penstock"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "sample", Path(folder) / "try"], check=True, stdout=subprocess.DEVNULL)
        folder = Path(folder) / "try"
        shown = [f"\x1b[32m$\x1b[0m {each}\n{said(each, folder, program).rstrip()}\x1b[0m\n" for each in COMMANDS]
    return drawn("\n".join(shown))


def main(words: list[str]) -> int:
    if words not in ([], ["--check"]):
        print("terminal_picture.py: no options but --check", file=sys.stderr)
        return 2
    now = picture()
    if not words:
        PICTURE.write_text(now)
    elif not PICTURE.exists() or PICTURE.read_text() != now:
        print(
            "docs/terminal.svg is not what the command prints today; script/terminal_picture.py draws it",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
