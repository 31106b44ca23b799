"""Reductions, products and joining against torch, and the order of sums against its definition."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

torch = pytest.importorskip("torch")

REAL = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
ALL = ["bool", *REAL, "complex64", "complex128"]


def sample(name, shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) * 4
    if name == "bool":
        return x > 0
    if name.startswith("complex"):
        return torch.complex(x, x.flip(0) if x.ndim else x).to(getattr(torch, name))
    return (x.abs() if name == "uint8" else x).to(getattr(torch, name))


def torch_or_error(call):
    try:
        return call()
    except (RuntimeError, NotImplementedError, IndexError, ValueError) as error:
        return error


def assert_close(found, expected, terms):
    """Same dtype and shape; values within what adding so many terms in another order may change."""
    back = torch.from_dlpack(found)
    assert (back.dtype, back.shape) == (expected.dtype, expected.shape)
    exact = not (expected.is_floating_point() or expected.is_complex())
    eps = 0.0 if exact else torch.finfo(expected.dtype).eps
    rtol = eps * 4
    atol = eps * 8 * max(1.0, terms) ** 0.5
    torch.testing.assert_close(back, expected.contiguous(), rtol=rtol, atol=atol, equal_nan=True)


SHAPES = [
    (),
    (1,),
    (5,),
    (33,),
    (4, 7),
    (3, 1, 5),
    (2, 3, 4, 5),
    (0,),
    (0, 3),
    (3, 0),
    (100, 70),
    (5000,),
    (4097, 3),
    (3, 4097),
]


def dims_of(rank):
    yield None
    for count in range(1, rank + 1):
        yield from itertools.combinations(range(rank), count)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ALL)
def test_sums(name, dtype):
    for shape in SHAPES:
        x = sample(dtype, shape)
        for dims, keepdim in itertools.product(dims_of(len(shape)), (False, True)):
            arguments = () if dims is None else (dims, keepdim)
            expected = torch_or_error(lambda x=x, arguments=arguments: getattr(torch, name)(x, *arguments))
            if isinstance(expected, Exception):
                with pytest.raises(penstock.UnsupportedError, match="floats or complex"):
                    getattr(penstock.tensor(x), name)(dims, keepdim)
                continue
            found = getattr(penstock.tensor(x), name)(dims, keepdim if dims is not None else False)
            assert_close(found, expected, x.numel() * 16)


@pytest.mark.parametrize("how", ["transposed", "stepped", "expanded"])
def test_sums_of_strided(how):
    x = sample("float32", (60, 50))
    y = {"transposed": x.T, "stepped": x[::2, ::3], "expanded": x[:, :1].expand(60, 50)}[how]
    ours = penstock.tensor(x)
    z = {"transposed": ours.transpose(0, 1), "stepped": ours[::2, ::3], "expanded": None}[how]
    if z is None:
        z = ours[:, :1] + penstock.zeros(60, 50)
    for dim in (0, 1, (0, 1)):
        assert_close(z.sum(dim), y.sum(dim), y.numel() * 16)
        # Strides change no bit.
        assert z.sum(dim).equal(z.contiguous().sum(dim))


def sum_by_definition(x):
    """docs/design/operations.md, in float32 arithmetic."""
    x = np.asarray(x, np.float32)
    while True:
        sums = []
        for chunk in np.split(x, range(4096, len(x), 4096)):
            lanes = np.zeros(32, np.float32)
            for i in range(0, len(chunk), 32):
                part = chunk[i : i + 32]
                lanes[: len(part)] += part
            while len(lanes) > 1:
                lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
            sums.append(lanes[0])
        if len(sums) == 1:
            return sums[0]
        x = np.array(sums, np.float32)


@pytest.mark.parametrize("count", [1, 2, 3, 31, 32, 33, 64, 4095, 4096, 4097, 12_345, 1_000_001])
def test_the_order_of_sums(count):
    x = sample("float32", (count,), 3).numpy()
    t = penstock.tensor(x)
    expected = sum_by_definition(x)
    assert t.sum().item() == expected
    # The same numbers as a column, and as one of several results, give the same bits.
    assert t.reshape(count, 1).sum(0).item() == expected
    wide = penstock.stack([t, t * 2, t, t], 1)
    assert wide.sum(0).tolist()[:3:2] == [expected, expected]
    assert wide.transpose(0, 1).contiguous().sum(1).tolist()[2] == expected


def test_large_sums_keep_their_accuracy():
    x = penstock.rand(3_000_000, generator=penstock.Generator(1))
    exact = torch.from_dlpack(x).double().sum().item()
    assert x.sum().item() == pytest.approx(exact, rel=1e-6)
    assert x.mean().item() == pytest.approx(exact / 3_000_000, rel=1e-6)
    halves = penstock.ones(100_000, dtype="float16")
    assert halves.mean().item() == 1
    assert halves.sum().item() == float("inf")
    assert halves.sum(dtype="float32").item() == 100_000
    assert penstock.full((10,), 2**62).sum().item() == (10 * 2**62 + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["bool", *REAL])
def test_extremes(name, dtype):
    for shape in [(), (1,), (5,), (4, 7), (2, 3, 4), (100, 70), (70, 100), (9000,), (4100, 3)]:
        x = sample(dtype, shape, 5)
        t = penstock.tensor(x)
        assert getattr(t, name)().item() == getattr(x, name)().item()
        for dim, keepdim in itertools.product(range(-len(shape), len(shape)), (False, True)):
            values, indices = getattr(t, name)(dim, keepdim)
            expected = getattr(torch, name)(x, dim, keepdim)
            assert torch.equal(torch.from_dlpack(values), expected.values)
            assert (indices.dtype, indices.shape) == ("int64", tuple(expected.indices.shape))
            # torch does not say which of equal elements it takes; the first is NumPy's and ours.
            array = x.float().numpy()
            first = (np.argmax if name == "max" else np.argmin)(array, dim)
            assert indices.reshape(-1).tolist() == first.reshape(-1).tolist()


@pytest.mark.parametrize("name", ["max", "min", "argmax"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_is_the_extreme(name, dtype):
    x = sample(dtype, (9, 40))
    x[2, 7] = x[2, 30] = x[5, 0] = float("nan")
    t = penstock.tensor(x)
    for dim in (0, 1):
        if name == "argmax":
            assert t.argmax(dim).tolist() == np.argmax(x.numpy(), dim).tolist()
            continue
        found = getattr(t, name)(dim)
        assert found.indices.tolist() == (np.argmax if name == "max" else np.argmin)(x.numpy(), dim).tolist()
        assert np.array_equal(found.values.numpy(), getattr(np, name)(x.numpy(), dim), equal_nan=True)
    assert t.argmax().item() == 2 * 40 + 7


@pytest.mark.parametrize("dtype", REAL)
def test_argmax(dtype):
    for shape in [(), (1,), (5,), (4, 7), (2, 3, 4), (5000, 2)]:
        x = sample(dtype, shape, 6)
        t = penstock.tensor(x)
        array = x.double().numpy()
        assert t.argmax().item() == np.argmax(array)
        assert t.argmax(keepdim=True).shape == (1,) * len(shape)
        for dim in range(len(shape)):
            assert t.argmax(dim).tolist() == np.argmax(array, dim).tolist()
            assert t.argmax(dim, True).shape == torch.argmax(x, dim, True).shape


def test_wide_unsigned_extremes():
    x = np.array([[1, 2**63, 5], [2**64 - 1, 0, 7]], "u8")
    t = penstock.tensor(x)
    assert t.max().item() == 2**64 - 1
    assert t.min(0).values.tolist() == [1, 0, 5]
    assert t.argmax().item() == 3


def test_reductions_of_nothing():
    empty = penstock.zeros(0, 3)
    assert empty.sum().item() == 0
    assert np.isnan(empty.mean().item())
    assert empty.sum(0).tolist() == [0, 0, 0]
    assert empty.argmax(1).shape == (0,)
    for call in (lambda: empty.max(), lambda: empty.max(0), lambda: empty.argmax(0), lambda: empty.min(0)):
        with pytest.raises(ValueError, match="one or more"):
            call()


def test_refusals():
    x = penstock.ones(2, 3)
    for call in (lambda: x.sum(2), lambda: x.max(-3), lambda: x.argmax(5), lambda: penstock.cat([x, x], 2)):
        with pytest.raises(IndexError, match="dimension"):
            call()
    with pytest.raises(ValueError, match="twice"):
        x.sum((0, -2))
    with pytest.raises(penstock.UnsupportedError, match="no order"):
        penstock.full((2,), 1j).max()
    with pytest.raises(penstock.UnsupportedError, match="float32"):
        penstock.ones(2, dtype="int32").mean()


# --- products ---

MATMUL_SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((1, 300), (300, 1)),
    ((300, 1), (1, 300)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 1, 4, 3), (5, 3, 2)),
    ((4, 2, 3), (3,)),
    ((3,), (4, 3, 2)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((2, 3), (3, 0)),
    ((0, 2, 3), (3, 4)),
    ((700, 65), (65, 33)),
    ((17, 129), (129, 300)),
]


@pytest.mark.parametrize(("a", "b"), MATMUL_SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*REAL, "complex64", "complex128"])
def test_matmul(a, b, dtype):
    x, y = sample(dtype, a, 1), sample(dtype, b, 2)
    if dtype in ("float16", "bfloat16"):
        expected = torch.matmul(x.float(), y.float()).to(x.dtype)
    else:
        expected = torch.matmul(x, y)
    assert_close(penstock.tensor(x) @ penstock.tensor(y), expected, 2048 * max(a[-1], 1))
    assert penstock.tensor(x).matmul(penstock.tensor(y)).equal(penstock.tensor(x) @ penstock.tensor(y))


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.integers(1, 2),
    st.integers(1, 2),
)
@settings(deadline=None)
def test_matmul_of_strided(m, k, n, turn_a, turn_b, step_a, step_b):
    a = sample("float64", (k, m * step_a) if turn_a else (m, k * step_a), 1)[:, ::step_a]
    b = sample("float64", (n, k * step_b) if turn_b else (k, n * step_b), 2)[:, ::step_b]
    if turn_a:
        a = a.T
    if turn_b:
        b = b.T
    found = penstock.from_dlpack(a) @ penstock.from_dlpack(b)
    assert_close(found, a @ b, 256)


def test_matmul_of_repeated_rows_and_unaligned_memory():
    a = sample("float32", (1, 5)).expand(4, 5)
    b = sample("float32", (5, 1)).expand(5, 3)
    assert_close(penstock.from_dlpack(a) @ penstock.from_dlpack(b), a @ b, 256)
    square = sample("float32", (4, 4))
    memory = np.frombuffer(b"x" + square.numpy().tobytes(), "u1")
    unaligned = penstock.tensor(np.ndarray((4, 4), "f4", memory, 1))
    assert_close(unaligned @ unaligned, square @ square, 256)


def test_matmul_does_not_depend_on_threads_or_batches():
    x, y = (
        penstock.randn(3, 600, 80, generator=penstock.Generator(1)),
        penstock.randn(80, 90, generator=penstock.Generator(2)),
    )
    whole = x @ y
    for i in range(3):
        assert whole[i].equal(x[i] @ y)


def test_matmul_refusals():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 2\)"):
        penstock.ones(2, 3) @ penstock.ones(2, 2)
    with pytest.raises(ValueError, match="broadcast"):
        penstock.ones(2, 2, 3) @ penstock.ones(3, 3, 2)
    with pytest.raises(TypeError, match="float32 and float64"):
        penstock.ones(2, 2) @ penstock.ones(2, 2, dtype="float64")
    with pytest.raises(ValueError, match="matmul"):
        penstock.ones(()) @ penstock.ones(2)
    with pytest.raises(penstock.UnsupportedError, match="bool"):
        penstock.full((2, 2), True) @ penstock.full((2, 2), True)
    with pytest.raises(TypeError):
        penstock.ones(2) @ 3


# --- joining and choosing ---


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("int8", "uint8"), ("bool", "float16"), ("int64", "bfloat16")]
)
def test_cat_and_stack(dim, dtypes):
    x, y = sample(dtypes[0], (3, 4), 1), sample(dtypes[1], (3, 4), 2).T.contiguous().T
    a, b = penstock.tensor(x), penstock.from_dlpack(y) if dtypes[1] != "bool" else penstock.tensor(y)
    for call in ("cat", "stack"):
        expected = getattr(torch, call)([x, y, x], dim)
        found = getattr(penstock, call)([a, b, a], dim)
        assert torch.equal(torch.from_dlpack(found), expected)
        assert found.dtype == expected.dtype


def test_cat_of_odd_shapes():
    a, b = penstock.arange(6).reshape(2, 3), penstock.arange(4).reshape(2, 2)
    assert penstock.cat([a, b], 1).tolist() == [[0, 1, 2, 0, 1], [3, 4, 5, 2, 3]]
    assert penstock.cat([penstock.zeros(0), a], 1).dtype == "float32"
    assert penstock.cat([penstock.zeros(0), penstock.zeros(0)]).shape == (0,)
    assert penstock.stack([penstock.tensor(1), penstock.tensor(2)]).tolist() == [1, 2]
    assert penstock.stack([a], -1).shape == (2, 3, 1)
    with pytest.raises(ValueError, match=r"tensors\[1\] has shape \(2, 2\)"):
        penstock.cat([a, b], 0)
    with pytest.raises(ValueError, match="equal shapes"):
        penstock.stack([a, b])
    with pytest.raises(ValueError, match="no tensors"):
        penstock.cat([])
    with pytest.raises(ValueError, match="stack"):
        penstock.cat([penstock.tensor(1)])
    with pytest.raises(TypeError, match="int"):
        penstock.cat([a, 1])


def test_stack_without_tensors_is_still_the_collate_rule():
    assert isinstance(penstock.stack(), penstock.Collate)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_index_select(dim, dtype, index_dtype):
    x = sample(dtype, (4, 5, 4))
    index = torch.tensor([3, 0, 0, 2], dtype=index_dtype)
    found = penstock.tensor(x).index_select(dim, penstock.tensor(index))
    assert torch.equal(torch.from_dlpack(found), torch.index_select(x, dim, index))
    turned = penstock.tensor(x).transpose(0, 2)
    assert torch.equal(
        torch.from_dlpack(turned.index_select(dim, penstock.tensor(index))),
        torch.index_select(x.transpose(0, 2), dim, index),
    )


def test_index_select_at_the_edges():
    x = penstock.arange(6).reshape(2, 3)
    assert x.index_select(1, penstock.zeros(0, dtype="int64")).shape == (2, 0)
    assert penstock.tensor(7).index_select(0, penstock.tensor([0])).tolist() == [7]
    assert penstock.zeros(0, 3).index_select(1, penstock.tensor([2])).shape == (0, 1)
    for bad in ([3], [-1]):
        with pytest.raises(IndexError, match="expected 0 to 2"):
            x.index_select(1, penstock.tensor(bad))
    with pytest.raises(TypeError, match="int32 or int64"):
        x.index_select(0, penstock.tensor([1.0]))
    with pytest.raises(ValueError, match="one dimension"):
        x.index_select(0, penstock.tensor([[1]]))


# --- casts ---

NAMES = [*ALL, "uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_casts_of_every_half(source):
    """All 65,536 of them to every type; tests/ops/cast_golden.h has the delicate values of the others."""
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(getattr(torch, source))
    t = penstock.from_dlpack(x)
    for name in NAMES:
        target = getattr(torch, name)
        expected = x.to(target)
        found = torch.frombuffer(bytearray(t.to(name).tobytes()), dtype=torch.uint8).view(target)
        if target.is_floating_point or target.is_complex:
            nan = expected.to(torch.complex64 if target.is_complex else torch.float32).isnan()
            mine = found.to(torch.complex64 if target.is_complex else torch.float32).isnan()
            assert torch.equal(nan, mine)
            expected, found = expected[~nan], found[~nan]
        else:
            finite = x.isfinite() & (x.float().abs() < 2**31)
            expected, found = expected[finite], found[finite]
        assert torch.equal(expected.view(torch.uint8), found.view(torch.uint8)), name


def test_an_extremum_is_a_pair_with_names():
    found = penstock.tensor([[1, 5], [7, 2]]).max(1)
    values, indices = found
    assert (found.values, found.indices) == (values, indices)
    assert repr(found).startswith("Extremum(values=penstock.Tensor([5, 7]")
    back = pickle.loads(pickle.dumps(found))
    assert isinstance(back, penstock.Extremum)
    assert back.indices.tolist() == [1, 0]


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "bool", "float16", "float64"])
@pytest.mark.parametrize("values", [[300, 1], [1.5, 1.5], [0, 0]], ids=str)
def test_sums_have_the_type_that_is_asked_for(name, values):
    x = torch.tensor(values)
    found, expected = penstock.tensor(x).sum(dtype=name), x.sum(dtype=getattr(torch, name))
    assert (found.dtype, found.item()) == (expected.dtype, expected.item())


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3)], ids=str)
def test_extremes_of_all_keep_dimensions(name, shape):
    x = torch.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    found = getattr(penstock.tensor(x), name)(keepdim=True)
    assert found.shape == (1,) * len(shape)
    assert found.item() == getattr(x, name)().item()
