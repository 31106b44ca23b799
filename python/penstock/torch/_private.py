"""Every name that penstock.torch uses and torch keeps to itself, and what happens where a torch lacks it.

No other module uses such a name, but for ATTRIBUTES (a test looks). There are four kinds:

- what `import penstock.torch` needs, imported here by statements. Where one is gone the import ends with an
  ImportError that says which name, which torch this is, and with which ones this was tried;
- what single functions need, found by `_found`. Where one is gone the call ends with a NotImplementedError that says
  the same, and everything else works;
- what is imported late because it is slow to import (LATE), with an ImportError as above;
- attributes of torch's objects (ATTRIBUTES), which are written where the objects are: an AttributeError.

`tests/python/torch/test_private_names.py` fails first where one of them goes away in a torch that is tried.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError("penstock.torch needs PyTorch: pip install torch", name="torch") from error

# What is imported here for other modules; the names that are assigned below are theirs too.
__all__ = [
    "BaseDataLoaderIter",
    "DispatchKey",
    "FakeTensor",
    "MultiProcessingDataLoaderIter",
    "NormBase",
    "SingleProcessDataLoaderIter",
    "StorageInfo",
    "collate",
    "default_collate_fn_map",
    "pin_memory",
]

# The oldest torch that is taken, and those that the tests run with (script/test matrix).
OLDEST = (2, 11)
TRIED = ("2.11.0", "2.13.0", "2.14.1")


def _unfit(why: str) -> str:
    return (
        f"penstock.torch needs torch {OLDEST[0]}.{OLDEST[1]} or later, and this is torch {torch.__version__}{why}. "
        f"It was tried with {', '.join(TRIED[:-1])} and {TRIED[-1]}: pip install torch=={TRIED[-1]}"
    )


if tuple(int(part) for part in str(torch.__version__).split(".")[:2]) < OLDEST:
    raise ImportError(_unfit(f" (in {torch.__path__[0]})"), name="torch")


class _Gone:
    """Stands for a name that this torch lacks, until something calls it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(_unfit(f", which has no {self._name}"))


GONE: list[str] = []


