#!/bin/sh
# PyTorch/XLA. CheckpointManager(chkpt_on_preemption=True), its default, notices SIGTERM in each step and saves. A
# checkpoint is complete with .metadata and .manager_metadata, which its manager writes last.
# https://docs.pytorch.org/xla/master/perf/spmd_distributed_checkpoint.html
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/torch/run" \
	--progress-file /tmp/step \
	-- \
	env PJRT_DEVICE=TPU python3 train.py --checkpoint_dir=gs://BUCKET/torch/run
