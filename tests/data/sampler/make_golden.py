"""Writes golden.h: orders that torch's own samplers give, for sampler_test.cpp.

python make_golden.py > golden.h           needs torch
python make_golden.py --large              checks randperm at the size where its algorithm changes (4 GB, a minute)
"""

import sys

import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SubsetRandomSampler


def generator(seed):
    return torch.Generator().manual_seed(seed)


def cpp(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def randperm_cases():
    for seed, n in [(1, 10), (0, 0), (0, 1), (7, 2), (2**32 + 1, 10), (123456789012, 33)]:
        yield f"{{{seed}u, {n}, {cpp(torch.randperm(n, generator=generator(seed)).tolist())}}}"


def randint_cases():
    for high in [1, 5, 2**28 - 1, 2**28, 2**28 + 1, 2**32, 2**40, 2**62 + 3]:
        values = torch.randint(high, (7,), dtype=torch.int64, generator=generator(7)).tolist()
        yield f"{{7u, {high}, {cpp(values)}}}"


def random_cases():
    for seed, n, replacement, samples in [
        (3, 12, False, None),
        (3, 5, False, 13),
        (3, 5, False, 10),
        (3, 12, False, 4),
        (3, 12, True, None),
        (11, 3, True, 70),
    ]:
        order = list(RandomSampler(range(n), replacement, samples, generator(seed)))
        yield f"{{{seed}u, {n}, {str(replacement).lower()}, {-1 if samples is None else samples}, {cpp(order)}}}"


def distributed_cases():
    for n, replicas, rank, shuffle, drop, seed, epoch in [
        (10, 3, 0, True, False, 0, 0),
        (10, 3, 2, True, False, 5, 2),
        (10, 3, 1, False, False, 0, 0),
        (10, 3, 2, False, True, 0, 0),
        (10, 4, 3, True, True, 9, 1),
        (12, 4, 3, True, True, 9, 1),
        (2, 5, 4, True, False, 1, 0),
        (3, 8, 7, False, False, 1, 0),
        (3, 8, 7, False, True, 1, 0),
    ]:
        sampler = DistributedSampler(range(n), replicas, rank, shuffle, seed, drop)
        sampler.set_epoch(epoch)
        flags = f"{str(shuffle).lower()}, {str(drop).lower()}"
        yield f"{{{n}, {replicas}, {rank}, {flags}, {seed}u, {epoch}u, {cpp(list(sampler))}}}"


def write():
    print("// Made by make_golden.py with torch " + torch.__version__.split("+")[0] + ".")
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n\nnamespace golden {\n")
    print("using Order = std::vector<std::int64_t>;\n")

    for fields, name, rows in [
        ("std::uint64_t seed; std::int64_t n; Order order;", "Randperm", randperm_cases()),
        ("std::uint64_t seed; std::int64_t high; Order values;", "Randint", randint_cases()),
        (
            "std::uint64_t seed; std::int64_t n; bool replacement; std::int64_t samples; Order order;",
            "Random",
            random_cases(),
        ),
        (
            "std::int64_t n; std::int64_t replicas; std::int64_t rank; bool shuffle; bool drop; std::uint64_t seed; "
            "std::uint64_t epoch; Order order;",
            "Distributed",
            distributed_cases(),
        ),
    ]:
        print(f"struct {name} {{ {fields} }};")
        print(f"inline const std::vector<{name}> k{name}Cases = {{")
        for row in rows:
            print(f"    {row},")
        print("};\n")
    indices = [10, 20, 30, 40, 50, 60, 70]
    print(f"inline const Order kSubset = {cpp(indices)};")
    print(f"inline const Order kSubsetOrder = {cpp(list(SubsetRandomSampler(indices, generator(4))))};  // seed 4")
    batches = list(BatchSampler(RandomSampler(range(10), generator=generator(2)), 4, False))
    print(f"inline const std::vector<Order> kBatches = {cpp(cpp(b) for b in batches)};  // seed 2, 10 by 4")
    print("\n}  // namespace golden")


def check_large():
    n = (2**32 - 1) // 20
    order = torch.randperm(n, generator=generator(1))
    print("randperm", n, "seed 1:", order[:8].tolist(), order[-4:].tolist())
    del order
    print("randperm", n - 1, "seed 1:", torch.randperm(n - 1, generator=generator(1))[:8].tolist())


if __name__ == "__main__":
    check_large() if "--large" in sys.argv[1:] else write()
