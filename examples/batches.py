"""The three shapes of a data set as batches: rows of arrays, loose files, and clips padded to the longest of the batch.

python batches.py images.npy labels.npy 'digits/*.pt' 'clips/*.pt'
"""

import sys
from typing import Any

import penstock

images, labels, digits, clips = sys.argv[1:]
options: dict[str, Any] = {"batch_size": 32, "shuffle": True, "num_workers": 2}

for x, y in penstock.DataLoader(penstock.zip(penstock.rows(images), penstock.rows(labels)), **options):
    print("rows  ", x.shape, x.dtype, y.shape, y.dtype)
    break

for batch in penstock.DataLoader(penstock.files(digits), **options):
    print("files ", {key: (leaf.shape, str(leaf.dtype)) for key, leaf in batch.items()})
    break

for batch in penstock.DataLoader(penstock.files(clips), collate=penstock.pad(lengths=True), **options):
    print("padded", batch["values"].shape, "lengths", batch["lengths"].tolist()[:8], "...")
    break
