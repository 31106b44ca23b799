"""A small language model that trains on windows of a file of tokens. It is stopped at any time and goes on exactly.

    python train.py run --steps 100    # until it ends, or somebody kills it
    python train.py run --steps 200    # goes on behind the last checkpoint

Tokens are documents one behind the other in one array, with the lengths of the documents in another. Each epoch joins
the documents in a new order and cuts them into windows, so that every token is seen once an epoch; y is x one token
further on. Nothing but the windows of a batch is read. With the last documents, which training does not see, the model
is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

import penstock.torch as pt

WINDOW = 32
BATCH = 16
VOCABULARY = 64
HELD_OUT = 20  # documents that are not trained on


def write_tokens(folder: Path) -> None:
    """In place of a tokenizer: documents in which each token follows from the one before, but for some noise."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(5, 200, 400)
    noise = rng.random(lengths.sum()) < 0.1
    tokens = np.zeros(lengths.sum(), np.uint16)
    for i in range(1, len(tokens)):
        tokens[i] = rng.integers(VOCABULARY) if noise[i] else (tokens[i - 1] * 5 + 3) % VOCABULARY
    np.save(folder / "lengths.npy", lengths)
    np.save(folder / "tokens.npy", tokens)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.mix(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.feed(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, width: int = 32, heads: int = 2, blocks: int = 2) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(WINDOW, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.head = nn.Linear(width, VOCABULARY)

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = self.blocks(self.tokens(x) + self.places(torch.arange(x.shape[1])))
        return nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), y.flatten())


def windows(folder: Path) -> tuple[pt.Dataset, pt.Dataset]:
    """What is trained on, and what is held out: x and y as torch's embeddings and losses take them."""
    lengths = np.load(folder / "lengths.npy")
    starts = np.cumsum(lengths) - lengths
    tokens = pt.Rows(folder / "tokens.npy")
    trained = tokens.slices(starts[:-HELD_OUT], lengths[:-HELD_OUT]).windows(WINDOW, shift=1, join="shuffled")
    held_out = tokens.slices(starts[-HELD_OUT:], lengths[-HELD_OUT:]).windows(WINDOW, shift=1, join="ordered")
    return trained.cast("int64"), held_out.cast("int64")


def train(folder: Path, steps: int, every: int) -> None:
    trained, held_out = windows(folder)
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = pt.DataLoader(
        trained, batch_size=BATCH, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(1)
    )
    step = 0
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.exists():
        state = pt.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        loader.load_state_dict(state["loader"])
        step = state["step"]
        print(f"goes on behind step {step}", flush=True)
    while step < steps:
        for x, y in loader:
            loss = model.loss(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            print(f"step {step}: loss {loss.item():.6f}", flush=True)
            if step % every == 0:
                # Whole or not at all, so that the program may be killed here too.
                parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                pt.save({**parts, "loader": loader.state_dict()}, checkpoint)
            if step == steps:
                break
    with torch.no_grad():
        losses = [model.loss(x, y).item() for x, y in pt.DataLoader(held_out, batch_size=BATCH)]
    print(f"held out: loss {sum(losses) / len(losses):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=10, help="steps from checkpoint to checkpoint")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "tokens.npy").exists():
        write_tokens(options.folder)
    train(options.folder, options.steps, options.every)


if __name__ == "__main__":
    main()
