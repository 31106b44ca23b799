"""Tokens for a language model: documents of different lengths, packed into rows of 64 by best fit, beside the same
documents padded. The run is stopped and goes on exactly.

python packed_tokens.py
"""

from typing import Any

import penstock

ROW = 64


def document(index: int) -> penstock.Tensor:
    """In place of a tokenizer: 5 to 45 tokens."""
    return penstock.full([5 + index * 17 % 41], 1000 + index)


# Lengths are read once, of documents in memory here; of files they are those that the headers tell.
documents = penstock.dataset([document(index) for index in range(400)])
rows = penstock.pack_sequences(documents, ROW)
options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 1, "num_workers": 2}

tokens = places = 0
sums = []
loader = penstock.DataLoader(rows, **options)
for number, batch in enumerate(loader):
    if number == 5:
        state = loader.state_dict()  # after this batch, which is the sixth
    # Each row has the tokens, the place of each in its document, and which document of the row it is, from 1.
    tokens += sum(segment > 0 for row in batch["segments"].tolist() for segment in row)
    places += batch["tokens"].numel()
    sums.append(batch["tokens"].sum().item())
print(f"{len(documents)} documents in {len(rows)} rows: {tokens / places:.1%} of the places are tokens")

padded = penstock.DataLoader(documents, batch_size=16, collate=penstock.pad())
print(f"padded in batches of 16: {tokens / sum(batch.numel() for batch in padded):.1%}")

resumed = penstock.DataLoader(rows, **options)
resumed.load_state_dict(state)
rest = [batch["tokens"].sum().item() for batch in resumed]
print("resumed after batch 6:", "the same batches" if rest == sums[6:] else "other batches")
