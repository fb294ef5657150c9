#!/bin/sh
# A plain JAX loop that handles no signal. It would die of SIGTERM, so it is sent none: a request to save waits for its next
# checkpoint, and maintenance too. It finds the checkpoint to resume from in PITCREW_CHECKPOINT, and the number of its
# attempt in PITCREW_ATTEMPT.
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/jax/run" \
	--progress-file /tmp/step \
	--on-maintenance natural \
	-- \
	python3 train.py
