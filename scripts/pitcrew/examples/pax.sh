#!/bin/sh
# Pax. exit_after_ondemand_checkpoint has it end after the save that SIGTERM asked for. Checkpoints lie in
# JOB_LOG_DIR/checkpoints.
# https://github.com/google/paxml
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/pax/lm/checkpoints" \
	--step-pattern pax \
	-- \
	python3 paxml/main.py \
	--exp=tasks.lm.params.lm_cloud.LmCloudSpmd2B \
	--job_log_dir=gs://BUCKET/pax/lm \
	--jax_fully_async_checkpoint=true \
	--exit_after_ondemand_checkpoint=true
