"""The names of `torch.serialization` that Penstock has."""

from penstock.torch.loading import UnknownGlobalsError, load
from penstock.torch.saving import save

__all__ = ["UnknownGlobalsError", "load", "save"]
