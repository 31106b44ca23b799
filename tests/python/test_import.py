"""Importing penstock brings nothing heavy with it."""

import subprocess
import sys
import typing

import penstock


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def test_import_brings_neither_numpy_nor_torch():
    code = (
        "import sys, penstock; print(*[m for m in ('numpy', 'torch', 'safetensors', 'ml_dtypes') if m in sys.modules])"
    )
    assert run(code).split() == []


def test_tensors_work_without_numpy():
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import penstock\n"
        "t = penstock.tensor([[1, 2], [3, 4]])\n"
        "print(t[1].tolist(), memoryview(t).shape, penstock.from_dlpack(t).tolist(), repr(t[0, 0]))"
    )
    assert run(code) == "[3, 4] (2, 2) [[1, 2], [3, 4]] penstock.Tensor(1, dtype=int64)\n"


def test_import_time_is_shown():
    code = "import time; s = time.perf_counter(); import penstock; print(time.perf_counter() - s)"
    print(f"import penstock: {1000 * float(run(code)):.1f} ms")


def test_public_names_are_there_and_documented():
    for name in penstock.__all__:
        item = getattr(penstock, name)
        if name != "__version__":
            assert item.__doc__, name


def test_public_classes_say_where_they_are_imported_from():
    for name in penstock.__all__:
        item = getattr(penstock, name)
        if isinstance(item, type):
            assert item.__module__ == "penstock", name


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert penstock.__version__ == version("penstock")


def test_package_is_typed():
    from importlib.resources import files

    assert files(penstock).joinpath("py.typed").is_file()
    assert typing.get_type_hints(penstock.Error)["path"] == str | None
