#!/bin/sh
# A start-up script: the node's metadata key startup-script. It fetches pitcrew and runs the training under systemd, on
# every worker and in every life of the TPU. The node's metadata key pitstop-checkpoint-dir says where checkpoints are.
set -eu
gcloud storage cp "gs://BUCKET/pitcrew-HASH" /usr/local/bin/pitcrew.new
chmod 0755 /usr/local/bin/pitcrew.new
mv /usr/local/bin/pitcrew.new /usr/local/bin/pitcrew
# Several workers without a checkpoint directory need one key, and any user can read this script: fetch the key, and give install
# --peer-key /run/pitcrew.key.
#   (umask 077 && gcloud secrets versions access latest --secret=pitcrew-key >/run/pitcrew.key)
cd /opt/training
pitcrew install -- --progress-file /tmp/step -- python3 train.py
