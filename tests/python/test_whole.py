"""What `import penstock` says where another package lies in its place, or parts of it are missing."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import penstock

PACKAGE = Path(penstock.__file__).parent
SUFFIX = EXTENSION_SUFFIXES[0]


@pytest.fixture
def site(tmp_path) -> Path:
    """A folder to import from, with a package like the installed one."""
    shutil.copytree(PACKAGE, tmp_path / "penstock", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyi"))
    module = next(PACKAGE.glob("_core.*.so"))
    os.symlink(module, tmp_path / "penstock" / module.name)
    return tmp_path


def error_of(site: Path, statement: str) -> str:
    """What Python prints for a statement, with no other packages than those of `site`; '' where it works."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-S", "-c", statement]
    done = subprocess.run(command, env=environment, cwd=site, capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == (not done.stderr), done.stderr
    return done.stderr


def test_a_whole_package_says_nothing(site):
    assert error_of(site, "import penstock; assert penstock.__distribution__ == 'penstock-tensors'") == ""
    assert error_of(site, "import penstock.errors, penstock.remote") == ""


@pytest.mark.parametrize("module", ["errors", "remote", "numpy", "torch"])
def test_the_other_penstock_in_our_place_is_named(site, module):
    (site / "penstock" / "__init__.py").write_text('"""Flow tracing."""\n')
    text = error_of(site, f"import penstock.{module}")
    assert "ImportError" in text
    assert f"{site}/penstock/__init__.py is not part of penstock-tensors" in text
    assert "pip uninstall penstock penstock-tensors" in text


@pytest.mark.parametrize("module", ["errors", "remote", "numpy", "torch"])
def test_a_package_whose_init_was_taken_away_says_so(site, module):
    (site / "penstock" / "__init__.py").unlink()
    text = error_of(site, f"import penstock.{module}")
    assert f"{site}/penstock/__init__.py is missing" in text
    assert "pip uninstall penstock penstock-tensors" in text


def test_files_of_the_other_beside_ours_do_no_harm(site):
    (site / "penstock" / "flow.py").write_text("raise SystemExit(1)\n")
    assert error_of(site, "import penstock") == ""


def without_module(site: Path) -> Path:
    folder = site / "penstock"
    (folder / f"_core{SUFFIX}").unlink()
    return folder


def test_sources_without_a_module_say_so(site):
    folder = without_module(site)
    assert f"ImportError: {folder} has no compiled module" in error_of(site, "import penstock")


def test_the_module_of_another_python_is_named(site):
    other = without_module(site) / "_core.cpython-39-x86_64-linux-gnu.so"
    other.write_bytes(b"")
    text = error_of(site, "import penstock")
    assert other.name in text
    assert f"loads _core{SUFFIX}" in text
    assert f"{sys.executable} -m pip install" in text


def test_a_module_that_does_not_load_is_named_with_the_reason(site):
    module = without_module(site) / f"_core{SUFFIX}"
    module.write_bytes(b"no object")
    assert f"ImportError: the compiled module {module} does not load: {module}: file too short" in error_of(
        site, "import penstock"
    )
