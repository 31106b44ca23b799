#!/usr/bin/env python3
"""The command `penstock` of the Python package, installed as bin/penstock. Its code is in the compiled module.

This script loads that alone, because `import penstock` takes as long again as the interpreter takes to start.
"""

import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec


def find(name, path=None):
    """The spec that `import` would use, found without importing the package around it."""
    return next((spec for finder in sys.meta_path if (spec := finder.find_spec(name, path))), None)


def load():
    package = find("penstock")
    core = package and find("penstock._core", package.submodule_search_locations)
    if core is None:
        raise ImportError(f"{sys.executable} finds no penstock-tensors; install that with this interpreter")
    loader = ExtensionFileLoader("_command", core.origin)
    module = loader.create_module(ModuleSpec("_command", loader, origin=core.origin))
    loader.exec_module(module)
    return module


def explain(error):
    """`error`, or what the package itself says is wrong with it."""
    try:
        import penstock  # noqa: F401
    except ImportError as known:
        return known if find("penstock") else error
    return error


def restore_locale():
    """Takes back the LC_CTYPE that the interpreter sets where no locale is set (PEP 538): the command draws by it."""
    with open("/proc/self/environ", "rb") as file:
        began = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
    if b"LC_CTYPE" in began:
        os.environb[b"LC_CTYPE"] = began[b"LC_CTYPE"]
    else:
        os.environb.pop(b"LC_CTYPE", None)


try:
    command = load()
except ImportError as error:
    sys.exit(f"penstock: {explain(error)}")
restore_locale()
command.run([os.fsencode(word) for word in sys.argv[1:]])
