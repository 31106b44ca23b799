"""Creation and random numbers: torch's names and types, and Philox by its published vectors."""

import math
import pickle
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ctrl_c import answers_ctrl_c
from hypothesis import given
from hypothesis import strategies as st

import penstock

torch = pytest.importorskip("torch")


def same(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == tuple(expected.shape)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("size", [(), (0,), (3,), (2, 0, 4), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", [None, "float16", "int8", "bool", "complex64", torch.float64])
def test_filled(size, dtype):
    expected = None if dtype is None else dtype if isinstance(dtype, torch.dtype) else getattr(torch, dtype)
    same(penstock.zeros(size, dtype=dtype), torch.zeros(size, dtype=expected))
    same(
        penstock.ones(*size, dtype=dtype), torch.ones(*size, dtype=expected) if size else torch.ones((), dtype=expected)
    )
    found = penstock.empty(size, dtype=dtype, device="cpu")
    assert (found.shape, found.dtype) == (size, expected or torch.float32)


@pytest.mark.parametrize("value", [True, 3, -7, 1.5, math.inf, 1 + 2j], ids=str)
@pytest.mark.parametrize("dtype", [None, "int16", "float16", "float64", "complex128", "bool"])
def test_full(value, dtype):
    if isinstance(value, complex) and dtype in ("int16", "float16", "float64", "bool"):
        pytest.skip("torch refuses what drops an imaginary part")
    if value == math.inf and dtype == "int16":
        with pytest.raises(ValueError, match="does not fit int16"):
            penstock.full((2,), value, dtype=dtype)
        return
    same(penstock.full((2, 2), value, dtype=dtype), torch.full((2, 2), value, dtype=dtype and getattr(torch, dtype)))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(256, "uint8"), (-1, "uint8"), (-1, "uint64"), (128, "int8"), (1e10, "int32"), (math.nan, "int64")],
)
def test_full_beyond_the_type(value, dtype):
    with pytest.raises(ValueError, match=f"does not fit {dtype}"):
        penstock.full((), value, dtype=dtype)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1], ids=str)
def test_full_of_integers_beyond_int64(value):
    assert penstock.full((2,), value).dtype == "uint64"
    for dtype in ("uint64", "float32", "bfloat16", "complex64"):
        same(penstock.full((2,), value, dtype=dtype), torch.full((2,), value, dtype=getattr(torch, dtype)))
    for dtype in ("int64", "int8", "uint32"):
        with pytest.raises(ValueError, match=f"{value} does not fit {dtype}"):
            penstock.full((2,), value, dtype=dtype)
    with pytest.raises(ValueError, match="below 2"):
        penstock.arange(value, value + 1 if value == 2**63 else value)


MAKERS = {
    "randn": "penstock.randn(2**28)",
    "rand": "penstock.rand(2**28, generator=penstock.Generator(1))",
    "randint": "penstock.randint(9, (2**27,))",
    "arange": "penstock.arange(2**27)",
    "full": "penstock.full((2**30,), 1, dtype='int8')",
}


@pytest.mark.parametrize("name", MAKERS)
def test_making_much_answers_ctrl_c(tmp_path, name):
    answers_ctrl_c(tmp_path, "", f"while True: {MAKERS[name]}")


def test_threads_that_share_a_generator_draw_different_numbers():
    shared = penstock.Generator(3)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: penstock.rand(1 << 22, generator=shared)[:4].tolist(), range(8)))
    alone = penstock.Generator(3)
    assert sorted(drawn) == sorted(penstock.rand(1 << 22, generator=alone)[:4].tolist() for _ in range(8))


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_arange_of_integers(start, stop, step):
    if (stop - start) * step < 0:
        with pytest.raises(ValueError, match="direction"):
            penstock.arange(start, stop, step)
        return
    same(penstock.arange(start, stop, step), torch.arange(start, stop, step))


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(0.01, 7))
def test_arange_of_floats(start, stop, step):
    step = math.copysign(step, stop - start)
    found = penstock.arange(start, stop, step)
    assert found.dtype == "float32"
    assert found.shape == torch.arange(start, stop, step).shape
    exact = [struct.unpack("f", struct.pack("f", start + i * step))[0] for i in range(found.numel())]
    assert found.tolist() == exact


