#!/bin/sh
# Pax on a Multislice: the same script on every worker of every slice. Pax counts hosts across all slices and wants the address
# of the first one. The crews agree on that address anew for each attempt, so the shell of the attempt has to read the variables:
# they are in single quotes. To install Pax and a unit everywhere, with QR the queued resource:
# pitcrew install --all-workers --queued-resource QR --zone ZONE --pip "paxml jax[tpu]" -- FLAGS OF RUN -- sh -c '...'
# https://github.com/google/paxml
set -eu
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/pax/lm/checkpoints" \
	--step-pattern pax \
	-- \
	sh -c 'exec python3 paxml/main.py \
		--exp=tasks.lm.params.lm_cloud.LmCloudSpmd2B \
		--job_log_dir=gs://BUCKET/pax/lm \
		--jax_fully_async_checkpoint=true \
		--exit_after_ondemand_checkpoint=true \
		--num_hosts="$PITCREW_NUM_HOSTS" \
		--host_index="$PITCREW_HOST_INDEX" \
		--server_addr="$PITCREW_SERVER_ADDR"'
