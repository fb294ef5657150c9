#!/bin/sh
# Start small, then scale: one training on one chip, then on a small slice, then on the full one. Each rung gives every core the same
# batch, trains the same number of examples, and has a directory of its own. Call it with the rung: device and small on a v2-8,
# full on every worker of a v2-32. Go on when the loss is as you expect it.
#
#   pitcrew scale --from v2-2 --to v2-8 --global-batch 256 --steps 4000     # the numbers of the small rung
#   sh ladder.sh device
#   sh ladder.sh small
#   sh ladder.sh full
#   pitstop scale gs://BUCKET/ladder/device gs://BUCKET/ladder/small gs://BUCKET/ladder/full
#
# The last line compares the examples a second of each chip, and says what to do before a longer training.
set -eu
rung="${1:-none}" type=""
case "$rung" in
device)
	# libtpu then shows the training chip 0 alone, with its two cores.
	export TPU_VISIBLE_CHIPS=0 TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1 TPU_PROCESS_BOUNDS=1,1,1
	type=v2-2
	;;
small | full) ;; # the metadata server knows the type
*)
	echo "ladder.sh takes device, small or full" >&2
	exit 2
	;;
esac
# The batch and the steps are those of one chip; the training finds its own in its environment.
exec pitcrew run \
	--checkpoint-dir "gs://BUCKET/ladder/$rung" \
	--progress-file /tmp/step \
	--accelerator "$type" \
	--scale-from v2-2 --global-batch 256 --steps 4000 \
	-- \
	sh -c 'exec python3 train.py --batch="$PITCREW_GLOBAL_BATCH" --steps="$PITCREW_STEPS"'
