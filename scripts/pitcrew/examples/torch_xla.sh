#!/bin/sh
# PyTorch/XLA. CheckpointManager(chkpt_on_preemption=True), its default, notices SIGTERM in each step and saves. It leaves
# no commit marker: where checkpoints are in a bucket, have the loop write an empty object DONE into a step's directory when
# its save has returned, or no save counts as complete.
# https://docs.pytorch.org/xla/master/perf/spmd_distributed_checkpoint.html
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/torch/run" \
	--progress-file /tmp/step \
	-- \
	env PJRT_DEVICE=TPU python3 train.py --checkpoint_dir=gs://BUCKET/torch/run
