"""Importing penstock brings nothing heavy with it."""

import subprocess
import sys
import typing
import zlib
from pathlib import Path

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


def test_import_loads_nothing_but_the_module_itself():
    """What imports in milliseconds: our own few modules, no others from outside the standard library, one object."""
    code = (
        "import sys\n"
        "def objects(): return {row.split()[-1] for row in open('/proc/self/maps') if '.so' in row}\n"
        "modules, mapped = set(sys.modules), objects()\n"
        "import penstock\n"
        "print(*(set(sys.modules) - modules))\n"
        "print(*(objects() - mapped))"
    )
    modules, objects = (line.split() for line in run(code).splitlines())
    ours = {name for name in modules if name.partition(".")[0] == "penstock"}
    others = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names - {"penstock"}
    assert not others
    assert not {name for name in ours if name.startswith(("penstock.torch", "penstock.numpy"))}
    slow = {"asyncio", "collections", "email", "functools", "inspect", "multiprocessing", "operator", "re", "reprlib"}
    assert not (slow | {"subprocess", "threading", "typing"}) & set(modules)
    assert len(modules) < 25
    names = {path.rpartition("/")[2].partition(".")[0] for path in objects if "lib-dynload" not in path}
    everywhere = {"libz", "libstdc++", "libm", "libgcc_s", "libc", "ld-linux-x86-64", "libpthread", "libdl", "libutil"}
    # Ubuntu's static libdeflate cannot go into a module.
    shared = {"libdeflate"} if "ubuntu" in Path("/etc/os-release").read_text().lower() else set()
    assert names - everywhere - shared == {"_core"}


def test_the_package_is_small():
    """A wheel deflates what is installed; script/wheel examines the wheel itself."""
    package = Path(penstock.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(len(zlib.compress(path.read_bytes(), 6)) for path in files) < 5_000_000


def test_public_names_are_there_and_documented():
    for name in [*penstock.__all__, *penstock.errors.__all__]:
        item = getattr(penstock, name)
        if name != "__version__":
            assert item.__doc__, name


def test_errors_are_in_a_module_of_their_own():
    for name in penstock.errors.__all__:
        assert getattr(penstock, name) is getattr(penstock.errors, name)
    common = [name for name in penstock.__all__ if name in penstock.errors.__all__]
    assert common == ["Error"]


def test_public_classes_say_where_they_are_imported_from():
    for name in [*penstock.__all__, *penstock.errors.__all__]:
        item = getattr(penstock, name)
        if isinstance(item, type):
            assert item.__module__ == "penstock", name


def test_devices_are_in_a_module_of_their_own():
    for name in penstock.device.__all__:
        item = getattr(penstock.device, name)
        assert item.__doc__, name
        assert not hasattr(penstock, name)
        if isinstance(item, type):
            assert item.__module__ == "penstock.device", name


def test_names_are_few():
    assert len(penstock.__all__) <= 70
    assert not {"add", "exp", "sum", "matmul", "take", "concat"} & set(dir(penstock))


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert penstock.__version__ == version(penstock.__distribution__)


def test_package_is_typed():
    from importlib.resources import files

    assert files(penstock).joinpath("py.typed").is_file()
    assert typing.get_type_hints(penstock.Error)["path"] == str | None
