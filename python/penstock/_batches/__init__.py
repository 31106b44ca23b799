"""What loops over batches have in Python: the program's functions, streams, ranks, statistics."""
