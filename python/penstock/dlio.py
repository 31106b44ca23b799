"""Penstock inside DLIO, the benchmark of MLPerf Storage: a reader and a data loader that its configuration names.

    reader:
      reader_classname: penstock.dlio.Reader              # files are read by Penstock, in DLIO's loader for PyTorch
    reader:
      data_loader_classname: penstock.dlio.DataLoader     # batches are read by Penstock's loader
      data_loader_sampler: index

For the formats npz and npy. As all of DLIO's readers do, these read each sample whole, drop it, and hand on the made-up
image of `record_length_resize`, so that figures compare reading alone. Needs `dlio-benchmark`.

`python -m penstock.dlio` is DLIO's command `dlio_benchmark` where there is no TensorFlow, which that imports whatever
it runs.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from dlio_benchmark.common.enumerations import DataLoaderType, DatasetType, FormatType, Shuffle
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader
from dlio_benchmark.reader.reader_handler import FormatReader

import penstock
from penstock import _whole as _whole  # it tells of a package that is not whole

__all__ = ["DataLoader", "Reader"]

# What DLIO calls the array of an .npz.
_KEY = "x"


def _key_of(format_type: Any) -> str | None:
    if format_type not in (FormatType.NPZ, FormatType.NPY):
        raise penstock.InvalidArgumentError(f"found the format {format_type}, expected npz or npy")
    return _KEY if format_type is FormatType.NPZ else None


class Reader(FormatReader):
    """A reader of DLIO that opens files by `penstock.load`."""

    def __init__(self, dataset_type: Any, thread_index: int, epoch: int) -> None:
        super().__init__(dataset_type, thread_index)
        self._key = _key_of(self._args.format)

    def open(self, filename: str) -> Any:
        return penstock.load(filename, key=self._key).numpy()

    def close(self, filename: str) -> None:
        self.open_file_map[filename] = None

    def get_sample(self, filename: str, sample_index: int) -> Any:
        return self.open_file_map[filename][..., sample_index]

    def next(self) -> Iterator[Any]:
        yield from super().next()

    def read_index(self, image_idx: int, step: int) -> Any:
        return super().read_index(image_idx, step)

    def finalize(self) -> None:
        self.open_file_map.clear()

    def is_index_based(self) -> bool:
        return True

    def is_iterator_based(self) -> bool:
        return True


class DataLoader(BaseDataLoader):
    """A data loader of DLIO over `penstock.DataLoader`, with `read_threads` workers."""

    def __init__(self, format_type: Any, dataset_type: Any, epoch_number: int) -> None:
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)
        self._key = _key_of(format_type)

    def read(self) -> None:
        """DLIO says here that its list of files is ready; `next` looks it up."""

    def _samples(self) -> list[tuple[str, int]]:
        """This rank's samples in the order of this epoch, each by file and place in it."""
        args, trains = self._args, self.dataset_type is DatasetType.TRAIN
        by_index = args.train_global_index_map if trains else args.val_global_index_map
        if not by_index:
            by_thread = args.train_file_map if trains else args.val_file_map
            return [(path, place) for files in by_thread.values() for _, path, place in files]
        order = np.array(list(by_index))
        if args.sample_shuffle is not Shuffle.OFF:
            seed = args.seed + self.epoch_number if args.seed_change_epoch else args.seed
            np.random.default_rng(seed if args.sample_shuffle is Shuffle.SEED else None).shuffle(order)
        return [by_index[int(index)] for index in order]

    def _dataset(self) -> penstock.Dataset:
        samples = self._samples()
        if self._args.num_samples_per_file == 1:
            dataset = penstock.files([path for path, _ in samples], keys=self._key)
        else:
            dataset = penstock.dataset(len(samples), lambda index: self._one_of_a_file(*samples[index]))
        waits = self._args.preprocess_time != 0 or self._args.preprocess_time_stdev != 0
        return dataset.map(self._preprocessed) if waits else dataset

    def _one_of_a_file(self, path: str, place: int) -> Any:
        return penstock.open(path)[self._key or ""][..., place].load()

    def _preprocessed(self, sample: Any) -> Any:
        time.sleep(max(0.0, np.random.normal(self._args.preprocess_time, self._args.preprocess_time_stdev)))
        return sample

    def next(self) -> Iterator[Any]:
        super().next()
        args = self._args
        ahead = max(1, math.ceil(args.prefetch_size / max(1, args.read_threads)))
        with penstock.DataLoader(
            self._dataset(),
            self.batch_size,
            num_workers=args.read_threads,
            prefetch_factor=ahead,
            drop_last=True,
            collate=penstock.samples(),
        ) as loader:
            for batch in loader:
                yield torch.from_numpy(np.stack([args.resized_image] * len(batch)))
        self.epoch_number += 1

    def finalize(self) -> None:
        """Nothing is kept between epochs."""


def _main() -> None:
    """DLIO's own command. TensorFlow, which it needs for TensorFlow's loaders alone, may be missing."""
    if importlib.util.find_spec("tensorflow") is None:
        sys.modules["tensorflow"] = types.ModuleType("tensorflow")
    from dlio_benchmark.main import main

    main()


if __name__ == "__main__":
    _main()
