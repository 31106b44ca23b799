"""Functions of files that worker processes import."""

import os


def doubled(sample):
    return sample.numpy() * 2


def named(sample):
    return {"x": sample.numpy()}


def fails_at_three(path, sample):
    """Until there is a file at the path."""
    if sample[0].item() == 3 and not os.path.exists(path):
        raise ValueError("three")
    return sample


def tripled(sample):
    return sample.numpy() * 3


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, sample):
        return sample.numpy() * self.factor
