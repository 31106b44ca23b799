"""Ray's reader beside Penstock's, and DLIO's UNet3D with its own readers beside Penstock's; prints ratios.

    build/engines/bin/python bench/engines.py [ray] [dlio] [--files N] [--bytes N] [--repeats N]

Run with an interpreter that has the engines (script/bootstrap --engines). Files are in the page cache. Runs of the two
take turns, and the best of each counts, because the scheduler of an engine is what varies.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def files_of(folder: Path, count: int, nbytes: int, named: str, save) -> None:
    rng = np.random.default_rng(1)
    for i in range(count):
        save(folder / named.format(i), rng.integers(0, 255, (max(1, nbytes // 256), 256), dtype=np.uint8))


def best(runs: dict, repeats: int) -> dict[str, float]:
    out = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            begun = time.perf_counter()
            run()
            out[name] = min(out[name], time.perf_counter() - begun)
    return out


def of_ray(folder: Path, given: argparse.Namespace) -> dict[str, float]:
    os.environ.update(RAY)
    import ray

    import penstock.ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    files_of(folder, given.files, given.bytes, "{:06d}.npy", np.save)

    def consumed(dataset) -> None:
        rows = sum(len(batch["data"]) for batch in dataset.iter_batches(batch_size=None))
        assert rows == given.files * max(1, given.bytes // 256)

    runs = {
        "penstock.ray.read_tensors": lambda: consumed(penstock.ray.read_tensors(folder)),
        "ray.data.read_numpy": lambda: consumed(ray.data.read_numpy(str(folder))),
    }
    consumed(ray.data.read_numpy(str(folder / "000000.npy")) if given.files == 1 else penstock.ray.read_tensors(folder))
    out = best(runs, given.repeats)
    ray.shutdown()
    return out


def of_dlio(folder: Path, given: argparse.Namespace) -> dict[str, float]:
    """Seconds of an epoch, the quickest of three. DLIO says samples a second."""
    (folder / "data/train").mkdir(parents=True)
    (folder / "data/valid").mkdir()
    count = 64
    named = f"img_{{:0{len(str(count))}d}}_of_{count}.npz"
    files_of(folder / "data/train", count, 2_000_000, named, lambda path, x: np.savez(path, x=x[..., None], y=[0]))
    plug_ins = {
        "DLIO's reader and loader": [],
        "penstock.dlio.Reader": ["++workload.reader.reader_classname=penstock.dlio.Reader"],
        "penstock.dlio.DataLoader": [
            "++workload.reader.data_loader_classname=penstock.dlio.DataLoader",
            "++workload.reader.data_loader_sampler=index",
        ],
    }
    return {
        name: min(dlio_rate(folder, count, options) for _ in range(given.repeats)) for name, options in plug_ins.items()
    }


def dlio_rate(folder: Path, files: int, options: list[str]) -> float:
    """Seconds of an epoch of UNet3D."""
    command = [
        sys.executable, str(ROOT / "tests/engines/dlio_program.py"), "workload=unet3d_h100",
        f"++workload.dataset.data_folder={folder}/data", f"++workload.dataset.num_files_train={files}",
        "++workload.dataset.record_length=2000000", "++workload.dataset.record_length_stdev=0",
        "++workload.dataset.record_length_resize=4096", "++workload.reader.batch_size=4",
        "++workload.reader.read_threads=2", "++workload.train.epochs=3", "++workload.train.computation_time=0",
        "++workload.workflow.checkpoint=False", f"hydra.run.dir={folder}/out", *options,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    told = json.loads((folder / "out/summary.json").read_text())
    return files / max(told["metric"]["train_throughput_samples_per_second"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=["ray", "dlio"])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=16_384, help="of each .npy")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    for engine in given.engines:
        with tempfile.TemporaryDirectory() as folder:
            seconds = {"ray": of_ray, "dlio": of_dlio}[engine](Path(folder), given)
        peer = seconds["ray.data.read_numpy" if engine == "ray" else "DLIO's reader and loader"]
        for name, taken in seconds.items():
            print(f"{engine}: {name}: {taken:.2f} s, {peer / taken:.1f} times the peer")


if __name__ == "__main__":
    main()