def _found(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    if value is not None:
        return value
    GONE.append(name)
    return _Gone(name)


try:
    from torch._C import DispatchKey as DispatchKey
    from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
    from torch.nn.modules.batchnorm import _NormBase as NormBase
    from torch.utils.data._utils.collate import collate as collate
    from torch.utils.data._utils.collate import default_collate_fn_map as default_collate_fn_map
    from torch.utils.data._utils.pin_memory import pin_memory as pin_memory
    from torch.utils.data.dataloader import _BaseDataLoaderIter as BaseDataLoaderIter
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as MultiProcessingDataLoaderIter
    from torch.utils.data.dataloader import _SingleProcessDataLoaderIter as SingleProcessDataLoaderIter
    from torch.utils.dlpack import from_dlpack as _from_dlpack
except ImportError as error:
    raise ImportError(_unfit(f": {error}"), name=error.name, path=error.path) from error

# What a checkpoint may name, and tensors of kinds that torch makes itself (`loading`, `saving`).
get_allowed_globals = _found("torch._weights_only_unpickler._get_allowed_globals")
storage_classes: Any = getattr(torch, "_storage_classes", frozenset())  # without it, files that name one are refused
detect_fake_mode = _found("torch._guards.detect_fake_mode")
debug_has_internal_overlap = _found("torch._debug_has_internal_overlap")
set_tensor_metadata = _found("torch._utils.set_tensor_metadata")
set_obj_state = _found("torch._utils._set_obj_state")
make_wrapper_subclass = _found("torch.Tensor._make_wrapper_subclass")
rebuild_qtensor = _found("torch._utils._rebuild_qtensor")
nested_view_from_buffer = _found("torch._nested_view_from_buffer")
conj = _found("torch._conj")
neg_view = _found("torch._neg_view")
# Memory that processes share (`_blocks.py`): without it, load(shared=True) fails.
new_shared_storage = _found("torch.UntypedStorage._new_shared_fd_cpu")
# A tensor over what a capsule of DLPack holds, in a third of the public function's time, which looks for objects first.
from_capsule: Any = getattr(torch._C, "_from_dlpack", _from_dlpack)
mkldnn = getattr(torch, "_mkldnn", None)  # without it, no tensor has that layout
# Without it, torch.serialization.skip_data is not heard of.
serialization_state = getattr(torch.serialization, "_serialization_tls", None)

# What torch keeps for each thread (`loader/_thread_state.py`). Without one, a function that runs in threads fails.
is_profiler_enabled = _found("torch._C._autograd._profiler_enabled")
global_device_context = _found("torch._GLOBAL_DEVICE_CONTEXT")
set_grad_enabled = _found("torch._C._set_grad_enabled")
is_fwd_grad_enabled = _found("torch._C._is_fwd_grad_enabled")
set_fwd_grad_enabled = _found("torch._C._set_fwd_grad_enabled")
is_view_replay_enabled = _found("torch._C._is_view_replay_enabled")
set_view_replay_enabled = _found("torch._C._set_view_replay_enabled")
is_multithreading_enabled = _found("torch._C._is_multithreading_enabled")
set_multithreading_enabled = _found("torch._C._set_multithreading_enabled")
is_any_autocast_enabled = _found("torch._C._is_any_autocast_enabled")
included_keys = _found("torch._C._dispatch_tls_local_include_set")
excluded_keys = _found("torch._C._dispatch_tls_local_exclude_set")
key_set_of = _found("torch._C.DispatchKeySet.from_raw_repr")
InferenceMode = _found("torch._C._InferenceMode")
ForceDispatchKeyGuard = _found("torch._C._ForceDispatchKeyGuard")
function_mode_stack = _found("torch.overrides._get_current_function_mode_stack")
function_state = _found("torch._C._get_torch_function_state")
set_function_state = _found("torch._C._set_torch_function_state")
push_function_mode = _found("torch._C._push_on_torch_function_stack")
pop_function_mode = _found("torch._C._pop_torch_function_stack")
dispatch_mode_stack = _found("torch.utils._python_dispatch._get_current_dispatch_mode_stack")
push_dispatch_mode = _found("torch.utils._python_dispatch._push_mode")
pop_dispatch_mode = _found("torch.utils._python_dispatch._pop_mode")
saved_hooks_disabled = _found("torch._C._autograd._saved_tensors_hooks_get_disabled_error_message")
disable_saved_hooks = _found("torch._C._autograd._saved_tensors_hooks_disable")
enable_saved_hooks = _found("torch._C._autograd._saved_tensors_hooks_enable")
top_saved_hooks = _found("torch._C._autograd._top_saved_tensors_default_hooks")
push_saved_hooks = _found("torch._C._autograd._push_saved_tensors_default_hooks")
pop_saved_hooks = _found("torch._C._autograd._pop_saved_tensors_default_hooks")

# What `get_worker_info` tells in worker processes of ours (`loader/_processes.py`).
_worker_info = _found("torch.utils.data._utils.worker.WorkerInfo")
_worker = _found("torch.utils.data._utils.worker")


def worker_info() -> Any:
    return getattr(_worker, "_worker_info", None)


def set_worker_info(info: Any) -> None:
    _worker._worker_info = info


def worker_info_of(number: int, count: int, seed: int, dataset: Any) -> Any:
    return _worker_info(id=number, num_workers=count, seed=seed, dataset=dataset)


LATE = {"StorageInfo": ("torch.distributed.checkpoint.filesystem", "_StorageInfo")}

if TYPE_CHECKING:
    from torch.distributed.checkpoint.filesystem import _StorageInfo as StorageInfo
else:

    def __getattr__(name: str) -> Any:
        if name not in LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = LATE[name]
        value = getattr(import_module(module), attribute, None)
        if value is None:
            raise ImportError(_unfit(f", which has no {module}.{attribute}"), name=module)
        globals()[name] = value
        return value


# Whose attributes they are: those of a class, or ("of" the class) those that its objects alone have.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    # Loaders and their iterators: an epoch fails.
    "torch.utils.data.DataLoader": ("_auto_collation", "_index_sampler"),
    "torch.utils.data.dataloader._BaseDataLoaderIter": ("_next_data", "_next_index", "_reset"),
    "of torch.utils.data.dataloader._BaseDataLoaderIter": (
        "_IterableDataset_len_called",
        "_base_seed",
        "_num_workers",
        "_num_yielded",
        "_timeout",
    ),
    "of torch.utils.data.dataloader._SingleProcessDataLoaderIter": ("_dataset_fetcher",),
    "torch.utils.data.dataloader._MultiProcessingDataLoaderIter": ("_process_data", "_try_put_index"),
    "of torch.utils.data.dataloader._MultiProcessingDataLoaderIter": ("_task_info", "_worker_queue_idx_cycle"),
    # Modes of a thread: None stands for a key that a mode lacks, as in torch's own code.
    "of torch._subclasses.fake_tensor.FakeTensorMode": ("_mode_key",),
    "of torch.utils._python_dispatch.TorchDispatchMode": ("_dispatch_key",),
    # Modules and state dicts: load_into fails.
    "torch.nn.Module": ("_load_from_state_dict",),
    "of torch.nn.Module": (
        "_buffers",
        "_load_state_dict_post_hooks",
        "_load_state_dict_pre_hooks",
        "_modules",
        "_non_persistent_buffers_set",
        "_parameters",
    ),
    # Tensors and storages of rarer kinds: they are not loaded or saved.
    "torch.Tensor": (
        "_indices",
        "_nested_tensor_size",
        "_nested_tensor_storage_offsets",
        "_nested_tensor_strides",
        "_values",
    ),
    "of torch.nested._internal.nested_tensor.NestedTensor": (
        "_lengths",
        "_metadata_cache",
        "_offsets",
        "_ragged_idx",
        "_values",
    ),
    "of torch.storage.TypedStorage": ("_untyped_storage",),
    "torch.UntypedStorage": ("_checkpoint_offset", "_fake_device"),
    # Groups of processes: ranks are not compared, and checkpoints are not read by one rank for all.
    "torch.distributed.distributed_c10d": ("_get_default_store",),
    "of torch.distributed.ProcessGroup": ("_device_types",),
}
