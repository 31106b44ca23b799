"""The distribution is installed by its name, from a folder, into an environment that has nothing else.

script/wheel does the same with real wheels. Here the wheel is packed from what is installed, because building one takes
minutes.
"""

import base64
import hashlib
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import penstock

CHECK = Path(__file__).resolve().parents[1] / "install" / "installed_wheel.py"
# Written by the installer, not part of a wheel.
OF_PIP = {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"}


def members(installed):
    """Where each file lies in a wheel, its path here and its content; commands have a folder, and any interpreter."""
    info = f"{installed.name.replace('-', '_')}-{installed.version}"
    for file in installed.files:
        if file.suffix == ".pyc" or (file.parent.name.endswith(".dist-info") and file.name in OF_PIP):
            continue
        path = Path(file.locate())
        if ".." in file.parts:
            yield f"{info}.data/scripts/{file.name}", path, b"#!python\n" + path.read_bytes().partition(b"\n")[2]
        else:
            yield file.as_posix(), path, path.read_bytes()


def packed(folder: Path) -> Path:
    try:
        installed = distribution(penstock.__distribution__)
    except PackageNotFoundError:
        pytest.fail("penstock is here, but not its distribution: run script/build")
    tag = next(line.split(": ")[1] for line in installed.read_text("WHEEL").splitlines() if line.startswith("Tag: "))
    stem = f"{installed.name.replace('-', '_')}-{installed.version}"
    wheel = folder / f"{stem}-{tag}.whl"
    record = ""
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, path, content in members(installed):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
            info = zipfile.ZipInfo.from_file(path, name)
            archive.writestr(info, content)
        archive.writestr(f"{stem}.dist-info/RECORD", f"{record}{stem}.dist-info/RECORD,,\n")
    return wheel


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    packed(folder)
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """The interpreter of an environment that has nothing but pip."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
    return folder / "bin" / "python"


def install(bare: Path, index: Path, name: str) -> subprocess.CompletedProcess[str]:
    # -I and --isolated: the folder is the only place to look in, whatever the machine's settings say.
    command = [bare, "-I", "-m", "pip", "--isolated", "install", "-q", "--disable-pip-version-check", "--no-index"]
    return subprocess.run(
        [*command, "--find-links", index, name], capture_output=True, text=True, timeout=300, check=False
    )


def test_the_wheel_has_its_name_and_one_tag(index):
    (wheel,) = index.iterdir()
    assert wheel.name.startswith(f"penstock_tensors-{penstock.__version__}-cp3{sys.version_info[1]}-")


def test_the_wheel_does_not_answer_to_the_name_of_the_other_project(bare, index):
    done = install(bare, index, "penstock")
    assert done.returncode != 0
    assert "No matching distribution found for penstock" in done.stderr


def test_the_wheel_is_installed_by_its_name_and_works(bare, index):
    done = install(bare, index, penstock.__distribution__)
    assert done.returncode == 0, done.stderr
    tried = subprocess.run([bare, "-I", CHECK], capture_output=True, text=True, timeout=120, check=False)
    assert tried.returncode == 0, tried.stderr
    assert f"penstock-tensors {penstock.__version__} works on Python" in tried.stdout
