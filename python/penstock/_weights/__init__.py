"""Weights of models: the API of the package safetensors, files of several shards, and what engines share."""
