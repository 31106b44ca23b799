"""Draws what a loader gives as SVG pictures: a batch, one digit as augmentation varies it, clips and their padding.

python draw_batches.py images.npy labels.npy 'clips/*.pt' FOLDER
"""

import sys
from pathlib import Path

import penstock

SIDE = 8  # pixels of the picture for one element


def drawn(array: penstock.Tensor, left: int, valid: int | None = None) -> str:
    """The elements of a matrix as squares; rows from `valid` on are padding."""
    squares = []
    for y, row in enumerate(array.tolist()):
        for x, value in enumerate(row):
            grey = 255 - min(255, round(value * 255 / 16))
            colour = "#f2c9a1" if valid is not None and y >= valid else f"rgb({grey},{grey},{grey})"
            place = f'x="{left + x * SIDE}" y="{y * SIDE}" width="{SIDE}" height="{SIDE}"'
            squares.append(f'<rect {place} fill="{colour}"/>')
    return "".join(squares)


def picture(arrays: list[penstock.Tensor], notes: list[str], valid: list[int] | None = None) -> str:
    wide = max(array.shape[1] for array in arrays) * SIDE + 6
    high = max(array.shape[0] for array in arrays) * SIDE
    parts = []
    for i, (array, note) in enumerate(zip(arrays, notes, strict=True)):
        parts.append(drawn(array, i * wide, valid[i] if valid else None))
        parts.append(f'<text x="{i * wide}" y="{high + 14}" font-family="sans-serif" font-size="12">{note}</text>')
    size = f'width="{len(arrays) * wide}" height="{high + 20}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><rect {size} fill="white"/>{"".join(parts)}</svg>\n'


images, labels, clips, folder = sys.argv[1:]
out = Path(folder)

pairs = penstock.zip(penstock.rows(images), penstock.rows(labels))
x, y = next(iter(penstock.DataLoader(pairs, batch_size=10, shuffle=True, seed=1)))
(out / "batch.svg").write_text(picture(list(x), [str(label) for label in y.tolist()]))

varied = penstock.subset(penstock.rows(images), [3]).cast("float32").random_crop((7, 7)).random_flip(dims=-1)
loader = penstock.DataLoader(varied, seed=1)
epochs = [batch[0] for _ in range(10) for batch in loader]
(out / "augmented.svg").write_text(picture(epochs, [f"epoch {i}" for i in range(10)]))

padded = next(iter(penstock.DataLoader(penstock.files(clips), batch_size=10, collate=penstock.pad(lengths=True))))
lengths = padded["lengths"].tolist()
(out / "padded.svg").write_text(picture(list(padded["values"]), [f"{n} rows" for n in lengths], lengths))
print(f"a batch of {x.shape}, ten epochs of one digit, and clips of {min(lengths)} to {max(lengths)} rows")
