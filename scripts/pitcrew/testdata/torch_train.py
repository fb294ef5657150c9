"""Trainings on CPUs that SIGTERM has saved at the step where they are: a loop with PyTorch's distributed checkpoints, and the Trainer of
Hugging Face, which saves on SIGTERM by itself. Each step adds 1 to the only weight, so the weight tells how many were trained."""

import os
import signal
import sys
import time

import torch

steps = 100_000
resume = os.environ.get("PITCREW_CHECKPOINT", "").removeprefix("file://")


def begins(step, trained):
    print(f"resume={os.environ.get('PITCREW_RESUME_STEP')} begins={step} trained={round(trained.item())}", flush=True)


def tell(step, first, progress):
    with open(progress, "w") as f:
        f.write(str(step))
    if step == first + 20:
        print(f"trains in attempt from {first}", flush=True)


def dcp(folder, progress):
    import torch.distributed.checkpoint as dcp

    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    state = {"w": torch.zeros(1), "step": torch.zeros(1, dtype=torch.int64)}
    if resume:
        dcp.load(state, checkpoint_id=resume)
    first = int(state["step"])
    begins(first, state["w"])
    for step in range(first + 1, steps):
        state["w"] += 1
        time.sleep(0.01)
        state["step"][0] = step
        tell(step, first, progress)
        if asked:
            dcp.save(state, checkpoint_id=f"{folder}/{step}")
            print(f"saved={step}", flush=True)
            sys.exit(0)


def trainer(folder, progress):
    from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint

    class Model(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.w = torch.nn.Parameter(torch.zeros(1))
            self.post_init()

        def forward(self, x=None, labels=None):
            time.sleep(0.01)
            return {"loss": -self.w.sum(), "logits": x}

    class Tell(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, **kwargs):
            self.first = state.global_step
            begins(self.first, model.w)

        def on_step_end(self, args, state, control, **kwargs):
            tell(state.global_step, self.first, progress)

        def on_train_end(self, args, state, control, **kwargs):
            print(f"saved={get_last_checkpoint(folder).rpartition('-')[2]}", flush=True)  # it saves before the last step of all

    told = TrainingArguments(
        folder, max_steps=steps, per_device_train_batch_size=1, optim="sgd", learning_rate=1, lr_scheduler_type="constant", max_grad_norm=0,
        save_strategy="no", enable_jit_checkpoint=True, use_cpu=True, report_to=[], disable_tqdm=True, logging_strategy="no",
    )
    data = [{"x": torch.ones(1), "labels": torch.zeros(1)}] * 8
    Trainer(Model(PretrainedConfig()), told, train_dataset=data, callbacks=[Tell()]).train(resume_from_checkpoint=resume or None)


{"dcp": dcp, "trainer": trainer}[sys.argv[1]](sys.argv[2], sys.argv[3])
