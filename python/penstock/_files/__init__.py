"""Paths and open files: which file one is, what bytes it has, and how one file replaces another."""
