"""Operations on a device against the CPU; skipped without one. PENSTOCK_LIBCUDA names a driver."""

import pytest

import penstock


@pytest.fixture(scope="module")
def device() -> str:
    try:
        penstock.empty(1, device="cuda")
    except penstock.NoDeviceError as error:
        pytest.skip(str(error))
    return "cuda"


def test_a_training_step_gives_the_bits_of_the_cpu(device):
    def step(where):
        generator = penstock.Generator(3)
        x = penstock.rand(32, 64, generator=generator, device=where)
        w = penstock.randn(64, 10, generator=generator, device=where) * 0.1
        odds = (x[:, :10] * w[:1] - x[:, :10].max(1, keepdim=True).values).exp()
        return odds / odds.sum(1, keepdim=True)

    found = step(device)
    assert found.device == "cuda:0"
    assert found.to("cpu").equal(step("cpu"))


def test_creation(device):
    for make in (penstock.zeros, penstock.ones):
        assert make(2, 3, device=device).to("cpu").equal(make(2, 3))
    assert penstock.tensor([1, 2], device=device).tolist() == [1, 2]
    assert penstock.arange(3, device=device).tolist() == [0, 1, 2]
    assert penstock.full((2,), 1.5, device=device).tolist() == [1.5, 1.5]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_products_of_small_integers_are_exact(device, dtype):
    generator = penstock.Generator(4)
    a = penstock.randint(-3, 4, (5, 2, 7), generator=generator).to(dtype)
    b = penstock.randint(-3, 4, (3, 7), generator=generator).to(dtype).transpose(0, 1)
    found = a.to(device) @ b.to(device)
    assert found.device == "cuda:0"
    assert found.to("cpu").equal(a @ b)
    assert (a[0, 0].to(device) @ b.to(device)).to("cpu").equal(a[0, 0] @ b)


def test_devices_are_not_mixed(device):
    x = penstock.ones(2, 2)
    with pytest.raises(penstock.DeviceMismatchError, match=r"two devices, cuda:0 and cpu! \(matmul: a, b\)"):
        x.to(device) @ x
    assert (x.to(device) * penstock.tensor(2)).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("dtype", ["complex32", "complex64", "complex128"])
def test_complex_numbers_are_stored_and_not_computed_with(device, dtype):
    x = penstock.tensor([[1 + 2j, -0.5j], [3, 0.1 - 7j]], dtype=dtype)
    there = x.to(device)
    for found, expected in [
        (there, x),
        (there[1], x[1]),
        (there[:, 0].contiguous(), x[:, 0].contiguous()),
        (there.to("complex128"), x.to("complex128")),
        (penstock.tensor([1.5, 2.0], device=device).to(dtype), penstock.tensor([1.5, 2.0]).to(dtype)),
    ]:
        assert found.device == "cuda:0"
        assert found.dtype == expected.dtype
        assert found.to("cpu").equal(expected)
    for operation in [
        lambda: there + 1j,
        lambda: there * there,
        lambda: 1 - there,
        lambda: penstock.ones(2, 2, device=device) / there,
        lambda: penstock.ones(2, 2, device=device) * 1j,
        lambda: -there,
        lambda: there == there,
        lambda: there.sum(),
        lambda: there.mean(0),
        lambda: there.abs(),
        lambda: there.exp(),
        lambda: there @ there,
    ]:
        with pytest.raises(
            penstock.UnsupportedError, match=r"devices compute with real numbers alone; move .* cpu\(\)"
        ):
            operation()
