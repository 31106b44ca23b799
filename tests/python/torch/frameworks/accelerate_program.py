"""accelerate's `prepare` of a loader, in `one` process or `two`, and one that calls functions in worker `processes`."""

import os
import sys
import warnings

import torch
from accelerate import Accelerator
from accelerate.launchers import debug_launcher

import penstock.torch as pt


def batches(folder, shuffle):
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(3)
    dataset = pt.Files(f"{folder}/*.pt").map(lambda batch: {"y": batch["y"] * 10}, batched=True)
    loader = accelerator.prepare(pt.DataLoader(dataset, 4, shuffle=shuffle))
    return accelerator, [batch["y"] for batch in loader]


def one(folder):
    _, got = batches(folder, shuffle=True)
    assert sorted(torch.cat(got).tolist()) == list(range(0, 160, 10))
    assert torch.cat(batches(folder, shuffle=False)[1]).tolist() == list(range(0, 160, 10))
    loader = Accelerator(cpu=True).prepare(pt.DataLoader(pt.Files(f"{folder}/*.pt"), 4, on_error="skip"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert len(list(loader)) == len(list(loader)) == 4
    assert ["on_error='skip'" in str(w.message) for w in said if w.category is pt.NotNativeWarning] == [True]


def with_pid(sample):
    return {"y": sample["y"] * 10, "pid": os.getpid()}


def processes(folder):
    dataset = pt.Files(f"{folder}/*.pt")
    for data, options in (
        (dataset.map(with_pid), {"workers": "processes"}),
        (dataset.map(with_pid, processes=True), {}),
    ):
        loader = Accelerator(cpu=True).prepare(pt.DataLoader(data, 4, num_workers=2, **options))
        for _ in range(2):
            got = list(loader)
            assert torch.cat([batch["y"] for batch in got]).tolist() == list(range(0, 160, 10))
            assert os.getpid() not in torch.cat([batch["pid"] for batch in got]).tolist()


def in_each(folder):
    accelerator, got = batches(folder, shuffle=False)
    assert accelerator.num_processes == 2
    everyone = accelerator.gather(torch.cat(got))
    assert sorted(everyone.tolist()) == list(range(0, 160, 10))


def two(folder):
    debug_launcher(in_each, (folder,), num_processes=2)


if __name__ == "__main__":
    {"one": one, "two": two, "processes": processes}[sys.argv[1]](sys.argv[2])
