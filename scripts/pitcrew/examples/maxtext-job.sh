#!/bin/sh
# MaxText by its own launcher of jobs, which orders a queued resource and has every worker run the command from its start-up script.
# TPUs that are created again run it again. Call this in a folder with MaxText, maxtext.sh and the program pitcrew: the launcher
# copies that folder to each worker. It deletes the TPUs when the command has ended, and pitcrew ends with the training.
# https://github.com/AI-Hypercomputer/maxtext
set -eu
exec python3 multihost_job.py \
	--RUN_NAME=llama-8b --NUM_SLICES=2 --TPU_TYPE=v5litepod-16 --VERSION=v2-alpha-tpuv5-lite \
	--BUCKET_NAME=BUCKET --BUCKET_DIR=maxtext \
	--ENABLE_AUTOCHECKPOINT=true \
	--CQR_EXTRA_ARGS="--labels=pitstop-policy=night --metadata=pitstop-checkpoint-dir=gs://BUCKET/maxtext/llama-8b/checkpoints" \
	--COMMAND='export PATH="$PWD:$PATH"; bash setup.sh && sh maxtext.sh'
