"""DLIO without TensorFlow, which it imports at its start and needs for TensorFlow's loaders alone."""

import importlib.util
import sys
import types

if importlib.util.find_spec("tensorflow") is None:
    sys.modules["tensorflow"] = types.ModuleType("tensorflow")

from dlio_benchmark.main import main

if __name__ == "__main__":
    main()
