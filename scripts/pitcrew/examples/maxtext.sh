#!/bin/sh
# MaxText. enable_autocheckpoint has it save at SIGTERM and end, which is saved and not finished; its step stands on the
# output. Checkpoints lie in BASE/RUN/checkpoints.
# https://maxtext.readthedocs.io
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/maxtext/llama-8b/checkpoints" \
	--step-pattern maxtext \
	-- \
	python3 -m MaxText.train MaxText/configs/base.yml \
	base_output_directory=gs://BUCKET/maxtext run_name=llama-8b \
	enable_checkpointing=true async_checkpointing=true checkpoint_period=500 \
	enable_autocheckpoint=true
