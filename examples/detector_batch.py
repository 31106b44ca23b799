"""Batches for a detector: images of different heights and widths with any number of boxes each, padded in two
dimensions, with the sizes that each sample had. Images are cast and scaled on their way into the batch.

python detector_batch.py
"""

import penstock


def sample(index: int) -> dict[str, penstock.Tensor]:
    """In place of a decoder: an image with its boxes (left, top, right, bottom) and their classes."""
    height, width, boxes = 40 + index * 7 % 23, 50 + index * 5 % 31, 1 + index % 4
    return {
        "image": penstock.full([3, height, width], index % 256, dtype="uint8"),
        "boxes": penstock.tensor([[0.0, 0.0, width - i, height - i] for i in range(boxes)], dtype="float32"),
        "classes": penstock.tensor([[(index + i) % 10] for i in range(boxes)]),
    }


# Names say which tensors a step is for.
images = penstock.dataset(64, sample).cast("float32", keys="image").scale(1 / 255, keys="image")
# Height and width are an image's last two dimensions; of boxes and classes these are their number and their parts.
pad = penstock.pad(dims=[-2, -1], lengths=True)
boxes = useful = padded = 0
for batch in penstock.DataLoader(images, batch_size=8, shuffle=True, num_workers=2, collate=pad):
    sizes = batch["image"]["lengths"].tolist()  # of each image: height and width
    boxes += sum(number for number, _ in batch["boxes"]["lengths"].tolist())
    useful += sum(height * width for height, width in sizes)
    padded += batch["image"]["values"].numel() // 3
print(
    f"{boxes} boxes; {useful / padded:.0%} of the pixels are images; the last batch is {batch['image']['values'].shape}"
)