def test_arange_as_torch():
    same(penstock.arange(5), torch.arange(5))
    same(penstock.arange(5, dtype="float16"), torch.arange(5, dtype=torch.float16))
    same(penstock.arange(0.5, 3), torch.arange(0.5, 3))
    same(penstock.arange(2**53, 2**53 + 5), torch.arange(2**53, 2**53 + 5))
    assert penstock.arange(-(2**63), 2**63 - 1, 2**62).tolist() == list(range(-(2**63), 2**63 - 1, 2**62))
    for bad in [(0, 5, 0), (0, math.inf), (0, math.nan), (0, 1, 1e-300)]:
        with pytest.raises(ValueError, match="arange"):
            penstock.arange(*bad)
    with pytest.raises(ValueError, match="does not fit uint8"):
        penstock.arange(300, dtype="uint8")
    with pytest.raises(TypeError):
        penstock.arange()


# --- random numbers ---


def philox(seed, block):
    """Philox4x32-10 as its authors describe it."""
    x = [block & 0xFFFFFFFF, block >> 32, 0, 0]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        left, right = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(right >> 32) ^ x[1] ^ key[0], right & 0xFFFFFFFF, (left >> 32) ^ x[3] ^ key[1], left & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def test_philox_of_this_page():
    """The first of the vectors published with Random123: counter and key 0."""
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


SEEDS = [0, 1, 2**32, 2**64 - 1, 0x123456789ABCDEF]


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_numbers_are_the_high_bits_of_words(seed):
    words = [word for block in range(3) for word in philox(seed, block)]
    for dtype, bits in (("float32", 24), ("float16", 11), ("bfloat16", 8)):
        found = penstock.rand(11, generator=penstock.Generator(seed), dtype=dtype)
        assert found.tolist() == [(word >> (32 - bits)) / 2**bits for word in words[:11]]
    longs = [words[i] | words[i + 1] << 32 for i in range(0, 10, 2)]
    found = penstock.rand(5, generator=penstock.Generator(seed), dtype="float64")
    assert found.tolist() == [(word >> 11) / 2**53 for word in longs]


@pytest.mark.parametrize("seed", SEEDS)
def test_normal_numbers_are_box_mullers(seed):
    words = philox(seed, 0)
    found = penstock.randn(4, generator=penstock.Generator(seed)).tolist()
    for i in (0, 2):
        radius = math.sqrt(-2 * math.log((words[i] + 0.5) / 2**32))
        angle = 2 * math.pi * (words[i + 1] >> 8) / 2**24
        assert found[i] == pytest.approx(radius * math.cos(angle), rel=1e-5, abs=1e-5)
        assert found[i + 1] == pytest.approx(radius * math.sin(angle), rel=1e-5, abs=1e-5)
    first, second = words[0] | words[1] << 32, words[2] | words[3] << 32
    radius = math.sqrt(-2 * math.log(((first >> 11) + 0.5) / 2**53))
    angle = 2 * math.pi * (second >> 11) / 2**53
    found = penstock.randn(2, generator=penstock.Generator(seed), dtype="float64").tolist()
    assert found == pytest.approx([radius * math.cos(angle), radius * math.sin(angle)], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 10), (-5, 3), (-(2**63), 2**63 - 1), (0, 2**40)], ids=str)
def test_integers_are_high_products(seed, low, high):
    words = [word for block in range(3) for word in philox(seed, block)]
    longs = [words[i] | words[i + 1] << 32 for i in range(0, 12, 2)]
    expected = [low + (word * (high - low) >> 64) for word in longs]
    assert penstock.randint(low, high, (6,), generator=penstock.Generator(seed)).tolist() == expected


def test_calls_follow_each_other():
    g = penstock.Generator(7)
    first, second = penstock.rand(6, generator=g), penstock.rand(4, generator=g)
    whole = penstock.rand(12, generator=penstock.Generator(7)).tolist()
    assert first.tolist() == whole[:6]
    assert second.tolist() == whole[8:12]  # six numbers took two blocks of four
    state = g.get_state()
    assert state == (7, 3)
    third = penstock.randn(3, generator=g).tolist()
    assert penstock.randn(3, generator=penstock.Generator().set_state(state)).tolist() == third
    assert (
        penstock.randn(3, generator=pickle.loads(pickle.dumps(penstock.Generator(7).set_state(state)))).tolist()
        == third
    )
    assert g.manual_seed(7) is g
    assert penstock.rand(6, generator=g).equal(first)
    assert g.initial_seed() == 7


