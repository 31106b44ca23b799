"""Runs blocks of Python code in forks of a process that has imported torch, because that takes longer than most blocks.

Each line of the standard input is a JSON object: `code`, the `folder` to run it in, and `paths` where else its imports
are. The answer is a line too: `status` of the block's process, and what it `printed` and `complained`.
"""

import json
import os
import sys
import tempfile
import types

import penstock.torch  # noqa: F401 - what blocks import is there already, torch with it


def run(code: str, folder: str, paths: list[str], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(folder)
    sys.path[0] = ""
    sys.path += paths
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(code, "<block>", "exec"), module.__dict__)


def answer(order: dict) -> dict:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            run(order["code"], order["folder"], order["paths"], out.fileno(), err.fileno())
            sys.exit()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [os.pread(file.fileno(), 1 << 20, 0).decode() for file in (out, err)]
    return {"status": status, "printed": texts[0], "complained": texts[1]}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
