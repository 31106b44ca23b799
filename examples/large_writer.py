"""An array that is written piece by piece and may be larger than memory, appended to by a second run, and read row by
row. The file appears whole; a run that is killed while it appends leaves the rows that were there.

python large_writer.py FILE.npy [MEGABYTES]
"""

import resource
import sys

import penstock

path = sys.argv[1]
pieces = int(sys.argv[2]) if len(sys.argv) > 2 else 64  # of 1 MiB


def peak() -> int:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def write(first: int, count: int, resume: bool) -> None:
    with penstock.Writer(path, resume=resume, sync=False) as writer:
        for number in range(first, first + count):
            writer.append(penstock.full([256, 1024], number, dtype="float32"))


before = peak()
write(0, pieces, resume=False)
write(pieces, pieces // 2, resume=True)
print(f"wrote {pieces + pieces // 2} MB with {'less' if peak() - before <= 16 else 'MORE'} than 16 MB of memory")

rows = penstock.rows(path, mmap=False)  # each row is read when it is wanted
print(f"{len(rows)} rows; the last begins with {rows[-1][0].item():.0f}")
