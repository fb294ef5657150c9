#!/bin/sh
# A JAX loop with Orbax. jax.distributed.initialize() installs the handler of SIGTERM; a CheckpointManager that is asked
# reached_preemption(step) in each step, or has a preemption policy among its save decisions, then saves. The loop writes
# its step into a file, or has none: then the checkpoints tell it.
# https://orbax.readthedocs.io
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/orbax/run" \
	--progress-file /tmp/step \
	-- \
	python3 train.py --checkpoint_dir=gs://BUCKET/orbax/run
