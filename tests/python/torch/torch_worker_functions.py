"""Functions and datasets that worker processes import."""

import os
import random
import signal
import time

import numpy as np
import torch
import torch.utils.data as torch_data


def twice(sample):
    return sample * 2


def as_dict(sample):
    return {"x": sample * 2, "name": "a", "n": 3, "array": sample.numpy().astype("int16"), "pair": (sample, 1.5)}


def holding_itself(sample):
    parts = [sample]
    parts.append(parts)
    return {"parts": parts}


def summed(samples, *, collate_fn_map=None):
    return torch.stack(samples).sum(0)


def noisy(sample, generator):
    return sample + torch.rand((), generator=generator)


def batch_noisy(batch, generator):
    return batch + torch.rand((), generator=generator)


def collated(samples):
    return {"x": torch.stack(samples), "list": [1, "b"], "set": {1, 2}, "sparse": torch.eye(2).to_sparse()}


def long_doubles(samples):
    return np.full(len(samples), 1, dtype=np.longdouble) / 3


def default_type(sample):
    return torch.tensor(1.5)


def is_nested(batch):
    return {key: torch.tensor(part.is_nested) for key, part in batch.items()}


def shared(samples):
    one = torch.stack(samples)
    return one, one, one.mT, torch.nn.Parameter(one)


def kinds(sample):
    """What a thread has set of torch."""
    return torch.tensor(
        [torch.get_num_threads() == 1, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")]
    ), torch.ones(1)


of_program = 0  # what a program sets while it runs


def with_program(sample):
    return sample, of_program


def refuses_six(sample):
    if sample[0] == 6:
        raise KeyError("six")
    return sample


def refuses_six_slowly(sample):
    time.sleep(0.0005)
    return refuses_six(sample)


def refuses_all(sample):
    raise ValueError("none of them")


def ends_at_six(sample):
    if sample[0] == 6:
        os._exit(4)
    return sample


def is_killed_at_six(sample):
    if sample[0] == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return sample


def ends_at_batch(samples):
    return torch.stack([ends_at_six(sample) for sample in samples])


def slow_here(sample):
    """Takes its time in the program's own process alone."""
    if os.environ["PENSTOCK_TEST_PROCESS"] == str(os.getpid()):
        time.sleep(0.1)  # far longer than a worker process takes, also on a busy machine
    return sample


def slow_there(sample):
    if os.environ["PENSTOCK_TEST_PROCESS"] != str(os.getpid()):
        time.sleep(0.1)  # far longer than a worker process takes, also on a busy machine
    return sample


def nested(sample):
    import penstock.torch as pt

    loader = pt.DataLoader(pt.Rows(sample[None]).map(twice), 1, num_workers=1, workers="processes")
    return torch.cat(list(loader))[0]


def on_meta(samples):
    return torch.stack(samples).to("meta")


def draws(sample):
    return sample + torch.rand(()) + np.random.rand() + random.random()


def process(sample):
    return os.getpid()


class Own(torch_data.Dataset):
    """A dataset of the program's own, whose samples depend on what `worker_init_fn` did."""

    offset = 0

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.full((2,), float(index)), index + self.offset, np.float32(index)


def sets_offset(number):
    info = torch_data.get_worker_info()
    assert info.id == number
    assert info.num_workers == 2
    info.dataset.offset = 1000


class Counting(torch_data.Dataset):
    """Counts how often it was asked, in the process that asks."""

    def __init__(self):
        self.count = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.count += 1
        return self.count


class Fetches(torch_data.Dataset):
    """Of `__getitems__`, which torch's loader asks for whole batches."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return torch.tensor(index)

    def __getitems__(self, indices):
        return [torch.tensor(index + 100) for index in indices]


def stream():
    class Numbers(torch_data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

    return Numbers()


class AtOnce(torch_data.Dataset):
    """Gives the samples of a batch in a form of its own, and no single ones."""

    def __init__(self):
        self.columns = {"x": np.arange(20), "y": np.arange(40.0).reshape(20, 2)}

    def __len__(self):
        return 20

    def __getitems__(self, indices):
        if 19 in indices:
            raise KeyError("nineteen")
        return {name: column[indices] for name, column in self.columns.items()}


def columns_as_tensors(columns):
    return {name: torch.from_numpy(column) for name, column in columns.items()}


class Cast:
    """Values to a type, every second element of a larger tensor."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __call__(self, sample):
        return sample.repeat_interleave(2).to(self.dtype)[::2]


def listed(samples):
    return samples


def nested_parts(sample):
    return torch.nested.nested_tensor([sample, sample[:1]])
