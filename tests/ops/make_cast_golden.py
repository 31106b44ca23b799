#!/usr/bin/env python3
"""Writes cast_golden.h: what torch's `.to(dtype)` answers for values where conversions differ.

    python tests/ops/make_cast_golden.py > tests/ops/cast_golden.h

Run with torch 2.13. Inputs are the same for every target; each answer is kept as its bytes in hexadecimal. A few inputs
are left out of a pair because torch does not agree with itself there (contiguous against strided tensors): NaN to
bfloat16 and from float16 to float32 has two spellings, and a float beyond the range of uint32 gives two values. NaN of
the float8 types that have only one of them becomes 0 as an integer, where every other NaN becomes the smallest one.
"""

import math
import warnings

import torch

warnings.filterwarnings("ignore")

NAMES = """bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64
complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu""".split()
DTYPES = {name: getattr(torch, name) for name in NAMES}
SINGLE_NAN = {"float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"}


def integers(bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    edges = [k for k in (0, 1, 2, 4, 6, 7, 8, 10, 11, 15, 16, 23, 24, 25, 31, 32, 33, 52, 53, 62, 63, 64) if k <= bits]
    near = {s * (1 << k) + d for k in edges for d in (-1, 0, 1) for s in (1, -1)}
    # Ties of float16, bfloat16, float32 and the float8 types, and double rounding from 64 bits by way of float.
    near |= {
        2049,
        2051,
        257,
        259,
        65519,
        65520,
        65536,
        465,
        472,
        480,
        0x7FFFFFBFFFFFFFFF,
        0x0100008000000001,
        17,
        19,
        27,
        29,
    }
    near |= {(1 << 24) + 1, (1 << 24) + 3, (1 << 53) + 1, (1 << 53) + 3, 2**40 + 2**28, 2**40 + 2**32 + 1}
    return sorted(v for v in near if low <= v <= high)


def float_values():
    """Doubles whose conversions are delicate; both infinities, and NaN as None."""
    tiny = [
        2.0**k
        for k in (-149, -150, -133, -134, -126, -127, -24, -25, -14, -15, -16, -17, -18, -19, -9, -10, -11, -7, -6)
    ]
    large = [448, 464, 465, 480, 240, 248, 256, 57344, 61440, 61439, 65504, 65519, 65520, 65536, 3.3895314e38, 3.4e38]
    steps = [1 + 2.0**-k for k in (3, 4, 8, 9, 10, 11, 12, 23, 24, 25)] + [
        1 + 2.0**-11 + 2.0**-40,
        1 + 2.0**-9 + 2.0**-40,
    ]
    steps += [1 + 2.0**-4 + 2.0**-40, 1 + 2.0**-3 + 2.0**-40, 1.5, 1.75, 2.5, 3.5, 0.5, 0.99]
    bounds = [2.0**k + d for k in (7, 8, 15, 16, 31, 32) for d in (-1, -0.5, 0, 0.5)] + [2.0**k for k in (62, 63, 64)]
    subnormal = [x * 1.5 for x in tiny] + [x * (1 + 2.0**-20) for x in tiny[::3]]
    values = [0.0, 1.0, 3.0, 10.0, 100.7, 10000000000.0, 1e300, math.inf, *tiny, *large, *steps, *bounds, *subnormal]
    return [s * v for v in values for s in (1.0, -1.0)] + [None]


def as_tensor(name, values):
    """A tensor of the floats; NaN keeps torch's usual bits."""
    numbers = [math.nan if v is None else v for v in values]
    return torch.tensor(numbers, dtype=torch.float64).to(DTYPES[name])


def inputs(name):
    dtype = DTYPES[name]
    if name == "bool":
        return torch.tensor([False, True])
    if name.startswith("float8"):
        codes = sorted(
            set(range(0, 256, 7)) | {1, 2, 3, 4, 8, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F, 0x80, 0x81, 0xFB, 0xFC, 0xFE, 0xFF}
        )
        return torch.tensor(codes, dtype=torch.uint8).view(dtype)
    if name.startswith(("int", "uint")):
        bits = dtype.itemsize * 8
        values = integers(bits, name.startswith("int"))
        raw = b"".join((v % (1 << bits)).to_bytes(dtype.itemsize, "little") for v in values)
        return torch.frombuffer(bytearray(raw), dtype=dtype)
    if name.startswith("complex"):
        part = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}[name]
        real = as_tensor(part, float_values()[::5])
        return torch.stack([real, real.flip(0)], -1).contiguous().view(dtype).flatten()
    return torch.unique(
        as_tensor(name, float_values()).view({2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize])
    ).view(dtype)


def raw(tensor):
    data = bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())
    return [data[i : i + tensor.element_size()] for i in range(0, len(data), tensor.element_size())]


def real_value(source, data):
    """The first part of one element as a Python float."""
    tensor = torch.frombuffer(bytearray(data), dtype=DTYPES[source])
    tensor = tensor.real if tensor.is_complex() else tensor
    return float(tensor.to(torch.float64)[0])


def is_left_out(source, target, data):
    if source.startswith(("int", "uint", "bool")):
        return False
    value = real_value(source, data)
    if target == "bfloat16" or (source, target) == ("float16", "float32"):
        return math.isnan(value)
    if target == "uint32":
        return not -(2.0**31) <= value < 2.0**32
    if target.startswith(("int", "uint")) and source in SINGLE_NAN:
        return math.isnan(value)
    return False


def main():
    print("#pragma once\n")
    print("// Written by make_cast_golden.py with torch", torch.__version__.split("+")[0] + ". Do not edit.\n")
    print("#include <array>\n#include <string_view>\n")
    print("namespace penstock::golden {\n")
    print(
        "/// Elements of `from` as bytes in hexadecimal, and what torch makes of each as `to`; left-out answers are "
        "dashes."
    )
    print(
        "struct Cast {\n  std::string_view from, to, answers;\n};\n"
        "struct Inputs {\n  std::string_view type, elements;\n};\n"
    )
    print("// clang-format off")
    print(f"inline constexpr std::array<Inputs, {len(NAMES)}> kInputs = {{{{")
    for name in NAMES:
        print(f'    {{"{name}", "{"".join(e.hex() for e in raw(inputs(name)))}"}},')
    print("}};")
    print(f"inline constexpr std::array<Cast, {len(NAMES) ** 2}> kCasts = {{{{")
    for source in NAMES:
        given = inputs(source)
        elements = raw(given)
        for target in NAMES:
            answers = raw(given.to(DTYPES[target]))
            shown = [
                "-" * len(a.hex()) if is_left_out(source, target, e) else a.hex()
                for e, a in zip(elements, answers, strict=True)
            ]
            print(f'    {{"{source}", "{target}", "{"".join(shown)}"}},')
    print("}};")
    small = [name for name in NAMES if name.startswith("float8")]
    print("// All 256 codes of each type, as float32.")
    print(f"inline constexpr std::array<Inputs, {len(small)}> kDecoded = {{{{")
    codes = torch.arange(256).to(torch.uint8)
    for name in small:
        print(f'    {{"{name}", "{"".join(e.hex() for e in raw(codes.view(DTYPES[name]).to(torch.float32)))}"}},')
    print("}};")
    print("// clang-format on\n")
    print("}  // namespace penstock::golden")


if __name__ == "__main__":
    main()
