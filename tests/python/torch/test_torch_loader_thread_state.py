"""Functions in a loader's threads find what torch and Python keep for each thread as the iterating thread has it."""

from __future__ import annotations

import contextlib
import contextvars
import decimal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.utils.data as td
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import penstock.torch as pt

COUNT = 8
VARIABLE = contextvars.ContextVar("VARIABLE", default=0)


class Doubles(TorchFunctionMode):
    """torch.neg doubles."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.neg:
            return args[0] * 2
        return func(*args, **(kwargs or {}))


class Counts(TorchDispatchMode):
    """Sines are cosines."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.sin.default:
            func = torch.ops.aten.cos.default
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def setting(set_to, get, value):
    before = get()
    set_to(value)
    try:
        yield
    finally:
        set_to(before)


@contextlib.contextmanager
def default_device(name):
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def variable():
    token = VARIABLE.set(7)
    try:
        yield
    finally:
        VARIABLE.reset(token)


@contextlib.contextmanager
def decimals():
    with decimal.localcontext() as context:
        context.prec = 5
        yield


def flag(name):
    return lambda: setting(
        getattr(torch._C, f"_set_{name}"), getattr(torch._C, f"_is_{name}"), name == "view_replay_enabled"
    )


@contextlib.contextmanager
def both(*contexts):
    with contextlib.ExitStack() as stack:
        for make in contexts:
            stack.enter_context(make())
        yield


STATES = {
    "as it is": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "grad in inference_mode": lambda: both(torch.inference_mode, torch.enable_grad),
    "no inference_mode in it": lambda: both(torch.inference_mode, lambda: torch.inference_mode(False)),
    "autocast": lambda: torch.autocast("cpu"),
    "autocast to half": lambda: torch.autocast("cpu", torch.float16),
    "autocast without a cache": lambda: torch.autocast("cpu", cache_enabled=False),
    "autocast of CUDA": lambda: setting(
        lambda on: torch.set_autocast_enabled("cuda", on), lambda: torch.is_autocast_enabled("cuda"), True
    ),
    "no autocast in autocast": lambda: both(
        lambda: torch.autocast("cpu"), lambda: torch.autocast("cpu", enabled=False)
    ),
    "default device": lambda: default_device("meta"),
    "device": lambda: torch.device("meta"),
    "devices": lambda: both(lambda: default_device("meta"), lambda: torch.device("cpu")),
    "default dtype": lambda: setting(torch.set_default_dtype, torch.get_default_dtype, torch.float64),
    "deterministic": lambda: setting(
        torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled, True
    ),
    "precision of products": lambda: setting(
        torch.set_float32_matmul_precision, torch.get_float32_matmul_precision, "medium"
    ),
    "flushed denormals": lambda: setting(torch.set_flush_denormal, lambda: False, True),
    "checked sparse tensors": torch.sparse.check_sparse_tensor_invariants,
    "forward-mode derivatives": forward_ad.dual_level,
    "forward-mode derivatives that are off": lambda: both(forward_ad.dual_level, flag("fwd_grad_enabled")),
    "autocast's type for CUDA": lambda: setting(
        lambda dtype: torch.set_autocast_dtype("cuda", dtype), lambda: torch.get_autocast_dtype("cuda"), torch.bfloat16
    ),
    "saved tensors twice": lambda: both(
        lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t + 100, lambda t: t - 90),
        lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t * 3, lambda t: t / 2),
    ),
    "anomalies": lambda: torch.autograd.detect_anomaly(check_nan=False),
    "multithreading": flag("multithreading_enabled"),
    "forward gradients": flag("fwd_grad_enabled"),
    "view replay": flag("view_replay_enabled"),
    "saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t + 100, lambda t: t - 90),
    "no saved tensors": lambda: torch.autograd.graph.disable_saved_tensors_hooks("not here"),
    "function mode": Doubles,
    "function modes": lambda: both(Doubles, lambda: torch.device("meta"), Doubles),
    "dispatch mode": Counts,
    "dispatch modes": lambda: both(Counts, Counts),
    "fake tensors": lambda: torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True),
    "no torch function": torch._C.DisableTorchFunction,
    "no torch function of subclasses": torch._C.DisableTorchFunctionSubclass,
    "below autograd": torch._C._AutoDispatchBelowAutograd,
    "context variable": variable,
    "decimal": decimals,
    "errstate": lambda: np.errstate(all="raise"),
    "print options": lambda: np.printoptions(precision=2),
    "all": lambda: both(
        torch.inference_mode,
        lambda: torch.autocast("cpu", torch.float16),
        lambda: default_device("meta"),
        Doubles,
        Counts,
    ),
}


def tangent():
    """What forward-mode differentiation makes of a product, where a level of it is entered."""
    if forward_ad._current_level < 0:
        return None
    dual = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    made = forward_ad.unpack_dual(dual * dual).tangent
    return None if made is None else float(made)


def gradient():
    """What autograd makes of a tensor that hooks may have changed while it was kept."""
    tensor = torch.full((1,), 3.0, requires_grad=True)
    power = tensor * tensor
    if not power.requires_grad or power.is_meta:
        return None
    power.backward()
    return tensor.grad.tolist()


