"""Operations against torch: every pair of dtypes, broadcasting, strides, empty tensors, NaN, errors."""

import itertools
import math
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

torch = pytest.importorskip("torch")

NAMES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 "
    "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
).split()
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
COMMON = ["bool", *INTEGERS, *FLOATS, "complex64", "complex128"]
ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
BINARY = {**ARITHMETIC, **COMPARISONS}
UNARY = ["neg", "exp", "log", "sqrt", "tanh", "relu", "abs"]


def dtype_of(name):
    return getattr(torch, name)


def sample(name, shape, seed=0):
    """Values of every sign and size that the dtype has."""
    generator = torch.Generator().manual_seed(seed)
    dtype = dtype_of(name)
    if name == "bool":
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        info = torch.iinfo(dtype)
        wide = torch.randint(-(2**63), 2**63 - 1, shape, generator=generator)
        small = torch.randint(0 if info.min == 0 else -9, 9, shape, generator=generator)
        return torch.where(torch.rand(shape, generator=generator) < 0.3, wide, small).to(dtype)
    if dtype.is_complex:
        part = {"complex32": torch.float16, "complex64": torch.float32, "complex128": torch.float64}[name]
        return torch.complex(
            *[torch.randn(shape, generator=generator).to(part if part != torch.float16 else torch.float32)] * 2
        ).to(dtype)
    return (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(dtype)


def ours(tensor):
    return penstock.tensor(tensor)


def assert_same(found, expected, *, rtol=0.0, atol=0.0):
    """Same dtype and shape, and the same values: exactly unless a tolerance is given."""
    back = torch.from_dlpack(found) if found.dtype.itemsize else found
    assert back.dtype == expected.dtype
    assert back.shape == expected.shape
    torch.testing.assert_close(back, expected.contiguous(), rtol=rtol, atol=atol, equal_nan=True)


def torch_or_error(call):
    try:
        return call()
    except (RuntimeError, NotImplementedError, IndexError, ValueError) as error:
        return error


# --- promotion ---


@pytest.mark.parametrize("a", NAMES)
def test_promote_types_is_torchs_table(a):
    for b in NAMES:
        expected = torch_or_error(lambda b=b: torch.promote_types(dtype_of(a), dtype_of(b)))
        if isinstance(expected, Exception):
            with pytest.raises(penstock.DTypeMismatchError, match="no common type"):
                penstock.promote_types(a, b)
        else:
            assert penstock.promote_types(a, b) == expected, (a, b)


OPERANDS = [
    *[(f"{name} vector", sample(name, (3,))) for name in NAMES if not name.startswith("float8")],
    *[(f"{name} point", sample(name, ())) for name in NAMES if not name.startswith("float8")],
    *[(repr(number), number) for number in (True, 3, 2.5, 1 + 2j)],
]


@pytest.mark.parametrize("a", [value for _, value in OPERANDS], ids=[name for name, _ in OPERANDS])
def test_result_type_is_torchs(a):
    def held(x):
        return ours(x) if isinstance(x, torch.Tensor) else x

    for _, b in OPERANDS:
        expected = torch_or_error(lambda b=b: torch.result_type(a, b))
        if isinstance(expected, Exception):
            with pytest.raises(penstock.DTypeMismatchError):
                penstock.result_type(held(a), held(b))
        else:
            assert penstock.result_type(held(a), held(b)) == expected, (a, b)


# --- elementwise ---


def tolerance(operation, dtype):
    """Complex products and quotients are formed in another order by torch; everything else is exact."""
    if dtype.is_complex and operation in ("mul", "div"):
        return {torch.complex128: 1e-14, torch.complex64: 1e-5, torch.complex32: 2e-3}[dtype]
    return 0.0


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("a", COMMON)
def test_binary_of_every_pair(name, a):
    for b in COMMON:
        x, y = sample(a, (4, 37), 1), sample(b, (4, 37), 2)
        expected = torch_or_error(lambda x=x, y=y: BINARY[name](x, y))
        if isinstance(expected, Exception):
            with pytest.raises((penstock.UnsupportedError, penstock.DTypeMismatchError)):
                BINARY[name](ours(x), ours(y))
        else:
            rtol = tolerance(name, expected.dtype)
            assert_same(BINARY[name](ours(x), ours(y)), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [True, 3, -2, 300, 0.1, -1.5, float("inf"), float("nan"), 1 + 2j], ids=str)
@pytest.mark.parametrize("a", COMMON)
def test_binary_with_a_number(name, number, a):
    if a.startswith("complex") and number in (math.inf,) and name in ("add", "sub"):
        pytest.skip("torch multiplies the number by 1 first, which makes inf + nan j of it")
    x = sample(a, (50,), 3)
    expected = torch_or_error(lambda: BINARY[name](x, number))
    if isinstance(expected, Exception) and "ComplexHalf" in str(expected):
        pytest.skip("torch has no such operation for complex32")
    if isinstance(expected, Exception):
        with pytest.raises((penstock.UnsupportedError, penstock.DTypeMismatchError)):
            BINARY[name](ours(x), number)
        return
    rtol = tolerance(name, expected.dtype)
    assert_same(BINARY[name](ours(x), number), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("a", COMMON)
def test_number_on_the_left(name, a):
    if (name, a) == ("sub", "bool"):
        pytest.skip("torch has no bool differences")
    x = sample(a, (50,), 3)
    # torch multiplies by the reciprocal; the quotient itself is asked of it by way of a tensor.
    left = torch.tensor(3.0) if name == "div" else 3
    expected = torch_or_error(lambda: BINARY[name](left, x))
    if isinstance(expected, Exception):
        with pytest.raises(penstock.UnsupportedError):
            BINARY[name](3, ours(x))
        return
    rtol = tolerance(name, expected.dtype)
    assert_same(BINARY[name](3, ours(x)) if name != "div" else 3.0 / ours(x), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("number", [1.1, 1 / 3, 1000.123, 7, 1e-6])
def test_a_number_is_divided_unrounded(half, number):
    x = sample(half, (5000,), 3)
    assert_same(number / ours(x), (torch.tensor(number, dtype=torch.float32) / x.float()).to(x.dtype))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", ["uint64", "int8", "int64", "float16", "float32", "float64", "bool", "complex64"])
@pytest.mark.parametrize("number", [2**63, 2**63 + 1024, 2**64 - 1], ids=str)
def test_integers_beyond_int64(name, dtype, number):
    x = torch.tensor([0, 1, 0]).to(dtype_of(dtype))
    if dtype == "uint64":
        x = torch.tensor([0, 1, 2**63 + 1024], dtype=torch.uint64)
    expected = torch_or_error(lambda: BINARY[name](x, number))
    if isinstance(expected, Exception):
        if "not implemented for 'UInt64'" not in str(expected):
            with pytest.raises((penstock.UnsupportedError, penstock.DTypeMismatchError)):
                BINARY[name](ours(x), number)
        return
    assert_same(BINARY[name](ours(x), number), expected)


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("other", ["float64", "float32", "float16", "int64"])
def test_halves_with_a_point(name, half, other):
    x = sample(half, (400,), 5)
    point = torch.tensor(3).to(dtype_of(other)) / 10 if other != "int64" else torch.tensor(1001)
    assert_same(BINARY[name](ours(x), ours(point)), BINARY[name](x, point))
    assert_same(BINARY[name](ours(point), ours(x)), BINARY[name](point, x))


UNSIGNED = ["uint16", "uint32", "uint64"]


@pytest.mark.parametrize("a", UNSIGNED)
def test_wide_unsigned_as_numpy(a):
    np = pytest.importorskip("numpy")
    x = np.frombuffer(np.random.default_rng(1).bytes(800), a).copy()
    y = np.frombuffer(np.random.default_rng(2).bytes(800), a).copy()
    x[:20] = y[:20]
    for name in ("add", "sub", "mul", *COMPARISONS):
        found = BINARY[name](penstock.tensor(x), penstock.tensor(y)).numpy()
        expected = BINARY[name](x, y)
        assert found.dtype == expected.dtype
        assert (found == expected).all()
    assert ((-penstock.tensor(x)).numpy() == -x).all()
    assert (abs(penstock.tensor(x)).numpy() == x).all()
    assert_same(penstock.tensor(x) / penstock.tensor(y), torch.from_numpy(x) / torch.from_numpy(y))


@st.composite
def broadcast_pair(draw):
    rank = draw(st.integers(0, 4))
    sizes = [draw(st.sampled_from([0, 1, 2, 3, 7])) for _ in range(rank)]
    pair = []
    for _ in range(2):
        kept = draw(st.integers(0, rank))
        pair.append([1 if draw(st.booleans()) else size for size in sizes[kept:]])
    return pair


def strided(tensor, how):
    """The same values with other strides."""
    if how == "permuted":
        order = list(range(tensor.ndim))[::-1]
        return tensor.permute(order).contiguous().permute(order)
    if how == "stepped" and tensor.ndim:
        wide = torch.stack([tensor, tensor], -1).flatten(-2)
        return wide[..., ::2]
    if how == "offset":
        flat = torch.cat([tensor.flatten()[:0].new_zeros(3), tensor.flatten()])[3:]
        return flat.reshape(tensor.shape)
    return tensor


HOW = ["contiguous", "permuted", "stepped", "offset"]


@given(broadcast_pair(), st.sampled_from(HOW), st.sampled_from(HOW), st.sampled_from(["float32", "int16", "float16"]))
@settings(max_examples=300, deadline=None)
def test_broadcast_and_strides(shapes, how_a, how_b, name):
    x, y = strided(sample(name, shapes[0], 1), how_a), strided(sample("float32", shapes[1], 2), how_b)
    expected = torch_or_error(lambda: x * y)
    if isinstance(expected, Exception):
        with pytest.raises(penstock.ShapeMismatchError, match="broadcast"):
            ours(x) * ours(y)
    else:
        assert_same(ours(x) * ours(y), expected)
        assert_same(ours(x) < ours(y), x < y)


@pytest.mark.parametrize("size", [1, 511, 512, 513, 1025, 1_000_003])
def test_sizes_around_blocks_and_threads(size):
    x, y = sample("float32", (size,), 1), sample("int32", (size,), 2)
    assert_same(ours(x) + ours(y), x + y)
    assert_same(ours(x).relu(), x.relu())
    assert_same(ours(x).reshape(-1, 1) * ours(x)[:1], x.reshape(-1, 1) * x[:1])


def test_an_expanded_row_and_column():
    x, row, column = sample("float32", (300, 70)), sample("float64", (70,)), sample("int8", (300, 1))
    assert_same(ours(x) + ours(row), x + row)
    assert_same(ours(column) - ours(x), column - x)
    assert_same(ours(column) * ours(row), column * row)


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 5e-324, 3.4e38, 1e308, 88.7, -103.5, 0.5]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_in_pairs(name, dtype):
    pairs = torch.tensor(list(itertools.product(SPECIAL, SPECIAL)), dtype=torch.float64).to(dtype_of(dtype))
    x, y = pairs[:, 0], pairs[:, 1]
    found, expected = BINARY[name](ours(x), ours(y)), BINARY[name](x, y)
    assert_same(found, expected)
    if name in ARITHMETIC:
        assert (torch.signbit(torch.from_dlpack(found)) == torch.signbit(expected))[~expected.isnan()].all()


# Units in the last place that exp, log and tanh may be from torch's, which is not exact either.
ULPS = {"float32": 4, "float64": 4, "float16": 1, "bfloat16": 1}
COMPLEX_ULPS = 8


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", COMMON)
def test_unary(name, dtype):
    x = torch.cat([sample(dtype, (700,), 4), torch.tensor(SPECIAL).to(dtype_of(dtype))])
    expected = torch_or_error(lambda: getattr(torch, name)(x))
    if isinstance(expected, Exception):
        with pytest.raises(penstock.UnsupportedError, match="no meaning"):
            getattr(ours(x), name)()
        return
    if dtype.startswith("complex"):
        x, expected = x[:700], expected[:700]
        rtol = COMPLEX_ULPS * torch.finfo(expected.dtype).eps
    elif name in ("exp", "log", "tanh"):
        rtol = ULPS.get(dtype, 4) * torch.finfo(expected.dtype).eps
    elif name == "sqrt":
        rtol = torch.finfo(expected.dtype).eps  # torch's own is not rounded to nearest; numpy's below is
    else:
        rtol = 0.0
    tiny = 0.0 if rtol == 0 else torch.finfo(expected.dtype).smallest_normal * rtol
    assert_same(getattr(ours(x), name)(), expected, rtol=rtol, atol=tiny)


def complex_sample(part):
    """Special values in pairs, and numbers of every size in either part."""
    generator = torch.Generator().manual_seed(9)
    special = torch.tensor(list(itertools.product(SPECIAL, SPECIAL)), dtype=torch.float64)
    most = 300 if part == torch.float64 else 38
    near = torch.randn((4000, 2), generator=generator, dtype=torch.float64) * 3
    sizes = (torch.rand((4000, 2), generator=generator, dtype=torch.float64) * 2 - 1) * most
    circle = torch.rand(1000, generator=generator, dtype=torch.float64) * 2 * math.pi
    all_parts = [special, near, near.sign() * 10**sizes, torch.stack([circle.cos(), circle.sin()], -1)]
    return torch.view_as_complex(torch.cat(all_parts).to(part).contiguous())


@pytest.mark.parametrize("name", ["abs", "exp", "log", "sqrt", "tanh"])
@pytest.mark.parametrize("part", [torch.float32, torch.float64], ids=["complex64", "complex128"])
def test_parts_of_complex_functions(name, part):
    def parts(tensor):
        return torch.view_as_real(tensor) if tensor.is_complex() else tensor

    x = complex_sample(part)
    found = parts(torch.from_dlpack(getattr(ours(x), name)()))
    expected = parts(getattr(torch, name)(x))
    info = torch.finfo(part)
    tiny = 4 * info.smallest_normal * info.eps
    torch.testing.assert_close(found, expected, rtol=COMPLEX_ULPS * info.eps, atol=tiny, equal_nan=True)
    assert (torch.signbit(found) == torch.signbit(expected))[~expected.isnan()].all()


@given(st.lists(st.floats(width=32), min_size=1, max_size=40))
@settings(deadline=None)
def test_float32_functions_near_the_exact_ones(values):
    x = torch.tensor(values, dtype=torch.float32)
    exact = x.double()
    for name in ("exp", "log", "tanh", "sqrt"):
        expected = getattr(torch, name)(exact).float()
        found = getattr(ours(x), name)()
        assert_same(found, expected, rtol=3 * 2**-23, atol=3 * 2**-149)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_square_roots_are_rounded_to_nearest(dtype):
    np = pytest.importorskip("numpy")
    x = sample(dtype, (5000,), 7).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(penstock.tensor(x).sqrt().numpy(), np.sqrt(x))


def test_methods_and_operators_agree():
    x = ours(sample("float32", (5,)))
    assert x.neg().equal(-x)
    assert x.abs().equal(abs(x))
    assert operator.le(0, x).equal(x >= 0)
    sum_of_both = x + 1
    same = x
    same += 1
    assert same is x
    assert x.equal(sum_of_both)


def test_results_are_new_and_carry_no_mark():
    x = penstock.tensor(torch.ones(3, requires_grad=True).detach().requires_grad_())
    assert not (x + 0).requires_grad
    assert (x + 0).is_contiguous()


def test_other_objects_are_no_operands():
    x = penstock.ones(2)
    assert (x == "text") is False
    assert (x != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError, match="str"):
        penstock.result_type(x, "text")
    with pytest.raises(penstock.InvalidArgumentError, match="18446744073709551616 does not fit uint64"):
        x + 2**64
    with pytest.raises(penstock.InvalidArgumentError, match="-9223372036854775809 does not fit int64"):
        x + (-(2**63) - 1)
    with pytest.raises(penstock.InvalidArgumentError, match="an integer of 20001 bits does not fit uint64"):
        x + 2**20000
    assert {x: 1}[x] == 1


def test_errors_say_what_was_found():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(4,\) cannot be broadcast: dimension 1"):
        penstock.ones(2, 3) + penstock.ones(4)
    with pytest.raises(penstock.UnsupportedError, match="sub has no meaning for bool"):
        penstock.full((2,), True) - penstock.full((2,), True)
    with pytest.raises(penstock.UnsupportedError, match="lt has no meaning for complex64"):
        operator.lt(penstock.full((2,), 1j), 2)
    with pytest.raises(penstock.UnsupportedError, match="str"):
        penstock.tensor(__import__("numpy").array(["a"])) + 1


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_is_computed_in_float32(dtype):
    x, y = sample(dtype, (64,), 1), sample(dtype, (64,), 2)
    for name, call in ARITHMETIC.items():
        expected = call(x.float(), y.float()).to(dtype_of(dtype))
        a = penstock.tensor(x.float()).to(dtype)
        b = penstock.tensor(y.float()).to(dtype)
        result = BINARY[name](a, b)
        assert result.dtype == dtype
        assert_same(result.to("float32"), expected.float())


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv"])
def test_in_place_operators_change_the_memory_as_in_torch(name, dtype):
    function = getattr(operator, name)
    reference = torch.arange(1, 7).reshape(2, 3).to(getattr(torch, dtype))
    ours = penstock.asarray(reference.clone())
    row = ours[1]
    for other in (3, reference[0].clone()):
        try:
            function(reference, other)
        except RuntimeError:
            with pytest.raises(penstock.Error):
                function(ours, penstock.asarray(other) if isinstance(other, torch.Tensor) else other)
            continue
        same = function(ours, penstock.asarray(other.clone()) if isinstance(other, torch.Tensor) else other)
        assert same is ours
        # Quotients of complex numbers are rounded in another order.
        assert torch.allclose(torch.from_dlpack(ours), reference, rtol=1e-6, atol=0)
        assert row.equal(ours[1])


def test_in_place_operators_refuse_what_cannot_be_stored():
    whole = penstock.tensor([1, 2, 3])
    with pytest.raises(penstock.Error, match="float32"):
        whole += 0.5
    with pytest.raises(penstock.Error, match="shape"):
        whole += penstock.tensor([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(TypeError):
        whole += "text"
    assert whole.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "uint64", "bool_", "complex64"])
def test_numbers_of_numpy_are_numbers(kind):
    np = pytest.importorskip("numpy")
    number = getattr(np, kind)(1)
    t = penstock.tensor([1.0, 2.0])
    for operation in (operator.add, operator.mul, operator.eq):
        found = operation(t, number)
        assert isinstance(found, penstock.Tensor)
        assert found.tolist() == operation(t, number.item()).tolist()
        assert found.dtype == operation(t, number.item()).dtype
    if kind != "complex64":
        view = t[1:]
        view += number
        assert t.tolist() == [1.0, 3.0]
    for other in (np.timedelta64(1, "ns"), np.str_("a")):
        with pytest.raises(TypeError):
            penstock.result_type(t, other)


def test_in_place_operations_never_make_another_object():
    np = pytest.importorskip("numpy")
    t = penstock.tensor([1.0, 2.0])
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        t += np.ones(2)
    assert t.tolist() == [1.0, 2.0]


def test_tensors_of_two_libraries_do_not_differ_silently():
    t = penstock.tensor([1.0, 2.0])
    for compare in (operator.eq, operator.ne):
        with pytest.raises(TypeError, match="asarray"):
            compare(t, torch.tensor([1.0, 2.0]))
        assert compare(t, penstock.asarray(torch.tensor([1.0, 2.0]))).shape == (2,)
    assert t != "text"
    assert t != None  # noqa: E711
