"""Programs of their own that use worker processes."""

import os
import pathlib
import subprocess
import sys
import textwrap


def run_program(tmp_path, text, *, arguments=(), before=(), environment=None, **kwargs):
    """`before`: a command that runs the one behind it."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    folder = str(pathlib.Path(__file__).parent)
    # Without cloudpickle, as most installations are.
    env = {**os.environ, "PYTHONPATH": folder, **(environment or {})}
    return subprocess.run(
        [*before, sys.executable, path, *arguments], capture_output=True, text=True, timeout=120, env=env, **kwargs
    )


WITHOUT_CLOUDPICKLE = "import sys; sys.modules['cloudpickle'] = None\n"

PROGRAM = """
import sys, numpy as np, penstock, worker_functions as functions

if __name__ == "__main__":
    data = penstock.rows(np.arange(100.0).reshape(100, 1)).map(getattr(functions, sys.argv[1]))
    loader = penstock.DataLoader(data, 2, num_workers=2, workers="processes")
    for number, batch in enumerate(loader):
        print(number, flush=True)
"""
