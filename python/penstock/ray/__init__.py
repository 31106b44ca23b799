"""Penstock inside Ray: tensor files as datasets of Ray Data, and a loader for Ray Train.

    ds = penstock.ray.read_tensors("train/*.npy")
    penstock.ray.write_tensors(ds, "packed")

    def train(config):                                   # of a trainer of Ray Train
        for batch in penstock.ray.loader(penstock.files("train/*.pt"), batch_size=32, shuffle=True): ...

Needs `ray[data]`, which `import penstock` does not import.
"""

from penstock import _whole as _whole  # it tells of a package that is not whole

try:
    import ray.data  # noqa: F401 - named here, where it is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"penstock.ray needs Ray: pip install 'ray[data]' ({error})", name=error.name) from error

from penstock.ray._datasink import TensorDatasink, write_tensors
from penstock.ray._datasource import TensorDatasource, read_tensors
from penstock.ray._loader import loader, save_position

__all__ = ["TensorDatasink", "TensorDatasource", "loader", "read_tensors", "save_position", "write_tensors"]
