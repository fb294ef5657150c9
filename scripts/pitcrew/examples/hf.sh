#!/bin/sh
# The Trainer of Hugging Face: its progress bar tells the step. It names its checkpoints checkpoint-500, which is no name
# that counts as a step directory; so no lease and no natural save, but restarts and reports.
set -eu
exec pitcrew run \
	--step-pattern hf \
	-- \
	python3 run_clm.py --output_dir /data/out --save_steps 500
