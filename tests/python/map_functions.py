"""Functions of files that worker processes import."""


def doubled(sample):
    return sample.numpy() * 2


def named(sample):
    return {"x": sample.numpy()}


def fails_at_three(sample):
    if sample[0].item() == 3:
        raise ValueError("three")
    return sample
