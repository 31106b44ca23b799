"""transformers' Trainer with a tiny model."""

import sys

import torch
from transformers import Trainer, TrainingArguments

import penstock.torch as pt


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.seen = []

    def forward(self, x, labels):
        self.seen += labels.tolist()
        out = self.layer(x).squeeze(-1)
        return {"loss": (out - labels).square().mean(), "logits": out}


class Counted(pt.Files):
    """Counts the batches that are read at once."""

    reads = 0

    def __getitems__(self, indices):
        type(self).reads += 1
        return super().__getitems__(indices)


def train(folder):
    files = Counted(f"{folder}/*.pt")
    dataset = files.map(lambda sample: {"x": sample["x"], "labels": sample["y"]})
    options = TrainingArguments(
        output_dir=f"{folder}/out",
        num_train_epochs=2,
        per_device_train_batch_size=4,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        remove_unused_columns=False,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    model = Model()
    trainer = Trainer(model=model, args=options, train_dataset=dataset, eval_dataset=dataset)
    trainer.train()
    assert sorted(model.seen) == sorted([*range(16)] * 2)
    assert Counted.reads == 8
    assert trainer.evaluate()["eval_loss"] > 0


if __name__ == "__main__":
    {"train": train}[sys.argv[1]](sys.argv[2])
