"""transformers' Trainer with a tiny model, whose samples are made in its process, or in worker `processes`."""

import os
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
    trained(files.map(lambda sample: {"x": sample["x"], "labels": sample["y"]}), folder)
    assert Counted.reads == 8 + 2  # of two epochs, and of the evaluation


def made_there(sample):
    assert torch.utils.data.get_worker_info().num_workers == 2
    assert os.environ["PENSTOCK_TEST_PROCESS"] != str(os.getpid())
    return {"x": sample["x"], "labels": sample["y"]}


class WithOurLoader(Trainer):
    """Takes its batches from a loader of ours, as programs do that know a better one."""

    def get_train_dataloader(self):
        self.loader = pt.DataLoader(
            self.train_dataset, 4, shuffle=True, num_workers=2, persistent_workers=True, workers="processes"
        )
        return self.accelerator.prepare(self.loader)


def processes(folder):
    os.environ["PENSTOCK_TEST_PROCESS"] = str(os.getpid())
    files = pt.Files(f"{folder}/*.pt")
    trained(files.map(made_there), folder, WithOurLoader, dataloader_num_workers=2)
    trained(files.map(made_there, processes=True), folder, dataloader_num_workers=2, dataloader_persistent_workers=True)


def trained(dataset, folder, kind=Trainer, **more):
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
        **more,
    )
    model = Model()
    trainer = kind(model=model, args=options, train_dataset=dataset, eval_dataset=dataset)
    trainer.train()
    assert sorted(model.seen) == sorted([*range(16)] * 2)
    assert trainer.evaluate()["eval_loss"] > 0


if __name__ == "__main__":
    {"train": train, "processes": processes}[sys.argv[1]](sys.argv[2])
