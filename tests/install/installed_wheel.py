"""Run by an interpreter that has the wheel and nothing else: what a user tries first works.

script/wheel runs it, and tests/python/test_wheel.py."""

import subprocess
import sys
import tempfile
from importlib.metadata import entry_points, version
from pathlib import Path

import penstock

assert version(penstock.__distribution__) == penstock.__version__
assert not {"numpy", "torch"} & set(sys.modules)
assert Path(penstock.__file__).is_relative_to(sys.prefix), penstock.__file__
assert Path(penstock.__file__).with_name("py.typed").is_file()
plugins = {point.name: point.value for point in entry_points(group="vllm.general_plugins")}
assert plugins == {"penstock": "penstock.vllm:register"}, plugins

with tempfile.TemporaryDirectory() as folder:
    for suffix in ("npy", "npz", "pt", "safetensors"):
        path = Path(folder) / f"t.{suffix}"
        tensor = penstock.tensor([[1.5, 2.5], [3.5, 4.5]])
        penstock.save(tensor if suffix == "npy" else {"t": tensor}, path)
        loaded = penstock.load(path)
        assert (loaded if suffix == "npy" else loaded["t"]).tolist() == tensor.tolist()
    loader = penstock.DataLoader(penstock.rows(Path(folder) / "t.npy"), batch_size=2, num_workers=2)
    assert [batch.tolist() for batch in loader] == [tensor.tolist()]

    # The command lies beside Python's own, and is this interpreter's.
    command = Path(sys.prefix) / "bin" / "penstock"

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *words], capture_output=True, text=True, timeout=60)

    assert run("--version").stdout.split()[-1] == penstock.__version__
    assert "float" in run("ls", path).stdout
    missing = run("ls", "nope.npy")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith("penstock: nope.npy: "), missing.stderr
    assert run("ls", "--nonsense").returncode == 2
    assert subprocess.run(f"{command} help | true", shell=True, stderr=subprocess.PIPE).stderr == b""

print(f"penstock-tensors {penstock.__version__} works on Python {sys.version.partition(' ')[0]}")
