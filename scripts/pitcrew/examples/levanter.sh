#!/bin/sh
# Levanter. Its checkpoints lie in BASE/RUN, its step stands on the output.
# https://levanter.readthedocs.io
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/levanter/run" \
	--step-pattern levanter \
	-- \
	python3 -m levanter.main.train_lm --config_path config.yaml \
	--trainer.checkpointer.base_path gs://BUCKET/levanter --trainer.id run
