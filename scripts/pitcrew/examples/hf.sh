#!/bin/sh
# The Trainer of Hugging Face: its progress bar tells the step. A checkpoint-500 is complete with its trainer_state.json. The folder
# has to be one that all workers and the next machine see, such as a mounted bucket. From Transformers 5 on it saves on SIGTERM, three
# seconds later, with --enable_jit_checkpoint.
set -eu
exec pitcrew run \
	--checkpoint-dir file:///data/out \
	--step-pattern hf \
	-- \
	python3 run_clm.py --output_dir /data/out --save_steps 500 --enable_jit_checkpoint True
