"""README's blocks, as someone runs them who has installed Penstock and nothing else. script/try_release runs it.

    python readme_blocks.py README.md PENSTOCK [python]

PENSTOCK is the command to call; with `python` Python's blocks are run too, by this interpreter. One that wants torch is
left out where there is none, and that is said.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

page, command = Path(sys.argv[1]).read_text(), Path(sys.argv[2]).absolute()
blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
ran, left_out = {"python": 0, "console": 0}, 0

with tempfile.TemporaryDirectory() as folder:
    data = Path(folder) / "try"
    subprocess.run([command, "sample", data], check=True, stdout=subprocess.DEVNULL)

    def run(*words: str) -> None:
        done = subprocess.run(words, cwd=data, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    for language, code in blocks:
        if language == "console":
            for line in code.splitlines():
                if line.startswith("$ "):
                    run("sh", "-c", line[2:])
                    ran["console"] += 1
        elif language == "python" and "python" in sys.argv[3:]:
            if "torch" in code and importlib.util.find_spec("torch") is None:
                left_out += 1
                continue
            run(sys.executable, "-c", code)
            ran["python"] += 1

assert ran["console"] > 5, ran
assert ran["python"] > 0 or "python" not in sys.argv[3:], ran
without = f"; {left_out} blocks want torch, which is not here" if left_out else ""
print(f"README: {ran['python']} Python blocks and {ran['console']} commands run{without}")