def test_large_draws_are_the_same_with_any_number_of_threads():
    whole = penstock.randn(1_000_001, generator=penstock.Generator(3))
    tail = penstock.Generator(3).set_state((3, 999_000 // 4))
    assert whole[999_000:].equal(penstock.randn(1001, generator=tail))


def test_moments():
    g = penstock.Generator(5)
    for dtype in ("float32", "float64"):
        x = torch.from_dlpack(penstock.randn(200_000, generator=g, dtype=dtype)).double()
        assert abs(x.mean()) < 0.01
        assert abs(x.var() - 1) < 0.02
        assert abs((x**3).mean()) < 0.05
        assert abs((x**4).mean() - 3) < 0.1
        u = torch.from_dlpack(penstock.rand(200_000, generator=g, dtype=dtype)).double()
        assert (u.min() >= 0) & (u.max() < 1)
        assert abs(u.mean() - 0.5) < 0.005
    counts = torch.bincount(torch.from_dlpack(penstock.randint(6, (60_000,), generator=g)), minlength=6)
    assert (counts - 10_000).abs().max() < 500


def test_without_a_generator_every_call_differs():
    assert not penstock.rand(8).equal(penstock.rand(8))
    assert penstock.Generator().initial_seed() != penstock.Generator().initial_seed()


def test_random_dtypes():
    assert penstock.randint(3, (2,), dtype="uint8").dtype == "uint8"
    assert penstock.randint(0, 3, (2,), dtype="float16").dtype == "float16"
    for call in (lambda: penstock.rand(2, dtype="int64"), lambda: penstock.randn(2, dtype="float8_e5m2")):
        with pytest.raises(ValueError, match="float16, bfloat16, float32 or float64"):
            call()
    with pytest.raises(ValueError, match="from 5 to 5"):
        penstock.randint(5, 5, (2,))
    with pytest.raises(ValueError, match="does not fit int8"):
        penstock.randint(0, 200, (2,), dtype="int8")


def test_devices():
    for make in (penstock.zeros, penstock.ones, penstock.rand):
        assert make(2, device="cpu").device == "cpu"
        with pytest.raises(ValueError, match="nonsense"):
            make(2, device="nonsense")
    assert penstock.tensor([1], device="cpu").device == "cpu"


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1 + 2j], "float32"),
        ([1 + 2j], "int64"),
        ([1e10], "int8"),
        ([300.0], "uint8"),
        ([math.nan], "int32"),
        ([math.inf, 1], "int64"),
        ([300], "uint8"),
        ([-1], "uint64"),
        ([-1, 1.0], "uint64"),
        ([2**70, 1.0], "int64"),
    ],
    ids=str,
)
def test_lists_with_numbers_that_the_type_has_not_are_refused(values, dtype):
    for make in (penstock.tensor, penstock.asarray):
        with pytest.raises(ValueError, match="does not fit"):
            make(values, dtype)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "float64", "complex128"])
def test_integers_beside_floats_stay_exact(dtype):
    values = [1, 2.5, 3] if dtype == "int8" else [2**53 + 1, 2.0, True]
    found = penstock.tensor(values, dtype=dtype)
    assert (found.dtype, found.tolist()) == (dtype, np.array(values, dtype).tolist())


@pytest.mark.parametrize(("high", "dtype"), [(10**6, "float16"), (5, "bool"), (10**3, "float8_e4m3fn")])
def test_random_integers_that_a_type_has_not_are_refused(high, dtype):
    with pytest.raises(ValueError, match="does not fit"):
        penstock.randint(0, high, (3,), dtype=dtype)
    assert penstock.randint(0, 2, (30,), dtype=dtype).to("float32").max().item() == 1


@pytest.mark.parametrize("make", ["zeros", "ones", "empty", "rand", "randn"])
def test_negative_sizes_are_arguments_that_make_no_sense(make):
    with pytest.raises(penstock.InvalidArgumentError, match=r"shape \(2, -1\)"):
        getattr(penstock, make)(2, -1)
    with pytest.raises(penstock.InvalidArgumentError, match=r"shape \(-1,\)"):
        penstock.full(-1, 0)
