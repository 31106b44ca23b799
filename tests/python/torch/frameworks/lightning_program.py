"""pytorch-lightning over a folder of files: `fit` or `resume` in one process, or `ddp` of two; `processes` calls
functions of samples in worker processes."""

import os
import sys

import pytorch_lightning as lightning
import torch

import penstock.torch as pt


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.seen = []

    def training_step(self, batch, index):
        self.seen.append(batch["y"].tolist())
        return self.layer(batch["x"]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trained(loader, folder, checkpoint=None, model=None, **options):
    model = model or Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=folder,
        **options,
    )
    trainer.fit(model, loader, ckpt_path=checkpoint)
    return trainer, model


def flat(batches):
    return [number for batch in batches for number in batch]


def loader_of(folder, **options):
    generator = torch.Generator().manual_seed(5)
    return pt.DataLoader(pt.Files(f"{folder}/*.pt"), 4, shuffle=True, num_workers=2, generator=generator, **options)


def fit(folder):
    loader = loader_of(folder)
    _, model = trained(loader, folder, max_epochs=2)
    assert loader.stats()["road"] == "native"
    assert loader.stats()["samples"] == 16
    for epoch in (model.seen[:4], model.seen[4:]):
        assert sorted(flat(epoch)) == list(range(16))
    assert model.seen[:4] != model.seen[4:]


def made_there(sample):
    info = torch.utils.data.get_worker_info()
    assert info.num_workers == 2
    assert os.environ["PENSTOCK_TEST_PROCESS"] != str(os.getpid())
    return {**sample, "worker": info.id, "offset": getattr(info.dataset, "offset", 0)}


def init(worker):
    torch.utils.data.get_worker_info().dataset.offset = worker + 1


class WithOffset(pt.Files):
    offset = 0


def in_processes(folder, **options):
    os.environ["PENSTOCK_TEST_PROCESS"] = str(os.getpid())
    generator = torch.Generator().manual_seed(5)
    return pt.DataLoader(
        WithOffset(f"{folder}/*.pt").map(made_there),
        4,
        shuffle=True,
        num_workers=2,
        generator=generator,
        workers="processes",
        **options,
    )


class Checked(Model):
    def training_step(self, batch, index):
        assert (batch["offset"] == batch["worker"] + 1).all()
        return super().training_step(batch, index)


def processes(folder):
    _, threads = trained(loader_of(folder, persistent_workers=True), folder, max_epochs=2)
    loader = in_processes(folder, worker_init_fn=init, persistent_workers=True)
    _, model = trained(loader, folder, model=Checked(), max_epochs=2)
    assert model.seen == threads.seen
    assert loader.stats()["worker_processes"] == 2
    _, whole = trained(in_processes(folder), folder, max_steps=8)
    trainer, first = trained(in_processes(folder), folder, max_steps=2)
    assert first.seen == whole.seen[:2]
    trainer.save_checkpoint(f"{folder}/middle.ckpt")
    _, second = trained(in_processes(folder), folder, f"{folder}/middle.ckpt", max_steps=4)
    assert second.seen == whole.seen[2:4], (second.seen, whole.seen)


def resume(folder):
    _, whole = trained(loader_of(folder), folder, max_steps=8)
    trainer, first = trained(loader_of(folder), folder, max_steps=2)
    assert first.seen == whole.seen[:2]
    trainer.save_checkpoint(f"{folder}/middle.ckpt")
    torch.manual_seed(99)
    _, second = trained(loader_of(folder), folder, f"{folder}/middle.ckpt", max_steps=4)
    assert second.seen == whole.seen[2:4], (second.seen, whole.seen)


def ddp(folder):
    trainer, model = trained(loader_of(folder), folder, max_epochs=1, strategy="ddp", devices=2)
    loader = trainer.train_dataloader
    assert isinstance(loader, pt.DataLoader)
    assert loader.native is not None
    mine = torch.tensor(flat(model.seen))
    everyone = [torch.empty_like(mine) for _ in range(2)]
    torch.distributed.all_gather(everyone, mine)
    assert sorted(torch.cat(everyone).tolist()) == list(range(16))


if __name__ == "__main__":
    {"fit": fit, "resume": resume, "ddp": ddp, "processes": processes}[sys.argv[1]](sys.argv[2])
