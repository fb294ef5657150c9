#!/bin/sh
# MaxText. With enable_autocheckpoint it saves at SIGTERM and ends; pitcrew takes that as a save, not as the end. Its step is
# on the output. Checkpoints are in BASE/RUN/checkpoints. Before the packages on PyPI its module was MaxText.train.
# https://maxtext.readthedocs.io
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/maxtext/llama-8b/checkpoints" \
	--step-pattern maxtext \
	-- \
	python3 -m maxtext.trainers.pre_train.train \
	base_output_directory=gs://BUCKET/maxtext run_name=llama-8b \
	enable_checkpointing=true async_checkpointing=true checkpoint_period=500 \
	enable_autocheckpoint=true
