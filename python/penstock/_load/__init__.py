"""Loads in the background, into memory that is there already, with their progress told."""