def hooks():
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def seen(_=None):
    """What a function finds, as plain values."""
    names = ("cpu", "cuda", "xpu", "hpu", "mps", "xla")
    found = {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "forward": torch._C._is_fwd_grad_enabled(),
        "multithreading": torch._C._is_multithreading_enabled(),
        "view replay": torch._C._is_view_replay_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "autocast": [(torch.is_autocast_enabled(name), torch.get_autocast_dtype(name)) for name in names],
        "cache": torch.is_autocast_cache_enabled(),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "device": str(torch.get_default_device()),
        "functions": str(torch._C._get_torch_function_state()),
        "function modes": [type(m).__name__ for m in torch.overrides._get_current_function_mode_stack()],
        "dispatch modes": [type(m).__name__ for m in torch.utils._python_dispatch._get_current_dispatch_mode_stack()],
        "keys": [str(torch._C._dispatch_tls_local_include_set()), str(torch._C._dispatch_tls_local_exclude_set())],
        "hooks": hooks() is not None,
        "precision of products": torch.get_float32_matmul_precision(),
        "sparse": torch.sparse.check_sparse_tensor_invariants.is_enabled(),
        "level": forward_ad._current_level,
        "no hooks": torch._C._autograd._saved_tensors_hooks_get_disabled_error_message(),
        "variable": VARIABLE.get(),
        "precision": decimal.getcontext().prec,
        "errors": np.geterr(),
        "printing": np.get_printoptions()["precision"],
    }
    if type(torch.zeros(1)) is torch.Tensor and not torch.zeros(1).is_meta:
        found["tangent"], found["gradient"] = tangent(), gradient()
        found["flushed"] = (torch.full((1,), 1e-310, dtype=torch.float64) * 1).tolist()
    tensor = torch.ones(2, 2, requires_grad=True)
    results = [torch.zeros(1), torch.neg(tensor), torch.sin(tensor), tensor @ tensor, tensor * 2]
    found["results"] = [
        (
            type(r).__name__,
            r.dtype,
            r.device.type,
            r.requires_grad,
            r.is_inference(),
            None if r.is_meta or type(r) is not torch.Tensor else r.tolist(),
        )
        for r in results
    ]
    return found


class Python(td.Dataset):
    """The same, as users of torch write it."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return seen()


def first(samples):
    return samples[0]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, np.ones((COUNT, 4), "f4"))
    return pt.Rows(path)


@pytest.fixture(autouse=True)
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("batched", [False, True])
def test_computes_with_one_thread_as_in_torchs_workers(rows, batched):
    """Each of several threads that wants all processors would wait for the others."""
    torch.set_num_threads(3)

    def threads(_):
        return torch.get_num_threads()

    def found(workers):
        numbers = rows.map(threads, batched=batched)
        return set(pt.DataLoader(numbers, batch_size=COUNT, num_workers=workers, collate_fn=first))

    assert found(2) == {1}
    assert found(0) == {3}
    assert torch.get_num_threads() == 3
    with ThreadPoolExecutor(1) as later:
        assert later.submit(torch.get_num_threads).result() == 3


@pytest.mark.parametrize("state", STATES)
def test_as_in_the_iterating_thread(rows, state):
    def batches(loader, dataset, **options):
        iterator = iter(loader(dataset, batch_size=2, collate_fn=first, **options))  # which a meta device would refuse
        with STATES[state]():
            expected = seen()
            return list(iterator), expected

    theirs, expected = batches(td.DataLoader, Python())
    assert theirs == [expected] * (COUNT // 2)
    for workers in (0, 1 if state == "fake tensors" else 2):  # one mode of theirs is one thread's at a time
        for batched in (False, True):
            ours, expected = batches(pt.DataLoader, rows.map(seen, batched=batched), num_workers=workers)
            assert ours == [expected] * (COUNT // 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_function_sets_is_not_the_next_ones(rows, workers):
    def forgets(batch):
        before = torch.is_grad_enabled(), VARIABLE.get()
        if workers:  # else it is the caller's
            torch._C._set_grad_enabled(False)
            VARIABLE.set(3)
        return before

    loader = pt.DataLoader(rows.map(forgets, batched=True), batch_size=1, num_workers=workers)
    assert list(loader) == [(True, 0)] * COUNT


def test_samples_that_only_python_reads(tmp_path):
    """They are made in threads too."""
    for number in range(4):
        torch.save(torch.eye(3).to_sparse(), tmp_path / f"{number}.pt")
    loader = pt.DataLoader(pt.Files(tmp_path), batch_size=None, num_workers=2)
    with torch.inference_mode():
        assert [sample.is_inference() for sample in loader] == [True] * 4


def test_a_network_as_the_function(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((COUNT, 4), "f4"))
    net = torch.nn.Linear(4, 4)
    for workers in (0, 2):
        loader = pt.DataLoader(pt.Rows(tmp_path / "rows.npy").map(net), batch_size=2, num_workers=workers)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            before = [(batch.requires_grad, batch.dtype) for batch in loader]
        assert before == [(False, torch.bfloat16)] * (COUNT // 2)
        assert all(batch.requires_grad for batch in loader)
        with torch.no_grad():
            net.weight += 1  # which a cast kept in a thread would not see
            with torch.autocast("cpu", torch.bfloat16):
                assert torch.equal(next(iter(loader)), torch.stack([net(torch.ones(4))] * 2))
