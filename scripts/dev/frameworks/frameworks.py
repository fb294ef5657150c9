"""Records what training frameworks write: names, sizes and order of the files of complete and torn checkpoints.

  python3 scripts/dev/frameworks/frameworks.py shared/checkpoint/testdata/frameworks.json

Python needs jax, orbax-checkpoint, torch, transformers, accelerate and lightning, in builds for CPUs. Each framework saves steps 10 and
20 with its own library, once to the end. A second time it is killed while it writes step 20. A test of shared/checkpoint holds the
table of layouts against the record, so that `go test` needs no Python.
"""

import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile


def orbax(folder, size):
    import numpy as np
    import orbax.checkpoint as ocp

    with ocp.CheckpointManager(folder) as manager:
        for step in (10, 20):
            manager.save(step, args=ocp.args.StandardSave({"w": np.random.rand(size)}))


def dcp_rank(rank, folder, size):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    dist.init_process_group("gloo", init_method=f"file://{folder}.meet", rank=rank, world_size=2)
    for step in (10, 20):
        dcp.save({"w": torch.rand(size)}, checkpoint_id=f"{folder}/{step}")
    dist.destroy_process_group()


def dcp(folder, size):
    import torch.multiprocessing

    torch.multiprocessing.spawn(dcp_rank, (folder, size), nprocs=2)


def trainer(folder, size):
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

    class Model(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.layer = torch.nn.Linear(size, 1)
            self.post_init()

        def forward(self, x=None, labels=None):
            y = self.layer(x)
            return {"loss": ((y - labels) ** 2).mean(), "logits": y}

    data = [{"x": torch.ones(size), "labels": torch.zeros(1)} for _ in range(8)]
    told = TrainingArguments(folder, max_steps=20, save_steps=10, per_device_train_batch_size=2, use_cpu=True, report_to=[], disable_tqdm=True)
    Trainer(Model(PretrainedConfig()), told, train_dataset=data).train()


def lightning(folder, size):
    import torch
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(size, 1)

        def training_step(self, batch, index):
            return self.layer(batch).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.DataLoader(torch.ones(10, size))
    saves = ModelCheckpoint(folder, save_top_k=-1)
    Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[saves]).fit(Model(), data)


# The package that has the version, what saves, and the name at whose sight it is killed.
frameworks = {
    "Orbax": ("orbax-checkpoint", orbax, r"^20\..*tmp"),
    "PyTorch's distributed checkpoints": ("torch", dcp, r"^20/.*\.distcp$"),
    "Trainer of Hugging Face": ("transformers", trainer, r"^checkpoint-20/optimizer\.pt$"),
    "Lightning": ("lightning", lightning, None),
}


def files(folder):
    """The files in the order in which they were written."""
    found = []
    for top, _, names in os.walk(folder):
        for name in names:
            try:
                stat = os.stat(path := os.path.join(top, name))
                found.append((stat.st_mtime_ns, os.path.relpath(path, folder), stat.st_size))
            except FileNotFoundError:
                pass  # it was just renamed
    return [{"name": name, "size": size} for _, name, size in sorted(found)]


def record(name, torn):
    package, _, sight = frameworks[name]
    with tempfile.TemporaryDirectory() as top:
        folder = top + "/run"
        command = [sys.executable, __file__, "--save", name, folder, str(4_000_000 if torn else 8)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while child.poll() is None:
            if torn and any(re.search(sight, file["name"]) for file in files(folder)):
                os.killpg(child.pid, signal.SIGKILL)
                break
        if (child.wait() == 0) == torn:
            raise SystemExit(f"{name}: it ended with {child.returncode}")
        return {
            "framework": name, "version": importlib.metadata.version(package).split("+")[0],
            "step": 10 if torn else 20, "torn": torn, "files": files(folder),
        }


def main():
    if sys.argv[1] == "--save":
        frameworks[sys.argv[2]][1](sys.argv[3], int(sys.argv[4]))
        return
    records = [record(name, torn) for name, (_, _, sight) in frameworks.items() for torn in (False, True) if sight or not torn]
    with open(sys.argv[1], "w") as out:
        json.dump(records, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
