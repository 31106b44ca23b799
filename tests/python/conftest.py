"""What all Python tests share. torch and safetensors are peers here, never needed by penstock itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How quickly a machine makes examples is nothing of Penstock's.
settings.register_profile("penstock", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("penstock")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Files that other programs wrote; skips where the folder is absent."""
    folder = Path(os.environ.get("PENSTOCK_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder}; set PENSTOCK_CORPUS")
    return folder
